"""Extents of tensors that may be known to the run alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay import op as _op
from tvm.relay.expr import Call, Constant, Tuple
from tvm.relay.frontend.common import constant, infer_shape


def element(vector: RelayExpr, index: int) -> RelayExpr:
    """One element of a vector, as a vector."""
    return _op.strided_slice(vector, [index], [index + 1])


def extent(x: RelayExpr, axis: int) -> Any:
    """An extent, as a vector of one where only the run knows it."""
    shape = infer_shape(x)
    axis %= len(shape)
    return shape[axis] if isinstance(shape[axis], int) else element(_op.shape_of(x, "int64"), axis)


def known_elements(vector: RelayExpr) -> list[int | None]:
    """The elements of a shape that are constants, None for those that come with the run."""
    if isinstance(vector, Constant):
        return [int(value) for value in vector.data.numpy()]
    if isinstance(vector, Call) and vector.op is Op.get("concatenate"):
        (parts,) = vector.args
        if isinstance(parts, Tuple):
            return [value for part in parts.fields for value in known_elements(part)]
    length = infer_shape(vector)[0]
    return [None] * length if isinstance(length, int) else []


def product_of(extents: Sequence[Any]) -> Any:
    """The product, a number if all are."""
    result: Any = math.prod([e for e in extents if isinstance(e, int)])
    for open_extent in [e for e in extents if not isinstance(e, int)]:
        is_one = isinstance(result, int) and result == 1
        result = open_extent if is_one else open_extent * as_vector(result)
    return result


def as_vector(extent: Any) -> RelayExpr:
    """An extent as a vector of one."""
    return constant([extent], "int64") if isinstance(extent, int) else extent


def counting(count: Any) -> RelayExpr:
    """The numbers from zero up to an extent."""
    if isinstance(count, int):
        return constant(np.arange(count), "int64")
    zero, one = [constant(value, "int64") for value in (0, 1)]
    return _op.arange(zero, _op.reshape(count, ()), one, "int64")


def sum_of(first: Any, second: Any) -> Any:
    """The sum of two extents, a number if both are."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return as_vector(first) + as_vector(second)


def less(first: Any, second: Any) -> Any:
    """The first of two extents less the second, a number if both are."""
    if isinstance(first, int) and isinstance(second, int):
        return first - second
    return as_vector(first) - as_vector(second)


def reshaped(x: RelayExpr, extents: Sequence[Any]) -> RelayExpr:
    """``x`` in a shape of extents as `extent` gives them."""
    return _in_shape(_op.reshape, x, extents)


def stretched(x: RelayExpr, extents: Sequence[Any]) -> RelayExpr:
    """``x`` with extents of one repeated to reach others."""
    return _in_shape(_op.broadcast_to, x, extents)


def _in_shape(
    function: Callable[[RelayExpr, Any], RelayExpr], x: RelayExpr, extents: Sequence[Any]
) -> RelayExpr:
    known = [e if isinstance(e, int) else None for e in extents]
    if None not in known:
        return function(x, known)
    return refined(function(x, _op.concatenate([as_vector(e) for e in extents], 0)), known)


def refined(x: RelayExpr, dims: Sequence[Any]) -> RelayExpr:
    """``x`` with the extents that ``dims`` knows and its type does not."""
    shape = infer_shape(x)
    if len(shape) != len(dims):
        return x
    known = [
        isinstance(d, int) and not isinstance(s, int) for d, s in zip(dims, shape, strict=True)
    ]
    if not any(known) or 0 in dims:
        return x
    return _op.reshape(x, [d if new else 0 for d, new in zip(dims, known, strict=True)])
