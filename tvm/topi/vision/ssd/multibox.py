"""Prior boxes, and detections from what a network says of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import BufferVar, IRBuilder

from ... import tag
from ...utils import cast_scalar, dims, equals, get_const_float, get_const_int, get_float_tuple
from ..nms import non_max_suppression


def multibox_prior(
    data: te.Tensor,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> te.Tensor:
    """Boxes around every position of a map: each size with the first ratio, then the other ratios.

    Parameters
    ----------
    data : te.Tensor
        (batch, channels, height, width); only the extents count.
    sizes, ratios : sequence of float
        Heights of boxes in parts of the image, and widths over heights.
    steps : pair of float
        Distances of positions along y and x; negative: the map covers the image.
    offsets : pair of float
        Where in its step a position lies.
    clip : bool
        Cut off what lies outside of the image.

    Returns
    -------
    te.Tensor
        (1, height * width * boxes, 4): left, top, right and bottom.
    """
    _, _, height, width = dims(data.shape)
    sizes, ratios = get_float_tuple(sizes), get_float_tuple(ratios)
    steps, offsets = get_float_tuple(steps), get_float_tuple(offsets)
    dtype = data.dtype
    rows, columns = [e if isinstance(e, int) else e.astype(dtype) for e in (height, width)]
    aspect = rows / columns
    halves = [(s * aspect / 2, s / 2) for s in sizes]
    halves += [(sizes[0] * aspect * sqrt(r) / 2, sizes[0] / sqrt(r) / 2) for r in ratios[1:]]
    step_y = steps[0] if steps[0] > 0 else 1.0 / rows
    step_x = steps[1] if steps[1] > 0 else 1.0 / columns
    count = len(halves)

    def element(_: Any, i: Any, k: Any) -> PrimExpr:
        position, box = tir.indexdiv(i, count), tir.indexmod(i, count)
        y = (tir.indexdiv(position, width).astype(dtype) + offsets[0]) * step_y
        x = (tir.indexmod(position, width).astype(dtype) + offsets[1]) * step_x
        half_width, half_height = [_pick(box, [h[axis] for h in halves], dtype) for axis in (0, 1)]
        horizontal = tir.Select(k < 2, x - half_width, x + half_width)
        vertical = tir.Select(k < 2, y - half_height, y + half_height)
        corner = tir.Select(equals(tir.indexmod(k, 2), 0), horizontal, vertical)
        return tir.max(tir.min(corner, 1.0), 0.0) if clip else corner

    return te.compute(
        (1, height * width * count, 4), element, name="multibox_prior", tag=tag.INJECTIVE
    )


def _pick(index: Any, values: Sequence[Any], dtype: str) -> PrimExpr:
    """values[index] of a short table."""
    found = cast_scalar(values[-1], dtype)
    for i, value in reversed(list(enumerate(values[:-1]))):
        found = tir.Select(tir.EQ(index, i), cast_scalar(value, dtype), found)
    return found


def multibox_transform_loc(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> list[te.Tensor]:
    """Boxes with class and score from what a network says of anchors.

    Parameters
    ----------
    cls_prob : te.Tensor
        (batch, classes, anchors); class 0 is background.
    loc_pred : te.Tensor
        (batch, 4 * anchors): how each anchor moves.
    anchor : te.Tensor
        (1, anchors, 4).
    clip : bool
        Cut off what lies outside of the image.
    threshold : float
        Boxes of a lower score are background.
    variances : sequence of float
        The factors of the moves.
    keep_background : bool
        Whether background competes, is kept, and counts as class 0.

    Returns
    -------
    list of te.Tensor
        (batch, anchors, 6): class, score, left, top, right and bottom, those that count first, then
        -1; and how many count.
    """
    batch, classes, anchors = dims(cls_prob.shape)
    factors = get_float_tuple(variances)
    dtype = cls_prob.dtype

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        scores, moves, priors = [ib.buffer_ptr(x) for x in ins]
        rows, counts = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            counts[b] = 0
            best = ib.allocate(dtype, 1, "best", scope="local")
            kind = ib.allocate("int32", 1, "kind", scope="local")
            with ib.for_range(0, anchors, "a") as a:
                best[0] = tir.const(-1, dtype)
                kind[0] = 0
                first = 0 if keep_background else 1
                with (
                    ib.for_range(first, classes, "c") as c,
                    ib.if_scope(scores[b, c, a] > best[0]),
                ):
                    best[0] = scores[b, c, a]
                    kind[0] = c
                with ib.if_scope(best[0] < tir.const(threshold, dtype)):
                    kind[0] = 0
                with ib.if_scope(kind[0] > (-1 if keep_background else 0)):
                    at = ib.let("at", counts[b])
                    rows[b, at, 0] = (kind[0] - first).astype(dtype)
                    rows[b, at, 1] = best[0]
                    _store_box(ib, rows, (b, at), moves, priors, a, factors, clip)
                    counts[b] = at + 1
            with ib.for_range(0, anchors - counts[b], "a") as a:
                for k in range(6):
                    rows[b, counts[b] + a, k] = tir.const(-1, dtype)
        return ib.get()

    return list(
        te.extern(
            [(batch, anchors, 6), (batch,)],
            [cls_prob, loc_pred, anchor],
            body,
            dtype=[dtype, "int32"],
            name="multibox_transform_loc",
            tag="multibox_transform_loc",
        )
    )


def _store_box(
    ib: IRBuilder,
    rows: BufferVar,
    at: tuple[Any, Any],
    moves: BufferVar,
    priors: BufferVar,
    a: Any,
    factors: Sequence[float],
    clip: bool,
) -> None:
    """An anchor moved by parts of its extents and scaled by exponentials."""
    for axis in (0, 1):
        low, high = priors[0, a, axis], priors[0, a, axis + 2]
        move, grow = moves[at[0], a * 4 + axis], moves[at[0], a * 4 + axis + 2]
        extent = ib.let("extent", high - low)
        center = ib.let("center", move * factors[axis] * extent + (low + high) * 0.5)
        half = ib.let("half", tir.exp(grow * factors[axis + 2]) * extent * 0.5)
        for k, corner in ((2 + axis, center - half), (4 + axis, center + half)):
            held = tir.max(tir.min(corner, 1.0), 0.0) if clip else corner
            position = (*at, k)
            rows[position] = held


def multibox_detection(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> te.Tensor:
    """`multibox_transform_loc`, and suppression of the boxes that overlap.

    Parameters
    ----------
    cls_prob, loc_pred, anchor, clip, threshold, variances
        As of `multibox_transform_loc`.
    nms_threshold : float
        The intersection over union from which on a box is dropped.
    force_suppress : bool
        Whether boxes of other classes count too.
    nms_topk : int
        How many boxes of the highest scores take part; a number below 1: all.
    """
    rows, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    found = non_max_suppression(
        rows, counts, counts, -1, nms_threshold, force_suppress, nms_topk, return_indices=False
    )
    assert isinstance(found, te.Tensor)
    return found


def hybrid_multibox_prior(
    data: te.Tensor,
    sizes: Sequence[float],
    ratios: Sequence[float],
    steps: Sequence[float],
    offsets: Sequence[float],
) -> te.Tensor:
    """As `multibox_prior`, nothing cut off, under the name of the classic hybrid script."""
    return multibox_prior(data, sizes, ratios, steps, offsets)


def hybrid_multibox_transform_loc(
    cls_prob: te.Tensor,
    loc_pred: te.Tensor,
    anchor: te.Tensor,
    clip: Any,
    threshold: Any,
    variances: Sequence[float],
    keep_background: Any,
) -> list[te.Tensor]:
    """As `multibox_transform_loc`, under the name of the classic hybrid script."""
    flags = [bool(get_const_int(flag)) for flag in (clip, keep_background)]
    least = get_const_float(threshold)
    return multibox_transform_loc(cls_prob, loc_pred, anchor, flags[0], least, variances, flags[1])
