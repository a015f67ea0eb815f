"""Maxima over the bins of each region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.support.signatures import with_values
from tvm.tir.ir_builder import IRBuilder
from tvm.tir.reduction import least

from ...utils import arrangement, dims


def _roi_pool(
    data: te.Tensor,
    rois: te.Tensor,
    pooled_size: int | Sequence[int],
    spatial_scale: float,
    layout: str,
) -> te.Tensor:
    pooled = (pooled_size, pooled_size) if isinstance(pooled_size, int) else tuple(pooled_size)
    arranged = arrangement(layout)
    extents = dict(zip(layout, dims(data.shape), strict=True))
    regions = dims(rois.shape)[0]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        maps, boxes, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, regions, "r", kind="parallel") as r:
            b = ib.let("b", boxes[r, 0].astype("int32"))
            tops, bottoms = _edges(boxes[r, 2], boxes[r, 4], spatial_scale, pooled[0], extents["H"])
            lefts, rights = _edges(boxes[r, 1], boxes[r, 3], spatial_scale, pooled[1], extents["W"])
            with ib.for_range(0, pooled[0], "py") as py, ib.for_range(0, pooled[1], "px") as px:
                top, bottom = ib.let("top", tops(py)), ib.let("bottom", bottoms(py))
                left, right = ib.let("left", lefts(px)), ib.let("right", rights(px))
                is_empty = tir.any(bottom <= top, right <= left)
                start = tir.Select(is_empty, tir.const(0, data.dtype), least(data.dtype))
                with ib.for_range(0, extents["C"], "c") as c:
                    position = arranged(r, c, py, px)
                    out[position] = start
                    _maximum(
                        ib, out, position, lambda y, x: maps[arranged(b, c, y, x)],
                        (top, bottom), (left, right),
                    )  # fmt: skip
        return ib.get()

    shape = arranged(regions, extents["C"], *pooled)
    return te.extern([shape], [data, rois], body, dtype=data.dtype, name="roi_pool")


@with_values(_roi_pool, layout="NCHW")
def roi_pool_nchw() -> None:
    """The greatest element in each bin of each region; 0 in empty bins.

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
    """


@with_values(_roi_pool, layout="NHWC")
def roi_pool_nhwc() -> None:
    """As `roi_pool_nchw`, of maps with channels last."""


def _maximum(
    ib: IRBuilder, out: Any, place: Any, element: Any, rows: Sequence[Any], columns: Sequence[Any]
) -> None:
    height, width = [tir.max(end - start, 0) for start, end in (rows, columns)]
    with ib.for_range(0, height, "y") as y, ib.for_range(0, width, "x") as x:
        out[place] = tir.max(out[place], element(rows[0] + y, columns[0] + x))


def _rounded(corner: PrimExpr, scale: float) -> PrimExpr:
    """The nearest integer; halves go away from zero, as every framework has it."""
    position = corner.astype("float32") * tir.const(scale, "float32")
    nearest = tir.Select(position < 0.0, tir.ceil(position - 0.5), tir.floor(position + 0.5))
    return nearest.astype("int32")


def _edges(low: PrimExpr, high: PrimExpr, scale: float, pooled: int, extent: Any) -> Any:
    """Where bins start and end along one axis; the region's ends are rounded and belong to it."""
    first, last = _rounded(low, scale), _rounded(high, scale)
    width = tir.max(last - first + 1, 1).astype("float32") / tir.const(pooled, "float32")

    def held(place: PrimExpr) -> PrimExpr:
        inside: PrimExpr = tir.min(tir.max(place.astype("int32") + first, 0), extent)
        return inside

    def start(p: Any) -> PrimExpr:
        return held(tir.floor(p.astype("float32") * width))

    def end(p: Any) -> PrimExpr:
        return held(tir.ceil((p + 1).astype("float32") * width))

    return start, end
