"""Buffers: typed, multi-dimensional views of memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, binder, ignored, leaf
from tvm.ir.script_printer import Scriptable
from tvm.ir.type import PointerType
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from . import op
from .expr import (
    INT32,
    BufferLoad,
    IntImm,
    Ramp,
    Var,
    as_expr,
    as_exprs,
    as_lanes,
    const,
    int_imm,
    pointer_type,
)
from .linear import difference
from .scalable import vscale_factor
from .stmt import BufferRegion, BufferStore, range_of_index

if TYPE_CHECKING:
    from tvm.ir.span import Span


# elements of the widest vector start at multiples of this many bytes
DEFAULT_ALIGNMENT = 64


class BufferType(IntEnum):
    """Whether dimensions of extent 1 broadcast when a buffer is bound to an argument."""

    DEFAULT = 1
    AUTO_BROADCAST = 2


class DataProducer(Node):
    """What a :class:`ProducerLoad` reads: a tensor that is not in memory yet."""


class Buffer(Scriptable, Node):
    """A view of memory as an array: the element type, the shape, where it lies.

    ``strides`` is empty for a compact buffer. ``A[i, j]`` is a load.
    """

    structural: ClassVar[str] = "variable"

    data: Var = binder()
    dtype: DType
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    elem_offset: PrimExpr
    name: str = ignored()
    data_alignment: int
    offset_factor: int
    buffer_type: BufferType
    axis_separators: tuple[IntImm, ...] = leaf(default=())
    span: Span | None = ignored(default=None, kw_only=True)

    READ = 1
    WRITE = 2

    def scope(self) -> str:
        """The storage scope: ``"global"``, ``"shared"``, ``"local"``, ..."""
        annotation = self.data.type_annotation
        scope = annotation.storage_scope if isinstance(annotation, PointerType) else ""
        return scope or "global"

    def access_ptr(
        self,
        access_mask: str | int,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: Any = 0,
        extent: Any = None,
    ) -> PrimExpr:
        """A pointer to the buffer's elements for an intrinsic or external function.

        Parameters
        ----------
        access_mask : str or int
            ``"r"``, ``"w"``, ``"rw"``, or a sum of ``Buffer.READ`` and ``Buffer.WRITE``.
        ptr_type : str
            The dtype of the pointer.
        content_lanes : int
            Lanes of the elements it points to.
        offset : PrimExpr
            Elements to skip.
        extent : PrimExpr, optional
            Elements that may be accessed; by default all that are left.
        """
        if isinstance(access_mask, str):
            masks = {"r": Buffer.READ, "w": Buffer.WRITE}
            if not access_mask or set(access_mask) - masks.keys():
                raise RuntimeValueError(
                    f"access_ptr requires a mask 'r', 'w' or 'rw', got {access_mask!r}"
                )
            access_mask = sum({masks[letter] for letter in access_mask})
        start = op.add(self.elem_offset, as_expr(offset, self.elem_offset.dtype))
        if extent is None:
            extent = op.subtract(self._extent_in_memory(), as_expr(offset, INT32))
        content = self.dtype
        if content_lanes > 1:
            content = content.with_lanes(content.lanes * content_lanes)
            extent = op.truncdiv(extent, content_lanes)
            start = op.truncdiv(start, content_lanes)
        return op.call_intrin(
            ptr_type, "tir.tvm_access_ptr", op.type_annotation(content), self.data, start,
            as_expr(extent), int(access_mask),
        )  # fmt: skip

    def _extent_in_memory(self) -> PrimExpr:
        if self.strides:
            return op.multiply(self.strides[0], self.shape[0])
        return op.product(self.shape)

    def vload(self, begin: Any, dtype: Any = None, predicate: PrimExpr | None = None) -> BufferLoad:
        """The vector of type ``dtype`` that starts at the indices ``begin``."""
        wanted = as_dtype(dtype) if dtype is not None else self.dtype
        return BufferLoad(self, self._vector_indices(begin, wanted), predicate)

    def vstore(self, begin: Any, value: Any, predicate: PrimExpr | None = None) -> BufferStore:
        """The statement that stores a vector at the indices ``begin``."""
        value = as_expr(value, self.dtype.element)
        return BufferStore(self, value, self._vector_indices(begin, value.dtype), predicate)

    def _vector_indices(self, begin: Any, dtype: DType) -> tuple[PrimExpr, ...]:
        indices = list(as_exprs(begin))
        if dtype.element is not self.dtype.element or dtype.lanes % self.dtype.lanes:
            raise RuntimeTypeError(f"buffer {self.name} requires {self.dtype} vectors, got {dtype}")
        lanes = dtype.lanes // self.dtype.lanes
        if lanes > 1 and indices[-1].dtype.lanes == 1:
            indices[-1] = Ramp(indices[-1], int_imm(indices[-1].dtype, 1), lanes)
        return tuple(indices)

    def get_flattened_buffer(self) -> Buffer:
        """The buffer with its dimensions joined: into one, or one per axis separator group."""
        if self._is_flat():
            return self
        groups = self._groups()
        if self.strides:
            shape = [op.multiply(self.strides[first], self.shape[first]) for first, last in groups]
            # a group's outermost stride covers the groups after it too
            inner = [self.strides[last - 1] for first, last in groups]
            shape = [op.floordiv(extent, step) for extent, step in zip(shape, inner, strict=True)]
            if len(groups) == 1:
                shape = [op.multiply(shape[0], inner[0])]
        else:
            shape = [op.product(self.shape[first:last]) for first, last in groups]
        separators = tuple([const(i, "int32") for i in range(1, len(groups))])
        return self.replace(shape=tuple(shape), strides=(), axis_separators=separators)

    def _is_flat(self) -> bool:
        return not self.strides and len(self.shape) == len(self.axis_separators) + 1

    def _groups(self) -> list[tuple[int, int]]:
        """The half-open ranges of dimensions that are joined."""
        borders = [0, *[int(s) for s in self.axis_separators], len(self.shape)]
        return list(pairwise(borders))

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """The indices into :meth:`get_flattened_buffer` of the element at ``indices``, simplified."""
        positions = as_exprs(indices)
        if len(positions) != len(self.shape):
            raise RuntimeValueError(
                f"buffer {self.name} requires {len(self.shape)} indices, got {len(positions)}"
            )
        offsets = [
            self._group_offset(
                positions, first, last, self.elem_offset if last == len(self.shape) else None
            )
            for first, last in self._groups()
        ]
        return [extension.simplified.required(offset) for offset in offsets]

    def _group_offset(
        self, indices: tuple[PrimExpr, ...], first: int, last: int, start: PrimExpr | None
    ) -> PrimExpr:
        offset: PrimExpr | None = None
        for axis in range(first, last):
            index = indices[axis]
            if self.strides:
                term = op.multiply(index, self.strides[axis])
                offset = term if offset is None else op.add(offset, term)
            elif offset is None:
                offset = index
            else:
                offset = op.add(op.multiply(offset, self.shape[axis]), index)
        if offset is None:
            offset = int_imm(self.elem_offset.dtype, 0)
        return offset if start is None else op.add(offset, start)

    def __getitem__(self, indices: Any) -> Any:
        """A load; with slices that have no step, a region; with stepped slices, a vector load."""
        items = indices if isinstance(indices, (tuple, list)) else (indices,)
        slices = [item for item in items if isinstance(item, slice)]
        if not slices:
            return BufferLoad(self, as_exprs(items))
        if any(item.step is None for item in slices):
            return self._region(items)
        return BufferLoad(self, tuple([self._ramp(item) for item in items]))

    def _region(self, items: Sequence[Any]) -> BufferRegion:
        region = [range_of_index(item, self.shape[axis]) for axis, item in enumerate(items)]
        return BufferRegion(self, tuple(region))

    def _ramp(self, item: Any) -> PrimExpr:
        if not isinstance(item, slice):
            return as_expr(item)
        start = as_expr(0 if item.start is None else item.start)
        length = difference(*op.unify(item.stop, start))
        lanes = op.floordiv(length, item.step)
        if not isinstance(lanes, IntImm) and vscale_factor(lanes) is None:
            raise RuntimeValueError(
                f"buffer {self.name} requires a slice of constant length, got {lanes}"
            )
        is_one = isinstance(lanes, IntImm) and lanes.value == 1
        return start if is_one else Ramp(start, as_expr(item.step), as_lanes(lanes))


def allocation_shape(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The extents of the memory that a buffer needs.

    Where each stride is a multiple of the next they tell the extents, rows that are padded for
    alignment count as such; else there is one, from the first element to the last.
    """
    strides = buffer.strides
    if not strides:
        return buffer.shape or (as_expr(1),)
    inner = [a // b for a, b in pairwise(strides)]
    is_nested = _is_number(strides[-1], 1) and all([_divides(b, a) for a, b in pairwise(strides)])
    if is_nested and not any(map(_is_less, inner, buffer.shape[1:])):
        return (buffer.shape[0], *inner)
    ends = [(extent - 1) * step for extent, step in zip(buffer.shape, strides, strict=True)]
    return (sum(ends, start=as_expr(1)),)


def _divides(inner: PrimExpr, outer: PrimExpr) -> bool:
    """Whether a stride is known to be a multiple of another one; of nothing more than itself."""
    if isinstance(inner, IntImm) and isinstance(outer, IntImm):
        return inner.value > 0 and outer.value >= inner.value and outer.value % inner.value == 0
    return _is_number(extension.simplified.required(op.floormod(outer, inner)), 0)


def _is_less(a: PrimExpr, b: PrimExpr) -> bool:
    return isinstance(a, IntImm) and isinstance(b, IntImm) and a.value < b.value


def _is_number(value: PrimExpr, number: int) -> bool:
    return isinstance(value, IntImm) and value.value == number


def content_dtype(dtype: DType) -> DType:
    """The type of elements in memory: a bool occupies one byte."""
    return as_dtype("int8").with_lanes(dtype.lanes) if dtype.is_bool else dtype


def decl_buffer(
    shape: Any,
    dtype: Any = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Any = None,
    span: Span | None = None,
) -> Buffer:
    """Declare a symbolic buffer.

    Parameters
    ----------
    shape : tuple of PrimExpr
        The extents.
    dtype : str, optional
        The element type, float32 by default.
    name : str
        A name for the printer.
    data : Var, optional
        The pointer; a new variable by default.
    strides : tuple of PrimExpr, optional
        Elements between neighbours along each axis; empty if compact. If there are fewer than axes, they
        are of the last ones, and the axes before follow without a gap.
    elem_offset : PrimExpr, optional
        The position of the first element after ``data``, in elements.
    scope : str
        The storage scope of a new pointer.
    data_alignment : int
        Bytes to which ``data`` is aligned; -1 is the default of 64.
    offset_factor : int
        ``elem_offset`` is a multiple of this; 0 with no ``elem_offset``: there is no offset.
    buffer_type : str
        ``""`` or ``"auto_broadcast"``.
    axis_separators : list of int, optional
        Where the dimensions are divided when the buffer is flattened, in order.

    Raises
    ------
    ValueError
        If a separator is not between two dimensions or at an end, or they are not in order.
    """
    extents = as_exprs(shape)
    separators = [int(separator) for separator in axis_separators or ()]
    if separators != sorted(separators) or not all(0 <= s <= len(extents) for s in separators):
        raise RuntimeValueError(
            f"buffer {name} requires axis separators in order from 0 to {len(extents)}, "
            f"got {separators}"
        )
    element = as_dtype("float32" if dtype is None else dtype)
    if data is None:
        data = Var(name, pointer_type(content_dtype(element), scope), span)
    index_dtype = extents[0].dtype if extents else INT32
    if elem_offset is None:
        if offset_factor:
            elem_offset = Var(f"{name}_elem_offset" if name else "", index_dtype)
        else:
            elem_offset = int_imm(index_dtype, 0)
    kinds = {"": BufferType.DEFAULT, "default": BufferType.DEFAULT,
             "auto_broadcast": BufferType.AUTO_BROADCAST}  # fmt: skip
    if buffer_type not in kinds:
        raise RuntimeValueError(
            f"decl_buffer requires a buffer_type of {list(kinds)}, got {buffer_type!r}"
        )
    kind = kinds[buffer_type]
    steps = _all_strides(extents, as_exprs(strides or ()))
    if kind is BufferType.AUTO_BROADCAST and not steps:
        steps = tuple([Var("stride", extent.dtype) for extent in extents])
    return Buffer(
        data, element, extents, steps, as_expr(elem_offset, index_dtype), name,
        data_alignment if data_alignment > 0 else DEFAULT_ALIGNMENT, offset_factor or 1, kind,
        tuple([int_imm(INT32, separator) for separator in separators]), span=span,
    )  # fmt: skip


def _all_strides(
    extents: tuple[PrimExpr, ...], strides: tuple[PrimExpr, ...]
) -> tuple[PrimExpr, ...]:
    """A stride for each axis, if there are any."""
    steps = [*strides]
    while steps and len(steps) < len(extents):
        steps.insert(0, op.multiply(steps[0], extents[-len(steps)]))
    return tuple(steps)
