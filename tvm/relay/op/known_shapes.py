"""Shapes of expressions that gradients are made of, and slices by them."""

from __future__ import annotations

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import infer_type_of

from .registry import ops
from .types import Dim, are_known, shape_of_type


def shape_of(expr: RelayExpr) -> tuple[Dim, ...]:
    return shape_of_type(infer_type_of(expr))


def known_shape(expr: RelayExpr, who: str) -> tuple[int, ...]:
    """The extents, where none is left to the run."""
    shape = shape_of(expr)
    if not are_known(shape):
        raise OpNotImplemented(f"the gradient of {who} requires known shapes, got {shape}")
    return shape


def sliced(data: RelayExpr, axis: int, begin: int, end: int) -> RelayExpr:
    """Some of the elements along one axis."""
    shape = known_shape(data, "strided_slice")
    starts = tuple([begin if a == axis else 0 for a in range(len(shape))])
    ends = tuple([end if a == axis else n for a, n in enumerate(shape)])
    return ops.strided_slice(data, begin=starts, end=ends)
