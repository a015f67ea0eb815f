"""Operators of torchvision for detection: suppressing boxes, pooling regions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.frontend.deformable import Window, deformable_conv2d

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
    positions = _op.arange(constant(0, "int64"), number, constant(1, "int64"), "int64")
    return _op.cast(_op.take(_op.take(rows, constant(2, "int64"), 1), positions, 0), "int64")


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


@torch_op("torchvision::ps_roi_align")
def _ps_roi_align(
    x: RelayExpr, regions: RelayExpr, scale: Any, height: Any, width: Any, samples: Any
) -> list[Any]:
    """Each bin of a region reads channels of its own."""
    rows, columns = as_number(height), as_number(width)
    pooled = _op.vision.roi_align(
        x, regions, (rows, columns), float(as_number(scale)), as_number(samples), aligned=True
    )
    count, channels = infer_shape(regions)[0], infer_shape(x)[1]
    by_bin = _op.reshape(pooled, (count, channels // (rows * columns), rows * columns, -1))
    positions = np.arange(rows * columns).reshape(1, 1, -1, 1)
    positions = np.broadcast_to(positions, (count, channels // (rows * columns), rows * columns, 1))
    found = _op.gather(by_bin, 3, constant(np.ascontiguousarray(positions), "int64"))
    return [_op.reshape(found, (count, -1, rows, columns)), None]


@torch_op("torchvision::deform_conv2d")
def _deform_conv2d(
    x: RelayExpr, weight: RelayExpr, offset: RelayExpr, mask: RelayExpr, bias: RelayExpr,
    row_stride: Any, column_stride: Any, row_padding: Any, column_padding: Any, row_dilation: Any,
    column_dilation: Any, groups: Any, offset_groups: Any, has_mask: Any,
) -> RelayExpr:  # fmt: skip
    pairs = ((row_stride, column_stride), (row_padding, column_padding),
             (row_dilation, column_dilation))  # fmt: skip
    window = Window(*[tuple(map(as_number, pair)) for pair in pairs])
    product = deformable_conv2d(
        x, weight, offset, mask if as_number(has_mask) else None, window, as_number(groups),
        as_number(offset_groups),
    )  # fmt: skip
    return _op.nn.bias_add(product, bias)
