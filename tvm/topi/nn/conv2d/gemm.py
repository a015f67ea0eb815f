"""Convolutions whose weights lie in the tiles of a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ...utils import ceil_div, dims
from ..pad import pad
from ..utils import get_pad_tuple_generic
from .compute import _spread


def conv2d_gemm_weight_transform(kernel: te.Tensor, tile_N: int, tile_K: int) -> te.Tensor:
    """HWIO weights as a matrix of (height * width * I, O), transposed and in tiles.

    Parameters
    ----------
    kernel : te.Tensor
        HWIO weights.
    tile_N, tile_K : int
        Output channels, and elements of a window, of a tile.

    Returns
    -------
    te.Tensor
        (tiles of O, tiles of windows, tile_N, tile_K), filled up with zeros.
    """
    height, width, channels, out_channels = dims(kernel.shape)
    rows = height * width * channels

    def element(tile: Any, chunk: Any, n: Any, k: Any) -> Any:
        row, column = chunk * tile_K + k, tile * tile_N + n
        i = tir.indexmod(row, channels)
        position = tir.indexdiv(row, channels)
        value = kernel(tir.indexdiv(position, width), tir.indexmod(position, width), i, column)
        inside = tir.all(row < rows, column < out_channels)
        return tir.if_then_else(inside, value, tir.const(0, kernel.dtype))

    shape = (ceil_div(out_channels, tile_N), ceil_div(rows, tile_K), tile_N, tile_K)
    return te.compute(shape, element, name="weight_block_reshape")


def conv2d_gemm_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    kernel_size: Sequence[int],
    channels: int,
    out_dtype: str,
) -> te.Tensor:
    """Convolution of NHWC data by weights in tiles.

    Parameters
    ----------
    data, weight : te.Tensor
        The data, and what `conv2d_gemm_weight_transform` gives.
    strides, padding, dilation
        As in `conv2d`.
    kernel_size : two ints
        Height and width of the window.
    channels : int
        Of the result.
    """
    batch, height, width, in_channels = dims(data.shape)
    step, spacing = _spread(strides, 2), _spread(dilation, 2)
    tile_n, tile_k = dims(weight.shape)[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_size, spacing, strict=True)]
    pads = get_pad_tuple_generic(padding, reach)
    source = pad(data, [0, *pads[:2], 0], [0, *pads[2:], 0], name="data_pad")
    out = [
        (n + pads[i] + pads[i + 2] - reach[i]) // step[i] + 1 for i, n in enumerate((height, width))
    ]
    ky, kx = [te.reduce_axis((0, k), name=n) for k, n in zip(kernel_size, "yx", strict=True)]
    ki = te.reduce_axis((0, in_channels), name="i")

    def element(n: Any, y: Any, x: Any, o: Any) -> Any:
        row = (ky.var * kernel_size[1] + kx.var) * in_channels + ki.var
        value = source(
            n, y * step[0] + ky.var * spacing[0], x * step[1] + kx.var * spacing[1], ki.var
        )
        tile, chunk = tir.indexdiv(o, tile_n), tir.indexdiv(row, tile_k)
        factor = weight(tile, chunk, tir.indexmod(o, tile_n), tir.indexmod(row, tile_k))
        return te.sum(value.astype(out_dtype) * factor.astype(out_dtype), axis=[ky, kx, ki])

    return te.compute((batch, *out, channels), element, name="conv2d_gemm", tag="conv2d_gemm")
