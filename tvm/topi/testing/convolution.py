"""Convolutions in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.error import RuntimeValueError

from .windows import convolve, convolve_transposed, pads, spread, windows_of

Array = np.ndarray


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """A convolution over one axis."""
    return convolve(a_np, w_np, stride, padding, dilation)


def group_conv1d_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """A convolution over one axis, in groups of channels."""
    return convolve(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1
) -> Array:
    """A convolution; the weight is (O, I / groups, height, width)."""
    return convolve(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1
) -> Array:
    """A convolution with channels last; the weight is (height, width, I / groups, O)."""
    found = convolve(
        a_np.transpose(0, 3, 1, 2), w_np.transpose(3, 2, 0, 1), stride, padding, 1, groups
    )
    return np.asarray(found.transpose(0, 2, 3, 1))


def conv2d_hwcn_python(a_np: Array, w_np: Array, stride: Any, padding: Any) -> Array:
    """A convolution of data (height, width, C, N); the weight is (height, width, I, O)."""
    found = convolve(a_np.transpose(3, 2, 0, 1), w_np.transpose(3, 2, 0, 1), stride, padding)
    return np.asarray(found.transpose(2, 3, 1, 0))


def conv3d_ncdhw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1
) -> Array:
    """A convolution over three axes."""
    return convolve(a_np, w_np, stride, padding, 1, groups)


def conv3d_ndhwc_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1
) -> Array:
    """A convolution over three axes with channels last; the weight is (D, H, W, I, O)."""
    found = convolve(
        a_np.transpose(0, 4, 1, 2, 3), w_np.transpose(4, 3, 0, 1, 2), stride, padding, 1, groups
    )
    return np.asarray(found.transpose(0, 2, 3, 4, 1))


def conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any
) -> Array:
    """A transposed convolution over one axis; the weight is (I, O, width)."""
    return convolve_transposed(a_np, w_np, stride, padding, output_padding)


def group_conv1d_transpose_ncw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """A transposed convolution over one axis, in groups of channels."""
    return convolve_transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nchw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """A transposed convolution; the weight is (I, O / groups, height, width)."""
    return convolve_transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(
    a_nhwc: Array,
    weight: Array,
    weight_format: str,
    stride: Any,
    padding: Any,
    output_padding: Any = (0, 0),
) -> Array:
    """A transposed convolution with channels last; the weight's format is such as "HWIO"."""
    if sorted(weight_format) != list("HIOW"):
        raise RuntimeValueError(
            f"a weight_format of the letters H, W, I, O is required, got {weight_format!r}"
        )
    order = [weight_format.index(axis) for axis in "IOHW"]
    found = convolve_transposed(
        a_nhwc.transpose(0, 3, 1, 2), weight.transpose(order), stride, padding, output_padding
    )
    return np.asarray(found.transpose(0, 2, 3, 1))


def conv3d_transpose_ncdhw_python(
    a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """A transposed convolution over three axes."""
    return convolve_transposed(a_np, w_np, stride, padding, output_padding, groups)


def depthwise_conv2d_python_nchw(
    input_np: Array, filter_np: Array, stride: Any, padding: Any
) -> Array:
    """A convolution of each channel for itself; the weight is (C, multiplier, height, width)."""
    channels, multiplier, *window = filter_np.shape
    weight = filter_np.reshape(channels * multiplier, 1, *window)
    return convolve(input_np, weight, stride, padding, 1, channels)


def depthwise_conv2d_python_nhwc(
    input_np: Array, filter_np: Array, stride: Any, padding: Any
) -> Array:
    """A convolution of each channel for itself; the weight is (height, width, C, multiplier)."""
    found = depthwise_conv2d_python_nchw(
        input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1), stride, padding
    )
    return np.asarray(found.transpose(0, 2, 3, 1))


def depthwise_conv2d_python_nchwc(
    input_np: Array, filter_np: Array, stride: Any, padding: Any
) -> Array:
    """As `depthwise_conv2d_python_nchw`, of data and a weight in blocks of channels."""
    batch, outer, height, width, inner = input_np.shape
    blocks, multiplier, kh, kw, _, block = filter_np.shape
    data = input_np.transpose(0, 1, 4, 2, 3).reshape(batch, outer * inner, height, width)
    weight = filter_np.transpose(0, 5, 1, 4, 2, 3).reshape(blocks * block, multiplier, kh, kw)
    found = depthwise_conv2d_python_nchw(data, weight, stride, padding)
    parts = found.reshape(batch, -1, block, *found.shape[2:])
    return np.asarray(parts.transpose(0, 1, 3, 4, 2))


def conv2d_backward_weight_nchw_python(
    dy_np: Array, x_np: Array, kernel_size: Any, stride: Any, padding: Any, groups: int = 1,
    channels: int | None = None,
) -> Array:  # fmt: skip
    """The gradient of a convolution to its weight."""
    kernel, steps = spread(kernel_size, 2), spread(stride, 2)
    padded = np.pad(x_np, [(0, 0), (0, 0), *pads(padding, kernel)])
    found = windows_of(padded, kernel, steps)[:, :, : dy_np.shape[2], : dy_np.shape[3]]
    parts = [
        np.einsum("nohw,nchwyx->ocyx", dy, window)
        for dy, window in zip(np.split(dy_np, groups, 1), np.split(found, groups, 1), strict=True)
    ]
    return np.concatenate(parts, 0)


def conv2d_backward_weight_python(
    dy_np: Array, x_np: Array, kernel_size: Any, stride: Any, padding: Any, layout: str = "NCHW",
    groups: int = 1, channels: int | None = None,
) -> Array:  # fmt: skip
    """The gradient of a convolution to its weight; (O, H, W, I) with "NHWC"."""
    if layout == "NCHW":
        return conv2d_backward_weight_nchw_python(
            dy_np, x_np, kernel_size, stride, padding, groups, channels
        )
    if layout != "NHWC":
        raise RuntimeValueError(f"a layout of NCHW or NHWC is required, got {layout!r}")
    found = conv2d_backward_weight_nchw_python(
        dy_np.transpose(0, 3, 1, 2), x_np.transpose(0, 3, 1, 2), kernel_size, stride, padding,
        groups, channels,
    )  # fmt: skip
    return np.asarray(found.transpose(0, 2, 3, 1))
