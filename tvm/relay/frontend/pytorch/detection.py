"""Operators of torchvision for detection: suppressing boxes, pooling regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

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


@torch_op("torchvision::ps_roi_align")
def _ps_roi_align(
    x: RelayExpr, regions: RelayExpr, scale: Any, height: Any, width: Any, samples: Any
) -> list[Any]:
    """Each place of a region reads channels of its own."""
    rows, columns = as_number(height), as_number(width)
    pooled = _op.vision.roi_align(
        x, regions, (rows, columns), float(as_number(scale)), as_number(samples), aligned=True
    )
    count, channels = infer_shape(regions)[0], infer_shape(x)[1]
    apart = _op.reshape(pooled, (count, channels // (rows * columns), rows * columns, -1))
    places = np.arange(rows * columns).reshape(1, 1, -1, 1)
    places = np.broadcast_to(places, (count, channels // (rows * columns), rows * columns, 1))
    found = _op.gather(apart, 3, constant(np.ascontiguousarray(places), "int64"))
    return [_op.reshape(found, (count, -1, rows, columns)), None]


@torch_op("torchvision::deform_conv2d")
def _deform_conv2d(
    x: RelayExpr, weight: RelayExpr, offset: RelayExpr, mask: RelayExpr, bias: RelayExpr,
    row_stride: Any, column_stride: Any, row_padding: Any, column_padding: Any, row_dilation: Any,
    column_dilation: Any, groups: Any, offset_groups: Any, has_mask: Any,
) -> RelayExpr:  # fmt: skip
    """A convolution whose window reads places that data moves, and weighs them by a mask."""
    pairs = ((row_stride, column_stride), (row_padding, column_padding),
             (row_dilation, column_dilation))  # fmt: skip
    strides, padding, dilation = [tuple(map(as_number, pair)) for pair in pairs]
    groups, offset_groups = as_number(groups), as_number(offset_groups)
    kernel = infer_shape(weight)[2:]
    columns = _sampled(x, offset, strides, padding, dilation, kernel, offset_groups)
    if as_number(has_mask):
        batch, channels, window, *size = infer_shape(columns)
        apart = (batch, offset_groups, channels // offset_groups, window, *size)
        weights = _op.reshape(mask, (batch, offset_groups, 1, window, *size))
        columns = _op.reshape(_op.reshape(columns, apart) * weights, infer_shape(columns))
    return _op.nn.bias_add(_grouped_product(columns, weight, groups), bias)


def _sampled(
    x: RelayExpr, offset: RelayExpr, strides: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], kernel: Sequence[int], groups: int,
) -> RelayExpr:  # fmt: skip
    """What the window reads at each place: (batch, channels, window, height, width)."""
    batch, channels, *image = infer_shape(x)
    height, width = infer_shape(offset)[2:]
    window = kernel[0] * kernel[1]
    moved = _op.reshape(offset, (batch * groups, window, 2, height, width))
    grids = []
    for axis, extent in enumerate(image):
        inner = np.arange(kernel[axis]) * dilation[axis] - padding[axis]
        outer = np.arange((height, width)[axis]) * strides[axis]
        shape = (-1, 1) if axis == 0 else (1, -1)
        within = np.broadcast_to(inner.reshape(shape), tuple(kernel)).reshape(window, 1, 1)
        places = constant((within + outer.reshape(shape))[None], infer_dtype(x))
        at = _op.take(moved, constant(axis, "int64"), 2) + places
        # grids count from -1 in the first corner to 1 in the last one
        grids.append(at * scalar_like(2 / max(extent - 1, 1), x) - scalar_like(1, x))
    flat = [_op.reshape(grid, (batch * groups, window * height, width)) for grid in grids]
    grid = _op.stack([flat[1], flat[0]], 1)
    data = _op.reshape(x, (batch * groups, channels // groups, *image))
    found = _op.image.grid_sample(data, grid, "bilinear", "NCHW", "zeros", align_corners=True)
    return _op.reshape(found, (batch, channels, window, height, width))


def _grouped_product(columns: RelayExpr, weight: RelayExpr, groups: int) -> RelayExpr:
    batch, channels, window, height, width = infer_shape(columns)
    count = infer_shape(weight)[0]
    inner = channels // groups * window
    data = _op.reshape(columns, (batch * groups, inner, height * width))
    rows = _op.tile(_op.reshape(weight, (groups, count // groups, inner)), (batch, 1, 1))
    product = _op.nn.batch_matmul(rows, data, transpose_b=False)
    return _op.reshape(product, (batch, count, height, width))
