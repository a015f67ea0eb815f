"""Tensors made from a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from . import tag
from .utils import cast_scalar, dims, equals


def full(shape: Sequence[Any], dtype: str, fill_value: Any) -> te.Tensor:
    """A tensor filled with one value."""
    value = (
        fill_value.astype(dtype)
        if isinstance(fill_value, PrimExpr)
        else tir.const(fill_value, dtype)
    )
    return te.compute(list(shape), lambda *i: value, name="T_full", tag=tag.ELEMWISE)


def full_like(x: te.Tensor, fill_value: Any) -> te.Tensor:
    """A tensor of another's shape and dtype, filled with one value."""
    return full(x.shape, x.dtype, fill_value)


def ramp(start: Any, step: Any, extent: Any, dtype: str) -> te.Tensor:
    """start, start + step, ... of `extent` elements."""

    def element(i: Any) -> Any:
        kind = start.dtype
        value = start + step * i.astype(kind)
        return value.astype(dtype)

    return te.compute((extent,), element, name="T_arange", tag=tag.INJECTIVE)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> te.Tensor:
    """Evenly spaced numbers from start up to (not including) stop."""
    if stop is None:
        start, stop = 0, start
    values = [
        v.value if isinstance(v, (tir.IntImm, tir.FloatImm)) else v for v in (start, stop, step)
    ]
    first, step_value = [
        cast_scalar(v, dtype) if isinstance(v, PrimExpr) else tir.const(v, dtype)
        for v in (values[0], values[2])
    ]
    return ramp(first, step_value, _steps_between(*values), dtype)


def _steps_between(start: Any, stop: Any, step: Any) -> Any:
    """ceil((stop - start) / step)."""
    if not any([isinstance(value, PrimExpr) for value in (start, stop, step)]):
        return max(math.ceil((stop - start) / step), 0)
    # the floor of the negated quotient, for steps of either sign
    return stop - start if step == 1 else -tir.floordiv(start - stop, step)


def shape(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The shape as a tensor."""
    extents = dims(array.shape)

    def element(i: Any) -> PrimExpr:
        value = cast_scalar(extents[-1], dtype)
        for axis in reversed(range(len(extents) - 1)):
            value = tir.if_then_else(equals(i, axis), cast_scalar(extents[axis], dtype), value)
        return value

    return te.compute((len(extents),), element, name="T_shape", tag=tag.INJECTIVE)


def ndarray_size(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The number of elements as a scalar."""

    def element() -> PrimExpr:
        total: PrimExpr = tir.const(1, dtype)
        for extent in dims(array.shape):
            total = total * cast_scalar(extent, dtype)
        return total

    return te.compute((), element, name="ndarray_size", tag=tag.INJECTIVE)


def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of tensors of one shape."""

    def element(*i: Any) -> PrimExpr:
        total = xs[0](*i)
        for x in xs[1:]:
            total = total + x(*i)
        return total

    return te.compute(xs[0].shape, element, name="T_sum", tag=tag.ELEMWISE)


__all__ = [
    "arange",
    "elemwise_sum",
    "full",
    "full_like",
    "ndarray_size",
    "ramp",
    "shape",
]
