"""Pieces of suppression class by class, from which programs build kernels with loops of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import BufferVar, IRBuilder

from ..loops import load
from ..utils import dims, unravel_index
from .all_class_nms import count_above
from .boxes import Box, overlap, read_box, scalar_inputs

Collect = Callable[..., tir.Stmt]


class _Unnamed:
    """Stands for a builder where the parts of an expression get no names."""

    @staticmethod
    def let(name: str, value: PrimExpr) -> PrimExpr:
        return value


class _Flat:
    """The elements of a buffer by their position."""

    def __init__(self, buffer: tir.Buffer) -> None:
        self.buffer = buffer

    def __getitem__(self, position: PrimExpr) -> PrimExpr:
        return load(self.buffer, unravel_index(position, self.buffer.shape))


def calculate_overlap(out_tensor: Any, box_a_idx: Any, box_b_idx: Any) -> PrimExpr:
    """The intersection over union of two boxes.

    Parameters
    ----------
    out_tensor : BufferVar
        Elements by position.
    box_a_idx, box_b_idx : Expr
        Where the four coordinates of each begin.
    """

    def box_at(first: Any) -> Box:
        return read_box(_Unnamed(), lambda i: out_tensor[first + i], "box")

    return overlap(box_at(box_a_idx), box_at(box_b_idx))


def binary_search(
    ib: IRBuilder,
    y: PrimExpr,
    num_boxes: Any,
    scores: BufferVar,
    score_threshold: Any,
    out: BufferVar,
) -> None:
    """Store in `out[y]` how many of the descending `scores[y]` exceed a threshold."""
    out[y] = count_above(ib, lambda j: scores[y, j], num_boxes, score_threshold)


def collect_selected_indices(
    num_class: Any,
    selected_indices: te.Tensor,
    num_detections: te.Tensor,
    row_offsets: te.Tensor,
    ir: Collect,
) -> te.Tensor:
    """Rows (batch, class, box) of all that was kept, one after another.

    Parameters
    ----------
    num_class : int
        The number of classes.
    selected_indices : te.Tensor
        The boxes kept, (batch * classes, boxes).
    num_detections, row_offsets : te.Tensor
        How many of each class, and where its rows begin, (batch * classes,).
    ir : callable
        From `num_class`, the three buffers and the result's to a statement.
    """
    rows, boxes = dims(selected_indices.shape)
    return te.extern(
        [(rows * boxes, 3)],
        [selected_indices, num_detections, row_offsets],
        lambda ins, outs: ir(num_class, *ins, outs[0]),
        dtype="int64",
        name="collect_indices",
        tag="collect_indices",
    )


def collect_selected_indices_and_scores(
    selected_indices: te.Tensor,
    selected_scores: te.Tensor,
    num_detections: te.Tensor,
    row_offsets: te.Tensor,
    num_total_detections: te.Tensor,
    ir: Collect,
) -> list[te.Tensor]:
    """For each image rows (class, box) of all that was kept, and their scores.

    Parameters
    ----------
    selected_indices, selected_scores : te.Tensor
        The boxes kept and their scores, (batch * classes, boxes).
    num_detections, row_offsets : te.Tensor
        How many of each class, and where its rows begin, (batch, classes).
    num_total_detections : te.Tensor
        How many of each image, (batch,).
    ir : callable
        From the five buffers and the two of the results to a statement.
    """
    batch, classes = dims(row_offsets.shape)
    rows = classes * dims(selected_indices.shape)[1]
    return list(
        te.extern(
            [(batch, rows, 2), (batch, rows)],
            [selected_indices, selected_scores, num_detections, row_offsets, num_total_detections],
            lambda ins, outs: ir(*ins, *outs),
            dtype=["int64", selected_scores.dtype],
            name="collect_indices_and_scores",
            tag="collect_indices_and_scores",
        )
    )


def run_all_class_nms(
    boxes: te.Tensor,
    sorted_scores: te.Tensor,
    sorted_indices: te.Tensor,
    valid_count: te.Tensor,
    max_output_size_per_class: Any,
    iou_threshold: Any,
    nms_loop: Callable[..., Any],
    return_scores: bool = False,
) -> list[te.Tensor]:
    """Suppression in each class by a loop that the caller writes.

    Parameters
    ----------
    boxes : te.Tensor
        (batch, boxes, 4): opposite corners.
    sorted_scores, sorted_indices : te.Tensor
        The scores in descending order and their boxes, (batch * classes, boxes).
    valid_count : te.Tensor
        How many of them count, (batch * classes,).
    max_output_size_per_class : int or te.Tensor
        How many boxes a class keeps at most; a negative number: all.
    iou_threshold : float or te.Tensor
        The intersection over union from which on a box is dropped.
    nms_loop : callable
        Of the builder, the rows, their length, the threshold, the limit, `valid_count`, a function
        `(ib, thread, number, row, position)` for a box that is kept, one `(ib, row, position)` for one
        that is dropped, whether two are compared, their overlap `(row, position, other)`, the scores
        and the counts to store.
    return_scores : bool
        Whether the scores of the boxes kept are wanted too.

    Returns
    -------
    list of te.Tensor
        The boxes kept (batch * classes, boxes), their scores if wanted, and their numbers.
    """
    rows, count = dims(sorted_scores.shape)
    tensors, read = scalar_inputs(
        [max_output_size_per_class, iou_threshold], ["int32", boxes.dtype]
    )
    classes = rows // dims(boxes.shape)[0]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        scores, by_score, counts = [ib.buffer_ptr(x) for x in ins[1:4]]
        limit, iou = read(ins[4:])
        chosen, *kept_scores, numbers = [ib.buffer_ptr(x) for x in outs]

        def keep(_: Any, thread: Any, number: Any, row: Any, place: Any) -> None:
            chosen[row, number] = by_score[row, place]
            for kept in kept_scores:
                kept[row, number] = scores[row, place]

        def share(row: Any, place: Any, other: Any) -> PrimExpr:
            image = tir.indexdiv(row, classes) * count * 4
            return calculate_overlap(
                _Flat(ins[0]), image + by_score[row, place] * 4, image + by_score[row, other] * 4
            )

        nms_loop(
            ib, rows, count, iou, limit, counts, keep, lambda *_: None,
            lambda *_: tir.const(True), share, scores, numbers,
        )  # fmt: skip
        return ib.get()

    scores_shape = [(rows, count)] * return_scores
    return list(
        te.extern(
            [(rows, count), *scores_shape, (rows,)],
            [boxes, sorted_scores, sorted_indices, valid_count, *tensors],
            body,
            dtype=["int32", *[sorted_scores.dtype] * return_scores, "int32"],
            name="all_class_nms",
            tag="all_class_nms",
        )
    )
