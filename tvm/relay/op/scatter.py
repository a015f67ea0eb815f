"""Operators that write updates to places given by indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from .attributes import as_int
from .registry import OpPattern, define_op, ops
from .types import (
    expect,
    expect_same_dtype,
    expect_tensor,
    is_known,
    positive_axis,
    shape_of_type,
)


class ScatterElementsAttrs(Attrs, key="relay.attrs.ScatterElementsAttrs"):
    """The axis that indices name, and how updates combine with what is there."""

    axis: int = 0
    reduction: str = "update"


class ScatterNDAttrs(Attrs, key="relay.attrs.ScatterNDAttrs"):
    """How updates combine with what is there."""

    mode: str = "update"


_WAYS = ("update", "add", "mul", "min", "max")
_REDUCTIONS = (*_WAYS, "mean")


def _scatter_elements_type(attrs: ScatterElementsAttrs, arg_types: Sequence[Type]) -> Type:
    who = "scatter_elements"
    data, indices, updates = [
        expect_tensor(ty, who, name)
        for ty, name in zip(arg_types, ("data", "indices", "updates"), strict=True)
    ]
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


def _scatter_nd_type(attrs: ScatterNDAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "scatter_nd")
    expect_same_dtype((data, expect_tensor(arg_types[2], "scatter_nd", "updates")), "scatter_nd")
    indices = expect_tensor(arg_types[1], "scatter_nd", "indices")
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
    attrs: ScatterNDAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray] | None:
    data, indices, updates = arrays
    extents = np.reshape(data.shape[: len(indices)], (-1, *[1] * (indices.ndim - 1)))
    if attrs.mode != "update" or not extents.size or not updates.size:
        return None
    wide = indices.astype("int64")
    found = np.where(wide < 0, wide + extents, wide)
    is_inside = ((found >= 0) & (found < extents)).all(axis=0)
    places = found[:, is_inside]
    if np.unique(places, axis=1).size < places.size:  # numpy does not say which update is the last
        return None
    result = data.copy()
    result[tuple(places)] = updates[is_inside]
    return [result]


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


define_op(
    "scatter_elements",
    ScatterElementsAttrs,
    inputs=("data", "indices", "updates"),
    infer_type=_scatter_elements_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [
        topi.scatter_elements(*inputs, attrs.axis, attrs.reduction)
    ],
    schedules={"generic": _schedule, "cpu": _schedule},
)
define_op(
    "scatter_nd",
    ScatterNDAttrs,
    inputs=("data", "indices", "updates"),
    infer_type=_scatter_nd_type,
    fuse=OpPattern.OPAQUE,
    compute=lambda attrs, inputs, out_type: [topi.scatter_nd(*inputs, attrs.mode)],
    fold=_fold_scatter_nd,
    schedules={"generic": _schedule, "cpu": _schedule},
)


def scatter_elements(
    data: RelayExpr,
    indices: RelayExpr,
    updates: RelayExpr,
    axis: int = 0,
    reduction: str = "update",
) -> RelayExpr:
    """Combine each update with the element its index names along an axis.

    Parameters
    ----------
    data, indices, updates : relay.Expr
        The tensor, the indices, and one update for each.
    axis : int
        The axis.
    reduction : str
        "update", "add", "mul", "min" or "max".
    """
    return ops.scatter_elements(data, indices, updates, axis=as_int(axis), reduction=str(reduction))


def scatter_nd(
    data: RelayExpr, indices: RelayExpr, updates: RelayExpr, mode: str = "update"
) -> RelayExpr:
    """Combine slices of updates with slices named by index tuples.

    Parameters
    ----------
    data, indices, updates : relay.Expr
        The tensor, the index tuples (along the first axis), and the updates.
    mode : str
        "update", "add", "mul", "min" or "max".
    """
    return ops.scatter_nd(data, indices, updates, mode=str(mode))
