"""Gradients of depthwise convolution of NHWC data by an HWCM kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ...utils import dims, equals
from ..conv2d.compute import _spread
from ..pad import pad
from ..utils import get_pad_tuple


def depthwise_conv2d_backward_input_nhwc(
    Filter: te.Tensor,
    Out_grad: te.Tensor,
    oshape: Sequence[int],
    ishape: Sequence[int],
    stride: Any,
    padding: Any,
) -> te.Tensor:
    """The gradient of the data.

    Parameters
    ----------
    Filter, Out_grad : te.Tensor
        The kernel (kh, kw, channels, multiplier), and the gradient of the result.
    oshape, ishape : sequence of int
        The shapes of the result and of the data.
    stride, padding
        The convolution's parameters.
    """
    kh, kw, _, multiplier = dims(Filter.shape)
    _, rows, columns, _ = dims(oshape)
    sh, sw = _spread(stride, 2)
    top, left, _, _ = get_pad_tuple(padding, (kh, kw))
    ky, kx = te.reduce_axis((0, kh), name="ky"), te.reduce_axis((0, kw), name="kx")
    km = te.reduce_axis((0, multiplier), name="km")

    def element(n: Any, y: Any, x: Any, c: Any) -> Any:
        # the data at y is met by window position ky in row (y + top - ky) / stride
        down, across = y + top - ky.var, x + left - kx.var
        row, column = tir.indexdiv(down, sh), tir.indexdiv(across, sw)
        inside = tir.all(
            down >= 0, across >= 0, row < rows, column < columns,
            equals(tir.indexmod(down, sh), 0), equals(tir.indexmod(across, sw), 0),
        )  # fmt: skip
        share = Out_grad(n, row, column, c * multiplier + km.var)
        share = tir.if_then_else(inside, share, tir.const(0, Out_grad.dtype))
        return te.sum(share * Filter(ky.var, kx.var, c, km.var), axis=[ky, kx, km])

    return te.compute(dims(ishape), element, name="data_grad", tag="depthwise_backward_input_nhwc")


def depthwise_conv2d_backward_weight_nhwc(
    Input: te.Tensor,
    Out_grad: te.Tensor,
    oshape: Sequence[int],
    fshape: Sequence[int],
    stride: Any,
    padding: Any,
) -> te.Tensor:
    """The gradient of the kernel; parameters as for that of the data, `fshape` the kernel's shape."""
    batch, rows, columns, _ = dims(oshape)
    kh, kw, _, multiplier = dims(fshape)
    sh, sw = _spread(stride, 2)
    top, left, bottom, right = get_pad_tuple(padding, (kh, kw))
    before, after = (0, top, left, 0), (0, bottom, right, 0)
    source = pad(Input, before, after, name="data_pad") if any(before + after) else Input
    rn, ry, rx = [
        te.reduce_axis((0, extent), name=name)
        for name, extent in (("rn", batch), ("ry", rows), ("rx", columns))
    ]

    def element(y: Any, x: Any, c: Any, m: Any) -> Any:
        value = source(rn.var, ry.var * sh + y, rx.var * sw + x, c)
        share = Out_grad(rn.var, ry.var, rx.var, c * multiplier + m)
        return te.sum(value * share, axis=[rn, ry, rx])

    return te.compute(
        dims(fshape), element, name="kernel_grad", tag="depthwise_backward_weight_nhwc"
    )
