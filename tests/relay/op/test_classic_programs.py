"""Programs that use operators as classic ones do: text, types, attributes, executors, registration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import tvm
import tvm.topi.testing
from tvm import relay, te, topi
from tvm.relay import transform
from tvm.relay.backend.graph_executor_codegen import GraphExecutorCodegen
from tvm.relay.op import op as reg
from tvm.relay.testing import _np_randn_from_type, check_grad, run_infer_type
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform import InferType


def _evaluated(func: relay.Function, *args: Any, kind: str = "graph") -> Any:
    return relay.create_executor(kind, device=tvm.cpu(0), target="llvm").evaluate(func)(*args)


def test_attributes_of_a_call_are_read_by_name_and_by_type() -> None:
    data, weight = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    attrs = relay.nn.conv2d(data, weight, strides=(2, 1), padding=(1, 2)).attrs
    assert attrs.get_int_tuple("strides") == (2, 1)
    assert attrs.get_int("groups") == 1
    assert attrs.get_str("data_layout") == "NCHW"
    assert [int(width) for width in attrs.padding] == [1, 2, 1, 2]
    changed = {key: attrs[key] for key in attrs.keys()} | {"padding": (0, 0)}  # noqa: SIM118
    call = run_infer_type(relay.nn.conv2d(data, weight, **changed))
    assert call.checked_type.concrete_shape == (1, 4, 3, 6)


def test_an_operator_is_registered_facet_by_facet() -> None:
    reg.register("test.doubled", "twice the data")
    op = relay.op.get("test.doubled")
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "The data.")
    op.set_support_level(3)
    op.add_type_rel("Identity")
    reg.register_pattern(op.name, reg.OpPattern.ELEMWISE)
    reg.register_stateful(op.name, False)
    reg.register_compute(op.name, lambda attrs, inputs, out_type: [topi.add(inputs[0], inputs[0])])
    reg.register_injective_schedule(op.name)
    assert op.arguments[0].name == "data"
    x = relay.var("x", shape=(2, 3))
    found = _evaluated(relay.Function([x], relay.Call(op, [x])), np.ones((2, 3), "float32"))
    np.testing.assert_array_equal(found.numpy(), np.full((2, 3), 2, "float32"))


def test_a_facet_is_replaced_for_a_while() -> None:
    x = relay.var("x", shape=(2,))
    mod = transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
    clipped = lambda attrs, inputs, types: relay.clip(inputs[0], 0.0, 6.0)  # noqa: E731
    with TempOpAttr("nn.relu", "FTVMLegalize", clipped):
        assert "clip" in transform.Legalize()(mod).astext()
    assert "clip" not in transform.Legalize()(mod).astext()


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_reshape_codes_mean_the_same_to_every_executor(kind: str) -> None:
    x = relay.var("x", shape=(2, 3, 4))
    data = np.arange(24, dtype="float32").reshape(2, 3, 4)
    fields = {(0, -1): (2, 12), (-3, -2): (6, 4), (2, -4, -1, 3, -2): (2, 1, 3, 4), (-2, 1): (2, 3, 4, 1)}  # fmt: skip
    body = relay.Tuple([relay.reshape(x, codes) for codes in fields])
    found = _evaluated(relay.Function([x], body), data, kind=kind)
    assert [part.numpy().shape for part in found] == list(fields.values())


def test_sparse_matrices_of_scipy_are_operands() -> None:
    matrix = sparse.random(8, 12, density=0.3, format="csr", dtype="float32", random_state=1)
    x = relay.var("x", shape=(5, 12))
    data = np.random.rand(5, 12).astype("float32")
    for given in (matrix, matrix.tobsr((4, 4))):
        found = _evaluated(relay.Function([x], relay.nn.sparse_dense(x, given)), data)
        np.testing.assert_allclose(found.numpy(), data @ matrix.toarray().T, rtol=1e-4, atol=1e-5)


def test_numbers_stand_elsewhere_in_dense_forms() -> None:
    places, values = relay.const(np.array([0, 1, 4])), relay.const(np.float32([3, 1, 2]))
    found = _evaluated(relay.Function([], relay.sparse_to_dense(places, [5], values)))
    np.testing.assert_array_equal(found.numpy(), np.float32([3, 1, 0, 0, 2]))


@pytest.mark.parametrize("seed", [[1, 2, 3], np.zeros(10, "float32")])
def test_random_numbers_require_a_key(seed: Any) -> None:
    with pytest.raises(tvm.TVMError, match="requires a key of 10 uint64"):
        run_infer_type(relay.random.threefry_split(relay.const(seed)).astuple())


@pytest.mark.parametrize("mode", ["higher_order", "first_order"])
def test_gradients_are_checked_with_inputs_of_the_steps_size(mode: str) -> None:
    x = relay.var("x", shape=(4, 2))
    for body in (relay.sum(x, -1, True), relay.mean(x, 1, exclude=True), relay.variance(x, 0)):
        check_grad(relay.Function([x], body), mode=mode)
    drawn = _np_randn_from_type(relay.TensorType((3,), "float64"), scale=1e-3, mean=2)
    assert drawn.dtype == np.float64
    assert abs(drawn - 2).max() < 0.1


def test_a_loop_grows_a_tensor_of_open_length() -> None:
    i = relay.var("i", shape=(), dtype="int32")
    rows = relay.var("rows", shape=(relay.Any(), 1), dtype="int32")

    def condition(i: relay.Expr, rows: relay.Expr) -> relay.Expr:
        return relay.min(relay.less(i, relay.const(4, "int32")))

    def step(i: relay.Expr, rows: relay.Expr) -> tuple[relay.Expr, relay.Expr]:
        return i + relay.const(1), relay.concatenate([rows, relay.reshape(i, (1, 1))], axis=0)

    loop = relay.loops.while_loop(condition, [i, rows], step)
    start = relay.var("start", shape=(), dtype="int32")
    body = relay.TupleGetItem(loop(start, relay.reshape(relay.const(9), (1, 1))), 1)
    for kind in ("vm", "debug"):
        found = _evaluated(relay.Function([start], body), np.array(0, "int32"), kind=kind)
        np.testing.assert_array_equal(found.numpy(), [[9], [0], [1], [2], [3]])


def test_implementations_are_found_for_a_target() -> None:
    call = relay.nn.dense(relay.var("x", shape=(4, 8)), relay.var("w", shape=(3, 8)))
    out_type = run_infer_type(call).checked_type
    holders = [te.placeholder((4, 8)), te.placeholder((3, 8))]
    with tvm.target.Target("llvm") as target:
        found = relay.backend.te_compiler.get_valid_implementations(
            call.op, call.attrs, holders, out_type, target
        )
    assert found[0].compute(call.attrs, holders, out_type)[0].shape[1] == 3


def test_depth_is_spread_in_either_order_of_its_parts() -> None:
    x = relay.var("x", shape=(1, 8, 2, 3))
    data = np.random.rand(1, 8, 2, 3).astype("float32")
    for mode in ("DCR", "CRD", "CDR"):
        found = _evaluated(relay.Function([x], relay.nn.depth_to_space(x, 2, "NCHW", mode)), data)
        wanted = tvm.topi.testing.depth_to_space_python(data, 2, mode)
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_operators_have_their_classic_level_of_support() -> None:
    levels = {"exp": 1, "add": 1, "nn.conv2d": 2, "floor": 3, "reshape": 3, "equal": 4, "topk": 6}
    assert {name: relay.op.get(name).support_level for name in levels} == levels
    assert relay.op.get("device_copy").support_level == 10


@pytest.mark.parametrize("dtype", ["int16", "uint8", "float32"])
def test_shapes_are_given_in_numbers_of_any_dtype(dtype: str) -> None:
    x, reps = relay.var("x", shape=(2, 3)), relay.var("r", shape=(2,), dtype=dtype)
    data, times = np.random.rand(2, 3).astype("float32"), np.array([2, 3], dtype)
    expected = np.tile(data, (2, 3))
    found = _evaluated(relay.Function([x, reps], relay.tile(x, reps)), data, times, kind="vm")
    np.testing.assert_array_equal(found.numpy(), expected)
    static = relay.transform.DynamicToStatic()(
        tvm.IRModule.from_expr(relay.Function([x], relay.tile(x, relay.const(times))))
    )
    assert static["main"].body.attrs.reps == (2, 3)


def test_parameters_along_an_axis_of_open_length_may_be_single() -> None:
    x = relay.var("x", shape=(2, 5))
    scale, zero = [relay.var(n, shape=[relay.Any()], dtype=d) for n, d in (("s", "float32"), ("z", "int32"))]  # fmt: skip
    code = relay.var("code", shape=(), dtype="int32")
    body = relay.qnn.simulated_dequantize(x, scale, zero, axis=0, in_dtype=code)
    func = relay.Function([x, scale, zero, code], body)
    run = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()
    data = np.arange(10, dtype="float32").reshape(2, 5)
    for scales, zeros in (([0.5], [3]), ([0.5, 0.25], [3, 1])):
        found = run(data, np.float32(scales), np.int32(zeros), np.int32(1)).numpy()
        expected = (data - np.int32(zeros)[:, None]) * np.float32(scales)[:, None]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(tvm.TVMError, match="requires arguments whose shapes fit"):
        run(data, np.float32([1, 2, 3]), np.int32([1, 2, 3]), np.int32(1))


def test_numbers_without_a_fraction_are_taken_for_integers() -> None:
    x = relay.var("x", shape=(), dtype="int32")
    run = relay.create_executor("graph").evaluate(relay.Function([x], x + x))
    assert int(run(2.0).numpy()) == 4
    for bad in (2.5, float("inf")):
        with pytest.raises((TypeError, ValueError), match="int32"):
            run(bad)


@pytest.mark.parametrize("rank", [2, 3])
def test_depthwise_kernels_may_hold_the_multiplier_in_their_second_axis(rank: int) -> None:
    data = np.random.rand(1, 4, *[5] * rank).astype("float32")
    kernel = np.random.rand(4, 3, *[3] * rank).astype("float32")
    conv = {2: relay.nn.conv2d, 3: relay.nn.conv3d}[rank]
    layout = "OIHW" if rank == 2 else "OIDHW"

    def run(weight: Any) -> Any:
        x, w = relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape)
        body = conv(x, w, groups=4, channels=12, kernel_size=[3] * rank, kernel_layout=layout)
        return _evaluated(relay.Function([x, w], body), data, weight).numpy()

    single = kernel.reshape(12, 1, *[3] * rank)
    np.testing.assert_array_equal(run(kernel), run(single))
    with pytest.raises(tvm.TVMError, match="requires the weight's output channels to be 12, got 8"):
        run(kernel[:, :2])


def test_code_generation_by_hand_fuses_what_is_not_fused() -> None:
    a, b = relay.var("a", shape=(1, 8)), relay.var("b", shape=(1, 8))
    mod = InferType()(tvm.IRModule.from_expr(relay.Function([a, b], a + b)))
    codegen = GraphExecutorCodegen(None, "llvm")
    graph, kernels, _ = codegen.codegen(mod, mod["main"])
    assert "fused_add" in graph
    assert len(kernels) == 1


def test_functions_of_other_compilers_have_shape_functions() -> None:
    p, x = (relay.var(name, shape=(relay.Any(), 4)) for name in "px")
    attrs = {"Primitive": 1, "Compiler": "shapes_test", "global_symbol": "theirs"}
    mod = tvm.IRModule({"theirs": relay.Function([p], relay.concatenate([p, p], 0), attrs=attrs)})
    mod["main"] = relay.Function([x], mod.get_global_var("theirs")(x))
    found, _ = relay.vm.VMCompiler().optimize(InferType()(mod), target="llvm")
    assert "shape_func" in found.astext(False)
