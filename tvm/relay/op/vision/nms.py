"""Suppressing boxes that overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import TupleWrapper

from ..computes import computed_by
from ..operator import Expr, number, operator
from ..parameters import documented_by
from ..schedules import for_all_targets
from ..types import (
    Tensor3,
    apply,
    expect,
    expect_dim,
    expect_tensor,
    product,
    shape_of_type,
    tensor,
)

Size = Annotated[Any, number("int32")]
Threshold = Annotated[Any, number("float32")]


_OPAQUE: dict[str, Any] = {
    "schedules": for_all_targets(topi.generic.schedule_nms)
}  # fmt: skip


def _valid_counts_type(attrs: Any, data: Tensor3) -> Type:
    batch, boxes, _ = shape_of_type(data)
    return TupleType(
        (tensor((batch,), "int32"), data, tensor((batch, boxes), "int32"))
    )  # fmt: skip


def _nms_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape and dtype of `data`; if `return_indices`, int32 tensors of shapes
    (batch, boxes) and (batch, 1): the boxes that are kept, and how many."""
    who = "vision.non_max_suppression"
    data = expect_tensor(arg_types[0], who, rank=3)
    counts = expect_tensor(arg_types[1], who, "valid_count", 1)
    batch, boxes, _ = shape_of_type(data)
    expect_dim(shape_of_type(counts)[0], batch, who, "the number of valid counts")
    _expect_numbers(arg_types[3:], who, ("max_output_size", "iou_threshold"))
    if not attrs.return_indices:
        return data
    indices = expect_tensor(arg_types[2], who, "indices", 2)
    expect_dim(shape_of_type(indices)[1], boxes, who, "the number of indices")
    return TupleType((tensor((batch, boxes), "int32"), tensor((batch, 1), "int32")))


def _all_class_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "vision.all_class_non_max_suppression"
    boxes = expect_tensor(arg_types[0], who, "boxes", 3)
    scores = expect_tensor(arg_types[1], who, "scores", 3)
    batch, count, corners = shape_of_type(boxes)
    expect_dim(corners, 4, who, "the numbers of a box")
    expect_dim(shape_of_type(scores)[0], batch, who, "the batch of scores")
    expect_dim(shape_of_type(scores)[2], count, who, "the number of scores")
    _expect_numbers(
        arg_types[2:], who, ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
    )
    classes = shape_of_type(scores)[1]
    if attrs.output_format == "onnx":
        rows = product((batch, classes, count))
        return TupleType((tensor((rows, 3), "int64"), tensor((1,), "int64")))
    expect(
        attrs.output_format == "tensorflow",
        f"{who} requires an output_format of onnx or tensorflow, got {attrs.output_format!r}",
    )
    rows = apply(lambda a, b: a * b, classes, count)
    return TupleType(
        (
            tensor((batch, rows, 2), "int64"),
            tensor((batch, rows), scores.dtype),
            tensor((batch,), "int64"),
        )
    )


def _regular_type(attrs: Any, boxes: Tensor3, scores: Tensor3) -> Type:
    who = "vision.regular_non_max_suppression"
    batch, count, corners = shape_of_type(boxes)
    expect_dim(corners, 4, who, "the numbers of a box")
    expect_dim(shape_of_type(scores)[0], batch, who, "the batch of scores")
    expect_dim(shape_of_type(scores)[1], count, who, "the number of scores")
    columns = shape_of_type(scores)[2]
    expect(
        not isinstance(columns, int) or attrs.num_classes <= columns,
        f"{who} requires scores of {attrs.num_classes} classes, got {columns}",
    )
    most = attrs.max_detections
    return TupleType(
        (
            tensor((batch, most, 4), boxes.dtype),
            tensor((batch, most), boxes.dtype),
            tensor((batch, most), boxes.dtype),
            tensor((batch,), boxes.dtype),
        )
    )


def _expect_numbers(arg_types: Sequence[Type], who: str, names: Sequence[str]) -> None:
    for ty, name in zip(arg_types, names, strict=True):
        shape = shape_of_type(expect_tensor(ty, who, name))
        expect(shape in ((), (1,)), f"{who} requires one number for {name}, got {ty}")


@operator(
    "vision.get_valid_counts",
    support_level=5,
    results=3,
    infer_type=_valid_counts_type,
    compute=lambda attrs, inputs, out_type: topi.vision.get_valid_counts(
        inputs[0], inputs[1], attrs.id_index, attrs.score_index
    ),
    **_OPAQUE,
)
@documented_by(topi.vision.get_valid_counts)
def get_valid_counts(
    data: Expr, score_threshold: Threshold, id_index: int = 0, score_index: int = 1
) -> TupleWrapper:
    """Move the boxes above a score to the front.

    Returns
    -------
    tuple of relay.Expr
        How many count, (batch,); the boxes, those that count first, then -1; their indices, then -1.
    """


@operator(
    "vision.non_max_suppression",
    "NonMaximumSuppressionAttrs",
    support_level=5,
    results=lambda attrs: 2 if attrs.return_indices else None,
    infer_type=_nms_type,
    compute=computed_by(
        topi.vision.non_max_suppression, "force_suppress", "top_k", "coord_start", "score_index",
        "id_index", "return_indices", "invalid_to_bottom",
    ),
    **_OPAQUE,
)  # fmt: skip
def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Size = -1,
    iou_threshold: Threshold = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> RelayExpr | TupleWrapper:
    """Drop the boxes that overlap one of a higher score."""


@operator(
    "vision.all_class_non_max_suppression",
    "AllClassNonMaximumSuppressionAttrs",
    support_level=5,
    results=lambda attrs: 2 if attrs.output_format == "onnx" else 3,
    infer_type=_all_class_type,
    compute=computed_by(topi.vision.all_class_non_max_suppression, "output_format"),
    **_OPAQUE,
)
def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Size = -1,
    iou_threshold: Threshold = -1.0,
    score_threshold: Threshold = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    """Drop, in each class, the boxes that overlap one of a higher score.

    Returns
    -------
    tuple of relay.Expr
        "onnx": rows (batch, class, box), those that count first, and their number (1,).
        "tensorflow": for each batch rows (class, box), the scores, and their number.
    """


@operator(
    "vision.regular_non_max_suppression",
    "RegularNonMaximumSuppressionAttrs",
    results=4,
    infer_type=_regular_type,
    compute=computed_by(
        topi.vision.regular_non_max_suppression, "max_detections_per_class", "max_detections",
        "num_classes", "iou_threshold", "score_threshold",
    ),
    **_OPAQUE,
)  # fmt: skip
def regular_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> TupleWrapper:
    """The best boxes over all classes, after suppression in each (TensorFlow Lite's regular form).

    Returns
    -------
    tuple of relay.Expr
        The boxes, their classes, their scores, and their numbers.
    """
