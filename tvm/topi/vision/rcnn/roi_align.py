"""Averages (or maxima) of interpolated samples in a grid over each region."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.signatures import with_values
from tvm.tir.ir_builder import IRBuilder
from tvm.tir.reduction import least

from ...utils import arrangement, dims

MODES = ("avg", "max", "max_corner")


class _Side(NamedTuple):
    """How one axis of a sample is interpolated: two positions, and the weight of the second."""

    low: PrimExpr
    high: PrimExpr
    weight: PrimExpr
    is_inside: PrimExpr


def _roi_align(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: int | Sequence[int],
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
) -> te.Tensor:
    name = mode.decode() if isinstance(mode, bytes) else str(mode)
    if name not in MODES:
        raise RuntimeValueError(f"roi_align requires a mode of {', '.join(MODES)}, got {mode!r}")
    dtype = "float64" if data.dtype == "float64" else "float32"
    blend = _greatest_corner if name == "max_corner" else _interpolate
    pooled = (pooled_size, pooled_size) if isinstance(pooled_size, int) else tuple(pooled_size)
    extents = dict(zip(layout, dims(data.shape), strict=True))
    channels, regions = extents["C"], dims(rois.shape)[0]
    # every sample takes the same positions of all channels: these are neighbours in memory
    source = data if layout == "NHWC" else _channels_last(data)
    arranged = arrangement(layout)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        maps, boxes, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        start = tir.const(0.0, dtype) if name == "avg" else least(dtype)
        with ib.for_range(0, regions, "r", kind="parallel") as r:
            total = ib.allocate(dtype, (pooled[0], pooled[1], channels), "total")
            b = ib.let("b", boxes[r, 0].astype("int32"))
            top, height, rows = _bins(
                ib, boxes[r, 2], boxes[r, 4], spatial_scale, pooled[0], sample_ratio, aligned, dtype
            )
            left, width, columns = _bins(
                ib, boxes[r, 1], boxes[r, 3], spatial_scale, pooled[1], sample_ratio, aligned, dtype
            )
            share = ib.let("share", 1.0 / tir.max(rows * columns, 1).astype(dtype))
            with ib.for_range(0, pooled[0], "py") as py, ib.for_range(0, pooled[1], "px") as px:
                with ib.for_range(0, channels, "c") as c:
                    total[py, px, c] = start
                with ib.for_range(0, rows, "sy") as sy, ib.for_range(0, columns, "sx") as sx:
                    y = _side(ib, _sample(top, height, rows, py, sy), extents["H"], "y")
                    x = _side(ib, _sample(left, width, columns, px, sx), extents["W"], "x")
                    with ib.for_range(0, channels, "c") as c:
                        value = blend(lambda v, u: maps[b, v, u, c], y, x)
                        before = total[py, px, c]
                        total[py, px, c] = (
                            before + value * share if name == "avg" else tir.max(before, value)
                        )
            names = {"C": "c", "H": "py", "W": "px"}
            sizes = {"C": channels, "H": pooled[0], "W": pooled[1]}
            with contextlib.ExitStack() as loops:
                at = {
                    axis: loops.enter_context(ib.for_range(0, sizes[axis], names[axis]))
                    for axis in layout[1:]
                }
                value = total[at["H"], at["W"], at["C"]].astype(data.dtype)
                out[arranged(r, at["C"], at["H"], at["W"])] = value
        return ib.get()

    shape = arranged(regions, channels, *pooled)
    return te.extern([shape], [source, rois], body, dtype=data.dtype, name="roi_align")


@with_values(_roi_align, layout="NCHW")
def roi_align_nchw() -> None:
    """Pool regions of maps by interpolated samples.

    Parameters
    ----------
    data : te.Tensor
        (batch, channels, height, width).
    rois : te.Tensor
        (regions, 5): the batch's index, left, top, right and bottom.
    pooled_size : int or pair of int
        The height and width of the results.
    spatial_scale : float
        The factor from the regions' coordinates to the maps'.
    mode : str
        "avg" or "max" of the samples; "max_corner", ONNX's maximum: of the weighted neighbours of
        all samples, which are not added up.
    sample_ratio : int
        Samples along each axis of a bin; below 1: as many as the bin is wide, rounded up.
    aligned : bool
        Whether elements have their centres at half coordinates; if so, regions may also be
        smaller than one element.
    """


@with_values(_roi_align, layout="NHWC")
def roi_align_nhwc() -> None:
    """As `roi_align_nchw`, of maps with channels last."""


def _channels_last(data: te.Tensor) -> te.Tensor:
    """(batch, channels, height, width) as (batch, height, width, channels)."""
    batch, channels, height, width = dims(data.shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, batch * height, "row", kind="parallel") as row:
            b, y = tir.indexdiv(row, height), tir.indexmod(row, height)
            with ib.for_range(0, channels, "c") as c, ib.for_range(0, width, "x") as x:
                out[b, y, x, c] = source[b, c, y, x]
        return ib.get()

    shape = (batch, height, width, channels)
    return te.extern([shape], [data], body, dtype=data.dtype, name="channels_last")


def _bins(
    ib: IRBuilder,
    low: PrimExpr,
    high: PrimExpr,
    scale: float,
    pooled: int,
    ratio: int,
    aligned: bool,
    dtype: str,
) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """Along one axis: where the region starts, the width of a bin, the samples in a bin."""
    factor, offset = tir.const(scale, dtype), tir.const(0.5 if aligned else 0.0, dtype)
    start = ib.let("start", low.astype(dtype) * factor - offset)
    extent = high.astype(dtype) * factor - offset - start
    held = extent if aligned else tir.max(extent, 1.0)
    width = ib.let("width", held / tir.const(pooled, dtype))
    if ratio > 0:
        return start, width, tir.const(ratio, "int32")
    return start, width, ib.let("samples", tir.ceil(width).astype("int32"))


def _sample(start: Any, width: PrimExpr, count: PrimExpr, at: Any, n: Any) -> Any:
    return (
        start
        + at.astype(start.dtype) * width
        + (n.astype(start.dtype) + 0.5) * width / count.astype(start.dtype)
    )


def _side(ib: IRBuilder, place: PrimExpr, extent: Any, name: str) -> _Side:
    """The neighbours of a sample along one axis; samples beyond one element outside count as 0."""
    raw = ib.let(f"{name}_raw", place)
    last = tir.const(extent - 1, "int32") if isinstance(extent, int) else extent - 1
    is_inside = ib.let(f"{name}_inside", tir.all(raw >= -1.0, raw <= (last + 1).astype(raw.dtype)))
    held = ib.let(name, tir.min(tir.max(raw, 0.0), last.astype(raw.dtype)))
    low = ib.let(f"{name}_low", tir.floor(held).astype("int32"))
    high = ib.let(f"{name}_high", tir.min(low + 1, last))
    weight = ib.let(f"{name}_weight", held - low.astype(raw.dtype))
    return _Side(low, high, weight, is_inside)


def _interpolate(value: Callable[[Any, Any], PrimExpr], y: _Side, x: _Side) -> PrimExpr:
    def at(v: PrimExpr, u: PrimExpr) -> PrimExpr:
        return value(v, u).astype(y.weight.dtype)

    upper = at(y.low, x.low) * (1.0 - x.weight) + at(y.low, x.high) * x.weight
    lower = at(y.high, x.low) * (1.0 - x.weight) + at(y.high, x.high) * x.weight
    return _inside(y, x, upper * (1.0 - y.weight) + lower * y.weight)


def _greatest_corner(value: Callable[[Any, Any], PrimExpr], y: _Side, x: _Side) -> PrimExpr:
    def at(v: PrimExpr, u: PrimExpr, weight: PrimExpr) -> PrimExpr:
        return value(v, u).astype(y.weight.dtype) * weight

    upper = tir.max(
        at(y.low, x.low, (1.0 - y.weight) * (1.0 - x.weight)),
        at(y.low, x.high, (1.0 - y.weight) * x.weight),
    )
    lower = tir.max(
        at(y.high, x.low, y.weight * (1.0 - x.weight)), at(y.high, x.high, y.weight * x.weight)
    )
    return _inside(y, x, tir.max(upper, lower))


def _inside(y: _Side, x: _Side, value: PrimExpr) -> PrimExpr:
    return tir.Select(tir.all(y.is_inside, x.is_inside), value, tir.const(0.0, value.dtype))
