"""Operators whose result's shape is a value: types, shape functions, kernels, the static forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import relay, te, tir
from tvm.ir.op import Op
from tvm.relay.op.registry import all_ops

from .cases import Array, floats, ints
from .option_cases import _cubic, _regions


@dataclass(frozen=True)
class Case:
    """A call of one operator on expressions, and what numpy says of it."""

    name: str
    build: Callable[..., Any]
    inputs: tuple[Array, ...]
    expected: Any

    def __str__(self) -> str:
        return self.name


def numbers(*values: Any) -> Array:
    return np.array(values, "int64")


def _sparse() -> Array:
    dense = np.full((3, 4), 7, "float32")
    dense[0, 1], dense[2, 3] = 1, 2
    return dense


def _upsampled(x: Array, mode: str, *factors: float) -> Array:
    corners = {"align_corners": False} if mode != "nearest" else {}
    return F.interpolate(torch.from_numpy(x), scale_factor=factors, mode=mode, **corners).numpy()


def _resized(x: Array, size: tuple[int, ...], mode: str) -> Array:
    """Of channels last, with the corners' centres in place."""
    first = torch.from_numpy(np.moveaxis(x, -1, 1).copy())
    found = F.interpolate(first, size, mode=mode, align_corners=True).numpy()
    return np.ascontiguousarray(np.moveaxis(found, 1, -1))


DATA, IMAGE, VOLUME = floats(2, 6), floats(1, 2, 4, 6), floats(1, 2, 3, 4, 4)
ROW = floats(3, 5, 4)
LAST = floats(1, 4, 6, 2)
TOP = np.sort(ROW, axis=1)[:, ::-1][:, :2]

CASES = [
    Case("dyn.reshape", relay.reshape, (DATA, numbers(3, -1)), DATA.reshape(3, 4)),
    Case("dyn.reshape", relay.reshape, (DATA, numbers(0, 2, 3)), DATA.reshape(2, 2, 3)),
    Case("dyn.reshape", relay.reshape, (VOLUME, numbers(-3, -3, -2)), VOLUME.reshape(2, 12, 4)),
    Case("dyn.broadcast_to", relay.broadcast_to, (floats(1), numbers(2, 3)), None),
    Case("dyn.expand_dims", lambda x, a: relay.expand_dims(x, a, 2), (DATA, numbers(1)[0:1].reshape(())), DATA.reshape(2, 1, 1, 6)),
    Case("dyn.expand_dims", relay.expand_dims, (DATA, numbers(-1).reshape(())), DATA.reshape(2, 6, 1)),
    Case("dyn.squeeze", relay.squeeze, (DATA.reshape(1, 2, 1, 6), numbers(0, -2)), DATA),
    Case("dyn.tile", relay.tile, (DATA, numbers(3, 1, 2)), np.tile(DATA, (3, 1, 2))),
    Case("dyn.strided_slice", relay.strided_slice, (ROW, numbers(1, -4), numbers(9, 5)), ROW[1:9, -4:5]),
    Case("dyn.strided_slice", relay.strided_slice, (ROW, numbers(2, -1), numbers(-9, 0), numbers(-1, -2)), ROW[::-1, -1:0:-2]),
    Case("dyn.strided_slice", lambda x, b, e: relay.strided_slice(x, b, e, slice_mode="size"), (ROW, numbers(1, 2), numbers(-1, 2)), ROW[1:, 2:4]),
    Case("dyn.one_hot", lambda i, a, b, d: relay.one_hot(i, a, b, d, -1, "float32"), (ints(4, low=0, high=5), np.float32(1), np.float32(0), np.array(5, "int32")), None),
    Case("dyn.sparse_to_dense", relay.sparse_to_dense, (ints(0), numbers(3, 4), np.float32([1, 2]), np.float32(7)), _sparse()),
    Case("dyn.zeros", lambda s: relay.zeros(s, "float32"), (numbers(2, 3),), np.zeros((2, 3), "float32")),
    Case("dyn.ones", lambda s: relay.ones(s, "int32"), (numbers(2, 3),), np.ones((2, 3), "int32")),
    Case("dyn.full", relay.full, (np.float32(3), numbers(4)), np.full(4, 3, "float32")),
    Case("dyn.topk", lambda x, k: relay.topk(x, k, 1, "values"), (ROW, np.array(2, "int32")), TOP),
    Case("dyn.nn.pad", lambda x, w, v: relay.nn.pad(x, w, v), (DATA, numbers((1, 0), (2, 3)), np.float32(9)), np.pad(DATA, ((1, 0), (2, 3)), constant_values=9)),
    Case("dyn.nn.pad", lambda x, w: relay.nn.pad(x, w, pad_mode="reflect"), (DATA, numbers((1, 0), (2, 3))), np.pad(DATA, ((1, 0), (2, 3)), mode="reflect")),
    Case("dyn.nn.pad", lambda x, w: relay.nn.pad(x, w, pad_mode="edge"), (DATA, numbers((0, 2), (1, 0))), np.pad(DATA, ((0, 2), (1, 0)), mode="edge")),
    Case("dyn.reshape", lambda x, s: relay.reshape(x, s, allowzero=True), (floats(0, 2), numbers(0, 3)), np.zeros((0, 3), "float32")),
    Case("dyn.full", lambda v, s: relay.full(v, s, "int64"), (np.float32(3), numbers(4, 1)), np.full((4, 1), 3)),
    Case("dyn.topk", lambda x, k: relay.topk(x, k, 2, "indices", True, "int64"), (ROW, np.array(3, "int64")), np.argsort(ROW, 2, kind="stable")[..., :3]),
    Case("dyn.one_hot", lambda i, a, b, d: relay.one_hot(i, a, b, d, 0, "int32"), (numbers(2, 0, 1), np.int32(5), np.int32(-1), np.array(3, "int64")), np.array([[-1, 5, -1], [-1, -1, 5], [5, -1, -1]], "int32")),
    Case("dyn.image.resize2d", lambda x, s: relay.image.resize2d(x, s, None, "NHWC", "cubic", "align_corners", cubic_alpha=-0.75, out_dtype="float64"), (LAST, numbers(5, 7)), _resized(LAST, (5, 7), "bicubic").astype("float64")),
    Case("dyn.image.resize2d", lambda x, s: relay.image.resize2d(x, s, method="cubic", cubic_alpha=-0.75, cubic_exclude=1), (IMAGE, numbers(6, 5)), _cubic(IMAGE, (6, 5))),
    Case("dyn.image.resize2d", lambda x, s: relay.image.resize2d(x, s, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", rounding_method="ceil"), (IMAGE, numbers(8, 12)), IMAGE[:, :, [0, 1, 1, 2, 2, 3, 3, 3]][..., [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5]]),
    Case("dyn.nn.upsampling", lambda x, *s: relay.nn.upsampling(x, *s, layout="NHWC", method="bilinear", align_corners=True), (LAST, np.float32(2), np.float32(1.5)), _resized(LAST, (8, 9), "bilinear")),
    Case("dyn.nn.upsampling3d", lambda x, *s: relay.nn.upsampling3d(x, *s, "NDHWC", "trilinear", "align_corners"), (VOLUME.transpose(0, 2, 3, 4, 1).copy(), *np.float32([2, 1, 1.5])), _resized(VOLUME.transpose(0, 2, 3, 4, 1), (6, 4, 6), "trilinear")),
    Case("dyn.image.resize2d", lambda x, s: relay.image.resize2d(x, s), (IMAGE, numbers(8, 9)), F.interpolate(torch.from_numpy(IMAGE), (8, 9), mode="bilinear").numpy()),
    Case("dyn.image.resize2d", lambda x, s: relay.image.resize2d(x, s, (-0.5, 0.25, 1.0, 1.5), coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0), (IMAGE, numbers(3, 4)), _regions(IMAGE, (-0.5, 0.25), (1.0, 1.5), (3, 4), 7.0)),
    Case("dyn.nn.upsampling", relay.nn.upsampling, (IMAGE, np.float32(2), np.float32(3)), _upsampled(IMAGE, "nearest", 2, 3)),
    Case("dyn.nn.upsampling3d", lambda x, *s: relay.nn.upsampling3d(x, *s, method="trilinear"), (VOLUME, *np.float32([2, 2, 1])), _upsampled(VOLUME, "trilinear", 2, 2, 1)),
]  # fmt: skip


def _completed(case: Case) -> Case:
    """References that need the inputs."""
    if case.name == "dyn.sparse_to_dense":
        inputs = (np.array([[0, 1], [2, 3]], "int32"), *case.inputs[1:])
        return Case(case.name, case.build, inputs, case.expected)
    if case.name == "dyn.one_hot" and case.expected is None:
        return Case(case.name, case.build, case.inputs, np.eye(5, dtype="float32")[case.inputs[0]])
    if case.name == "dyn.broadcast_to":
        expected = np.broadcast_to(case.inputs[0], (2, 3))
        return Case(case.name, case.build, case.inputs, expected)
    return case


CASES = [_completed(case) for case in CASES]


def _function(case: Case) -> relay.Function:
    arrays = [np.asarray(a) for a in case.inputs]
    params = [relay.var(f"p{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    return relay.Function(params, case.build(*params))


def _call(func: relay.Function) -> relay.Call:
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"].body


def _arguments(case: Case, call: relay.Call) -> list[Array]:
    """The call's arguments as arrays: the case's, and those that the public function adds."""
    folded = relay.create_executor("debug")
    params = relay.analysis.free_vars(call)
    binds = {p: np.asarray(case.inputs[int(p.name_hint[1:])]) for p in params}
    return [
        folded.evaluate(arg, {p: v for p, v in binds.items() if p in relay.analysis.free_vars(arg)}).numpy()
        for arg in call.args
    ]  # fmt: skip


def _built(inputs: list[te.Tensor], output: te.Tensor) -> Any:
    return tvm.build(te.create_schedule(output.op), [*inputs, output], "llvm")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_type_tells_rank_and_dtype(case: Case) -> None:
    call = _call(_function(case))
    assert call.op.name == case.name
    assert call.checked_type.dtype == str(case.expected.dtype)
    assert len(call.checked_type.shape) == case.expected.ndim


@pytest.mark.parametrize("case", CASES, ids=str)
def test_constants_give_the_static_operator(case: Case) -> None:
    params = [relay.var("x", shape=(), dtype="int32")]
    call = _function(case)
    constants = [relay.const(np.asarray(a)) for a in case.inputs]
    body = relay.bind(call.body, dict(zip(call.params, constants, strict=True)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(params, body)))
    static = relay.transform.DynamicToStatic()(mod)["main"].body
    assert static.op.name == case.name.removeprefix("dyn.")
    assert static.checked_type.concrete_shape == case.expected.shape


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interpreter_evaluates_values_of_the_run(case: Case) -> None:
    found = relay.create_executor("debug").evaluate(_function(case))(*case.inputs)
    np.testing.assert_allclose(found.numpy(), case.expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shape_function_computes_the_shape(case: Case) -> None:
    call = _call(_function(case))
    reads = call.op.get_attr("TShapeDataDependent")
    arrays = [
        a if read else np.array(a.shape, "int64")
        for a, read in zip(_arguments(case, call), reads, strict=True)
    ]
    holders = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    shape = call.op.shape_func(call.attrs, holders, [case.expected.ndim])[0]
    out = tvm.nd.empty((case.expected.ndim,), "int64")
    used = [i for i, a in enumerate(arrays) if a.size]
    module = _built([holders[i] for i in used], shape)
    module(*[tvm.nd.array(arrays[i]) for i in used], out)
    assert tuple(out.numpy()) == case.expected.shape


@pytest.mark.parametrize("case", [c for c in CASES if c.expected.size], ids=str)
def test_kernel_serves_any_shape(case: Case) -> None:
    call = _call(_function(case))
    arrays = _arguments(case, call)
    used = [i for i, a in enumerate(arrays) if a.size]
    holders = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    dims = [tir.Var(f"d{i}", "int32") for i in range(case.expected.ndim)]
    out_type = relay.TensorType(dims, call.checked_type.dtype)
    output = call.op.compute(call.attrs, holders, out_type)[0]
    out = tvm.nd.empty(case.expected.shape, str(case.expected.dtype))
    _built([holders[i] for i in used], output)(*[tvm.nd.array(arrays[i]) for i in used], out)
    np.testing.assert_allclose(out.numpy(), case.expected, rtol=1e-4, atol=1e-4)


def test_every_dynamic_operator_has_a_case() -> None:
    dynamic = {op.name for op in all_ops() if op.make_static is not None}
    assert dynamic == {case.name for case in CASES} | {"arange"}  # which is both


def test_a_static_shape_makes_the_next_one_known() -> None:
    x, y = [relay.var(n, shape=s) for n, s in (("x", (2, 6)), ("y", (3, 4)))]
    reshaped = relay.reshape(x, relay.shape_of(y))
    tiled = relay.tile(relay.var("z", shape=(2,)), relay.shape_of(relay.nn.relu(reshaped)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(tiled))
    static = relay.transform.DynamicToStatic()(mod)["main"].body
    assert static.op is Op.get("tile")
    assert static.checked_type.concrete_shape == (3, 8)


def test_functions_without_dynamic_operators_are_unchanged() -> None:
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,))))
    )
    assert relay.transform.DynamicToStatic()(mod)["main"] is mod["main"]


def test_build_resolves_shapes_that_are_known() -> None:
    x, y = relay.var("x", shape=(2, 6)), relay.var("y", shape=(3, 4))
    body = relay.reshape(x, relay.shape_of(y))
    found = relay.create_executor("graph").evaluate(relay.Function([x, y], body))(
        DATA, floats(3, 4)
    )
    np.testing.assert_array_equal(found.numpy(), DATA.reshape(3, 4))


def test_vector_of_unknown_length_is_rejected() -> None:
    shape = relay.var("shape", shape=(relay.Any(),), dtype="int64")
    body = relay.reshape(relay.var("x", shape=(2, 6)), shape)
    with pytest.raises(tvm.error.DiagnosticError, match="vector of known length for newshape"):
        relay.transform.InferType()(tvm.IRModule.from_expr(body))


@pytest.mark.parametrize("case", {c.name: c for c in CASES}.values(), ids=str)
def test_virtual_machine_runs_values_of_the_run(case: Case) -> None:
    mod = tvm.IRModule.from_expr(_function(case))
    run = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    found = run(*[np.asarray(a) for a in case.inputs])
    np.testing.assert_allclose(found.numpy(), case.expected, rtol=1e-4, atol=1e-4)


def test_numbers_up_to_a_computed_stop_have_a_known_count() -> None:
    x = relay.var("x", shape=(5,))
    stop = relay.add(relay.const(2), relay.const(1))
    places = relay.arange(relay.const(0), stop, relay.const(1), "int32")
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function([x], relay.take(x, places)))
    )
    static = relay.transform.DynamicToStatic()(mod)
    assert static["main"].body.checked_type == relay.TensorType((3,))
    assert relay.transform.DynamicToStatic()(static) is static


def test_constant_counts_with_a_fraction_are_rejected() -> None:
    with pytest.raises(tvm.error.OpAttributeInvalid, match="an integer"):
        relay.tile(relay.var("x", shape=(2, 3)), relay.const(np.array([1.5, 2.0], "float32")))


def test_ranks_and_branches_that_become_static_need_no_types_before() -> None:
    x = relay.var("x", shape=(2, 3), dtype="int64")
    shape = relay.shape_of(x)
    filled = relay.full(relay.const(2.0), relay.strided_slice(shape, [0], relay.shape_of(shape)))
    chosen = relay.If(relay.const(1), relay.reshape(x, [6]), relay.reshape(x, [6, 1]))
    for body, wanted in ((filled, (2, 3)), (chosen, (6,))):
        mod = tvm.IRModule.from_expr(relay.Function([x], body))
        static = relay.transform.DynamicToStatic()(mod)["main"]
        assert static.ret_type.concrete_shape == wanted


def test_programs_without_types_are_refused_as_they_were_written() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(3,), dtype="int64")
    body = relay.reshape(x + relay.cast(y, "float32"), relay.shape_of(y))
    with pytest.raises(tvm.error.TypeCheckError, match="add"):
        relay.transform.DynamicToStatic()(tvm.IRModule.from_expr(relay.Function([x, y], body)))
