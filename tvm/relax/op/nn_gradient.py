"""The gradients of neural networks' operators; see `_op_gradient`."""

from __future__ import annotations

import math
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relax.expr import Call, Var, const
from tvm.tir.expr import IntImm

from . import binary, index, manipulate, nn, search, statistical, unary
from .grad import avg_pool2d_backward, max_pool2d_backward, nll_loss_backward, no_grad


def _like(value: float, x: RelayExpr) -> Any:
    """A number in the dtype of a tensor."""
    return const(value, x.struct_info.dtype)


def relu_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient, zero below zero; at zero it passes, so that parameters of zero can be trained."""
    x = orig_call.args[0]
    return [search.where(binary.less(x, _like(0, x)), _like(0, x), output_grad)]


def leakyrelu_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient, times the slope below zero."""
    x = orig_call.args[0]
    below = binary.multiply(output_grad, _like(orig_call.attrs.alpha, x))
    return [search.where(binary.greater(x, _like(0, x)), output_grad, below)]


def silu_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """g * (s + y * (1 - s)), s the sigmoid of x"""
    x = orig_call.args[0]
    sigmoid = unary.sigmoid(x)
    rest = binary.multiply(orig_var, binary.subtract(_like(1, x), sigmoid))
    return [binary.multiply(output_grad, binary.add(sigmoid, rest))]


def gelu_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """g * (F(x) + x * f(x)), F and f the normal distribution and its density"""
    x = orig_call.args[0]
    erf = unary.erf(binary.multiply(x, _like(math.sqrt(0.5), x)))
    below = binary.multiply(_like(0.5, x), binary.add(_like(1, x), erf))
    power = unary.exp(binary.multiply(_like(-0.5, x), binary.multiply(x, x)))
    density = binary.multiply(power, _like(1 / math.sqrt(2 * math.pi), x))
    return [binary.multiply(output_grad, binary.add(below, binary.multiply(x, density)))]


def gelu_tanh_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """g * (1 + t + x * (1 - t * t) * u') / 2, t = tanh(u), u = sqrt(2 / pi) * (x + 0.044715 x^3)"""
    x = orig_call.args[0]
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    squared = binary.multiply(x, x)
    inner = binary.add(_like(scale, x), binary.multiply(_like(scale * cubic, x), squared))
    t = unary.tanh(binary.multiply(x, inner))
    slope = binary.add(_like(scale, x), binary.multiply(_like(3 * scale * cubic, x), squared))
    rest = binary.subtract(_like(1, x), binary.multiply(t, t))
    changed = binary.multiply(binary.multiply(x, rest), slope)
    total = binary.add(binary.add(_like(1, x), t), changed)
    return [binary.multiply(output_grad, binary.multiply(_like(0.5, x), total))]


def softmax_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """(g - sum(g * y)) * y"""
    weighted = binary.multiply(output_grad, orig_var)
    total = statistical.sum(weighted, orig_call.attrs.axis, keepdims=True)
    return [binary.multiply(binary.subtract(output_grad, total), orig_var)]


def log_softmax_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """g - sum(g) * exp(y)"""
    total = statistical.sum(output_grad, orig_call.attrs.axis, keepdims=True)
    return [binary.subtract(output_grad, binary.multiply(total, unary.exp(orig_var)))]


def cross_entropy_with_logits_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """-g / batch * labels, and of labels -g / batch * predictions"""
    predictions, labels = orig_call.args
    grad = output_grad
    if predictions.struct_info.ndim > 1:
        batch = predictions.struct_info.dimensions[0]
        if not isinstance(batch, IntImm):
            raise TVMError(
                "the gradient of cross_entropy_with_logits requires a known batch, "
                f"got {predictions.struct_info}"
            )
        grad = binary.divide(grad, _like(batch.value, predictions))
    scale = unary.negative(grad)
    return [binary.multiply(scale, labels), binary.multiply(scale, predictions)]


def nll_loss_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient of the predictions."""
    attrs = orig_call.attrs
    predictions, targets, *weights = orig_call.args
    to_predictions = nll_loss_backward(
        output_grad, predictions, targets, weights[0] if weights else None, attrs.reduction,
        attrs.ignore_index,
    )  # fmt: skip
    return [to_predictions, *[no_grad(arg) for arg in orig_call.args[1:]]]


# ---- convolution and pooling


def _known(call: Call, arg: RelayExpr) -> list[int]:
    dims = arg.struct_info.dimensions
    if dims is None or not all([isinstance(d, IntImm) for d in dims]):
        raise TVMError(
            f"the gradient of {call.op} requires tensors of known shapes, got {arg.struct_info}"
        )
    return [d.value for d in dims]


def conv2d_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """A transposed convolution of the gradient, and one of the data by the gradient."""
    data, weight = orig_call.args
    attrs = orig_call.attrs
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout)
    if layouts != ("NCHW", "OIHW", "NCHW"):
        raise TVMError(
            f"the gradient of relax.nn.conv2d requires layouts NCHW and OIHW, got {layouts}"
        )
    shape, kernel, result = [_known(orig_call, x) for x in (data, weight, orig_var)]
    extra = [
        shape[2 + i]
        + attrs.padding[i]
        + attrs.padding[2 + i]
        - attrs.dilation[i] * (kernel[2 + i] - 1)
        - 1
        - (result[2 + i] - 1) * attrs.strides[i]
        for i in range(2)
    ]  # rows and columns at the end that no window reaches
    to_data = nn.conv2d_transpose(
        output_grad, weight, strides=attrs.strides, padding=attrs.padding, output_padding=extra,
        dilation=attrs.dilation, groups=attrs.groups, out_dtype=data.struct_info.dtype,
    )  # fmt: skip
    return [to_data, _kernel_grad(orig_call, output_grad, kernel)]


def _kernel_grad(call: Call, grad: RelayExpr, kernel: list[int]) -> Any:
    """The gradient of a convolution's kernels: the data, images as channels, convolved by the gradient.

    Windows of the kernel's extents start one dilation apart and have elements one stride apart.
    """
    data, attrs = call.args[0], call.attrs
    images, channels, height, width = _known(call, data)
    groups = attrs.groups
    rows = data
    if groups > 1:  # (n, g * c, h, w) -> (c, g * n, h, w)
        rows = manipulate.reshape(rows, (images, groups, channels // groups, height, width))
        rows = manipulate.permute_dims(rows, [2, 1, 0, 3, 4])
        rows = manipulate.reshape(rows, (channels // groups, groups * images, height, width))
    else:
        rows = manipulate.permute_dims(rows, [1, 0, 2, 3])
    found = nn.conv2d(
        rows, manipulate.permute_dims(grad, [1, 0, 2, 3]), strides=attrs.dilation,
        padding=attrs.padding, dilation=attrs.strides, groups=groups,
        out_dtype=call.args[1].struct_info.dtype,
    )  # fmt: skip
    found = manipulate.permute_dims(found, [1, 0, 2, 3])
    return index.strided_slice(found, [2, 3], [0, 0], kernel[2:])


def max_pool2d_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient of each window at its greatest element."""
    return [max_pool2d_backward(output_grad, orig_call.args[0], **_pooling(orig_call))]


def avg_pool2d_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient of each window, shared by its elements."""
    return [avg_pool2d_backward(output_grad, orig_call.args[0], **_pooling(orig_call))]


def _pooling(call: Call) -> dict[str, Any]:
    attrs = call.attrs
    return {name: getattr(attrs, name) for name in attrs.keys()}  # noqa: SIM118
