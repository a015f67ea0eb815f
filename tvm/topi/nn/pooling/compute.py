"""Pooling: the maximum or the mean of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.signatures import with_defaults
from tvm.tir.reduction import least

from ...layout import axis_positions
from ...utils import cast_scalar, dims, mean_dtype
from ..pad import pad

Dim = int | PrimExpr


def window_count(
    extent: Dim, window: int, stride: int, dilation: int, padding: int, ceil_mode: bool
) -> Dim:
    """How many windows there are along an axis; the last one starts inside data or left border."""
    room = extent + padding - ((window - 1) * dilation + 1)
    if ceil_mode:
        room += stride - 1
    count = room // stride + 1
    return max(count, 0) if isinstance(count, int) else tir.max(count, 0)


def pool2d(
    data: te.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> te.Tensor:
    """Pooling over windows of two axes.

    Parameters
    ----------
    data : te.Tensor
        The tensor, in `layout` (blocked channels, as in NCHW16c, included).
    kernel, stride, dilation : sequence of int
        The window, its steps and its spacing.
    padding : sequence of int
        (top, left, bottom, right)
    pool_type : str
        "max" or "avg".
    ceil_mode : bool
        Let the last window reach over the edge.
    count_include_pad : bool
        Count padded elements in the mean.
    """
    _require_kind(pool_type)
    rank = len(kernel)
    spatial = "DHW"[-rank:]
    at = axis_positions(layout, spatial)
    extents = dims(data.shape)
    shape = list(extents)
    before, after = [0] * len(shape), [0] * len(shape)
    for i, axis in enumerate(at):
        total = padding[i] + padding[i + rank]
        shape[axis] = window_count(
            extents[axis], kernel[i], stride[i], dilation[i], total, ceil_mode
        )
        reach = (shape[axis] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1
        before[axis] = padding[i]
        # of an extent that only the run knows, the last window may lie short of the border
        missing = reach - extents[axis] - padding[i]
        is_known = isinstance(missing, int)
        behind = padding[i + rank] + (stride[i] - 1 if ceil_mode else 0)
        after[axis] = max(missing, 0) if is_known else behind
    lowest = least(data.dtype) if pool_type == "max" else tir.const(0, data.dtype)
    source = pad(data, before, after, lowest, name="pad_temp") if any(before + after) else data
    windows = [
        te.reduce_axis((0, kernel[i]), name=f"r{axis.lower()}") for i, axis in enumerate(spatial)
    ]

    def taken(indices: Sequence[Any]) -> Any:
        where = list(indices)
        for i, axis in enumerate(at):
            where[axis] = indices[axis] * stride[i] + windows[i].var * dilation[i]
        return source(*where)

    if pool_type == "max":
        return te.compute(
            shape, lambda *i: te.max(taken(i), axis=windows), name="pool_max", tag="pool_max"
        )
    wide = mean_dtype(data.dtype)
    total_of = te.compute(
        shape, lambda *i: te.sum(taken(i).astype(wide), axis=windows), name="pool_sum",
        tag="pool_sum",
    )  # fmt: skip

    def mean(*i: Any) -> Any:
        count = window_size(
            i, at, extents, kernel, stride, dilation, padding, count_include_pad, ceil_mode
        )
        if isinstance(count, int) and total_of.dtype.is_float:
            return (total_of(*i) * tir.const(1.0 / count, wide)).astype(data.dtype)
        return tir.div(total_of(*i), cast_scalar(count, wide)).astype(data.dtype)

    return te.compute(shape, mean, name="pool_avg", tag="elemwise,pool_avg")


@with_defaults(pool2d, layout="NCW")
def pool1d() -> None:
    """Pooling over windows of one axis; parameters as in `pool2d`."""


@with_defaults(pool2d, layout="NCDHW")
def pool3d() -> None:
    """Pooling over windows of three axes; parameters as in `pool2d`, padding front to right."""


def window_size(
    indices: Sequence[Any],
    at: Sequence[int],
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    count_include_pad: bool,
    ceil_mode: bool,
) -> Any:
    """The number of elements that the mean is taken of."""
    rank = len(at)
    size: Any = 1
    for i, axis in enumerate(at):
        if not any(padding) and not ceil_mode:
            size = size * kernel[i]
            continue
        low = -padding[i] if count_include_pad else 0
        high = extents[axis] + (padding[i + rank] if count_include_pad else 0)
        start = indices[axis] * stride[i] - padding[i]
        if dilation[i] == 1:
            end = tir.min(start + kernel[i], high)
            size = size * tir.max(end - tir.max(start, low), 1)
            continue
        last = tir.min(kernel[i], tir.indexdiv(high - 1 - start, dilation[i]) + 1)
        first = tir.max(tir.indexdiv(low - start + dilation[i] - 1, dilation[i]), 0)
        size = size * tir.max(last - first, 1)
    return size


def adaptive_pool(
    data: te.Tensor, output_size: Sequence[Any], pool_type: str, layout: str = "NCHW"
) -> te.Tensor:
    """Pooling to `output_size` nearly equal windows over two axes."""
    return _adaptive_pool(data, output_size, pool_type, layout, "HW")


def adaptive_pool1d(
    data: te.Tensor, output_size: Sequence[Any], pool_type: str, layout: str = "NCW"
) -> te.Tensor:
    """Pooling to `output_size` nearly equal windows over one axis."""
    return _adaptive_pool(data, output_size, pool_type, layout, "W")


def adaptive_pool3d(
    data: te.Tensor, output_size: Sequence[Any], pool_type: str, layout: str = "NCDHW"
) -> te.Tensor:
    """Pooling to `output_size` nearly equal windows over three axes."""
    return _adaptive_pool(data, output_size, pool_type, layout, "DHW")


def _adaptive_pool(
    data: te.Tensor, output_size: Sequence[Any], kind: str, layout: str, spatial: str
) -> te.Tensor:
    _require_kind(kind)
    at = axis_positions(layout, spatial)
    extents = dims(data.shape)
    sizes = list(dims(output_size))
    if all(_parts_evenly(extents[axis], size) for axis, size in zip(at, sizes, strict=True)):
        steps = [extents[axis] // size for axis, size in zip(at, sizes, strict=True)]
        ones, none = (1,) * len(at), (0,) * (2 * len(at))
        return pool2d(data, steps, steps, ones, none, kind, False, layout, True)
    return _uneven_pool(data, at, sizes, kind)


def _require_kind(kind: str) -> None:
    if kind not in ("max", "avg"):
        raise RuntimeValueError(f"pooling requires a pool_type of max or avg, got {kind!r}")


def _parts_evenly(extent: Any, size: Any) -> bool:
    """Whether all windows are known to have the same extent."""
    if isinstance(size, int) and size == 1:
        return True
    return isinstance(extent, int) and isinstance(size, int) and extent % size == 0


def _widest(extent: Any, size: Any) -> Any:
    """The extent of the widest window; of an open extent, one that no window exceeds."""
    if not isinstance(extent, int) or not isinstance(size, int):
        return tir.indexdiv(extent + size - 1, size) + 1
    return max([-(-(i + 1) * extent // size) - i * extent // size for i in range(size)])


def _uneven_pool(data: te.Tensor, at: Sequence[int], sizes: Sequence[int], kind: str) -> te.Tensor:
    extents = dims(data.shape)
    shape = list(extents)
    windows = []
    for axis, size in zip(at, sizes, strict=True):
        shape[axis] = size
        windows.append(te.reduce_axis((0, _widest(extents[axis], size)), name=f"r{axis}"))
    neutral = least(data.dtype) if kind == "max" else tir.const(0, data.dtype)
    wide = mean_dtype(data.dtype)

    def bounds_of(index: Any, axis: int, size: int) -> tuple[Any, Any]:
        return tir.indexdiv(index * extents[axis], size), tir.indexdiv(
            (index + 1) * extents[axis] + size - 1, size
        )

    def taken(*indices: Any) -> Any:
        where, inside = list(indices), []
        for k, axis, size in zip(windows, at, sizes, strict=True):
            begin, end = bounds_of(indices[axis], axis, size)
            where[axis] = begin + k.var
            inside.append(begin + k.var < end)
        value = tir.if_then_else(tir.all(*inside), data(*where), neutral)
        return te.max(value, axis=windows) if kind == "max" else te.sum(value.astype(wide), windows)

    found = te.compute(shape, taken, name=f"adaptive_pool_{kind}", tag=f"adaptive_pool_{kind}")
    if kind == "max":
        return found

    def mean(*i: Any) -> Any:
        count: Any = 1
        for axis, size in zip(at, sizes, strict=True):
            begin, end = bounds_of(i[axis], axis, size)
            count = count * (end - begin)
        return tir.div(found(*i), cast_scalar(count, wide)).astype(data.dtype)

    return te.compute(shape, mean, name="adaptive_pool_avg", tag="elemwise,adaptive_pool_avg")


def global_pool(data: te.Tensor, pool_type: str, layout: str = "NCHW") -> te.Tensor:
    """Pooling over the whole of two axes."""
    return adaptive_pool(data, (1, 1), pool_type, layout)
