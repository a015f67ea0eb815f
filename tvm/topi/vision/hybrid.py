"""Suppression of boxes under the names of the classic hybrid scripts, which are its steps.

Their extents and typed constants are those of the data, so only what says more is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from ..utils import dims, get_const_int
from .all_class_nms import regular_non_max_suppression
from .nms import (
    Suppression,
    boxes_at,
    choose_boxes,
    get_valid_counts,
    named_boxes,
    positions_by_score,
)


def _require_extents(name: str, data: te.Tensor, batch_size: Any, num_anchors: Any) -> None:
    found, wanted = dims(data.shape)[:2], dims((batch_size, num_anchors))
    if any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in zip(found, wanted, strict=True)):  # fmt: skip
        raise RuntimeValueError(f"{name} requires data of {wanted} boxes, got {found}")


def hybrid_get_valid_counts(
    data: te.Tensor,
    score_threshold: Any,
    id_index: Any,
    score_index: Any,
    one: Any,
    batch_size: Any,
    num_anchors: Any,
) -> list[te.Tensor]:
    """As `get_valid_counts`; `one` is 1 in the data's dtype."""
    _require_extents("hybrid_get_valid_counts", data, batch_size, num_anchors)
    positions = [get_const_int(index) for index in (id_index, score_index)]
    return get_valid_counts(data, score_threshold, *positions)


def hybrid_nms(
    data: te.Tensor,
    sorted_index: te.Tensor,
    valid_count: te.Tensor,
    indices: te.Tensor,
    batch_size: Any,
    num_anchors: Any,
    max_output_size: Any,
    iou_threshold: Any,
    force_suppress: Any,
    top_k: Any,
    coord_start: Any,
    score_index: Any,
    id_index: Any,
    return_indices: Any,
    zero: Any,
    one: Any,
) -> list[te.Tensor]:
    """The boxes in the order of their scores, those dropped -1, and what they are called.

    Parameters
    ----------
    data, valid_count, indices, max_output_size, iou_threshold, force_suppress, top_k, coord_start,
    score_index, id_index
        As of `non_max_suppression`; the scores are in the order that is given.
    sorted_index : te.Tensor
        The positions of the boxes from the highest score on, (batch, boxes).
    batch_size, num_anchors : int
        The data's extents.
    return_indices : bool
        Whether the names are those of `indices`, or positions.
    zero, one : Expr
        0 and 1 in the data's dtype.
    """
    _require_extents("hybrid_nms", data, batch_size, num_anchors)
    rules = Suppression(
        max_output_size, iou_threshold, bool(get_const_int(force_suppress)), get_const_int(top_k),
        get_const_int(coord_start), get_const_int(id_index),
    )  # fmt: skip
    chosen, number = choose_boxes(data, valid_count, sorted_index, rules)
    positions = positions_by_score(chosen, number, sorted_index, iou_threshold)
    names = named_boxes(positions, indices) if get_const_int(return_indices) else positions
    return [boxes_at(data, positions), names]


def hybrid_regular_nms(
    boxes: te.Tensor,
    scores: te.Tensor,
    max_detections_per_class: int,
    max_detections: int,
    batch_size: Any,
    num_boxes: Any,
    num_classes: int,
    num_classes_with_background: int,
    iou_threshold: float,
    score_threshold: float,
) -> list[te.Tensor]:
    """As `regular_non_max_suppression`, the number of classes given with background too."""
    _require_extents("hybrid_regular_nms", boxes, batch_size, num_boxes)
    columns = dims(scores.shape)[2]
    if columns != get_const_int(num_classes_with_background):
        raise RuntimeValueError(
            f"hybrid_regular_nms requires scores of {num_classes_with_background} classes with "
            f"background, got {columns}"
        )
    limits: list[Any] = [
        get_const_int(n) for n in (max_detections_per_class, max_detections, num_classes)
    ]
    limits = [*limits, iou_threshold, score_threshold]
    return regular_non_max_suppression(boxes, scores, *limits)


def hybrid_rearrange_box_out(
    data: te.Tensor, one: Any, batch_size: Any, num_anchors: Any
) -> te.Tensor:
    """The boxes whose first number is not negative, then -1; `one` is 1 in the data's dtype."""
    _require_extents("hybrid_rearrange_box_out", data, batch_size, num_anchors)
    positions, _ = _moved_to_front(data, lambda b, j: data[b, j, 0])
    return boxes_at(data, positions)


def hybrid_rearrange_indices_out(
    data: te.Tensor, one: Any, batch_size: Any, num_anchors: Any
) -> list[te.Tensor]:
    """The indices that are not negative, then -1, and their number; `one` is 1 in their dtype."""
    _require_extents("hybrid_rearrange_indices_out", data, batch_size, num_anchors)
    positions, number = _moved_to_front(data, lambda b, j: data[b, j])
    return [named_boxes(positions, data), number]


def _moved_to_front(data: te.Tensor, mark: Any) -> list[te.Tensor]:
    """The positions whose mark is not negative, then -1, and their number."""
    batch, boxes = dims(data.shape)[:2]
    marks = te.compute((batch, boxes), mark, name="marks")

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        found = ib.buffer_ptr(ins[0])
        positions, number = [ib.buffer_ptr(out) for out in outs]
        with ib.for_range(0, batch, "b", kind="parallel") as b:
            number[b, 0] = 0
            with ib.for_range(0, boxes, "j") as j:
                positions[b, j] = -1
                with ib.if_scope(found[b, j] >= tir.const(0, data.dtype)):
                    positions[b, number[b, 0]] = j
                    number[b, 0] = number[b, 0] + 1
        return ib.get()

    return list(
        te.extern(
            [(batch, boxes), (batch, 1)], [marks], body, dtype=["int32", "int32"],
            name="moved_to_front", tag="nms",
        )
    )  # fmt: skip
