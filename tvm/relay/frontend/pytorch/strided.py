"""``as_strided``: elements by their addresses, of tensors whose layout in memory is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.frontend.indexing import along_axis

from .registry import as_ints, as_number, torch_op


@torch_op("as_strided", "as_strided_copy")
def _as_strided(x: RelayExpr, sizes: Any, strides: Any, offset: Any = None) -> RelayExpr:
    """Elements of a tensor that lies in memory in order, by their addresses."""
    extents, steps = as_ints(sizes), as_ints(strides)
    index = np.full([1] * len(extents), as_number(offset) or 0)
    for axis, (extent, step) in enumerate(zip(extents, steps, strict=True)):
        index = index + (np.arange(extent) * step).reshape(along_axis(axis, len(extents)))
    count = math.prod(infer_shape(x))
    if index.size and index.max() >= count:
        raise OpAttributeUnImplemented(
            f"as_strided reads element {index.max()} of a tensor of {count} elements",
            hint="give it a tensor that is no view of another",
        )
    return _op.take(_op.reshape(x, (count,)), constant(index, "int64"), 0)


def in_memory_order(
    arguments: Sequence[Any], layout: Sequence[int] | None, owns_memory: bool
) -> list[Any]:
    """The arguments of as_strided, of a tensor of these strides (None: unknown, so in order).

    The tensor is brought into the order of memory. Of a view nothing but its own elements can be
    read, counted from its first.
    """
    x, sizes, strides, offset = arguments
    if not owns_memory and (
        offset is not None or _last(sizes, strides) >= math.prod(infer_shape(x))
    ):
        raise _view_error()
    order = list(range(len(infer_shape(x)))) if layout is None else _memory_order(x, layout)
    moved = x if order == sorted(order) else _op.transpose(x, order)
    return [moved, sizes, strides, offset]


def _last(sizes: Any, strides: Any) -> int:
    """The furthest element that is read."""
    return sum((n - 1) * step for n, step in zip(as_ints(sizes), as_ints(strides), strict=True))


def _memory_order(x: RelayExpr, strides: Sequence[int]) -> list[int]:
    """The axes from the outermost in memory, of a tensor without gaps."""
    shape = infer_shape(x)
    order = sorted(range(len(shape)), key=lambda axis: (strides[axis], shape[axis]), reverse=True)
    following = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != following:
            raise _view_error()
        following *= shape[axis]
    return order


def _view_error() -> TVMError:
    return TVMError(
        "as_strided requires a tensor that is no view of another",
        hint="call clone or contiguous before it",
    )
