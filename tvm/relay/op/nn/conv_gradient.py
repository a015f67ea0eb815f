"""Gradients of convolutions over two axes: each by the other two operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call

from ..known_shapes import known_shape
from ..registry import ops
from ..shaping import in_order


def conv2d_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, weight = call.args
    attrs = call.attrs
    plain = ("NCHW", "OIHW")
    if (attrs.data_layout, attrs.kernel_layout) != plain:
        return _conv2d_gradient_in_layout(call, grad)
    extents, window = known_shape(data, "nn.conv2d"), known_shape(weight, "nn.conv2d")[2:]
    given = known_shape(call, "nn.conv2d")
    top, left, bottom, right = attrs.padding
    rest = []
    for i, pads in enumerate((top + bottom, left + right)):
        reach = (given[2 + i] - 1) * attrs.strides[i] + (window[i] - 1) * attrs.dilation[i] + 1
        rest.append(extents[2 + i] + pads - reach)
    steps = _steps(attrs, window)
    to_data = ops.nn.conv2d_transpose(
        grad, weight, **steps, channels=extents[1], kernel_layout="IOHW",
        output_padding=tuple(rest),
    )  # fmt: skip
    return [to_data, _kernel_gradient(grad, data, steps)]


def _steps(attrs: Attrs, window: Sequence[int]) -> dict[str, Any]:
    """What the convolutions of a gradient share."""
    named = {name: attrs[name] for name in ("strides", "padding", "dilation", "groups")}
    return {**named, "kernel_size": tuple(window)}


def _kernel_gradient(grad: RelayExpr, data: RelayExpr, steps: Mapping[str, Any]) -> RelayExpr:
    return ops.nn.conv2d_backward_weight(
        grad, data, **steps, data_layout="NCHW", kernel_layout="NCHW", out_layout="OIHW"
    )


def _conv2d_gradient_in_layout(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """By the same convolution of data and kernel with channels first."""
    (data, weight), attrs = call.args, call.attrs
    layouts = (attrs.data_layout, attrs.kernel_layout)
    if any(not layout.isalpha() or not layout.isupper() for layout in layouts):
        raise OpNotImplemented(
            "the gradient of nn.conv2d requires unblocked layouts, "
            f"got {' and '.join(layouts)}",
            hint='convert them first: relay.transform.ConvertLayout({"nn.conv2d": ["NCHW"]})',
        )  # fmt: skip
    first, kernel = in_order(data, layouts[0], "NCHW"), in_order(weight, layouts[1], "OIHW")
    plain = attrs.replace(data_layout="NCHW", kernel_layout="OIHW", out_layout="")
    moved = Call(ops.nn.conv2d, (first, kernel), plain)
    to_data, to_weight = conv2d_gradient(moved, in_order(grad, layouts[0], "NCHW"))
    return [in_order(to_data, "NCHW", layouts[0]), in_order(to_weight, "OIHW", layouts[1])]


def _check_plain(call: Call, kernel_layouts: tuple[str, ...]) -> None:
    attrs = call.attrs
    if attrs.data_layout == "NCHW" and attrs.kernel_layout in kernel_layouts:
        if attrs.out_layout in ("", "NCHW", "OIHW"):
            return
    raise OpNotImplemented(
        f"the gradient of {call.operator.name} requires layouts NCHW and {kernel_layouts[0]}, "
        f"got {attrs.data_layout} and {attrs.kernel_layout}",
    )


def conv2d_transpose_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    layout = call.attrs.data_layout
    if layout == "NHWC" and call.attrs.out_layout in ("", layout):
        plain = call.attrs.replace(data_layout="NCHW", out_layout="")
        moved = Call(call.op, (in_order(call.args[0], layout, "NCHW"), call.args[1]), plain)
        to_data, to_weight = conv2d_transpose_gradient(moved, in_order(grad, layout, "NCHW"))
        return [in_order(to_data, "NCHW", layout), to_weight]
    _check_plain(call, ("IOHW", "OIHW"))
    (data, weight), attrs = call.args, call.attrs
    steps = _steps(attrs, known_shape(weight, "nn.conv2d_transpose")[2:])
    to_data = ops.nn.conv2d(grad, weight, **steps)
    shape = known_shape(data, "nn.conv2d_transpose")
    if known_shape(to_data, "nn.conv2d_transpose") != shape:  # windows in the output's padding
        to_data = ops.strided_slice(to_data, begin=(0,) * 4, end=shape)
    return [to_data, _kernel_gradient(data, grad, steps)]


def conv2d_backward_weight_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    _check_plain(call, ("NCHW",))
    (given, data), attrs = call.args, call.attrs
    extents, positions = (
        known_shape(data, call.operator.name),
        known_shape(given, call.operator.name),
    )
    window = known_shape(grad, call.operator.name)[2:]
    steps = _steps(attrs, window)
    top, left, bottom, right = attrs.padding
    rest = [
        extents[2 + i] + pads
        - ((positions[2 + i] - 1) * attrs.strides[i] + (window[i] - 1) * attrs.dilation[i] + 1)
        for i, pads in enumerate((top + bottom, left + right))
    ]  # fmt: skip
    to_given = ops.nn.conv2d(data, grad, **steps)
    to_data = ops.nn.conv2d_transpose(
        given, grad, **steps, channels=extents[1], kernel_layout="IOHW",
        output_padding=tuple(rest),
    )  # fmt: skip
    return [to_given, to_data]
