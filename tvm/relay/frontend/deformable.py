"""Deformable convolutions: windows read positions that data moves, and weigh them by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like


@dataclass(frozen=True)
class Window:
    """How a window of two axes goes over images."""

    strides: Sequence[int]
    padding: Sequence[int]  # before the rows and the columns
    dilations: Sequence[int]

    def positions(self, kernel: Sequence[int], size: Sequence[int]) -> np.ndarray:
        """(kernel, 2, rows, columns): what each kernel position reads without offsets."""
        inner = np.indices(kernel).reshape(2, -1).T * np.array(self.dilations)
        outer = np.indices(size) * np.reshape(self.strides, (2, 1, 1))
        positions = inner[:, :, None, None] + outer[None]
        return np.asarray(positions - np.reshape(self.padding, (1, 2, 1, 1)))


def deformable_conv2d(
    x: RelayExpr, weight: RelayExpr, offset: RelayExpr, mask: RelayExpr | None, window: Window,
    groups: int, offset_groups: int,
) -> RelayExpr:  # fmt: skip
    """The products of a weight (outputs, inputs / groups, ...) with what the windows read."""
    batch, channels = infer_shape(x)[:2]
    outputs, _, *kernel = infer_shape(weight)
    size, count = infer_shape(offset)[2:], kernel[0] * kernel[1]
    seen = _sampled(x, offset, window.positions(kernel, size), offset_groups)
    if mask is not None:
        grouped = (batch, offset_groups, channels // offset_groups, count, *size)
        weights = _op.reshape(mask, (batch, offset_groups, 1, count, *size))
        seen = _op.reshape(seen, grouped) * weights
    inner = channels // groups * count
    data = _op.reshape(seen, (batch * groups, inner, size[0] * size[1]))
    rows = _op.tile(_op.reshape(weight, (groups, outputs // groups, inner)), (batch, 1, 1))
    product = _op.nn.batch_matmul(rows, data, transpose_b=False)
    return _op.reshape(product, (batch, outputs, *size))


def _sampled(x: RelayExpr, offset: RelayExpr, positions: np.ndarray, groups: int) -> RelayExpr:
    """(batch, channels, kernel, rows, columns): bilinear samples, zeros outside."""
    batch, channels, *image = infer_shape(x)
    count, _, rows, columns = positions.shape
    moved = _op.reshape(offset, (batch * groups, count, 2, rows, columns))
    at = moved + constant(positions[None], infer_dtype(x))
    # grids hold x before y, from -1 in the first corner to 1 in the last one
    scale = 2 / np.maximum(np.array(image) - 1, 1).reshape(1, 1, 2, 1, 1)
    grid = at * constant(scale, infer_dtype(x)) - scalar_like(1.0, x)
    grid = _op.reverse(_op.transpose(grid, (0, 2, 1, 3, 4)), 1)
    grid = _op.reshape(grid, (batch * groups, 2, count * rows, columns))
    data = _op.reshape(x, (batch * groups, channels // groups, *image))
    found = _op.image.grid_sample(data, grid, "bilinear", "NCHW", "zeros", align_corners=True)
    return _op.reshape(found, (batch, channels, count, rows, columns))
