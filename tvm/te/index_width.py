"""The width of indices: 64 bits where a tensor has more elements than 32 bits count.

Axes of small tensors are wide, too, where the kernel that they belong to reads large ones: an index
into those is computed from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from math import prod

from tvm.ir.expr import PrimExpr
from tvm.support.scope import Scoped
from tvm.tir.expr import INT32, IntImm, Range

_LIMIT = 1 << 31
_IS_WIDE: Scoped[bool] = Scoped("wide_indices")


def wide_indices(is_wide: bool) -> AbstractContextManager[bool]:
    """Whether tensors and axes declared within have extents of 64 bits, whatever their size is."""
    return _IS_WIDE.scope(is_wide)


def index_dtype() -> str:
    """The type of the indices that are declared now, where no tensor tells."""
    return "int64" if _IS_WIDE.current() else "int32"


def needs_wide_indices(shape: Iterable[PrimExpr]) -> bool:
    """Whether 32 bits cannot count the elements, as far as extents are known."""
    return prod([dim.value for dim in shape if isinstance(dim, IntImm)]) >= _LIMIT


def as_indexed(dims: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The extents of a tensor in the width of its indices."""
    if not _IS_WIDE.current() and not needs_wide_indices(dims):
        return tuple(dims)
    return tuple([_widened(dim) for dim in dims])


def as_indexed_range(domain: Range) -> Range:
    """The range of an axis in the width of indices."""
    if not _IS_WIDE.current():
        return domain
    return Range.from_min_extent(_widened(domain.min), _widened(domain.extent))


def _widened(extent: PrimExpr) -> PrimExpr:
    if isinstance(extent, IntImm) and extent.dtype is INT32:
        return IntImm("int64", extent.value)
    return extent
