"""Operators that write updates to positions given by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import topi
from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const

from .computes import computed_by
from .known_shapes import known_shape
from .operator import Expr, operator
from .registry import ops
from .scatter_gradient import replaced_parts
from .schedules import EXTERN_SCHEDULES
from .types import expect, expect_same_dtype, is_known, positive_axis, shape_of_type

_WAYS = ("update", "add", "mul", "min", "max")
_REDUCTIONS = (*_WAYS, "mean")


def _scatter_elements_type(
    attrs: Any, data: TensorType, indices: TensorType, updates: TensorType
) -> Type:
    """A tensor of the shape and dtype of `data`."""
    who = "scatter_elements"
    expect_same_dtype((data, updates), who)
    positive_axis(attrs.axis, len(data.shape), who)
    expect(
        len(indices.shape) == len(updates.shape) == len(data.shape),
        f"{who} requires data, indices and updates of one rank",
    )
    expect(
        attrs.reduction in _REDUCTIONS,
        f"{who} requires a reduction of {', '.join(_REDUCTIONS)}, got {attrs.reduction!r}",
    )
    return data


def _scatter_elements_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, indices, updates = call.args
    if call.attrs.reduction == "update":
        to_data, to_updates = replaced_parts(call, grad, updates)
        return [to_data, ops.zeros_like(indices), to_updates]
    _check_added(call, "reduction")
    axis = call.attrs.axis
    dtype, extent = tensor_type_of(indices).dtype, known_shape(data, "scatter_elements")[axis]
    from_front = ops.where(
        ops.less(indices, const(0, dtype)), ops.add(indices, const(extent, dtype)), indices
    )  # fmt: skip
    return [grad, ops.zeros_like(indices), ops.gather(grad, from_front, axis=axis)]


def _check_added(call: Call, name: str) -> None:
    mode = getattr(call.attrs, name)
    if mode != "add":
        raise OpNotImplemented(
            f"the gradient of {call.operator.name} requires the {name} add or update, got {mode!r}"
        )


@operator(
    "scatter_elements",
    support_level=3,
    infer_type=_scatter_elements_type,
    compute=computed_by(topi.scatter_elements, "axis", "reduction"),
    schedules=EXTERN_SCHEDULES,
    gradient=_scatter_elements_gradient,
)
def scatter_elements(
    data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update"
) -> RelayExpr:
    """Combine each update with the element its index names along an axis.

    Parameters
    ----------
    reduction : str
        "update", "add", "mul", "min" or "max".
    """


def _scatter_nd_type(
    attrs: Any, data: TensorType, indices: TensorType, updates: TensorType
) -> Type:
    """A tensor of the shape and dtype of `data`."""
    expect_same_dtype((data, updates), "scatter_nd")
    expect(
        len(indices.shape) > 0 and is_known(shape_of_type(indices)[0]),
        "scatter_nd requires indices whose first dimension is known: it tells the axes they name",
    )
    expect(
        attrs.mode in _WAYS,
        f"scatter_nd requires a mode of {', '.join(_WAYS)}, got {attrs.mode!r}",
    )
    return data


def _fold_scatter_nd(
    attrs: Any, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray] | None:
    data, indices, updates = arrays
    extents = np.reshape(data.shape[: len(indices)], (-1, *[1] * (indices.ndim - 1)))
    if attrs.mode != "update" or not extents.size or not updates.size:
        return None
    wide = indices.astype("int64")
    found = np.where(wide < 0, wide + extents, wide)
    is_inside = ((found >= 0) & (found < extents)).all(axis=0)
    positions = found[:, is_inside]
    if (
        np.unique(positions, axis=1).size < positions.size
    ):  # numpy does not say which update is the last
        return None
    result = data.copy()
    result[tuple(positions)] = updates[is_inside]
    return [result]


def _scatter_nd_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    indices = call.args[1]
    if call.attrs.mode == "update":
        to_data, to_updates = replaced_parts(call, grad, call.args[2])
        return [to_data, ops.zeros_like(indices), to_updates]
    _check_added(call, "mode")
    return [grad, ops.zeros_like(indices), ops.gather_nd(grad, indices)]


@operator(
    "scatter_nd",
    "ScatterNDAttrs",
    support_level=3,
    infer_type=_scatter_nd_type,
    compute=computed_by(topi.scatter_nd, "mode"),
    schedules=EXTERN_SCHEDULES,
    fold=_fold_scatter_nd,
    gradient=_scatter_nd_gradient,
)
def scatter_nd(data: Expr, indices: Expr, updates: Expr, mode: str = "update") -> RelayExpr:
    """Combine slices of updates with slices named by index tuples.

    Parameters
    ----------
    data, indices, updates : relay.Expr
        The tensor, the index tuples (along the first axis), and the updates.
    mode : str
        "update", "add", "mul", "min" or "max".
    """
