"""Transposed convolution as a convolution of dilated data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te

from ...utils import dims
from ..dilate import dilate
from ..pad import pad
from ..utils import get_pad_tuple_generic


def _prepared(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: str,
    output_padding: Any, rank: int,
) -> tuple[te.Tensor, te.Tensor]:  # fmt: skip
    steps, extra = [
        (v,) * rank if isinstance(v, int) else dims(v) for v in (strides, output_padding)
    ]
    window = dims(kernel.shape)[2:]
    pads = get_pad_tuple_generic(padding, window)
    before = [k - 1 - p for k, p in zip(window, pads[:rank], strict=True)]
    after = [k - 1 - p + e for k, p, e in zip(window, pads[rank:], extra, strict=True)]
    spread = dilate(data, (1, 1, *steps), name="data_dilate")
    padded = pad(spread, [0, 0, *before], [0, 0, *after], name="data_pad")
    inner, outer = dims(kernel.shape)[:2]
    flipped = te.compute(
        (outer, inner, *window),
        lambda o, i, *at: kernel(i, o, *[k - 1 - v for k, v in zip(window, at, strict=True)]).astype(out_dtype),
        name="kernel_transform",
    )  # fmt: skip
    return padded, flipped


def _convolved(padded: te.Tensor, kernel: te.Tensor, out_dtype: str, tag: str) -> te.Tensor:
    window = dims(kernel.shape)[2:]
    channels = te.reduce_axis((0, dims(padded.shape)[1]), name="dc")
    taps = [te.reduce_axis((0, k), name=f"d{i}") for i, k in enumerate(window)]
    extents = [n - k + 1 for n, k in zip(dims(padded.shape)[2:], window, strict=True)]

    def element(n: Any, o: Any, *at: Sequence[Any]) -> Any:
        positions = [v + t.var for v, t in zip(at, taps, strict=True)]
        value = padded(n, channels.var, *positions).astype(out_dtype)
        return te.sum(
            value * kernel(o, channels.var, *[t.var for t in taps]), axis=[channels, *taps]
        )

    shape = (dims(padded.shape)[0], dims(kernel.shape)[0], *extents)
    return te.compute(shape, element, name=tag, tag=tag)


def conv2d_transpose_nchw_preprocess(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: str,
    output_padding: Any,
) -> tuple[te.Tensor, te.Tensor]:  # fmt: skip
    """The data spread and padded, and the kernel turned round as (out, in, kh, kw).

    A plain convolution of the two is the transposed convolution of the arguments.
    """
    return _prepared(data, kernel, strides, padding, out_dtype, output_padding, 2)


def conv3d_transpose_ncdhw_preprocess(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: str,
    output_padding: Any,
) -> tuple[te.Tensor, te.Tensor]:  # fmt: skip
    """As `conv2d_transpose_nchw_preprocess`, over three axes."""
    return _prepared(data, kernel, strides, padding, out_dtype, output_padding, 3)


def declaration_conv2d_transpose_impl(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: str,
    output_padding: Any,
) -> te.Tensor:  # fmt: skip
    """Transposed convolution by the spread data."""
    parts = _prepared(data, kernel, strides, padding, out_dtype, output_padding, 2)
    return _convolved(*parts, out_dtype, "conv2d_transpose_nchw")


def declaration_conv3d_transpose_impl(
    data: te.Tensor, kernel: te.Tensor, strides: Any, padding: Any, out_dtype: str,
    output_padding: Any,
) -> te.Tensor:  # fmt: skip
    """As `declaration_conv2d_transpose_impl`, over three axes."""
    parts = _prepared(data, kernel, strides, padding, out_dtype, output_padding, 3)
    return _convolved(*parts, out_dtype, "conv3d_transpose_ncdhw")
