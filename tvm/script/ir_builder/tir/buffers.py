"""Buffers of a program that is being built: declared, allocated, stored to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tvm.ir.expr import PrimExpr
from tvm.runtime import ndarray
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer, content_dtype
from tvm.tir.buffer import decl_buffer as make_buffer
from tvm.tir.expr import BufferLoad, Range, Var, as_expr, as_exprs, const, pointer_type
from tvm.tir.stmt import BufferRegion, Stmt

from ..base import IRBuilder
from .frame import (
    AllocateConstFrame,
    AllocateFrame,
    BlockFrame,
    DeclBufferFrame,
    RealizeFrame,
    add_to_parent,
    innermost,
    prim_func_frame,
)
from .values import DTypeCall


def buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A buffer of the given shape; nothing provides its memory."""
    kind = dtype.dtype if isinstance(dtype, DTypeCall) else as_dtype(dtype)
    if isinstance(shape, str):
        raise TypeError(f"a buffer requires a shape of integers, got {shape!r}")
    extents = as_exprs(shape)
    if strides is not None:
        index = extents[0].dtype if extents else None
        strides = [Var(v, index) if isinstance(v, str) and index else v for v in strides]
    return make_buffer(
        extents, kind, "", data, strides, elem_offset, scope, align if align > 0 else -1,
        offset_factor, {"auto": "auto_broadcast", "default": ""}.get(buffer_type, buffer_type),
        axis_separators,
    )  # fmt: skip


class BufferType:
    """``T.Buffer((16,), "float32")``, also written ``T.Buffer[(16,), "float32"]``."""

    def __call__(self, *args: Any, **keywords: Any) -> Buffer:
        return buffer(*args, **keywords)

    def __getitem__(self, args: Any) -> Buffer:
        if isinstance(args, tuple) and len(args) == 2 and isinstance(args[1], (str, DTypeCall)):
            return buffer(*args)
        return buffer(args)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """The buffer that a handle parameter is bound to, or in a block a view of a region.

    A view has the region's extents and the data type of its buffer, unless the shape is given.
    """
    rest = (strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators)
    if isinstance(param, Var):
        function = prim_func_frame("T.match_buffer of a parameter")
        if shape is None:
            raise ValueError("T.match_buffer of a parameter requires a shape")
        if not any(param is known for known in function.args):
            raise ValueError("T.match_buffer requires a parameter of the function or a region")
        found = function.buffer_map[param] = buffer(shape, dtype, data, *rest)
        return found
    region = as_region(param)
    if shape is None:
        shape, dtype = [item.extent for item in region.region], region.buffer.dtype
    found = buffer(shape, dtype, data, *rest)
    frame = innermost(BlockFrame, "T.match_buffer of a region", "T.block")
    frame.match_buffers.append(s.MatchBufferRegion(found, region))
    return found


def as_region(value: Any) -> BufferRegion:
    """A region: a buffer, an element or a slice of it."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return BufferRegion(value, tuple([Range(0, extent) for extent in value.shape]))
    if isinstance(value, BufferLoad):
        pairs = zip(value.indices, value.buffer.shape, strict=True)
        ranges = [s.range_of_index(i, extent) for i, extent in pairs]
        return BufferRegion(value.buffer, tuple(ranges))
    raise TypeError(f"a region of a buffer is required, got {type(value).__name__}")


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """A buffer that the block around it (or the function) allocates."""
    found = buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
        axis_separators,
    )  # fmt: skip
    block = IRBuilder.current().find_frame(BlockFrame)
    if block is not None:
        block.alloc_buffers.append(found)
    else:
        prim_func_frame("T.alloc_buffer").root_alloc_buffers.append(found)
    return found


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> DeclBufferFrame:
    """A view of the memory that ``data`` points to; without ``data``, memory of its own."""
    found = buffer(
        shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type,
        axis_separators,
    )  # fmt: skip
    return DeclBufferFrame(found, allocated=data is not None)


def allocate(
    extents: Any,
    dtype: Any,
    scope: str = "global",
    condition: Any = None,
    annotations: Mapping[str, Any] | None = None,
) -> AllocateFrame:
    """Memory; the value is a pointer to it."""
    kind = _dtype(dtype)
    pointer = Var("", pointer_type(content_dtype(kind), scope))
    guard = const(True) if condition is None else condition
    sizes, notes = as_exprs(extents), dict(annotations or {})
    return AllocateFrame(
        pointer, lambda var, body: s.Allocate(var, kind, sizes, guard, body, notes)
    )


def allocate_const(
    data: Any,
    dtype: Any,
    extents: Any,
    annotations: Mapping[str, Any] | None = None,
) -> AllocateConstFrame:
    """Constant data; the value is a pointer to it."""
    kind = _dtype(dtype)
    pointer = Var("", pointer_type(content_dtype(kind)))
    shape, notes = [int(extent) for extent in extents], dict(annotations or {})
    values = data.numpy() if hasattr(data, "numpy") else np.array(data, kind)
    # data may be given short of the extents: as an example of what the memory holds
    array = ndarray.array(values.reshape(shape) if values.size == prod(shape) else values)
    return AllocateConstFrame(
        pointer, lambda var, body: s.AllocateConst(var, kind, extents, array, body, notes)
    )


def _dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, DTypeCall) else as_dtype(value)


def realize(
    buffer_slice: Any, storage_scope: str | None = None, condition: Any = True
) -> RealizeFrame:
    """Memory for a region of a buffer, of the buffer's own scope or of a stated one."""
    if isinstance(buffer_slice, Buffer):
        raise TypeError(f"T.realize requires a region of buffer {buffer_slice.name}, got all of it")
    return RealizeFrame(as_region(buffer_slice), storage_scope, as_expr(condition))


# ---- stores


def buffer_store(
    buffer: Buffer, value: Any, indices: Sequence[Any], predicate: PrimExpr | None = None
) -> None:
    """Store at indices, among them slices; a scalar is broadcast to the lanes of the index."""
    add_to_parent(store(buffer, value, indices, predicate))


def store(target: Buffer, value: Any, indices: Any, predicate: PrimExpr | None = None) -> Stmt:
    """The statement of :func:`buffer_store`."""
    if not isinstance(target, Buffer):
        raise TypeError(f"a store requires a buffer, got {type(target).__name__}")
    given = indices if isinstance(indices, (tuple, list)) else (indices,)
    positions = [_store_index(index, target) for index in given]
    element = as_expr(value, target.dtype.element)
    lanes = target.dtype.lanes * (positions[-1].dtype.lanes if positions else 1)
    if element.dtype.lanes == 1 and lanes > 1:
        element = op.cast(element, element.dtype.with_lanes(lanes))
    wanted = target.dtype.with_lanes(lanes)
    if element.dtype != wanted and _converts(element.dtype, wanted):
        element = op.cast(element, wanted)
    if element.dtype != wanted:
        raise TypeError(
            f"a store to {target.name} requires {wanted}, got {element.dtype}; hint: convert it "
            "with T.Cast or astype"
        )
    return s.BufferStore(target, element, positions, predicate)


def _converts(source: DType, wanted: DType) -> bool:
    """Whether a store converts: numbers to numbers, floats to integers among them."""
    return source.lanes == wanted.lanes and not source.is_handle and not wanted.is_handle


def _store_index(index: Any, target: Buffer) -> PrimExpr:
    if isinstance(index, slice):
        if index.step is not None:
            return target._ramp(index)
        covered = s.range_of_index(index, as_expr(0))
        return s.index_of_range(covered, BufferRegion(target, (covered,)))
    return as_expr(index)


def prefetch(buffer: Buffer, bounds: Sequence[Range]) -> None:
    """Bring a region near."""
    add_to_parent(s.Prefetch(buffer, tuple(bounds)))
