"""Suppressing boxes that overlap boxes of a higher score, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.support.docstrings import described_by
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .. import tag
from ..modules import sibling_attribute
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
    rules = Suppression(
        max_output_size, iou_threshold, force_suppress, top_k, coord_start, id_index
    )
    chosen, number = choose_boxes(data, valid_count, order, rules)
    if return_indices:
        return [named_boxes(chosen, indices), number]
    positions = (
        chosen if invalid_to_bottom else positions_by_score(chosen, number, order, iou_threshold)
    )
    return boxes_at(data, positions)


class Suppression(NamedTuple):
    """Which boxes take part, and which of them overlap too much."""

    max_output_size: Any  # how many are kept, negative: all
    iou_threshold: Any  # the overlap from which on a box is dropped, at most 0: none is
    force_suppress: bool  # whether boxes of other classes count too
    top_k: int  # how many of the highest scores take part, below 1: all
    coord_start: int  # where a box has its corners
    id_index: int  # where a box has its class, negative: nowhere

    def covers(self, rows: BufferVar, b: Any, kept: Any, at: Any, is_large: PrimExpr) -> PrimExpr:
        """Whether a kept box drops another one, with which its overlap is large."""
        if self.force_suppress or self.id_index < 0:
            return is_large
        return tir.all(rows[b, kept, self.id_index] == rows[b, at, self.id_index], is_large)

    def accepts(self, rows: BufferVar, b: Any, at: Any) -> PrimExpr:
        """Whether a box has a class."""
        return rows[b, at, self.id_index] >= 0 if self.id_index >= 0 else tir.const(True)


@described_by(non_max_suppression)
def choose_boxes(
    data: te.Tensor, valid_count: te.Tensor, order: te.Tensor, rules: Suppression
) -> tuple[te.Tensor, te.Tensor]:
    """The positions of the boxes kept, (batch, boxes), -1 behind them, and their number, (batch, 1).

    Parameters
    ----------
    order : te.Tensor
        Their positions from the highest score on, (batch, boxes).
    rules : Suppression
        What is kept.
    """
    batch, boxes, _ = dims(data.shape)
    limits = [rules.max_output_size, rules.iou_threshold]
    tensors, read = scalar_inputs(limits, ["int32", data.dtype])

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        rows, counts, by_score = [ib.buffer_ptr(x) for x in ins[:3]]
        most, threshold = read(ins[3:])
        chosen, number = [ib.buffer_ptr(x) for x in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            total = ib.let("total", counts[b].astype("int32"))
            with ib.if_scope(threshold > 0):
                number[b, 0] = _choose(ib, rules, rows, by_score, chosen, b, total, most, threshold)
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
    return chosen, number


def _choose(
    ib: IRBuilder,
    rules: Suppression,
    rows: BufferVar,
    by_score: BufferVar,
    chosen: BufferVar,
    b: PrimExpr,
    total: PrimExpr,
    most: PrimExpr,
    threshold: PrimExpr,
) -> PrimExpr:
    """Store the boxes kept of one image; gives their number."""

    def keep(n: PrimExpr, at: PrimExpr) -> None:
        chosen[b, n] = at

    wanted = Selection(
        tir.min(total, rules.top_k) if rules.top_k > 0 else total,
        most,
        lambda j: by_score[b, j],
        lambda at, i: rows[b, at, rules.coord_start + i],
        lambda kept, at, iou: rules.covers(rows, b, kept, at, iou >= threshold),
        lambda at: rules.accepts(rows, b, at),
    )
    return select_boxes(ib, wanted, lambda n: chosen[b, n], keep)


def named_boxes(positions: te.Tensor, indices: te.Tensor) -> te.Tensor:
    """What `indices` says of positions; -1 stays."""
    return te.compute(
        positions.shape,
        lambda b, n: tir.if_then_else(
            positions[b, n] >= 0, indices[b, positions[b, n]].astype("int32"), -1
        ),
        name="box_indices",
        tag=tag.INJECTIVE,
    )


def boxes_at(data: te.Tensor, positions: te.Tensor) -> te.Tensor:
    """The boxes at positions; rows of -1 where there is none."""
    return te.compute(
        data.shape,
        lambda b, n, k: tir.if_then_else(
            positions[b, n] >= 0, data[b, positions[b, n], k], tir.const(-1, data.dtype)
        ),
        name="boxes",
        tag=tag.INJECTIVE,
    )


def positions_by_score(
    chosen: te.Tensor, number: te.Tensor, order: te.Tensor, iou_threshold: Any
) -> te.Tensor:
    """The chosen positions where they stand in the order of scores, -1 between them."""
    batch, boxes = dims(chosen.shape)
    tensors, read = scalar_inputs([iou_threshold], ["float32"])

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        picked, count, by_score = [ib.buffer_ptr(x) for x in ins[:3]]
        (threshold,) = read(ins[3:])
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            n = ib.allocate("int32", 1, "n", scope="local")
            n[0] = 0
            with ib.for_range(0, boxes, "j") as j:
                at = ib.let("place", tir.if_then_else(threshold > 0, by_score[b, j], j))
                is_next = tir.all(n[0] < count[b, 0], picked[b, tir.min(n[0], boxes - 1)] == at)
                out[b, j] = tir.if_then_else(is_next, at, -1)
                n[0] = n[0] + is_next.astype("int32")
        return ib.get()

    return te.extern(
        [chosen.shape], [chosen, number, order, *tensors], body, dtype="int32", name="places",
        tag="nms",
    )  # fmt: skip


__getattr__ = sibling_attribute(__name__)  # the names of the classic hybrid scripts

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
    "regular_non_max_suppression",
]
