"""Axes that only the run knows: for each axis of a tensor whether it is among them."""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant
from tvm.relay.frontend.indexing import from_front

from .registry import OnnxNode


def has_dynamic_axes(node: OnnxNode, index: int = 1) -> bool:
    """Whether an input, the axes, is known only at run time."""
    return node.has(index) and isinstance(node.value_or_expr(index, "axes"), RelayExpr)


def flags_of_axes(axes: RelayExpr, rank: int) -> RelayExpr:
    """One for each axis of a rank that is among the axes, which may be negative; zero for others."""
    return _op.minimum(_op.sum(_hits(axes, rank), axis=[0]), constant(1, "int64"))


def kept_extents(x: RelayExpr, flags: RelayExpr, count: int) -> RelayExpr:
    """The extents of the axes without a flag, of which there are ``count``."""
    # they come first, in any order among themselves
    order = _op.argsort(flags, 0, True, "int64")
    kept = _op.sort(_op.strided_slice(order, [0], [count]))
    return _op.take(_op.shape_of(x, "int64"), kept, 0)


def spread_over_axes(values: RelayExpr, axes: RelayExpr, rank: int, others: RelayExpr) -> RelayExpr:
    """A value for each axis of a rank: those given for some axes, and those of ``others``."""
    values = _op.cast(values, "int64")
    given = _op.sum(_op.expand_dims(values, 1) * _hits(axes, rank), axis=[0])
    return _op.where(_op.cast(flags_of_axes(axes, rank), "bool"), given, others)


def _hits(axes: RelayExpr, rank: int) -> RelayExpr:
    """One where an axis of the rank is one of the axes, (axes, rank)."""
    given = _op.expand_dims(from_front(_op.cast(axes, "int64"), rank), 1)
    return _op.cast(_op.equal(given, constant(np.arange(rank), "int64")), "int64")
