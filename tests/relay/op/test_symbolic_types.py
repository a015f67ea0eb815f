"""Types of operators on tensors whose extents are variables, as classic programs state them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir
from tvm.relay.testing import run_infer_type
from tvm.tir.stmt_functor import substitute

from .cases import Case
from .test_all_ops import CASES, _expected

N, C, D, H, W = [te.size_var(name) for name in "ncdhw"]
ANALYZER = tvm.arith.Analyzer()
TWO = tir.const(2.0, "float64")


def _type(*shape: Any, dtype: str = "float32") -> relay.TensorType:
    return relay.TensorType(shape, dtype)


def _rounded(extent: tir.Var) -> tir.PrimExpr:
    return tir.Cast("int32", te.round(extent * TWO))


CALLS: list[tuple[str, Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = [
    ("concatenate", lambda x: relay.concatenate((x, relay.exp(x)), 1), (N, C, 9), (N, C + C, 9)),
    ("flatten", relay.nn.batch_flatten, (N, 2, H, 3), (N, (2 * H) * 3)),
    ("flatten_all", relay.nn.batch_flatten, (N, C, H, W), (N, (C * H) * W)),
    ("pad", lambda x: relay.nn.pad(x, ((1, 1), (2, 2), (-1, 0), (4, 4))), (N, 2, 3, W), (N + 2, 6, 2, W + 8)),
    ("upsampling", lambda x: relay.nn.upsampling(x, 2, 2), (N, C, H, W), (N, C, _rounded(H), _rounded(W))),
    ("upsampling3d", lambda x: relay.nn.upsampling3d(x, 2, 2, 1), (N, C, D, H, 3), (N, C, _rounded(D), _rounded(H), 3)),
    ("yolo", lambda x: relay.vision.yolo_reorg(x, 2), (N, C, H, W), (N, C * 2 * 2, tir.indexdiv(H, 2), tir.indexdiv(W, 2))),
    ("resize", lambda x: relay.image.resize2d(x, (te.var("h"), D)), (N, C, 4, W), (N, C, te.var("h"), D)),
    ("cuts", lambda x: relay.split(x, (2, 7), 1)[1], (N, C), (N, 5)),
    ("rest", lambda x: relay.split(x, (2, 7), 1)[2], (N, C), (N, C - 7)),
    ("tile", lambda x: relay.tile(x, (2, 3)), (N, C), (N * 2, C * 3)),
    ("slice", lambda x: relay.strided_slice(x, [None, None, 1], [None, None, 2]), (N, C, 3), (N, C, 1)),
    ("lrn", lambda x: relay.nn.lrn(x, size=10, axis=2), (N, C, H, W), (N, C, H, W)),
    ("reshape", lambda x: relay.reshape(x, (0, -1)), (N, C, H), (N, C * H)),
    ("dense", lambda x: relay.nn.dense(x, relay.var("w", shape=(H, W)), 7), (N, C, W), (N, C, 7)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "build", "given", "wanted"), CALLS, ids=[c[0] for c in CALLS])
def test_extents_are_those_that_programs_state(
    name: str, build: Callable[..., Any], given: tuple[Any, ...], wanted: tuple[Any, ...]
) -> None:
    found = run_infer_type(build(relay.var("x", _type(*given)))).checked_type
    if name == "resize":  # its variable is one of its own
        found, wanted = _type(*found.shape[:2], found.shape[3]), (*wanted[:2], wanted[3])
    assert found == _type(*wanted)


WEIGHTS: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...], dict[str, Any]]] = [
    (relay.nn.conv1d, (N, 10, 24), (2, 10, 3), {"kernel_size": 3, "channels": 2}),
    (relay.nn.conv2d, (N, 10, H, 24), (4, 5, 3, 3), {"kernel_size": 3, "channels": 4, "groups": 2}),
    (relay.nn.conv2d, (N, 4, 9, 9), (8, 1, 3, 3), {"kernel_size": 3, "channels": 8, "groups": 4}),
    (relay.nn.conv2d, (N, 9, 9, 4), (3, 3, 4, 2), {"kernel_size": 3, "channels": 8, "groups": 4, "data_layout": "NHWC", "kernel_layout": "HWOI"}),
    (relay.nn.conv2d, (N, 4, H, W, 8), (4, 8, 3, 3, 4, 4), {"kernel_size": 3, "channels": 16, "data_layout": "NCHW8c", "kernel_layout": "OIHW4o4i"}),
    (relay.nn.conv3d, (N, 10, D, 8, 8), (2, 10, 1, 2, 3), {"kernel_size": (1, 2, 3), "channels": 2}),
    (relay.nn.conv1d_transpose, (N, 10, 12), (10, 15, 3), {"kernel_size": 3, "channels": 15}),
    (relay.nn.conv2d_transpose, (N, 10, H, 12), (10, 4, 3, 3), {"kernel_size": 3, "channels": 8, "groups": 2}),
    (relay.nn.conv3d_transpose, (N, 10, 4, 4, 4), (10, 2, 3, 3, 3), {"kernel_size": 3, "channels": 2}),
    (relay.nn.dense, (N, 7), (3, 7), {"units": 3}),
    (relay.nn.matmul, (N, 7), (7, 3), {"units": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "data", "weight", "options"), WEIGHTS)
def test_weights_that_programs_leave_out_have_shapes(
    op: Callable[..., Any], data: tuple[Any, ...], weight: tuple[int, ...], options: dict[str, Any]
) -> None:
    found = run_infer_type(op(relay.var("x", shape=data), relay.var("w"), **options))
    assert found.args[1].checked_type == _type(*weight)


def test_offsets_that_programs_leave_out_have_shapes() -> None:
    offset, weight = relay.var("offset"), relay.var("w")
    data = relay.var("x", shape=(N, 4, 6, 7))
    window = {"kernel_size": (3, 2), "channels": 8, "groups": 2, "deformable_groups": 2}
    found = run_infer_type(relay.nn.deformable_conv2d(data, offset, weight, **window))
    assert found.args[1].checked_type == _type(N, 2 * 3 * 2 * 2, 4, 6)
    assert found.args[2].checked_type == _type(8, 2, 3, 2)


def test_types_of_equal_extents_are_equal() -> None:
    assert _type(N, C + C) == _type(N, C * 2)
    assert hash(_type(N, C + C)) == hash(_type(N, C * 2))
    assert relay.TupleType([_type(C - 1 + 1)]) == relay.TupleType([_type(C)])
    assert _type(N) != _type(C)
    assert _type(N) != _type(3)
    assert _type(relay.Any()) != _type(N)


def test_slices_from_the_first_to_the_last_of_either_direction() -> None:
    x = relay.var("x", shape=(3, 4))
    body = relay.strided_slice(x, [None, None], [2, None], [1, -2])
    data = np.arange(12, dtype="float32").reshape(3, 4)
    found = relay.create_executor("graph").evaluate(relay.Function([x], body))(data)
    np.testing.assert_array_equal(found.numpy(), data[:2, ::-2])


def test_strided_set_without_strides_sets_every_element() -> None:
    x, v = relay.var("x", shape=(3, 4)), relay.var("v", shape=(2, 3))
    bounds = [relay.const(b, "int32") for b in ([1, 1], [3, 4])]
    run = relay.create_executor("graph").evaluate(
        relay.Function([x, v], relay.strided_set(x, v, *bounds))
    )
    data, new = np.zeros((3, 4), "float32"), np.ones((2, 3), "float32")
    found = run(data, new).numpy()
    assert found.sum() == 6
    np.testing.assert_array_equal(found[1:, 1:], new)


def test_float_remainders_are_exact() -> None:
    x, y = [relay.var(name, shape=(6,), dtype="float16") for name in "xy"]
    a = np.array([7, -7, 7, -7, 0.3, 5], "float16")
    b = np.array([2, 2, -2, -2, 0.1, np.inf], "float16")
    run = relay.create_executor("graph").evaluate(relay.Function([x, y], relay.floor_mod(x, y)))
    np.testing.assert_array_equal(run(a, b).numpy(), np.mod(a, b))


def test_mean_and_deviation_come_as_a_pair() -> None:
    x = relay.var("x", shape=(2, 3))
    for pair in (relay.mean_std(x, 1), relay.mean_variance(x, 1)):
        assert run_infer_type(pair.astuple()).checked_type == relay.TupleType([_type(2)] * 2)
    assert isinstance(tvm.relay.mean_std(x, 1), relay.expr.TupleWrapper)


def _with_variables(case: Case) -> tuple[relay.Function, dict[tir.Var, tir.IntImm]]:
    """The case's call of tensors whose extents are all variables, and what these are."""
    values: dict[tir.Var, tir.IntImm] = {}
    params = []
    for i, array in enumerate(case.inputs):
        shape = [te.size_var(f"n{i}_{axis}") for axis in range(array.ndim)]
        values |= {v: tir.IntImm("int32", n) for v, n in zip(shape, array.shape, strict=True)}
        params.append(relay.var(f"p{i}", shape=shape, dtype=str(array.dtype)))
    return relay.Function(params, case.build(*params)), values


# what they require to be known: extents of windows and keys, how many axes there are
REQUIRED = {
    "auto_scheduler_layout_transform", "squeeze", "gather_nd", "scatter_nd", "stft", "nn.contrib_conv3d_winograd_weight_transform",
    "nn.contrib_conv3d_winograd_without_weight_transform",
}  # fmt: skip


def test_types_of_variables_are_those_of_their_values() -> None:
    for case in {case.name: case for case in CASES}.values():
        if case.name in REQUIRED or case.name.startswith("random."):
            continue
        func, values = _with_variables(case)
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
        ty = mod["main"].body.checked_type
        fields = ty.fields if isinstance(ty, relay.TupleType) else [ty]
        found = [
            tuple([int(ANALYZER.simplify(substitute(extent, values))) for extent in field.shape])
            for field in fields
        ]
        assert found == [array.shape for array in _expected(case)], case.name
