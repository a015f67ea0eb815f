"""What schedules for processors share: vector widths, parallel loops, vectorised outputs."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.ir import structural_equal
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.target.cpu import CpuInfo, cpu_info

from ..utils import dims, extents_of, get_max_power2_factor, prod

# fewer elements than this are not worth waking another thread for
PARALLEL_ELEMENTS = 16384
# stands for the number of elements of a tensor some of whose extents only the run knows
UNKNOWN_COUNT = 1 << 40


def processor(target: Target | None = None) -> CpuInfo:
    """The processor scheduled for."""
    return cpu_info(target)


def lanes_of(dtype: str, info: CpuInfo) -> int:
    """Elements of a dtype in one vector register."""
    return max(info.vector_bits // max(as_dtype(dtype).bits, 8), 1)


def vector_lanes(extent: object, dtype: str, info: CpuInfo) -> int:
    """The widest vector, of a power of two elements, that divides an extent; 1 if there is none."""
    if not isinstance(extent, int) or extent < 2:
        return 1
    lanes = get_max_power2_factor(extent, lanes_of(dtype, info))
    return lanes if lanes * as_dtype(dtype).bits >= 64 or lanes == extent else 1


def masked_lanes(extent: object, dtype: str, info: CpuInfo) -> int:
    """The lanes of vectors whose last one may be cut by a mask, where masks cost nothing."""
    exact, full = vector_lanes(extent, dtype, info), lanes_of(dtype, info)
    can_mask = info.has_avx512f and as_dtype(dtype).bits in (32, 64)
    return full if can_mask and isinstance(extent, int) and extent > full else exact


def covering_lanes(extent: int, dtype: str, info: CpuInfo) -> int:
    """The lanes of vectors that cover an extent, the last one with a mask where it costs nothing."""
    exact, full = vector_lanes(extent, dtype, info), lanes_of(dtype, info)
    can_mask = info.has_avx512f and as_dtype(dtype).bits in (32, 64)
    if exact == full or not can_mask:
        return exact
    return min(full, max(4, 1 << (extent - 1).bit_length()))


def row_lanes(extent: object, dtype: str, info: CpuInfo) -> int:
    """The lanes of vectors along a row that `vectorize_inner` leaves the end of to itself."""
    full = lanes_of(dtype, info)
    if not isinstance(extent, int):
        return 1
    return full if extent > full else covering_lanes(extent, dtype, info)


def is_static(tensor: te.Tensor) -> bool:
    """Whether every dimension is a constant."""
    return all(isinstance(d, int) for d in dims(tensor.shape))


def has_shape_of(a: te.Tensor, b: te.Tensor) -> bool:
    """Whether two tensors certainly have the same extents."""
    pairs = zip(a.shape, b.shape, strict=False)
    return len(a.shape) == len(b.shape) and all([structural_equal(x, y) for x, y in pairs])


def element_count(tensor: te.Tensor) -> int:
    """The number of elements; `UNKNOWN_COUNT` if it is not known."""
    total = 1
    for extent in dims(tensor.shape):
        if not isinstance(extent, int):
            return UNKNOWN_COUNT
        total *= extent
    return total


def fuse_and_parallel(
    s: te.Schedule, stage: te.Tensor, axes: Sequence[tir.IterVar], work: int | None = None
) -> tir.IterVar:
    """One loop of several, on all threads; with `work`, in elements, only if it is worth that."""
    fused = axes[0] if len(axes) == 1 else s[stage].fuse(*axes)
    if work is None or work >= PARALLEL_ELEMENTS:
        s[stage].parallel(fused)
    return fused


def fuse_rows_and_parallel(
    s: te.Schedule, stage: te.Tensor, axes: Sequence[tir.IterVar], work: int | None = None
) -> tir.IterVar:
    """One loop of several on all threads, that over open columns inside it; returns the innermost.

    Which row and column a position of one fused loop is in would take divisions, each of many cycles
    where the extents are not known. Once a row, they do not count.
    """
    extents = extents_of(axes)
    others = [extent for extent in extents[:-1] if isinstance(extent, int)]
    has_rows = len(others) < len(extents) - 1 or prod(others) >= processor().cores
    if len(axes) < 3 or isinstance(extents[-1], int) or not has_rows:
        return fuse_and_parallel(s, stage, axes, work)
    fuse_and_parallel(s, stage, axes[:-1], work)
    return axes[-1]


def vectorize_inner(s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, lanes: int) -> None:
    """Split a loop by the vector width and vectorise the inner part; a tail is masked, separately."""
    if lanes < 2:
        return
    extent = dims((axis.dom.extent,))[0] if axis.dom is not None else None
    if extent == lanes:
        s[stage].vectorize(axis)
        return
    outer, inner = s[stage].split(axis, factor=lanes)
    s[stage].vectorize(inner)
    # conditions at the ends of a row, and in its borders, stay out of its middle
    s[stage].pragma(outer, "loop_partition_hint")
