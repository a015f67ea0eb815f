"""Repeating axes of extent 1 to reach a shape, and the reverse: summing over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from .operator import Expr, Ints, operator
from .registry import OpPattern, ops
from .run_time import RunTime
from .schedules import REDUCTION_SCHEDULES
from .types import (
    TypeRelation,
    broadcast_shapes,
    expect,
    expect_tensor,
    may_equal,
    shape_of_type,
    show,
    tensor,
)


class InitOpAttrs(Attrs, key="relay.attrs.InitOpAttrs"):
    """A shape and perhaps a dtype."""

    shape: tuple[int, ...] | None = None
    dtype: str = ""


def _broadcast_to_type(attrs: InitOpAttrs, data: TensorType) -> Type:
    """A tensor of shape `shape` and the dtype of `data`."""
    wanted = tuple(attrs.shape or ())
    shape = shape_of_type(data)
    found = broadcast_shapes(shape, wanted, "broadcast_to")
    expect(
        len(found) == len(wanted)
        and all(may_equal(a, b) for a, b in zip(found, wanted, strict=True)),
        f"broadcast_to cannot bring {show(shape)} to {show(wanted)}",
    )
    return tensor(wanted, data.dtype)


_BROADCAST: dict[str, Any] = {
    "fuse": OpPattern.BROADCAST,
    "compute": lambda attrs, inputs, out_type: [topi.broadcast_to(inputs[0], out_type.shape)],
    "fold": lambda attrs, arrays, out_type: [
        np.array(np.broadcast_to(arrays[0], out_type.concrete_shape))
    ],
}


@operator(
    "broadcast_to",
    InitOpAttrs,
    support_level=4,
    infer_type=_broadcast_to_type,
    gradient=lambda call, grad: [ops.collapse_sum_like(grad, call.args[0])],
    run_time=RunTime({"shape": None}),
    **_BROADCAST,
)
def broadcast_to(data: Expr, shape: Ints) -> RelayExpr:
    """Repeat axes of extent 1 to reach a shape.

    Parameters
    ----------
    shape : sequence of int
        The shape wanted.
    """


def _like_second(who: str, argument: str) -> TypeRelation:
    """The shape of the second argument, one of the two being broadcast to the other."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the second operand's shape and the dtype of `data`."""
        data = expect_tensor(arg_types[0], who)
        wanted = shape_of_type(expect_tensor(arg_types[1], who, argument))
        broadcast_shapes(shape_of_type(data), wanted, who)
        return tensor(wanted, data.dtype)

    return relation


@operator(
    "broadcast_to_like",
    infer_type=_like_second("broadcast_to_like", "broadcast_type"),
    gradient=lambda call, grad: [
        ops.collapse_sum_like(grad, call.args[0]), ops.zeros_like(call.args[1])
    ],
    **_BROADCAST,
)  # fmt: skip
def broadcast_to_like(data: Expr, broadcast_type: Expr) -> RelayExpr:
    """Repeat axes of extent 1 to reach another tensor's shape."""


_COLLAPSE: dict[str, Any] = {
    "fuse": OpPattern.COMM_REDUCE,
    "compute": lambda attrs, inputs, out_type: [topi.collapse_sum(inputs[0], out_type.shape)],
    "schedules": REDUCTION_SCHEDULES,
}


@operator(
    "collapse_sum_like",
    infer_type=_like_second("collapse_sum_like", "collapse_type"),
    gradient=lambda call, grad: [
        ops.broadcast_to_like(grad, call.args[0]), ops.zeros_like(call.args[1])
    ],
    **_COLLAPSE,
)  # fmt: skip
def collapse_sum_like(data: Expr, collapse_type: Expr) -> RelayExpr:
    """Sum over axes to reach another tensor's shape: the reverse of broadcasting."""


def _collapse_to_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of shape `shape` and the dtype of `data`."""
    broadcast_shapes(shape_of_type(data), attrs.shape, "collapse_sum_to")
    return tensor(attrs.shape, data.dtype)


@operator(
    "collapse_sum_to",
    infer_type=_collapse_to_type,
    gradient=lambda call, grad: [ops.broadcast_to_like(grad, call.args[0])],
    **_COLLAPSE,
)
def collapse_sum_to(data: Expr, shape: Ints) -> RelayExpr:
    """Sum over axes to reach a shape: the reverse of broadcasting.

    Parameters
    ----------
    shape : sequence of int
        The shape wanted.
    """
