"""Convolutions that oneDNN computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.support.signatures import take_names

from ..dense.library import schedule_product
from ..utils import get_pad_tuple


def dnnl_conv2d(
    src: te.Tensor,
    weights: te.Tensor,
    stride: int | Sequence[int],
    padding: Any,
    dilation: int | Sequence[int],
    groups: int,
    channel_last: bool = False,
    out_dtype: str = "float32",
    **kwargs: Any,
) -> te.Tensor:
    """A convolution of float32.

    Parameters
    ----------
    src : te.Tensor
        NCHW, or NHWC if ``channel_last``.
    weights : te.Tensor
        OIHW, or HWIO if ``channel_last``.
    stride, dilation : int or two ints
        Along height and width.
    padding : int, two or four ints, "SAME" or "VALID"
        Zeros around the source.
    groups : int
        Into how many the channels are divided.
    channel_last : bool
        Which axis has the channels.
    out_dtype : str
        ``"float32"``.
    kwargs : dict
        Passed to :func:`tvm.te.extern`.
    """
    if out_dtype != "float32":
        raise RuntimeValueError(f"dnnl_conv2d computes float32, got out_dtype {out_dtype!r}")
    strides = [stride] * 2 if isinstance(stride, int) else list(stride)
    steps = [dilation] * 2 if isinstance(dilation, int) else list(dilation)
    if channel_last:
        batch, *spatial, _ = src.shape
        *kernel, _, channels = weights.shape
    else:
        batch, _, *spatial = src.shape
        channels, _, *kernel = weights.shape
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, steps, strict=True)]
    pads = get_pad_tuple(padding, reach)
    extents = [
        (n + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1 for i, n in enumerate(spatial)
    ]
    shape = [batch, *extents, channels] if channel_last else [batch, channels, *extents]

    def call(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        numbers = (*pads, *strides, *steps, groups, channel_last)
        return tir.call_packed("tvm.contrib.dnnl.conv2d", ins[0], ins[1], outs[0], *numbers)

    options = {"name": "C", "tag": "dnnl_conv2d", **kwargs}
    out: te.Tensor = te.extern(shape, [src, weights], call, **options)
    return out


def _in_layout(channel_last: bool) -> Callable[[Callable[[], None]], Callable[..., te.Tensor]]:
    """A convolution in one layout, under the name and the docstring of the decorated function."""

    def convolution(
        data: te.Tensor,
        kernel: te.Tensor,
        strides: int | Sequence[int],
        padding: Any,
        dilation: int | Sequence[int],
        out_dtype: str = "float32",
    ) -> te.Tensor:
        return dnnl_conv2d(data, kernel, strides, padding, dilation, 1, channel_last, out_dtype)

    return partial(take_names, convolution)


@_in_layout(channel_last=False)
def conv2d_nchw_dnnl() -> None:
    """A convolution of NCHW by OIHW."""


@_in_layout(channel_last=True)
def conv2d_nhwc_dnnl() -> None:
    """A convolution of NHWC by HWIO."""


schedule_conv2d_nchw_dnnl = schedule_conv2d_nhwc_dnnl = schedule_product
