"""Mixed precision: where values are cast, and that results stay near those of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax.transform import ToMixedPrecision
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Chain:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32")):
        for i, j in T.grid(2, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        w: R.Tensor((3, 4), "float32"),
        v: R.Tensor((4, 4), "float32"),
    ):
        cls = Chain
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.matmul(b, v)
            pair = (c, b)
            d = R.add(pair[0], R.const(1.0, "float32"))
            e = R.call_tir(cls.twice, (d,), out_sinfo=R.Tensor((2, 4), "float32"))
            f = R.multiply(e, pair[1])
            g = R.sum(f, axis=1)
            R.output(g)
        return g


def _run(mod: tvm.IRModule, *args: np.ndarray) -> np.ndarray:
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in args]).numpy()


def _casts(func: Any) -> list[str]:
    values = [b.value for b in func.body.blocks[0].bindings]
    return [
        str(value.attrs.dtype)
        for value in values
        if isinstance(value, relax.Call) and value.op.name == "relax.astype"
    ]


@pytest.mark.parametrize("out_dtype", ["float32", "float16"])
def test_results_stay_near_those_of_the_program(out_dtype: str) -> None:
    mod = ToMixedPrecision(out_dtype)(Chain)
    assert relax.analysis.well_formed(mod)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, shape).astype("float32") for shape in ((2, 3), (3, 4), (4, 4))]
    found, wanted = _run(mod, *arrays), _run(Chain, *arrays)
    assert found.dtype == wanted.dtype == np.float32
    np.testing.assert_allclose(found, wanted, 2e-2, 2e-2)
    assert not np.array_equal(found, wanted)


def test_values_used_in_float16_alone_are_cast_where_they_are_defined() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.matmul(a, w)
                c = R.matmul(a, b)
                R.output(c)
            return c

    main = ToMixedPrecision()(Mod)["main"]
    assert _casts(main) == ["float16"] * 4  # x, w, a and b, once each
    kinds = [
        b.value.attrs.out_dtype
        for b in main.body.blocks[0].bindings
        if b.value.op.name == "relax.matmul"
    ]
    assert kinds == ["float32"] * 3


def test_constants_that_float16_cannot_hold_keep_float32() -> None:
    def module(value: float) -> tvm.IRModule:
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo((2, 2), "float32"))
        with builder.function("main", [x]):
            with builder.dataflow():
                y = builder.emit(relax.op.matmul(x, x))
                z = builder.emit_output(relax.op.add(y, relax.const(value, "float32")))
            builder.emit_func_output(z)
        return builder.get()

    assert _casts(ToMixedPrecision("float16")(module(3e5))["main"]) == ["float16", "float32"]
    narrow = _casts(ToMixedPrecision("float16")(module(3.0))["main"])
    assert narrow == ["float16", "float16", "float32"]


def test_parameters_become_float16_by_name() -> None:
    main = ToMixedPrecision(fp16_input_names=["w"])(Chain)["main"]
    assert [p.struct_info.dtype for p in main.params] == ["float32", "float16", "float32"]
    assert main.ret_struct_info.dtype == "float32"


def test_bindings_outside_of_dataflow_blocks_stay() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2, 2), "float32")):
            return R.matmul(x, x)

    assert ToMixedPrecision()(Mod)["main"] is Mod["main"]


def test_policies_of_programs_hold() -> None:
    op = tvm.ir.Op.get("relax.matmul")
    tvm.ir.register_op_attr("relax.matmul", "TMixedPrecisionPolicy", 2)
    try:
        assert _casts(ToMixedPrecision()(Chain)["main"]) == []
    finally:
        op.reset_attr("TMixedPrecisionPolicy")


def test_out_dtype_is_checked() -> None:
    with pytest.raises(TVMError, match="requires out_dtype float16 or float32, got int8"):
        ToMixedPrecision("int8")
