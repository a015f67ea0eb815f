"""Extents of tensors, which may be dynamic: numbers, or vectors of one element."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Call
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.op.registry import ops
from tvm.relay.transform.known_elements import known_elements

from .common import static_or
from .indexing import along_axis


def element(vector: RelayExpr, index: int) -> RelayExpr:
    """One element of a vector, as a vector."""
    return _op.strided_slice(vector, [index], [index + 1])


def extent(x: RelayExpr, axis: int) -> Any:
    """An extent, as a vector of one where it is dynamic."""
    shape = infer_shape(x)
    axis %= len(shape)
    return shape[axis] if isinstance(shape[axis], int) else element(_op.shape_of(x, "int64"), axis)


def with_inferred_extents(x: RelayExpr) -> RelayExpr:
    """``x``, an operator on a computed shape, with the extents that are known of that shape."""
    if not isinstance(x, Call):
        return x
    if x.op is ops.dyn.reshape:
        dims = known_elements(x.args[1])
        if dims.count(None) == 1 and -1 not in dims:
            return _op.reshape(x.args[0], [-1 if d is None else d for d in dims])
        return with_static_extents(x, [d if d is not None and d > 0 else None for d in dims])
    if x.op is ops.dyn.broadcast_to:
        return with_static_extents(
            x, _stretched_dims(infer_shape(x.args[0]), known_elements(x.args[1]))
        )
    is_filled = any([x.op is op for op in (ops.dyn.full, ops.dyn.zeros, ops.dyn.ones)])
    return with_static_extents(x, known_elements(x.args[-1])) if is_filled else x


def _stretched_dims(have: Sequence[Any], want: Sequence[int | None]) -> list[Any]:
    """Extents above one stay as they are."""
    own = [None] * (len(want) - len(have)) + list(have)
    return [
        d if d is not None or not isinstance(o, int) or o <= 1 else o
        for o, d in zip(own, want, strict=True)
    ]


def product_of(extents: Sequence[Any]) -> Any:
    """The product, a number if all are."""
    result: Any = math.prod([e for e in extents if isinstance(e, int)])
    for dynamic_extent in [e for e in extents if not isinstance(e, int)]:
        is_one = isinstance(result, int) and result == 1
        result = dynamic_extent if is_one else dynamic_extent * as_vector(result)
    return result


def as_vector(extent: Any) -> RelayExpr:
    """An extent as a vector of one."""
    return constant([extent], "int64") if isinstance(extent, int) else extent


def iota(count: Any) -> RelayExpr:
    """The numbers from zero up to an extent."""
    if isinstance(count, int):
        return constant(np.arange(count), "int64")
    zero, one = [constant(value, "int64") for value in (0, 1)]
    return _op.arange(zero, _op.reshape(count, ()), one, "int64")


def positions_along(x: RelayExpr, axis: int) -> RelayExpr:
    """The indices of an axis, in a shape that broadcasts to that of ``x``."""
    return _op.reshape(iota(extent(x, axis)), along_axis(axis, len(infer_shape(x))))


def _arithmetic(
    on_numbers: Callable[[int, int], int], on_vectors: Callable[[RelayExpr, RelayExpr], RelayExpr]
) -> Callable[[Any, Any], Any]:
    """A function of two extents, a number if both are."""

    def compute(first: Any, second: Any) -> Any:
        if isinstance(first, int) and isinstance(second, int):
            return on_numbers(first, second)
        return on_vectors(as_vector(first), as_vector(second))

    return compute


sum_of = _arithmetic(operator.add, _op.add)
difference_of = _arithmetic(operator.sub, _op.subtract)
quotient_of = _arithmetic(operator.floordiv, _op.floor_divide)  # rounded down


def reshaped(x: RelayExpr, extents: Sequence[Any]) -> RelayExpr:
    """``x`` in a shape of extents as `extent` gives them."""
    if len([e for e in extents if not isinstance(e, int)]) == 1 and 0 not in extents:
        return _op.reshape(x, static_or(extents, -1))
    return _in_shape(_op.reshape, x, extents)


def broadcast(x: RelayExpr, extents: Sequence[Any]) -> RelayExpr:
    """``x`` with extents of one repeated to reach others."""
    return _in_shape(_op.broadcast_to, x, extents)


def _in_shape(
    function: Callable[[RelayExpr, Any], RelayExpr], x: RelayExpr, extents: Sequence[Any]
) -> RelayExpr:
    known = static_or(extents, None)
    if None not in known:
        return function(x, known)
    return with_static_extents(
        function(x, _op.concatenate([as_vector(e) for e in extents], 0)), known
    )


def with_static_extents(x: RelayExpr, dims: Sequence[Any]) -> RelayExpr:
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


def parts_of_sizes(x: RelayExpr, axis: int, sizes: RelayExpr, count: int) -> list[RelayExpr]:
    """The parts of an axis, ``count`` of them, whose sizes the run knows."""
    shape = infer_shape(x)
    axis %= len(shape)
    sizes = _op.cast(sizes, "int64")
    ends, dims = _op.cumsum(sizes, 0), _op.shape_of(x, "int64")
    zero, one = constant(np.zeros(1, "int64")), constant(np.ones(len(shape), "int64"))
    parts = []
    for i in range(count):
        begin, end = [zero] * len(shape), [element(dims, a) for a in range(len(shape))]
        end[axis] = element(ends, i)
        begin[axis] = end[axis] - element(sizes, i)
        first, last = [_op.concatenate(bounds, 0) for bounds in (begin, end)]
        part = _op.strided_slice(x, first, last, one)
        parts.append(
            with_static_extents(part, [None if a == axis else d for a, d in enumerate(shape)])
        )
    return parts
