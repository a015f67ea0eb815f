"""Convolution of 3x3x3 and kx3x3 windows by Winograd's minimal filtering.

The transforms are those of :mod:`tvm.topi.nn.conv2d.winograd`, along height and width and, for
windows of depth 3, along the depth; other depths are sums over planes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from ..utils import ceil_div, chosen, dims
from .conv2d.winograd import WINDOW, check_tile, input_line, kernel_matrix, output_line
from .pad import pad
from .utils import get_pad_tuple_generic

Line = Callable[[Sequence[Any], int], list[Any]]


def conv3d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """Weights of windows as Winograd's convolution reads them.

    Parameters
    ----------
    kernel : te.Tensor
        OIDHW weights; H and W are 3.
    tile_size : int
        m, the outputs of a tile along an axis: 2 or 4.

    Returns
    -------
    te.Tensor
        (m + 2, m + 2, m + 2, O, I) for a depth of 3, or else (m + 2, m + 2, D, O, I).
    """
    out_channels, channels, depth, height, width = dims(kernel.shape)
    check_tile(tile_size, (height, width))
    matrix = kernel_matrix(tile_size)

    def weight_line(values: Sequence[Any], _: int) -> list[Any]:
        rows = [[tir.const(float(x), kernel.dtype) for x in row] for row in matrix]
        return [_dot(row, values) for row in rows]

    if depth == WINDOW:
        moved = te.compute(
            (depth, height, width, out_channels, channels),
            lambda z, y, x, o, i: kernel(o, i, z, y, x),
            name="weight",
        )
        axes = range(3)
    else:
        moved = te.compute(
            (height, width, depth, out_channels, channels),
            lambda y, x, z, o, i: kernel(o, i, z, y, x),
            name="weight",
        )
        axes = range(2)
    return _transformed(moved, axes, weight_line, tile_size, tile_size + 2, "transform_weight")


def conv3d_winograd_ncdhw_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    tile_size: int,
    out_dtype: str | None = None,
    kernel_depth: int | None = None,
) -> te.Tensor:
    """Convolution of NCDHW data by transformed weights.

    Parameters
    ----------
    data, weight : te.Tensor
        The data, and what `conv3d_winograd_weight_transform` gives.
    strides, dilation
        1 along all axes.
    padding
        As in `conv3d`.
    tile_size : int
        m, the outputs of a tile along an axis.
    kernel_depth : int, optional
        Of the windows; by default 3 if the weights have the depth of a transformed one.
    """
    steps = [x for s in (strides, dilation) for x in ((s,) if isinstance(s, int) else s)]
    if {int(x) for x in steps} != {1}:
        raise RuntimeValueError(
            f"Winograd's convolution requires stride and dilation 1, got {strides} and {dilation}"
        )
    dtype = out_dtype or data.dtype
    reach = tile_size + WINDOW - 1
    depth = dims(weight.shape)[2]
    # windows of a depth that is transformed have the reach of a tile
    is_deep = depth == reach if kernel_depth is None else kernel_depth == WINDOW
    window = (WINDOW if is_deep else depth, WINDOW, WINDOW)
    pads = get_pad_tuple_generic(padding, window)
    extents = dims(data.shape)[2:]
    out = [n + pads[i] + pads[i + 3] - window[i] + 1 for i, n in enumerate(extents)]
    tiled = (0, 1, 2) if is_deep else (1, 2)
    counts = [ceil_div(out[i], tile_size) if i in tiled else out[i] for i in range(3)]
    after = [
        counts[i] * tile_size + 2 - pads[i] - extents[i] if i in tiled else pads[i + 3]
        for i in range(3)
    ]
    source = pad(data, [0, 0, *pads[:3]], [0, 0, *after], name="data_pad")
    products = (_products if is_deep else _products_of_planes)(
        source, weight, counts, tile_size, dtype
    )
    found = _transformed(products, range(len(tiled)), output_line, tile_size, tile_size, "inverse")

    def element(n: Any, o: Any, *place: Any) -> Any:
        inner = [tir.indexmod(place[i], tile_size) for i in tiled]
        outer = [tir.indexdiv(p, tile_size) if i in tiled else p for i, p in enumerate(place)]
        return found(*inner, n, o, *outer)

    shape = (dims(data.shape)[0], dims(weight.shape)[3], *out)
    return te.compute(shape, element, name="conv3d_winograd", tag="conv3d_ncdhw_winograd")


def _dot(row: Sequence[Any], values: Sequence[Any]) -> Any:
    total = row[0] * values[0]
    for factor, value in zip(row[1:], values[1:], strict=True):
        total = total + factor * value
    return total


def _transformed(
    source: te.Tensor, axes: Sequence[int], line: Line, tile_size: int, extent: int, name: str
) -> te.Tensor:
    """The lines of a tensor along some axes, one axis after another."""
    for axis in axes:
        source = _transformed_along(source, axis, line, tile_size, extent, name)
    return source


def _transformed_along(
    source: te.Tensor, axis: int, line: Line, tile_size: int, extent: int, name: str
) -> te.Tensor:
    shape = list(dims(source.shape))
    length, shape[axis] = shape[axis], extent

    def element(*index: Any) -> Any:
        values = [source(*index[:axis], k, *index[axis + 1 :]) for k in range(length)]
        return chosen(index[axis], line(values, tile_size))

    return te.compute(shape, element, name=name)


def _products(
    source: te.Tensor, weight: te.Tensor, counts: Sequence[int], m: int, dtype: str
) -> te.Tensor:
    """The products over the channels, at each position of tiles of three axes."""
    batch, channels = dims(source.shape)[:2]
    reach = m + WINDOW - 1
    tiles = te.compute(
        (reach, reach, reach, batch, channels, *counts),
        lambda z, y, x, n, c, tz, ty, tx: source(n, c, tz * m + z, ty * m + y, tx * m + x).astype(
            dtype
        ),
        name="tiles",
    )
    tiles = _transformed(tiles, range(3), input_line, m, reach, "data_transform")
    i = te.reduce_axis((0, channels), name="i")
    return te.compute(
        (reach, reach, reach, batch, dims(weight.shape)[3], *counts),
        lambda z, y, x, n, o, *t: te.sum(
            tiles(z, y, x, n, i.var, *t) * weight(z, y, x, o, i.var).astype(dtype), axis=[i]
        ),
        name="products",
    )


def _products_of_planes(
    source: te.Tensor, weight: te.Tensor, counts: Sequence[int], m: int, dtype: str
) -> te.Tensor:
    """The products over the channels and the depth, at each position of tiles of planes."""
    batch, channels, planes = dims(source.shape)[:3]
    reach, depth = m + WINDOW - 1, dims(weight.shape)[2]
    tiles = te.compute(
        (reach, reach, batch, channels, planes, *counts[1:]),
        lambda y, x, n, c, d, ty, tx: source(n, c, d, ty * m + y, tx * m + x).astype(dtype),
        name="tiles",
    )
    tiles = _transformed(tiles, range(2), input_line, m, reach, "data_transform")
    i, k = te.reduce_axis((0, channels), name="i"), te.reduce_axis((0, depth), name="k")
    return te.compute(
        (reach, reach, batch, dims(weight.shape)[3], *counts),
        lambda y, x, n, o, d, ty, tx: te.sum(
            tiles(y, x, n, i.var, d + k.var, ty, tx) * weight(y, x, k.var, o, i.var).astype(dtype),
            axis=[i, k],
        ),
        name="products",
    )
