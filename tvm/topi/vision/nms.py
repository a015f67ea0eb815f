"""Suppressing boxes that overlap boxes of a higher score, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .. import tag
from ..sort import argsort
from ..utils import dims
from .all_class_nms import all_class_non_max_suppression, regular_non_max_suppression
from .boxes import Selection, scalar_inputs, select_boxes


def get_valid_counts(
    data: te.Tensor, score_threshold: Any = 0, id_index: int = 0, score_index: int = 1
) -> list[te.Tensor]:
    """Move the boxes above a score to the front.

    Parameters
    ----------
    data : te.Tensor
        (batch, boxes, numbers of a box).
    score_threshold : float or te.Tensor
        The score that a box must exceed.
    id_index : int
        Where a box has its class, or a negative number; boxes of a negative class do not count.
    score_index : int
        Where a box has its score.

    Returns
    -------
    list of te.Tensor
        How many count, (batch,); the boxes, those that count first, then -1; their indices, then -1.
    """
    batch, boxes, length = dims(data.shape)
    tensors, read = scalar_inputs([score_threshold], [data.dtype])

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source = ib.buffer_ptr(ins[0])
        counts, rows, indices = [ib.buffer_ptr(out) for out in outs]
        (threshold,) = read(ins[1:])
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            counts[b] = 0
            with ib.for_range(0, boxes, "j") as j:
                counted = source[b, j, score_index] > threshold
                if id_index >= 0:
                    counted = tir.all(counted, source[b, j, id_index] >= 0)
                with ib.if_scope(counted):
                    at = ib.let("at", counts[b])
                    with ib.for_range(0, length, "k") as k:
                        rows[b, at, k] = source[b, j, k]
                    indices[b, at] = j.astype("int32")
                    counts[b] = at + 1
            with ib.for_range(0, boxes - counts[b], "j") as j:
                with ib.for_range(0, length, "k") as k:
                    rows[b, counts[b] + j, k] = tir.const(-1, data.dtype)
                indices[b, counts[b] + j] = -1
        return ib.get()

    return te.extern(
        [(batch,), data.shape, (batch, boxes)],
        [data, *tensors],
        body,
        dtype=["int32", data.dtype, "int32"],
        name="get_valid_counts",
        tag="get_valid_counts",
    )


def non_max_suppression(
    data: te.Tensor,
    valid_count: te.Tensor,
    indices: te.Tensor,
    max_output_size: Any = -1,
    iou_threshold: Any = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> te.Tensor | list[te.Tensor]:
    """Drop the boxes that overlap one of a higher score.

    Parameters
    ----------
    data : te.Tensor
        (batch, boxes, numbers of a box).
    valid_count : te.Tensor
        How many boxes count, (batch,).
    indices : te.Tensor
        What to return for each box, (batch, boxes); with `return_indices`.
    max_output_size : int or te.Tensor
        How many boxes are kept at most; a negative number: all.
    iou_threshold : float or te.Tensor
        The intersection over union from which on a box is dropped; at most 0: none is, and the
        order stays.
    force_suppress : bool
        Whether boxes of other classes count too.
    top_k : int
        How many boxes of the highest scores take part; a number below 1: all.
    coord_start, score_index, id_index : int
        Where a box has its corners, its score and its class (negative: it has no class).
    return_indices : bool
        Return indices and their number, or the boxes.
    invalid_to_bottom : bool
        Move dropped boxes, which are all -1, behind the others.
    """
    batch, boxes, _ = dims(data.shape)
    scores = te.compute(
        (batch, boxes), lambda b, j: data[b, j, score_index], name="scores", tag=tag.INJECTIVE
    )
    order = argsort(scores, valid_count, 1, False, "int32")
    tensors, read = scalar_inputs([max_output_size, iou_threshold], ["int32", data.dtype])

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        rows, counts, by_score = [ib.buffer_ptr(x) for x in ins[:3]]
        most, threshold = read(ins[3:])
        chosen, number = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            total = ib.let("total", counts[b].astype("int32"))

            def covers(kept: PrimExpr, at: PrimExpr, iou: PrimExpr) -> PrimExpr:
                if force_suppress or id_index < 0:
                    return iou >= threshold
                return tir.all(rows[b, kept, id_index] == rows[b, at, id_index], iou >= threshold)

            def accepts(at: PrimExpr) -> PrimExpr:
                return rows[b, at, id_index] >= 0 if id_index >= 0 else tir.const(True)

            def keep(n: PrimExpr, at: PrimExpr) -> None:
                chosen[b, n] = at

            with ib.if_scope(threshold > 0):
                wanted = Selection(
                    tir.min(total, top_k) if top_k > 0 else total,
                    most,
                    lambda j: by_score[b, j],
                    lambda at, i: rows[b, at, coord_start + i],
                    covers,
                    accepts,
                )
                number[b, 0] = select_boxes(ib, wanted, lambda n: chosen[b, n], keep)
            with ib.else_scope():
                with ib.for_range(0, total, "j") as j:
                    chosen[b, j] = j
                number[b, 0] = total
            with ib.for_range(0, boxes - number[b, 0], "j") as j:
                chosen[b, number[b, 0] + j] = -1
        return ib.get()

    chosen, number = te.extern(
        [(batch, boxes), (batch, 1)],
        [data, valid_count, order, *tensors],
        body,
        dtype=["int32", "int32"],
        name="non_max_suppression",
        tag="nms",
    )
    if return_indices:
        return [_named(chosen, indices), number]
    if invalid_to_bottom:
        return _boxes_in_order(data, chosen)
    return _boxes_in_places(data, chosen, number, order, iou_threshold)


def _named(chosen: te.Tensor, indices: te.Tensor) -> te.Tensor:
    """What `indices` says of the chosen places; -1 stays."""
    return te.compute(
        chosen.shape,
        lambda b, n: tir.if_then_else(
            chosen[b, n] >= 0, indices[b, chosen[b, n]].astype("int32"), -1
        ),
        name="box_indices",
        tag=tag.INJECTIVE,
    )


def _boxes_in_order(data: te.Tensor, chosen: te.Tensor) -> te.Tensor:
    """The chosen boxes, then rows of -1."""
    return te.compute(
        data.shape,
        lambda b, n, k: tir.if_then_else(
            chosen[b, n] >= 0, data[b, chosen[b, n], k], tir.const(-1, data.dtype)
        ),
        name="boxes",
        tag=tag.INJECTIVE,
    )


def _boxes_in_places(
    data: te.Tensor,
    chosen: te.Tensor,
    number: te.Tensor,
    order: te.Tensor,
    iou_threshold: Any,
) -> te.Tensor:
    """The chosen boxes at their places in the order of scores, rows of -1 between them."""
    batch, boxes, length = dims(data.shape)
    tensors, read = scalar_inputs([iou_threshold], [data.dtype])

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        rows, picked, count, by_score = [ib.buffer_ptr(x) for x in ins[:4]]
        (threshold,) = read(ins[4:])
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            n = ib.allocate("int32", 1, "n", scope="local")
            n[0] = 0
            with ib.for_range(0, boxes, "j") as j:
                at = ib.let("place", tir.if_then_else(threshold > 0, by_score[b, j], j))
                is_next = tir.all(n[0] < count[b, 0], picked[b, tir.min(n[0], boxes - 1)] == at)
                with ib.if_scope(is_next):
                    with ib.for_range(0, length, "k") as k:
                        out[b, j, k] = rows[b, at, k]
                    n[0] = n[0] + 1
                with ib.else_scope(), ib.for_range(0, length, "k") as k:
                    out[b, j, k] = tir.const(-1, data.dtype)
        return ib.get()

    return te.extern(
        [data.shape],
        [data, chosen, number, order, *tensors],
        body,
        dtype=data.dtype,
        name="boxes",
        tag="nms",
    )


__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
    "regular_non_max_suppression",
]
