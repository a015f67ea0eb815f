"""Strategies of users, and the functions that look at them; an operator made in Python alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi
from tvm.contrib import graph_executor
from tvm.error import OpNotImplemented
from tvm.ir.op import register_op
from tvm.relay.backend import te_compiler
from tvm.relay.backend.graph_executor_codegen import GraphExecutorCodegen
from tvm.relay.op import OpStrategy
from tvm.target import Target
from tvm.te import SpecializedCondition

LLVM = Target("llvm")


def scaled(factor: float) -> object:
    return lambda attrs, inputs, out_type: [
        te.compute(inputs[0].shape, lambda *i: inputs[0](*i) * factor, name="scaled")
    ]


def plain(attrs: object, outs: list[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_injective(outs)


@pytest.fixture
def scale() -> Iterator[tvm.ir.Op]:
    """An operator without a way to compute it."""
    op = register_op("test.scale")
    op.set_facets(strategy=None, compute=None)
    op.set_num_inputs(1)
    op.add_type_rel("Identity")
    yield op
    op.set_facets(strategy=None, compute=None)


def call(op: tvm.ir.Op, shape: tuple[object, ...] = (4,)) -> relay.Function:
    x = relay.var("x", shape=shape)
    return relay.Function([x], relay.Call(op, [x]))


def evaluate(func: relay.Function, value: np.ndarray) -> np.ndarray:
    return relay.create_executor("graph", target="llvm").evaluate(func)(value).numpy()


def test_implementation_of_the_highest_level_is_taken(scale: tvm.ir.Op) -> None:
    @relay.op.register_strategy("test.scale")
    def strategy(attrs: object, inputs: list[te.Tensor], out_type: object, target: Target):
        found = OpStrategy()
        found.add_implementation(scaled(2.0), plain, name="twice", plevel=5)
        found.add_implementation(scaled(3.0), plain, name="thrice", plevel=15)
        return found

    np.testing.assert_array_equal(evaluate(call(scale), np.ones(4, "float32")), [3] * 4)


def test_condition_decides_by_the_shape(scale: tvm.ir.Op) -> None:
    @relay.op.register_strategy("test.scale")
    def strategy(attrs: object, inputs: list[te.Tensor], out_type: object, target: Target):
        found = OpStrategy()
        found.add_implementation(scaled(2.0), plain)
        with SpecializedCondition(tvm.tir.const(8, "int32") <= inputs[0].shape[0]):
            found.add_implementation(scaled(5.0), plain, name="long", plevel=20)
        return found

    assert evaluate(call(scale), np.ones(4, "float32"))[0] == 2
    assert evaluate(call(scale, (8,)), np.ones(8, "float32"))[0] == 5
    x = te.placeholder((4,), name="x")
    ty = relay.TensorType((4,))
    valid = te_compiler.get_valid_implementations(scale, None, [x], ty, LLVM)
    assert [i.name for i in valid] == ["default"]


def test_strategy_may_depend_on_the_target(scale: tvm.ir.Op) -> None:
    @tvm.target.generic_func
    def strategy(attrs: object, inputs: list[te.Tensor], out_type: object, target: Target):
        raise NotImplementedError

    @strategy.register("cpu")
    def on_cpu(attrs: object, inputs: list[te.Tensor], out_type: object, target: Target):
        found = OpStrategy()
        found.add_implementation(scaled(7.0), plain)
        return found

    relay.op.register_strategy("test.scale", strategy)
    assert evaluate(call(scale), np.ones(4, "float32"))[0] == 7


def test_no_implementation_is_one_clear_error(scale: tvm.ir.Op) -> None:
    relay.op.register_strategy("test.scale", lambda *_: OpStrategy())
    with pytest.raises(OpNotImplemented, match=r"test\.scale has no implementation on llvm"):
        evaluate(call(scale), np.ones(4, "float32"))


def test_lower_call_gives_tensors_and_the_implementation() -> None:
    x, y = relay.var("x", shape=(2, 8)), relay.var("y", shape=(5, 8))
    dense = relay.nn.dense(x, y)
    tensors = [te.placeholder((2, 8), name="x"), te.placeholder((5, 8), name="y")]
    lowered = te_compiler.lower_call(dense, tensors, LLVM)
    assert [tuple(map(int, t.shape)) for t in lowered.outputs] == [(2, 5)]
    assert lowered.implement.name.startswith("nn.dense.")
    shape = te_compiler.get_shape([4, tvm.tir.IntImm("int64", 7), relay.Any()])
    assert [getattr(s, "dtype", None) for s in shape] == ["int32"] * 3


def fused_tanh(extent: int = 4) -> relay.Function:
    x = relay.var("x", shape=(extent,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(x)))
    return relay.transform.FuseOps(2)(relay.transform.InferType()(mod))["main"].body.op


def test_compiler_lowers_equal_functions_once() -> None:
    compiler = te_compiler.TECompiler()
    first = compiler.lower(fused_tanh(), "llvm")
    assert compiler.lower(fused_tanh(), "llvm") is first and first.use_count == 2
    assert compiler.lower(fused_tanh(5), "llvm") is not first
    cached = first.cached_func
    assert cached.prim_fn_var.name_hint == "tvmgen_default_fused_tanh"
    assert isinstance(cached.prim_func, tvm.tir.PrimFunc) and cached.schedule is not None
    assert len(cached.inputs) == len(cached.outputs) == 1
    assert len(compiler.items()) == 2
    compiler.clear()
    assert compiler.items() == []


def test_compiled_function_takes_arrays() -> None:
    out = tvm.nd.empty((4,))
    value = np.linspace(-1, 1, 4).astype("float32")
    te_compiler.get().jit(fused_tanh(), "llvm")(tvm.nd.array(value), out)
    np.testing.assert_allclose(out.numpy(), np.tanh(value), rtol=1e-5)


def test_operator_made_in_python_alone() -> None:
    relay.op.register("test.cubed", "the third power of each element")
    with pytest.raises(tvm.TVMError, match="Operator test.cubed is registered before"):
        relay.op.register("test.cubed")
    op = relay.op.get("test.cubed")
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "the input")
    op.add_type_rel("Cubed", lambda arg_types, attrs: arg_types[0])

    @relay.op.register_compute("test.cubed")
    def compute(attrs: object, inputs: list[te.Tensor], out_type: object) -> list[te.Tensor]:
        return [topi.multiply(inputs[0], topi.multiply(inputs[0], inputs[0]))]

    relay.op.register_injective_schedule("test.cubed")
    relay.op.register_pattern("test.cubed", relay.op.OpPattern.ELEMWISE)

    @relay.op.register_gradient("test.cubed")
    def gradient(orig: relay.Call, grad: relay.Expr) -> list[relay.Expr]:
        x = orig.args[0]
        return [grad * relay.const(3.0) * x * x]

    x = relay.var("x", shape=(4,))
    func = relay.Function([x], relay.nn.relu(relay.Call(op, [x])))
    value = np.linspace(-2, 2, 4).astype("float32")
    for kind in ("debug", "graph", "aot", "vm"):
        found = relay.create_executor(kind, target="llvm").evaluate(func)(value)
        np.testing.assert_allclose(found.numpy(), np.maximum(value**3, 0), rtol=1e-5)
    lib = relay.build(func, "llvm")
    assert "fused_test_cubed_nn_relu" in lib.get_graph_json()
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    back = relay.transform.gradient(mod["main"], mode="first_order")
    _, (slope,) = relay.create_executor("debug", mod).evaluate(back)(value)
    np.testing.assert_allclose(slope.numpy(), np.where(value > 0, 3 * value**2, 0), rtol=1e-5)


def test_type_relation_that_is_not_there_is_rejected(scale: tvm.ir.Op) -> None:
    with pytest.raises(tvm.TVMError, match="no type relation is called 'Nonsense'"):
        scale.add_type_rel("Nonsense")


def test_graph_code_generator_lowers_a_fused_function() -> None:
    x = relay.var("x", shape=(4,))
    constant = relay.const(np.arange(4, dtype="float32"))
    func = relay.Function([x], relay.tanh(x + constant))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    mod = relay.transform.FuseOps(2)(mod)
    codegen = GraphExecutorCodegen(None, "llvm")
    graph, kernels, params = codegen.codegen(mod, mod["main"])
    ((target, lowered),) = kernels.items()
    module = graph_executor.create(graph, tvm.build(lowered, target=target), tvm.cpu())
    module.set_input(**params)
    module.run(x=np.ones(4, "float32"))
    np.testing.assert_allclose(module.get_output(0).numpy(), np.tanh(np.arange(1, 5)), rtol=1e-5)
