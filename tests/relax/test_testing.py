"""Programs as trees, and the modules that tests of back ends begin with."""

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.testing import (
    dump_ast,
    get_relax_attention_module,
    get_relax_matmul_module,
    get_relax_stacked_attention_module,
)
from tvm.script import relax as R


def run(mod, *arrays):
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in arrays]).numpy()


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_trees_of_expressions() -> None:
    x = relax.Var("x", R.Tensor((2, tvm.tir.Var("n", "int64")), "float32"))
    assert dump_ast(x, include_struct_info_annotations=False) == 'Var(name_hint="x")'
    text = dump_ast(relax.op.sum(x, axis=1), include_struct_info_annotations=False)
    joined = "".join(text.split())
    assert joined.startswith('Call(op=Op(name="relax.sum"),args=[Var(name_hint="x")],attrs={')
    assert '"keepdims":False' in joined
    assert "PrimExpr(value=`n: int64`)" in dump_ast(x)
    with_types = dump_ast(x, include_type_annotations=True)
    assert "DynTensorType(ndim=2, dtype=float32)" in with_types


def test_trees_of_functions() -> None:
    @R.function
    def func(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.add(x, R.const(1, "float32"))
            gv = y
            R.output(gv)
        return gv

    text = dump_ast(func)
    for part in ("Function(", "params=", "SeqExpr(", "DataflowBlock(", "VarBinding(", "Constant("):
        assert part in text
    assert '"global_symbol": "func"' in text and "is_pure=True" in text


def test_products() -> None:
    mod = get_relax_matmul_module(
        (2, 3), (4, 3), "float32", transposed_y=True, bias_shape=(4,), activation=relax.op.nn.relu
    )
    x, y, bias = random(2, 3), random(4, 3), random(4)
    want = np.maximum(x @ y.T + bias, 0)
    np.testing.assert_allclose(run(mod, x, y, bias), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["split", "strided_slice"])
def test_stacked_attention_is_attention(op) -> None:
    b, s, n, h = 1, 3, 2, 4
    stacked = random(b, s, 3 * n * h)
    parts = [part.reshape(b, s, n, h) for part in np.split(stacked, 3, axis=2)]
    plain = get_relax_attention_module(*[(b, s, n, h)] * 3, dtype="float32")
    mod = get_relax_stacked_attention_module(stacked, b, s, n, h, h, op)
    np.testing.assert_allclose(run(mod, stacked), run(plain, *parts), rtol=1e-5, atol=1e-6)
