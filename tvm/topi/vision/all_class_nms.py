"""Suppressing overlapping boxes class by class, as ONNX and as TensorFlow Lite's detection define it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .. import tag
from ..sort import argsort
from ..utils import dims
from .boxes import Selection, scalar_inputs, select_boxes


def all_class_non_max_suppression(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str = "onnx",
) -> list[te.Tensor]:
    """Drop, in each class, the boxes that overlap one of a higher score.

    Parameters
    ----------
    boxes : te.Tensor
        (batch, boxes, 4): opposite corners.
    scores : te.Tensor
        (batch, classes, boxes).
    max_output_boxes_per_class : int or te.Tensor
        How many boxes a class keeps at most; a negative number: all.
    iou_threshold : float or te.Tensor
        The intersection over union above which a box is dropped.
    score_threshold : float or te.Tensor
        The score that a box must exceed.
    output_format : str
        "onnx" or "tensorflow".

    Returns
    -------
    list of te.Tensor
        "onnx": rows (batch, class, box), those that count first, and their number.
        "tensorflow": for each batch rows (class, box), the scores, and their number.
    """
    batch, classes, count = dims(scores.shape)
    chosen, numbers = _select(
        boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold
    )
    if output_format == "onnx":
        return _as_onnx(chosen, numbers, batch, classes, count)
    if output_format == "tensorflow":
        return _as_tensorflow(chosen, numbers, scores)
    raise RuntimeValueError(
        f"an output_format of onnx or tensorflow is required, got {output_format!r}"
    )


def _select(
    boxes: te.Tensor, scores: te.Tensor, most: Any, iou_threshold: Any, score_threshold: Any
) -> tuple[te.Tensor, te.Tensor]:
    """The boxes kept of each batch and class, the best first, and their number."""
    batch, classes, count = dims(scores.shape)
    order = argsort(scores, None, 2, False, "int32")
    tensors, read = scalar_inputs(
        [most, iou_threshold, score_threshold], ["int32", boxes.dtype, scores.dtype]
    )

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        corners, values, by_score = [ib.buffer_ptr(x) for x in ins[:3]]
        limit, iou, least = read(ins[3:])
        chosen, numbers = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch * classes, "row", kind="parallel") as row:
            b, c = tir.indexdiv(row, classes), tir.indexmod(row, classes)

            def keep(n: PrimExpr, at: PrimExpr) -> None:
                chosen[b, c, n] = at

            wanted = Selection(
                count_above(ib, lambda j: values[b, c, by_score[b, c, j]], count, least),
                limit,
                lambda j: by_score[b, c, j],
                lambda at, i: corners[b, at, i],
                lambda kept, at, found: found > iou,
            )
            numbers[b, c] = select_boxes(ib, wanted, lambda n: chosen[b, c, n], keep)
        return ib.get()

    chosen, numbers = te.extern(
        [scores.shape, (batch, classes)],
        [boxes, scores, order, *tensors],
        body,
        dtype=["int32", "int32"],
        name="all_class_nms",
        tag="all_class_nms",
    )
    return chosen, numbers


def count_above(ib: IRBuilder, value: Any, extent: Any, least: PrimExpr) -> PrimExpr:
    """How many of the values, in descending order, exceed `least`."""
    low = ib.allocate("int32", 1, "low", scope="local")
    high = ib.allocate("int32", 1, "high", scope="local")
    low[0] = 0
    high[0] = extent
    with ib.while_loop(low[0] < high[0]):
        middle = ib.let("middle", tir.floordiv(low[0] + high[0], 2))
        with ib.if_scope(value(middle) > least):
            low[0] = middle + 1
        with ib.else_scope():
            high[0] = middle
    return low[0]


def _as_onnx(
    chosen: te.Tensor, numbers: te.Tensor, batch: Any, classes: Any, count: Any
) -> list[te.Tensor]:
    """Rows (batch, class, box) one after another, and how many there are."""
    rows = batch * classes

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        picked, number = [ib.buffer_ptr(x) for x in ins]
        out, total = [ib.buffer_ptr(x) for x in outs]
        total[0] = tir.const(0, "int64")
        with ib.for_range(0, rows, "row") as row:
            b, c = tir.indexdiv(row, classes), tir.indexmod(row, classes)
            with ib.for_range(0, number[b, c], "n") as n:
                at = ib.let("at", total[0] + n.astype("int64"))
                for k, value in enumerate((b, c, picked[b, c, n])):
                    out[at, k] = value.astype("int64")
            total[0] = total[0] + number[b, c].astype("int64")
        start = ib.let("start", total[0])
        with ib.for_range(0, tir.const(1, "int64") * rows * count - start, "n") as n:
            for k in range(3):
                out[start + n, k] = tir.const(0, "int64")
        return ib.get()

    return list(
        te.extern(
            [(rows * count, 3), (1,)],
            [chosen, numbers],
            body,
            dtype=["int64", "int64"],
            name="selected_indices",
            tag="all_class_nms",
        )
    )


def _as_tensorflow(chosen: te.Tensor, numbers: te.Tensor, scores: te.Tensor) -> list[te.Tensor]:
    """For each batch rows (class, box) and scores one after another, and how many there are."""
    batch, classes, count = dims(scores.shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        picked, number, values = [ib.buffer_ptr(x) for x in ins]
        rows, kept_scores, totals = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            total = ib.allocate("int32", 1, "total", scope="local")
            total[0] = 0
            with ib.for_range(0, classes, "c") as c:
                with ib.for_range(0, number[b, c], "n") as n:
                    _write(rows, kept_scores, b, total[0] + n, c, picked[b, c, n], values)
                total[0] = total[0] + number[b, c]
            with ib.for_range(0, classes * count - total[0], "n") as n:
                rows[b, total[0] + n, 0] = tir.const(0, "int64")
                rows[b, total[0] + n, 1] = tir.const(0, "int64")
                kept_scores[b, total[0] + n] = tir.const(0, scores.dtype)
            totals[b] = total[0].astype("int64")
        return ib.get()

    return list(
        te.extern(
            [(batch, classes * count, 2), (batch, classes * count), (batch,)],
            [chosen, numbers, scores],
            body,
            dtype=["int64", scores.dtype, "int64"],
            name="selected_indices",
            tag="all_class_nms",
        )
    )


def _write(
    rows: BufferVar, kept: BufferVar, b: Any, at: Any, c: Any, box: Any, values: BufferVar
) -> None:
    rows[b, at, 0] = c.astype("int64")
    rows[b, at, 1] = box.astype("int64")
    kept[b, at] = values[b, c, box]


def regular_non_max_suppression(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> list[te.Tensor]:
    """The best boxes over all classes, after suppression in each (TensorFlow Lite's regular form).

    Parameters
    ----------
    boxes : te.Tensor
        (batch, boxes, 4): opposite corners.
    scores : te.Tensor
        (batch, boxes, classes); the last `num_classes` count, those before are background.
    max_detections_per_class, max_detections : int
        How many boxes are kept in each class, and in all.
    num_classes : int
        The number of classes without background.
    iou_threshold : float
        The intersection over union above which a box is dropped.
    score_threshold : float
        The least score.

    Returns
    -------
    list of te.Tensor
        The boxes (batch, max_detections, 4), their classes, their scores, and their numbers.
    """
    batch, count, columns = dims(scores.shape)
    by_class = te.compute(
        (batch, num_classes, count),
        lambda b, c, j: scores[b, j, c + (columns - num_classes)],
        name="scores",
        tag=tag.INJECTIVE,
    )
    # a score that equals the least one counts
    below = te.compute(
        (batch, num_classes, count),
        lambda b, c, j: tir.Select(
            by_class[b, c, j] >= tir.const(score_threshold, scores.dtype),
            by_class(b, c, j),
            tir.min_value(scores.dtype),
        ),
        name="scores_that_count",
        tag=tag.INJECTIVE,
    )
    chosen, numbers = _select(
        boxes, below, max_detections_per_class, iou_threshold, tir.min_value(scores.dtype)
    )
    flat = te.compute(
        (batch, num_classes * count),
        lambda b, i: _kept_score(chosen, numbers, by_class, b, i, count),
        name="kept_scores",
        tag=tag.INJECTIVE,
    )
    order = argsort(flat, None, 1, False, "int32")
    return _best(boxes, chosen, numbers, flat, order, max_detections)


def _kept_score(
    chosen: te.Tensor, numbers: te.Tensor, by_class: te.Tensor, b: Any, i: Any, count: Any
) -> PrimExpr:
    c, n = tir.indexdiv(i, count), tir.indexmod(i, count)
    is_kept = n < numbers[b, c]
    return tir.if_then_else(is_kept, by_class[b, c, chosen[b, c, n]], tir.min_value(by_class.dtype))


def _best(
    boxes: te.Tensor,
    chosen: te.Tensor,
    numbers: te.Tensor,
    flat: te.Tensor,
    order: te.Tensor,
    most: int,
) -> list[te.Tensor]:
    """The first `most` of the kept boxes in the order of their scores; zeros behind them."""
    batch, classes, count = dims(chosen.shape)
    dtype = boxes.dtype

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        corners, picked, number, values, by_score = [ib.buffer_ptr(x) for x in ins]
        out, kinds, kept, totals = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            total = ib.allocate("int32", 1, "total", scope="local")
            total[0] = 0
            with ib.for_range(0, classes, "c") as c:
                total[0] = total[0] + number[b, c]
            found = ib.let("found", tir.min(total[0], most))
            with ib.for_range(0, found, "n") as n:
                at = ib.let("at", by_score[b, n])
                c = ib.let("c", tir.indexdiv(at, count))
                box = ib.let("box", picked[b, c, tir.indexmod(at, count)])
                for k in range(4):
                    out[b, n, k] = corners[b, box, k]
                kinds[b, n] = c.astype(dtype)
                kept[b, n] = values[b, at].astype(dtype)
            with ib.for_range(0, most - found, "n") as n:
                for k in range(4):
                    out[b, found + n, k] = tir.const(0, dtype)
                kinds[b, found + n] = tir.const(0, dtype)
                kept[b, found + n] = tir.const(0, dtype)
            totals[b] = found.astype(dtype)
        return ib.get()

    return list(
        te.extern(
            [(batch, most, 4), (batch, most), (batch, most), (batch,)],
            [boxes, chosen, numbers, flat, order],
            body,
            dtype=[dtype] * 4,
            name="regular_nms",
            tag="regular_nms",
        )
    )
