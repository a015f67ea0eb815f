"""Kernels of fused functions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.error import OpNotImplemented
from tvm.ir.op import register_op
from tvm.relay.backend.kernels import KernelCompiler, kernel_name
from tvm.relay.backend.name_transforms import mangle_module_name
from tvm.relay.backend.te_compiler import lower_to_primfunc
from tvm.relay.transform import FuseOps, InferType
from tvm.target import Target


def fused(body: relay.Expr, level: int = 2) -> list[relay.Function]:
    func = relay.Function(relay.analysis.free_vars(body), body)
    mod = FuseOps(level)(InferType()(tvm.IRModule.from_expr(func)))
    nodes = relay.analysis.post_order(mod["main"])
    return [n.op for n in nodes if isinstance(n, relay.Call) and isinstance(n.op, relay.Function)]


def x(*shape: int) -> relay.Var:
    return relay.var("x", shape=shape or (4, 8))


def test_names_list_the_operators() -> None:
    data = x()
    assert kernel_name(fused(relay.nn.relu(data + data))[0]) == "fused_add_nn_relu"


def test_long_names_are_cut() -> None:
    body: relay.Expr = x()
    for _ in range(30):
        body = relay.nn.relu(body)
    name = kernel_name(fused(body)[0])
    assert name.startswith("fused_nn_relu_nn_relu")
    assert len(name) < 100


def test_equal_functions_share_a_kernel() -> None:
    data = x()
    kernels = fused(relay.exp(relay.exp(relay.exp(data))), level=0)
    compiler = KernelCompiler(Target("llvm"))
    lowered = [compiler.lower(k) for k in kernels]
    assert lowered[0] is lowered[1] is lowered[2]
    assert len(compiler.kernels) == 1


def test_equal_names_of_different_kernels_get_numbers() -> None:
    compiler = KernelCompiler(Target("llvm"), prefix="tvmgen_default_")
    names = [compiler.lower(fused(relay.exp(x(n)))[0]).name for n in (2, 3)]
    assert names == ["tvmgen_default_fused_exp", "tvmgen_default_fused_exp_1"]


def run(body: relay.Expr, *arrays: np.ndarray) -> list[np.ndarray]:
    (kernel,) = fused(body)
    func = lower_to_primfunc(kernel, Target("llvm"))
    name = kernel_name(kernel)
    module = tvm.driver.build_lowered(tvm.IRModule({name: func}), Target("llvm"))
    outs = [
        tvm.nd.empty(t.concrete_shape, t.dtype)
        for t in relay.backend.te_compiler.flat_types(kernel.ret_type)
    ]
    module[name](*[tvm.nd.array(a) for a in arrays], *outs)
    return [o.numpy() for o in outs]


DATA = np.random.default_rng(0).uniform(-1, 1, (4, 8)).astype("float32")


def test_scalar_constants_are_in_the_code() -> None:
    (result,) = run(x() * relay.const(3.0) + relay.const(1.0), DATA)
    np.testing.assert_allclose(result, DATA * 3 + 1, rtol=1e-6)


def test_operators_around_a_reduction() -> None:
    (result,) = run(relay.sum(relay.exp(x()), axis=1), DATA)
    np.testing.assert_allclose(result, np.exp(DATA).sum(1), rtol=1e-5)


def test_epilogue_of_dense() -> None:
    data, w = x(), relay.var("w", shape=(5, 8))
    weight = np.random.default_rng(1).uniform(-1, 1, (5, 8)).astype("float32")
    (result,) = run(relay.nn.relu(relay.nn.dense(data, w) + relay.const(0.5)), DATA, weight)
    np.testing.assert_allclose(result, np.maximum(DATA @ weight.T + 0.5, 0), rtol=1e-5, atol=1e-6)


def test_several_results() -> None:
    data = x()
    parts = relay.split(relay.exp(data), 2, axis=1).astuple()
    results = run(parts, DATA)
    for found, expected in zip(results, np.split(np.exp(DATA), 2, 1), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_missing_computes_are_listed_together() -> None:
    for name in ("test.lacking_a", "test.lacking_b"):
        op = register_op(name)
        op.set_facets(infer_type=lambda attrs, types: types[0])
    data = x()
    a, b = (tvm.ir.Op.get(f"test.lacking_{c}") for c in "ab")
    func = relay.Function([data], relay.Call(b, [relay.Call(a, [data])]))
    with pytest.raises(OpNotImplemented, match=r"test\.lacking_a.*test\.lacking_b"):
        relay.build(func, target="llvm")


@pytest.mark.parametrize("shape", [(), (2,)])
def test_results_may_be_constants(shape: tuple[int, ...]) -> None:
    func = relay.Function(
        [], relay.const(np.full(shape, 7.0, "float32")), None, None, {"Primitive": 1}
    )
    relay.transform.InferType()(tvm.IRModule.from_expr(func))
    with tvm.transform.PassContext(opt_level=0):
        found = relay.create_executor("graph").evaluate(relay.Function([], relay.Call(func, [])))()
    np.testing.assert_array_equal(found.numpy(), np.full(shape, 7.0))


def test_names_of_modules_are_ascii() -> None:
    assert mangle_module_name("net") == "tvmgen_net"
    with pytest.raises(ValueError, match="letters of ASCII"):
        mangle_module_name("r\u00e9seau")
