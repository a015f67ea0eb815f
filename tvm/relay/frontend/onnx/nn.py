"""ONNX convolutions and what goes with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, is_static, same_padding, scalar_like
from tvm.relay.frontend.dynamic_extents import with_static_extents
from tvm.relay.frontend.indexing import SLICE_END, move_axis
from tvm.relay.frontend.windows import conv_transpose, convolution

from .registry import OnnxNode, onnx_op, onnx_ops


def window_of(node: OnnxNode, kernel: list[int]) -> tuple[list[int], tuple[int, ...], list[int]]:
    """Strides, padding and dilations of a sliding window."""
    rank = len(kernel)
    strides = list(node.attr("strides", [1] * rank))
    dilations = list(node.attr("dilations", [1] * rank))
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(values) != rank or min(values, default=1) < 1:
            raise OpAttributeInvalid(
                f"{node.op_type} {node.name} requires {rank} positive numbers as {name}, "
                f"got {values}"
            )
    auto = node.attr("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        # where the stride is one, what is added does not depend on the extent
        spatial = [
            1 if step == 1 and not isinstance(dim, int) else dim
            for dim, step in zip(node.shape(0)[2:], strides, strict=True)
        ]
        if not is_static(spatial):
            node.static_shape(0)
        return (
            strides,
            same_padding(spatial, kernel, strides, dilations, auto == "SAME_LOWER"),
            dilations,
        )
    pads = [0] * 2 * rank if auto == "VALID" else node.attr("pads", [0] * 2 * rank)
    return strides, tuple(pads), dilations


def with_borders(
    node: OnnxNode, x: RelayExpr, kernel: Sequence[int], fill: float | RelayExpr = 0.0
) -> tuple[OnnxNode, RelayExpr]:
    """The node and its data, padded explicitly where SAME padding depends on dynamic extents."""
    auto, shape, rank = node.attr("auto_pad", "NOTSET"), infer_shape(x), len(kernel)
    steps = node.attr("strides", [1] * rank)
    if not auto.startswith("SAME") or all(
        isinstance(dim, int) or step == 1 for dim, step in zip(shape[2:], steps, strict=True)
    ):
        return node, x
    size = _op.strided_slice(_op.shape_of(x, "int64"), [2], [2 + rank])
    step, one, zero = [constant(v, "int64") for v in (steps, [1] * rank, [0] * rank)]
    dilations = node.attr("dilations", [1] * rank)
    reach = constant([(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)], "int64")
    last = _op.floor_divide(size - one, step) * step  # where the last window starts
    total = _op.maximum(last + reach - size, zero)
    small = _op.floor_divide(total, constant([2] * rank, "int64"))
    sides = [small, total - small] if auto == "SAME_UPPER" else [total - small, small]
    outer = constant([0, 0], "int64")
    widths = _op.stack([_op.concatenate([outer, side], 0) for side in sides], 1)
    fill = fill if isinstance(fill, RelayExpr) else scalar_like(fill, x)
    padded = with_static_extents(_op.nn.pad(x, widths, fill), [*shape[:2], *[None] * rank])
    attrs = {**node.attrs, "auto_pad": "VALID"}
    return replace(node, attrs=attrs, inputs=[padded, *node.inputs[1:]]), padded


def with_bias(node: OnnxNode, result: RelayExpr) -> RelayExpr:
    """A convolution with the bias that may be its third input."""
    return _op.nn.bias_add(result, node[2]) if node.has(2) else result


def biased_conv(node: OnnxNode) -> RelayExpr:
    """A convolution of the first input by the second, with a bias."""
    return with_bias(node, convolve(node, node[0], node[1]))


def channels_last(node: OnnxNode, convert: Callable[[OnnxNode], RelayExpr]) -> RelayExpr:
    """What a converter of data (batch, channels, ...) gives for data whose channels are last."""
    data = move_axis(node[0], -1, 1)
    result = convert(replace(node, inputs=[data, *node.inputs[1:]]))
    return move_axis(result, 1, -1)


onnx_ops({
    "Conv": lambda node: biased_conv(node),
    "GlobalMaxPool": lambda node: _op.max(node[0], list(range(2, len(node.shape(0)))), True),
})  # fmt: skip


def convolve(node: OnnxNode, x: RelayExpr, weight: RelayExpr) -> RelayExpr:
    """A convolution by the attributes of ``node``."""
    kernel = list(node.attr("kernel_shape", infer_shape(weight)[2:]))
    node, x = with_borders(node, x, kernel)
    strides, padding, dilations = window_of(node, kernel)
    if len(kernel) > 3:
        raise node.unsupported(f"{len(kernel)}-dimensional convolution")
    return convolution(x, weight, strides, padding, dilations, node.attr("group", 1), kernel)


@onnx_op("ConvTranspose")
def conv_transpose_of(node: OnnxNode) -> RelayExpr:
    """A transposed convolution by the attributes of ``node``."""
    weight, rank = node.shape(1), len(node.shape(1)) - 2
    kernel = list(node.attr("kernel_shape", weight[2:]))
    is_same = node.attr("auto_pad", "NOTSET").startswith("SAME")
    unpadded = replace(node, attrs={**node.attrs, "auto_pad": "VALID"}) if is_same else node
    strides, padding, dilations = window_of(unpadded, kernel)
    extra = list(node.attr("output_padding", [0] * rank))
    if (wanted := node.attr("output_shape")) is not None:
        spatial = list(node.static_shape(0)[2:])
        padding, extra = _transposed_padding(
            node, kernel, strides, dilations, extra, wanted, spatial
        )
    elif is_same:  # each extent times its stride: what is cut off is the same for all extents
        padding, extra = _transposed_padding(
            node, kernel, strides, dilations, extra, strides, [1] * rank
        )
    if rank > 3:
        raise node.unsupported(f"{rank}-dimensional transposed convolution")
    return with_bias(node, conv_transpose(
        node[0], node[1], strides, padding, dilations, node.attr("group", 1), extra
    ))  # fmt: skip


def _transposed_padding(
    node: OnnxNode, kernel: list[int], strides: list[int], dilations: list[int], extra: list[int],
    wanted: list[int], spatial: list[int],
) -> tuple[tuple[int, ...], list[int]]:  # fmt: skip
    """What is cut off at both ends, and added at the last, for the output extents ``wanted``."""
    begins, ends, added = [], [], []
    upper = node.attr("auto_pad", "NOTSET") == "SAME_UPPER"
    for dim, k, s, d, e, want in zip(
        spatial, kernel, strides, dilations, extra, wanted[-len(spatial) :], strict=True
    ):
        total = (dim - 1) * s + e + (k - 1) * d + 1 - want
        added.append(e + max(0, -total))
        cut = max(0, total)
        begins.append(cut // 2 if upper else cut - cut // 2)
        ends.append(cut - begins[-1])
    return (*begins, *ends), added


@onnx_op("GlobalAveragePool")
def _global_average_pool(node: OnnxNode) -> RelayExpr:
    axes = list(range(2, len(node.shape(0))))
    if len(axes) == 2:
        return _op.nn.global_avg_pool2d(node[0])
    return _op.mean(node[0], axes, True)


@onnx_op("LRN")
def _lrn(node: OnnxNode) -> RelayExpr:
    """``x / (bias + alpha / size * sum of squares over near channels) ** beta``."""
    x, size = node[0], node.attr("size")
    shape = node.shape(0)
    before = (size - 1) // 2
    width = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (len(shape) - 2)]
    squares = _op.nn.pad(x * x, width)
    total = None
    for offset in range(size):
        end = offset + 1 - size  # counted from the last channel
        part = _op.strided_slice(squares, [offset], [end if end else SLICE_END], axes=[1])
        total = part if total is None else total + part
    scale = scalar_like(node.attr("alpha", 1e-4) / size, x)
    base = scalar_like(node.attr("bias", 1.0), x) + total * scale
    return x / _op.power(base, scalar_like(node.attr("beta", 0.75), x))
