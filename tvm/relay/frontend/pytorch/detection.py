"""Operators of torchvision for detection: suppressing boxes, pooling regions."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape

from .registry import as_dtype, as_number, torch_op


@torch_op("torchvision::nms")
def _nms(boxes: RelayExpr, scores: RelayExpr, threshold: Any) -> RelayExpr:
    """The boxes that are kept, the best first; how many is known at run time."""
    if infer_shape(scores)[0] == 0:
        return constant([], "int64")
    rows, count = _op.vision.all_class_non_max_suppression(
        _op.expand_dims(as_dtype(boxes, "float32"), 0),
        _op.expand_dims(as_dtype(scores, "float32"), 0, num_newaxis=2),
        -1, float(as_number(threshold)), float("-inf"),
    )  # fmt: skip
    number = _op.reshape(_op.cast(count, "int64"), ())
    places = _op.arange(constant(0, "int64"), number, constant(1, "int64"), "int64")
    return _op.cast(_op.take(_op.take(rows, constant(2, "int64"), 1), places, 0), "int64")


@torch_op("torchvision::roi_align")
def _roi_align(
    x: RelayExpr, regions: RelayExpr, scale: Any, height: Any, width: Any, samples: Any,
    aligned: Any,
) -> RelayExpr:  # fmt: skip
    return _op.vision.roi_align(
        x, regions, (as_number(height), as_number(width)), float(as_number(scale)),
        as_number(samples), aligned=bool(as_number(aligned)),
    )  # fmt: skip


@torch_op("torchvision::roi_pool")
def _roi_pool(x: RelayExpr, regions: RelayExpr, scale: Any, height: Any, width: Any) -> list[Any]:
    size = (as_number(height), as_number(width))
    return [_op.vision.roi_pool(x, regions, size, float(as_number(scale))), None]
