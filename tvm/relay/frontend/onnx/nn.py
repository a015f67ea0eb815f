"""ONNX convolutions, pooling, resizing."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import same_padding

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
    weight = node.shape(1)
    kernel = list(node.attr("kernel_shape", weight[2:]))
    strides, padding, dilations = _window(node, kernel)
    convolve = {1: _op.nn.conv1d, 2: _op.nn.conv2d}.get(len(kernel))
    if convolve is None:
        raise node.unsupported(f"{len(kernel)}-dimensional convolution")
    return _with_bias(node, convolve(
        node[0], node[1], strides=tuple(strides), padding=padding, dilation=tuple(dilations),
        groups=node.attr("group", 1), channels=weight[0], kernel_size=tuple(kernel),
    ))  # fmt: skip


@onnx_op("MaxPool", "AveragePool")
def _pool(node: OnnxNode) -> RelayExpr:
    kernel = node.attr("kernel_shape")
    strides, padding, dilations = _window(node, kernel)
    options: dict[str, Any] = {"ceil_mode": bool(node.attr("ceil_mode", 0))}
    if node.op_type == "AveragePool":
        options["count_include_pad"] = bool(node.attr("count_include_pad", 0))
    if len(kernel) != 2 or node.output_count > 1:
        raise node.unsupported("pooling other than two-dimensional with one output")
    pool = _op.nn.max_pool2d if node.op_type == "MaxPool" else _op.nn.avg_pool2d
    return pool(
        node[0], pool_size=tuple(kernel), strides=tuple(strides), padding=padding,
        dilation=tuple(dilations), **options,
    )  # fmt: skip


@onnx_op("GlobalAveragePool")
def _global_average_pool(node: OnnxNode) -> RelayExpr:
    axes = list(range(2, len(node.shape(0))))
    if len(axes) == 2:
        return _op.nn.global_avg_pool2d(node[0])
    return _op.mean(node[0], axes, True)


@onnx_op("GlobalMaxPool")
def _global_max_pool(node: OnnxNode) -> RelayExpr:
    return _op.max(node[0], list(range(2, len(node.shape(0)))), True)
