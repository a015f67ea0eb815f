"""ONNX convolutions, pooling, resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_shape, same_padding, scalar_like
from tvm.relay.frontend.resize import has_ties, is_exact, resize_axes

from .registry import OnnxNode, onnx_op


def _window(node: OnnxNode, kernel: list[int]) -> tuple[list[int], tuple[int, ...], list[int]]:
    """Strides, padding and dilations of a sliding window."""
    rank = len(kernel)
    strides = list(node.attr("strides", [1] * rank))
    dilations = list(node.attr("dilations", [1] * rank))
    auto = node.attr("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        spatial = node.shape(0)[2:]
        return (
            strides,
            same_padding(spatial, kernel, strides, dilations, auto == "SAME_LOWER"),
            dilations,
        )
    pads = [0] * 2 * rank if auto == "VALID" else node.attr("pads", [0] * 2 * rank)
    return strides, tuple(pads), dilations


def _with_bias(node: OnnxNode, result: RelayExpr) -> RelayExpr:
    return _op.nn.bias_add(result, node[2]) if node.has(2) else result


@onnx_op("Conv")
def _conv(node: OnnxNode) -> RelayExpr:
    return _with_bias(node, convolve(node, node[0], node[1]))


_CONVOLUTIONS = {1: _op.nn.conv1d, 2: _op.nn.conv2d, 3: _op.nn.conv3d}


def convolve(node: OnnxNode, x: RelayExpr, weight: RelayExpr) -> RelayExpr:
    """A convolution by the attributes of ``node``."""
    shape = infer_shape(weight)
    kernel = list(node.attr("kernel_shape", shape[2:]))
    strides, padding, dilations = _window(node, kernel)
    if len(kernel) not in _CONVOLUTIONS:
        raise node.unsupported(f"{len(kernel)}-dimensional convolution")
    return _CONVOLUTIONS[len(kernel)](
        x, weight, strides=tuple(strides), padding=padding, dilation=tuple(dilations),
        groups=node.attr("group", 1), channels=shape[0], kernel_size=tuple(kernel),
    )  # fmt: skip


@onnx_op("ConvTranspose")
def _conv_transpose(node: OnnxNode) -> RelayExpr:
    weight, rank = node.shape(1), len(node.shape(1)) - 2
    kernel = list(node.attr("kernel_shape", weight[2:]))
    strides, padding, dilations = _window(node, kernel)
    extra = list(node.attr("output_padding", [0] * rank))
    if (wanted := node.attr("output_shape")) is not None:
        padding, extra = _transposed_padding(node, kernel, strides, dilations, extra, wanted)
    elif node.attr("auto_pad", "NOTSET").startswith("SAME"):
        wanted = [d * s for d, s in zip(node.shape(0)[2:], strides, strict=True)]
        padding, extra = _transposed_padding(node, kernel, strides, dilations, extra, wanted)
    if rank not in (1, 2):
        raise node.unsupported(f"{rank}-dimensional transposed convolution")
    return _with_bias(node, conv_transpose(
        node[0], node[1], strides, padding, dilations, node.attr("group", 1), extra
    ))  # fmt: skip


def _transposed_padding(
    node: OnnxNode, kernel: list[int], strides: list[int], dilations: list[int], extra: list[int],
    wanted: list[int],
) -> tuple[tuple[int, ...], list[int]]:  # fmt: skip
    """What is cut off at both ends, and added at the last, for the output extents ``wanted``."""
    begins, ends, added = [], [], []
    upper = node.attr("auto_pad", "NOTSET") == "SAME_UPPER"
    spatial = node.shape(0)[2:]
    for dim, k, s, d, e, want in zip(
        spatial, kernel, strides, dilations, extra, wanted[-len(spatial) :], strict=True
    ):
        total = (dim - 1) * s + e + (k - 1) * d + 1 - want
        added.append(e + max(0, -total))
        cut = max(0, total)
        begins.append(cut // 2 if upper else cut - cut // 2)
        ends.append(cut - begins[-1])
    return (*begins, *ends), added


def conv_transpose(
    x: RelayExpr, weight: RelayExpr, strides: Sequence[int], padding: Sequence[int],
    dilations: Sequence[int], groups: int, extra: Sequence[int],
) -> RelayExpr:  # fmt: skip
    """Transposed convolution over one or two axes; the weight is (in, out / groups, ...)."""
    shape = infer_shape(weight)
    if len(shape) == 3:  # a row of an image
        first, last = padding if len(padding) == 2 else (padding[0], padding[0])
        row = conv_transpose(
            _op.expand_dims(x, 2), _op.expand_dims(weight, 2), (1, *strides), (0, first, 0, last),
            (1, *dilations), groups, (0, *extra),
        )  # fmt: skip
        return _op.squeeze(row, [2])
    if any(step != 1 for step in dilations):
        weight, shape = _spaced(weight, shape, dilations)
    return _op.nn.conv2d_transpose(
        x, weight, strides=tuple(strides), padding=tuple(padding), groups=groups,
        channels=shape[1] * groups, kernel_size=tuple(shape[2:]), output_padding=tuple(extra),
    )  # fmt: skip


def _spaced(
    weight: RelayExpr, shape: tuple[int, ...], dilations: Sequence[int]
) -> tuple[RelayExpr, tuple[int, ...]]:
    """A kernel with zeros between its elements."""
    i, o, h, w = shape
    dh, dw = dilations
    apart = _op.reshape(weight, (i, o, h, 1, w, 1))
    filled = _op.nn.pad(apart, [(0, 0)] * 3 + [(0, dh - 1), (0, 0), (0, dw - 1)])
    spread = _op.reshape(filled, (i, o, h * dh, w * dw))
    extents = (i, o, (h - 1) * dh + 1, (w - 1) * dw + 1)
    return _op.strided_slice(spread, (0, 0, 0, 0), extents, (1, 1, 1, 1)), extents


@onnx_op("MaxPool", "AveragePool")
def _pool(node: OnnxNode) -> RelayExpr:
    kernel = node.attr("kernel_shape")
    strides, padding, dilations = _window(node, kernel)
    options: dict[str, Any] = {"ceil_mode": bool(node.attr("ceil_mode", 0))}
    if node.op_type == "AveragePool":
        options["count_include_pad"] = bool(node.attr("count_include_pad", 0))
    if len(kernel) > 2 or node.output_count > 1:
        raise node.unsupported("pooling over more than two axes or with indices")
    pools = {
        "MaxPool": (_op.nn.max_pool1d, _op.nn.max_pool2d),
        "AveragePool": (_op.nn.avg_pool1d, _op.nn.avg_pool2d),
    }
    result = pools[node.op_type][len(kernel) - 1](
        node[0], pool_size=tuple(kernel), strides=tuple(strides), padding=padding,
        dilation=tuple(dilations), **options,
    )  # fmt: skip
    return within_data(node[0], result, strides, padding)


def within_data(
    x: RelayExpr, pooled: RelayExpr, strides: Sequence[int], padding: Sequence[int]
) -> RelayExpr:
    """What was pooled, without windows that start behind the data (rounding up counts them)."""
    have, got = infer_shape(x), infer_shape(pooled)
    want = list(got)
    for i, (step, before) in enumerate(zip(strides, padding, strict=False)):
        axis = len(have) - len(strides) + i
        if (got[axis] - 1) * step >= have[axis] + before:
            want[axis] -= 1
    if tuple(want) == got:
        return pooled
    return _op.strided_slice(pooled, [0] * len(got), want, [1] * len(got))


@onnx_op("GlobalAveragePool")
def _global_average_pool(node: OnnxNode) -> RelayExpr:
    axes = list(range(2, len(node.shape(0))))
    if len(axes) == 2:
        return _op.nn.global_avg_pool2d(node[0])
    return _op.mean(node[0], axes, True)


@onnx_op("GlobalMaxPool")
def _global_max_pool(node: OnnxNode) -> RelayExpr:
    return _op.max(node[0], list(range(2, len(node.shape(0)))), True)


@onnx_op("Resize", "Upsample")
def _resize(node: OnnxNode) -> RelayExpr:
    """Images alone: batch and channels keep their extents."""
    shape = node.shape(0)
    size = _resized(node, shape)
    if len(shape) not in (3, 4) or size[:2] != list(shape[:2]):
        raise node.unsupported(f"resizing {shape} to {tuple(size)}")
    method = {"nearest": "nearest_neighbor"}.get(node.attr("mode", "nearest"), node.attr("mode"))
    if node.op_type == "Upsample" or node.opset < 11:
        coordinates, rounding = "asymmetric", "floor"
    else:
        coordinates = node.attr("coordinate_transformation_mode", "half_pixel")
        rounding = node.attr("nearest_mode", "round_prefer_floor")
    if coordinates not in _COORDINATES or node.attr("antialias", 0) or node.attr("exclude_outside"):
        raise node.unsupported(f"resizing with {coordinates}, antialias or exclude_outside")
    alpha = node.attr("cubic_coeff_a", -0.75)
    given = _factors(node, shape)
    is_nearest = method == "nearest_neighbor"
    if (given and not is_exact(shape, size, given)) or (is_nearest and has_ties(shape, size)):
        factors = given or [w / h for h, w in zip(shape, size, strict=True)]
        axes = [axis for axis, factor in enumerate(factors) if factor != 1]
        want, by = [size[a] for a in axes], [factors[a] for a in axes]
        return resize_axes(node[0], axes, want, by, method, coordinates, rounding, alpha)
    image = _op.expand_dims(node[0], 2) if len(shape) == 3 else node[0]
    result = _op.image.resize2d(
        image, size[2:] if len(shape) == 4 else [1, size[2]], layout="NCHW", method=method,
        coordinate_transformation_mode=coordinates, rounding_method=rounding,
        cubic_alpha=alpha,
    )  # fmt: skip
    return _op.squeeze(result, [2]) if len(shape) == 3 else result


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _factors(node: OnnxNode, shape: tuple[int, ...]) -> list[float] | None:
    """The factors of all axes, if the node states them."""
    value = node.attr("scales")
    if value is None:
        value = node.value(1 if node.opset < 11 else 2)
    if value is None or not np.size(value):
        return None
    result = [1.0] * len(shape)
    for axis, factor in zip(node.attr("axes", range(len(shape))), value, strict=True):
        result[axis] = float(factor)
    return result


def _resized(node: OnnxNode, shape: tuple[int, ...]) -> list[int]:
    """The extents wanted, from sizes or scales, of all axes."""
    if (factors := _factors(node, shape)) is not None:
        return [int(np.floor(dim * f)) for dim, f in zip(shape, factors, strict=True)]
    result = list(shape)
    sizes = [int(size) for size in node.require_value(3, "sizes")]
    axes = [axis % len(shape) for axis in node.attr("axes", range(len(shape)))]
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        ratios = [size / shape[axis] for axis, size in zip(axes, sizes, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = [int(np.floor(ratio * shape[axis] + 0.5)) for axis in axes]
    for axis, size in zip(axes, sizes, strict=True):
        result[axis] = size
    return result


@onnx_op("LRN")
def _lrn(node: OnnxNode) -> RelayExpr:
    """``x / (bias + alpha / size * sum of squares over near channels) ** beta``."""
    x, size = node[0], node.attr("size")
    shape = node.shape(0)
    before = (size - 1) // 2
    width = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (len(shape) - 2)]
    squares = _op.nn.pad(x * x, width)
    begin, end = [0] * len(shape), list(shape)
    total = None
    for offset in range(size):
        begin[1], end[1] = offset, offset + shape[1]
        part = _op.strided_slice(squares, list(begin), list(end), [1] * len(shape))
        total = part if total is None else total + part
    scale = scalar_like(node.attr("alpha", 1e-4) / size, x)
    base = scalar_like(node.attr("bias", 1.0), x) + total * scale
    return x / _op.power(base, scalar_like(node.attr("beta", 0.75), x))
