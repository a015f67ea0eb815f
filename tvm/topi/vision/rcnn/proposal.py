"""Regions that a region proposal network finds: anchors moved, sorted, and thinned out."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, sqrt
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import IRBuilder

from ... import tag
from ...modules import sibling_attribute
from ...sort import argsort
from ...utils import cast_scalar, dims, get_float_tuple
from ..boxes import Selection, select_boxes


def generate_anchor(
    ratio: float, scale: float, base_size: float
) -> tuple[float, float, float, float]:
    """An anchor at the origin: left, top, right and bottom."""
    center = 0.5 * (base_size - 1.0)
    area = floor(base_size * base_size / ratio)
    width = floor(sqrt(area) + 0.5)
    half_width = 0.5 * (width * scale - 1.0)
    half_height = 0.5 * (floor(width * ratio + 0.5) * scale - 1.0)
    return (center - half_width, center - half_height, center + half_width, center + half_height)


def reg_bbox(x1: Any, y1: Any, x2: Any, y2: Any, dx: Any, dy: Any, dw: Any, dh: Any) -> Any:
    """A box moved by parts of its extents and scaled by exponentials."""
    found = []
    for low, high, move, grow in ((x1, x2, dx, dw), (y1, y2, dy, dh)):
        extent = high - low + 1.0
        center = move * extent + low + 0.5 * (extent - 1.0)
        half = 0.5 * (tir.exp(grow) * extent - 1.0)
        found.append((center - half, center + half))
    (left, right), (top, bottom) = found
    return left, top, right, bottom


def reg_iou(x1: Any, y1: Any, x2: Any, y2: Any, dx1: Any, dy1: Any, dx2: Any, dy2: Any) -> Any:
    """A box whose corners are moved."""
    return x1 + dx1, y1 + dy1, x2 + dx2, y2 + dy2


def proposal(
    cls_prob: te.Tensor,
    bbox_pred: te.Tensor,
    im_info: te.Tensor,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> te.Tensor:
    """The regions of the highest scores that do not overlap much.

    Parameters
    ----------
    cls_prob : te.Tensor
        (batch, 2 * anchors, height, width): background, then foreground.
    bbox_pred : te.Tensor
        (batch, 4 * anchors, height, width): how each anchor moves.
    im_info : te.Tensor
        (batch, 3): the image's height, width and scale.
    scales, ratios : sequence of float
        Of the anchors.
    feature_stride : int
        The distance of anchors in the image.
    threshold : float
        The intersection over union above which a region is dropped.
    rpn_pre_nms_top_n, rpn_post_nms_top_n : int
        How many regions take part in the suppression, and how many are wanted; where fewer are
        left, they are repeated.
    rpn_min_size : int
        The least extent of a region.
    iou_loss : bool
        Whether the predictions move corners, rather than the center and extents.

    Returns
    -------
    te.Tensor
        (batch * rpn_post_nms_top_n, 5): the batch's index and the corners.
    """
    boxes = _predicted(
        cls_prob, bbox_pred, im_info, get_float_tuple(scales), get_float_tuple(ratios),
        feature_stride, rpn_min_size, iou_loss,
    )  # fmt: skip
    batch, count, _ = dims(boxes.shape)
    scores = te.compute((batch, count), lambda b, i: boxes[b, i, 4], "scores", tag=tag.INJECTIVE)
    order = argsort(scores, None, 1, False, "int32")
    pre = count
    if rpn_pre_nms_top_n > 0:
        least = min if isinstance(count, int) else tir.min
        pre = least(count, rpn_pre_nms_top_n)
    return _thinned(boxes, order, pre, rpn_post_nms_top_n, threshold)


def _predicted(
    cls_prob: te.Tensor,
    bbox_pred: te.Tensor,
    im_info: te.Tensor,
    scales: Sequence[float],
    ratios: Sequence[float],
    stride: int,
    min_size: int,
    iou_loss: bool,
) -> te.Tensor:
    """(batch, height * width * anchors, 5): corners and the score of every anchor."""
    batch, _, height, width = dims(cls_prob.shape)
    anchors = len(scales) * len(ratios)
    return te.extern(
        [(batch, height * width * anchors, 5)],
        [cls_prob, bbox_pred, im_info],
        lambda ins, outs: predict_bbox_ir(
            ins[0], ins[1], ins[2], outs[0], scales, ratios, stride, min_size, iou_loss
        ),
        dtype=cls_prob.dtype,
        name="predicted_regions",
    )


def predict_bbox_ir(
    cls_prob_buf: tir.Buffer,
    bbox_pred_buf: tir.Buffer,
    im_info_buf: tir.Buffer,
    out_buf: tir.Buffer,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> tir.Stmt:
    """Store the corners and the score of every anchor; parameters as of `proposal`."""
    stride, dtype = feature_stride, cls_prob_buf.dtype
    batch, _, height, width = dims(cls_prob_buf.shape)
    table = [generate_anchor(ratio, scale, stride) for ratio in ratios for scale in scales]
    move = reg_iou if iou_loss else reg_bbox
    ib = tir.ir_builder.create()
    scores, moves, image, out = [
        ib.buffer_ptr(x) for x in (cls_prob_buf, bbox_pred_buf, im_info_buf, out_buf)
    ]
    with (
        ib.for_range(0, batch * height, "row", kind="parallel") as row,
        ib.for_range(0, width, "x") as x,
    ):
        b, y = tir.indexdiv(row, height), tir.indexmod(row, height)
        for k, anchor in enumerate(table):
            shifts = [x * stride, y * stride] * 2
            corners = [
                tir.const(a, dtype) + s.astype(dtype) for a, s in zip(anchor, shifts, strict=True)
            ]
            deltas = [moves[b, 4 * k + i, y, x] for i in range(4)]
            limits = [image[b, 1] - 1.0, image[b, 0] - 1.0] * 2
            _store_region(
                ib, (b, (y * width + x) * len(table) + k), out, move(*corners, *deltas), limits,
                scores[b, len(table) + k, y, x],
                tir.any(
                    x.astype(dtype) >= tir.floor(image[b, 1] / float(stride)),
                    y.astype(dtype) >= tir.floor(image[b, 0] / float(stride)),
                ),
                image[b, 2] * tir.const(rpn_min_size, dtype),
            )  # fmt: skip
    return ib.get()


def _store_region(
    ib: IRBuilder,
    at: tuple[PrimExpr, PrimExpr],
    out: Any,
    corners: Sequence[PrimExpr],
    limits: Sequence[PrimExpr],
    score: PrimExpr,
    is_outside: PrimExpr,
    least: PrimExpr,
) -> None:
    """A region within the image; small ones and those outside get a score of -1."""
    held = [
        ib.let(f"corner{i}", tir.max(tir.min(corner, limit), 0.0))
        for i, (corner, limit) in enumerate(zip(corners, limits, strict=True))
    ]
    is_small = ib.let(
        "is_small",
        tir.any(held[2] - held[0] + 1.0 < least, held[3] - held[1] + 1.0 < least),
    )
    for i, corner in enumerate(held):
        grown = corner - least * 0.5 if i < 2 else corner + least * 0.5
        position = (*at, i)
        out[position] = tir.Select(is_small, grown, corner)
    position = (*at, 4)
    out[position] = tir.Select(tir.any(is_small, is_outside), tir.const(-1, score.dtype), score)


def _thinned(
    boxes: te.Tensor, order: te.Tensor, pre: int, post: int, threshold: float
) -> te.Tensor:
    batch, _, _ = dims(boxes.shape)
    dtype = boxes.dtype

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        regions, by_score = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1])
        out, kept = ib.buffer_ptr(outs[0]), ib.buffer_ptr(outs[1])
        with ib.for_range(0, batch, "b", kind="parallel") as b:

            def keep(n: PrimExpr, at: PrimExpr) -> None:
                kept[b, n] = at

            wanted = Selection(
                cast_scalar(pre, "int32"),
                tir.const(post, "int32"),
                lambda j: by_score[b, j],
                lambda at, i: regions[b, at, i],
                lambda other, at, iou: iou > tir.const(threshold, dtype),
                pixel=1.0,
            )
            count = ib.let("found", select_boxes(ib, wanted, lambda n: kept[b, n], keep))
            with ib.for_range(0, post, "n") as n:
                at = ib.let("at", kept[b, tir.truncmod(n, tir.max(count, 1))])
                out[b * post + n, 0] = b.astype(dtype)
                for i in range(4):
                    out[b * post + n, i + 1] = regions[b, at, i]
        return ib.get()

    found = te.extern(
        [(batch * post, 5), (batch, post)],
        [boxes, order],
        body,
        dtype=[dtype, "int32"],
        name="proposal",
    )
    return found[0]


__getattr__ = sibling_attribute(__name__)  # the other steps as loops
