"""Repeating axes of extent 1 to reach a shape, and the reverse: summing over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from .attributes import as_ints, is_run_time
from .registry import OpPattern, define_op, ops
from .types import broadcast_shapes, expect, expect_tensor, may_equal, shape_of_type, show, tensor


class BroadcastAttrs(Attrs, key="relay.attrs.InitOpAttrs"):
    """A shape and perhaps a dtype."""

    shape: tuple[int, ...] | None = None
    dtype: str = ""


def _broadcast_to_type(attrs: BroadcastAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "broadcast_to")
    wanted = tuple(attrs.shape or ())
    shape = shape_of_type(data)
    found = broadcast_shapes(shape, wanted, "broadcast_to")
    expect(
        len(found) == len(wanted)
        and all(may_equal(a, b) for a, b in zip(found, wanted, strict=True)),
        f"broadcast_to cannot bring {show(shape)} to {show(wanted)}",
    )
    return tensor(wanted, data.dtype)


def _fold_broadcast(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    return [np.array(np.broadcast_to(arrays[0], out_type.concrete_shape))]  # type: ignore[attr-defined]


define_op(
    "broadcast_to",
    BroadcastAttrs,
    inputs=("data",),
    infer_type=_broadcast_to_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.broadcast_to(inputs[0], out_type.shape)],
    fold=_fold_broadcast,
    gradient=lambda call, grad: [ops.collapse_sum_like(grad, call.args[0])],
)


def _broadcast_to_like_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "broadcast_to_like")
    like = expect_tensor(arg_types[1], "broadcast_to_like", "broadcast_type")
    broadcast_shapes(shape_of_type(data), shape_of_type(like), "broadcast_to_like")
    return tensor(shape_of_type(like), data.dtype)


define_op(
    "broadcast_to_like",
    inputs=("data", "broadcast_type"),
    infer_type=_broadcast_to_like_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.broadcast_to(inputs[0], out_type.shape)],
    fold=_fold_broadcast,
)


def _collapse_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "collapse_sum_like")
    wanted = shape_of_type(expect_tensor(arg_types[1], "collapse_sum_like", "collapse_type"))
    broadcast_shapes(shape_of_type(data), wanted, "collapse_sum_like")
    return tensor(wanted, data.dtype)


define_op(
    "collapse_sum_like",
    inputs=("data", "collapse_type"),
    infer_type=_collapse_type,
    fuse=OpPattern.COMM_REDUCE,
    compute=lambda attrs, inputs, out_type: [topi.collapse_sum(inputs[0], out_type.shape)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.schedule_reduce(outs),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_reduce(outs),
    },
)


class CollapseSumToAttrs(Attrs, key="relay.attrs.CollapseSumToAttrs"):
    """The shape wanted."""

    shape: tuple[int, ...]


def _collapse_to_type(attrs: CollapseSumToAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "collapse_sum_to")
    broadcast_shapes(shape_of_type(data), attrs.shape, "collapse_sum_to")
    return tensor(attrs.shape, data.dtype)


define_op(
    "collapse_sum_to",
    CollapseSumToAttrs,
    inputs=("data",),
    infer_type=_collapse_to_type,
    fuse=OpPattern.COMM_REDUCE,
    compute=lambda attrs, inputs, out_type: [topi.collapse_sum(inputs[0], out_type.shape)],
    schedules=ops.collapse_sum_like.schedules,
)


def broadcast_to(data: RelayExpr, shape: Sequence[int] | RelayExpr) -> RelayExpr:
    """Repeat axes of extent 1 to reach a shape.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    shape : sequence of int
        The shape wanted.
    """
    if is_run_time(shape):
        return Op.get("dyn.broadcast_to")(data, shape)
    return ops.broadcast_to(data, shape=as_ints(shape))


def broadcast_to_like(data: RelayExpr, broadcast_type: RelayExpr) -> RelayExpr:
    """Repeat axes of extent 1 to reach another tensor's shape."""
    return ops.broadcast_to_like(data, broadcast_type)


def collapse_sum_like(data: RelayExpr, collapse_type: RelayExpr) -> RelayExpr:
    """Sum over axes to reach another tensor's shape: the reverse of broadcasting."""
    return ops.collapse_sum_like(data, collapse_type)


def collapse_sum_to(data: RelayExpr, shape: Sequence[int] | RelayExpr) -> RelayExpr:
    """Sum over axes to reach a shape: the reverse of broadcasting.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    shape : sequence of int
        The shape wanted.
    """
    return ops.collapse_sum_to(data, shape=as_ints(shape))
