"""References whose windows move: deformable convolution and correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .windows import pads, spread

Array = np.ndarray


def deformable_conv2d_nchw_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """A convolution each of whose taps is moved by an offset of its own (down, then right)."""
    batch, channels, _, _ = a_np.shape
    out_channels, inner, height, width = w_np.shape
    (sy, sx), (dy, dx) = spread(stride, 2), spread(dilation, 2)
    reach = [(height - 1) * dy + 1, (width - 1) * dx + 1]
    (top, _), (left, _) = pads(padding, reach)
    rows, columns = offset_np.shape[2:]
    patches = np.zeros((batch, channels, height, width, rows, columns))
    positions = np.meshgrid(
        np.arange(rows) * sy - top, np.arange(columns) * sx - left, indexing="ij"
    )
    for b, c, ky, kx in np.ndindex(batch, channels, height, width):
        group = c // (channels // deformable_groups)
        first = 2 * (group * height * width + ky * width + kx)
        y = positions[0] + ky * dy + offset_np[b, first]
        x = positions[1] + kx * dx + offset_np[b, first + 1]
        patches[b, c, ky, kx] = _sampled(a_np[b, c], y, x)
    split = patches.reshape(batch, groups, inner, height, width, rows, columns)
    weights = w_np.reshape(groups, out_channels // groups, inner, height, width)
    found = np.einsum("bgiyxrc,goiyx->bgorc", split, weights)
    return np.asarray(found.reshape(batch, out_channels, rows, columns).astype(a_np.dtype))


def deformable_conv2d_nhwc_python(
    a_np: Array,
    offset_np: Array,
    w_np: Array,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
) -> Array:
    """As `deformable_conv2d_nchw_python`, channels last; the weight is (height, width, I, O)."""
    data, offset = [x.transpose(0, 3, 1, 2) for x in (a_np, offset_np)]
    found = deformable_conv2d_nchw_python(
        data, offset, w_np.transpose(3, 2, 0, 1), stride, padding, dilation,
        deformable_groups, groups,
    )  # fmt: skip
    return np.asarray(found.transpose(0, 2, 3, 1))


def _sampled(image: Array, y: Array, x: Array) -> Array:
    """Bilinear samples, zero outside; the last row and column go on to the image's end."""
    height, width = image.shape
    total = np.zeros(y.shape)
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    for step_y, step_x in np.ndindex(2, 2):
        at_y, at_x = low_y + step_y, low_x + step_x
        share = (1 - np.abs(y - at_y)) * (1 - np.abs(x - at_x))
        total += share * image[np.clip(at_y, 0, height - 1), np.clip(at_x, 0, width - 1)]
    return np.where((y >= 0) & (y < height) & (x >= 0) & (x < width), total, 0)


def correlation_nchw_python(
    data1: Array,
    data2: Array,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: int | Sequence[int],
    is_multiply: bool,
) -> Array:
    """The mean product (or distance) of patches, for each displacement of the second map."""
    numbers = [padding] * 4 if isinstance(padding, int) else list(padding)
    top, left, bottom, right = numbers * (4 // len(numbers))
    border = ((0, 0), (0, 0), (top, bottom), (left, right))
    first, second = np.pad(data1, border), np.pad(data2, border)
    batch, channels, height, width = first.shape
    margin = max_displacement + (kernel_size - 1) // 2
    rows, columns = [-(-(n - 2 * margin) // stride1) for n in (height, width)]
    radius = max_displacement // stride2
    moves = [s * stride2 for s in range(-radius, radius + 1)]
    found = np.zeros((batch, len(moves) ** 2, rows, columns))
    for plane, (dy, dx) in enumerate([(dy, dx) for dy in moves for dx in moves]):
        for i, j in np.ndindex(rows, columns):
            y, x = i * stride1 + max_displacement, j * stride1 + max_displacement
            mine = first[:, :, y : y + kernel_size, x : x + kernel_size]
            other = second[:, :, y + dy : y + dy + kernel_size, x + dx : x + dx + kernel_size]
            joined = mine * other if is_multiply else np.abs(mine - other)
            found[:, plane, i, j] = joined.sum((1, 2, 3))
    return np.asarray((found / (kernel_size * kernel_size * channels)).astype(data1.dtype))
