"""Convolution of 3x3 windows by Winograd's minimal filtering, channels in blocks.

    Y = A' ((G g G') * (B' d B)) A        for each tile d of (m + 2) x (m + 2) values

The products in the middle are (m + 2)**2 matrix products over the channels: 36 multiplications
for 16 outputs with m = 4 where the plain sum takes 144, 16 for 4 with m = 2 where it takes 36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.error import RuntimeValueError

from ...configuration import workload_attrs
from ...utils import as_extent, ceil_div, chosen, dims, is_dynamic_shape
from ..pad import pad
from ..utils import get_pad_tuple_generic
from .compute import _as, _spread, block_size

WINDOW = 3
# beside 0 and infinity, each with both signs: with 1 and 2 the sums of tiles of 4 cancel more,
# which costs a factor of three in the greatest error
POINTS: dict[int, tuple[float, ...]] = {2: (1.0,), 4: (11 / 16, 3 / 2)}


# of one product: OpenBLAS gives larger ones to threads, which take longer to start than to multiply
_COLUMNS = 512


def kernel_matrix(tile_size: int) -> np.ndarray:
    """G, a row (1, p, p**2) for each point p over the product of its distances to the others."""
    if tile_size == 2:
        return np.array([(1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)])
    a, b = POINTS[tile_size]
    rows = [np.array([1, 0, 0]) / (a * b) ** 2]
    for point, other in ((a, b), (b, a)):
        distances = 2 * point**2 * (point**2 - other**2)
        rows += [np.array([1, sign * point, point**2]) / distances for sign in (1, -1)]
    return np.array([*rows, (0, 0, 1)])


def winograd_weights(weight: np.ndarray, tile_size: int) -> np.ndarray:
    """G g G' of OIHW weights, as (m + 2, m + 2, O, I)."""
    check_tile(tile_size, weight.shape[2:])
    line = kernel_matrix(tile_size)
    matrix = np.kron(line, line).astype(weight.dtype)
    windows = weight.reshape(-1, WINDOW * WINDOW).T
    transformed = np.empty((len(matrix), windows.shape[1]), weight.dtype)
    for first in range(0, windows.shape[1], _COLUMNS):
        part = slice(first, first + _COLUMNS)
        transformed[:, part] = matrix @ windows[:, part]
    return transformed.reshape(tile_size + 2, tile_size + 2, *weight.shape[:2])


def conv2d_winograd_weight_transform(kernel: te.Tensor, tile_size: int) -> te.Tensor:
    """Weights of 3x3 windows as Winograd's convolution reads them.

    Parameters
    ----------
    kernel : te.Tensor
        OIHW weights.
    tile_size : int
        Outputs of a tile along an axis, 2 or 4.

    Returns
    -------
    te.Tensor
        (m + 2, m + 2, O, I).
    """
    check_tile(tile_size, dims(kernel.shape)[2:])
    reach = tile_size + WINDOW - 1
    out_channels, channels = dims(kernel.shape)[:2]
    flat = kernel_matrix(tile_size).reshape(-1).tolist()
    ky = te.reduce_axis((0, WINDOW), name="r_kh")
    kx = te.reduce_axis((0, WINDOW), name="r_kw")

    def factor(row: Any, column: Any) -> Any:
        values = [tir.const(value, kernel.dtype) for value in flat]
        return chosen(row * WINDOW + column, values)

    return te.compute(
        (reach, reach, out_channels, channels),
        lambda eps, nu, o, i: te.sum(
            kernel(o, i, ky.var, kx.var) * factor(eps, ky.var) * factor(nu, kx.var), axis=[ky, kx]
        ),
        name="transform_weight",
    )


def check_tile(tile_size: int, window: Sequence[Any]) -> None:
    """Reject tiles and windows that have no transform here."""
    if tile_size not in POINTS or tuple(window) != (WINDOW, WINDOW):
        raise RuntimeValueError(
            f"Winograd's convolution requires tiles of 2 or 4 and 3x3 windows, got a tile of "
            f"{tile_size} and a window of {'x'.join([str(w) for w in window])}"
        )


def input_line(d: Sequence[Any], tile_size: int) -> list[Any]:
    """B' d of one line of a tile; sums that two results share are written alike."""
    if tile_size == 2:
        return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    a, b = POINTS[tile_size]
    square1, square2 = a * a, b * b

    def pair(square: float, factor: float) -> list[Any]:
        even, odd = d[4] - square * d[2], d[3] - square * d[1]
        return [even + factor * odd, even - factor * odd]

    def end(first: Any, middle: Any, last: Any) -> Any:
        return square1 * square2 * first + (last - (square1 + square2) * middle)

    return [end(d[0], d[2], d[4]), *pair(square2, a), *pair(square1, b), end(d[1], d[3], d[5])]


def output_line(p: Sequence[Any], tile_size: int) -> list[Any]:
    """A' p of one line of products."""
    if tile_size == 2:
        return [p[0] + (p[1] + p[2]), (p[1] - p[2]) - p[3]]
    a, b = POINTS[tile_size]
    sum1, less1, sum2, less2 = p[1] + p[2], p[1] - p[2], p[3] + p[4], p[3] - p[4]
    return [
        p[0] + (sum1 + sum2),
        a * less1 + b * less2,
        a**2 * sum1 + b**2 * sum2,
        (a**3 * less1 + b**3 * less2) + p[5],
    ]


WINOGRAD_TASK = "conv2d_NCHWc_winograd.x86"


def conv2d_NCHWc_winograd(
    data: te.Tensor,
    kernel: te.Tensor,
    padding: Any,
    tile_size: int,
    layout: str,
    out_layout: str,
    out_dtype: str | None = None,
    grid_step: tuple[int, int] = (1, 1),
    padded_tiles: Callable[[Any], Any] | None = None,
) -> te.Tensor:
    """Convolution of 3x3 windows, stride 1, by transformed weights.

    Parameters
    ----------
    data : te.Tensor
        (n, ic chunk, h, w, ic block)
    kernel : te.Tensor
        (oc group, m + 2, m + 2, ic chunk, ic block, channels of the group): the weights of
        some blocks of output channels lie side by side, in the order they are read
    tile_size : int
        m, the outputs of a tile along an axis: 2 or 4.
    layout, out_layout : str
        Such as "NCHW16c".
    grid_step : tuple of int
        The rows and columns of tiles are rounded up to multiples of these.
    padded_tiles : callable, optional
        Where height or width are open, the tiles are one axis: how many to compute of so many.
    """
    n, _, height, width, _ = dims(data.shape)
    groups, reach, _, kernel_ic, _, group = dims(kernel.shape)
    oc_block = block_size(out_layout)
    check_tile(tile_size, (WINDOW, WINDOW))
    if reach != tile_size + WINDOW - 1 or kernel_ic != dims(data.shape)[1]:
        raise RuntimeValueError(
            f"conv2d_NCHWc_winograd: kernel {dims(kernel.shape)} does not fit {layout}"
        )
    if oc_block == 0 or group % oc_block != 0:
        raise RuntimeValueError(
            f"conv2d_NCHWc_winograd: groups of {group} are not blocks of {out_layout}"
        )
    oc_chunk = groups * (group // oc_block)
    top, left, bottom, right = get_pad_tuple_generic(padding, (WINDOW, WINDOW))
    oh = as_extent(height + top + bottom - WINDOW + 1)
    ow = as_extent(width + left + right - WINDOW + 1)
    dtype = out_dtype or data.dtype
    args = (data, kernel, (top, left, bottom, right), tile_size, layout, out_layout, dtype)
    asked = workload_attrs(WINOGRAD_TASK, *args)
    rows, columns = [
        ceil_div(extent, tile_size * step) * step
        for extent, step in zip((oh, ow), grid_step, strict=True)
    ]
    below, beside = rows * tile_size + 2 - top - height, columns * tile_size + 2 - left - width
    source = pad(data, [0, 0, top, left, 0], [0, 0, below, beside, 0], name="data_pad")
    grid: Grid = Rectangle(rows, columns)
    if is_dynamic_shape((oh, ow)):
        count = rows * columns
        grid = Line(count, padded_tiles(count) if padded_tiles else count, columns)
    tiles = _transformed_data(source, grid, tile_size, dtype)
    products = _products(tiles, kernel, oc_chunk, dtype)
    result = _transformed_products(products, tile_size)

    def element(b: Any, oco: Any, y: Any, x: Any, oci: Any) -> Any:
        ty, tx = grid.index(tir.indexdiv(y, tile_size), tir.indexdiv(x, tile_size))
        i, j = tir.indexmod(y, tile_size), tir.indexmod(x, tile_size)
        return result(i, j, b, oco, ty, tx, oci)

    return te.compute(
        (n, oc_chunk, oh, ow, oc_block),
        element,
        name="conv2d_NCHWc_winograd",
        tag="conv2d_NCHWc_winograd",
        attrs={"tile_size": tile_size} | asked,
    )


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Tiles in rows and columns."""

    rows: Any
    columns: Any

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.rows, self.columns

    def index(self, row: Any, column: Any) -> tuple[Any, Any]:
        """Where the tensors have the tile of a row and a column."""
        return row, column

    def place(self, first: Any, second: Any) -> tuple[Any, Any]:
        """The row and the column of what the tensors have there."""
        return first, second


@dataclass(frozen=True, slots=True)
class Line:
    """Tiles of an open number of rows and columns, one after the other.

    Those beyond the last one are computed from the same data as it, and are dropped.
    """

    count: Any
    padded: Any
    columns: Any

    @property
    def shape(self) -> tuple[Any, Any]:
        return 1, self.padded

    def index(self, row: Any, column: Any) -> tuple[Any, Any]:
        """Where the tensors have the tile of a row and a column."""
        return 0, row * self.columns + column

    def place(self, _: Any, tile: Any) -> tuple[Any, Any]:
        """The row and the column of what the tensors have there."""
        known = tir.Select(tir.likely(tile < self.count), tile, self.count - 1)
        return tir.indexdiv(known, self.columns), tir.indexmod(known, self.columns)


Grid = Rectangle | Line


def conv2d_winograd_nchw_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """Convolution of NCHW data by transformed weights (m + 2, m + 2, O, I).

    Parameters
    ----------
    data, weight : te.Tensor
        The data, and what `conv2d_winograd_weight_transform` gives.
    strides, dilation
        1 along both axes.
    padding
        As in `conv2d`.
    """
    _check_steps(strides, dilation)
    reach, _, out_channels, channels = dims(weight.shape)
    blocked = te.compute(
        (*dims(data.shape), 1), lambda n, c, y, x, _: data(n, c, y, x), tag="injective"
    )
    kernel = te.compute(
        (out_channels, reach, reach, channels, 1, 1),
        lambda o, eps, nu, i, *_: weight(eps, nu, o, i),
        tag="injective",
    )
    found = conv2d_NCHWc_winograd(
        blocked, kernel, padding, reach - 2, "NCHW1c", "NCHW1c", out_dtype
    )
    return te.compute(
        dims(found.shape)[:4],
        lambda n, c, y, x: found(n, c, y, x, 0),
        name="conv2d_winograd",
        tag="injective",
    )


def _check_steps(strides: Any, dilation: Any) -> None:
    if {*_spread(strides, 2), *_spread(dilation, 2)} != {1}:
        raise RuntimeValueError(
            f"Winograd's convolution requires stride and dilation 1, got {strides} and {dilation}"
        )


def conv2d_winograd_nchw(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> te.Tensor:
    """Convolution of NCHW data by OIHW weights, or with `pre_computed` by transformed ones."""
    if not pre_computed:
        weight = conv2d_winograd_weight_transform(weight, tile_of(data, "NCHW"))
    return conv2d_winograd_nchw_without_weight_transform(
        data, weight, strides, padding, dilation, out_dtype
    )


def conv2d_winograd_nhwc(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
    pre_computed: bool = False,
) -> te.Tensor:
    """Convolution of NHWC data by HWIO weights, or with `pre_computed` by transformed ones."""
    if not pre_computed:
        height, width, channels, out_channels = dims(weight.shape)
        plain = te.compute(
            (out_channels, channels, height, width),
            lambda o, i, y, x: weight(y, x, i, o),
            tag="injective",
        )
        weight = conv2d_winograd_weight_transform(plain, tile_of(data, "NHWC"))
    return conv2d_winograd_nhwc_without_weight_transform(
        data, weight, strides, padding, dilation, out_dtype
    )


def tile_of(data: te.Tensor, layout: str) -> int:
    """The outputs of a tile: 4 where images are large enough."""
    height, width = [dims(data.shape)[layout.index(axis)] for axis in "HW"]
    return 4 if isinstance(height, int) and isinstance(width, int) and min(height, width) > 4 else 2


def conv2d_winograd_nhwc_without_weight_transform(
    data: te.Tensor,
    weight: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = None,
) -> te.Tensor:
    """As `conv2d_winograd_nchw_without_weight_transform`, of NHWC data."""
    _check_steps(strides, dilation)
    reach, _, out_channels, channels = dims(weight.shape)
    batch, height, width, _ = dims(data.shape)
    blocked = te.compute(
        (batch, 1, height, width, channels), lambda n, _, y, x, c: data(n, y, x, c), tag="injective"
    )
    kernel = te.compute(
        (1, reach, reach, 1, channels, out_channels),
        lambda _, eps, nu, __, i, o: weight(eps, nu, o, i),
        tag="injective",
    )
    found = conv2d_NCHWc_winograd(
        blocked, kernel, padding, reach - 2, f"NCHW{channels}c", f"NCHW{out_channels}c", out_dtype
    )
    _, _, rows, columns, _ = dims(found.shape)
    return te.compute(
        (batch, rows, columns, out_channels),
        lambda n, y, x, o: found(n, 0, y, x, o),
        name="conv2d_winograd",
        tag="injective",
    )


def _transformed_data(source: te.Tensor, grid: Grid, m: int, dtype: str) -> te.Tensor:
    """B' d B of every tile: lines along y first, then along x."""
    n, ic_chunk, _, _, ic_block = dims(source.shape)
    reach = m + WINDOW - 1
    shape = (reach, reach, n, ic_chunk, *grid.shape, ic_block)

    def along_y(eps: Any, x: Any, b: Any, c: Any, row: Any, column: Any, ci: Any) -> Any:
        ty, tx = grid.place(row, column)
        line = [_as(source(b, c, ty * m + i, tx * m + x, ci), dtype) for i in range(reach)]
        return chosen(eps, input_line(line, m))

    half = te.compute(shape, along_y, name="data_lines")
    return te.compute(shape, _along_second(half, reach, input_line, m), name="data_transform")


def _products(tiles: te.Tensor, kernel: te.Tensor, oc_chunk: int, dtype: str) -> te.Tensor:
    """The matrix products over the channels, one for each position of a tile."""
    reach, _, n, ic_chunk, rows, columns, ic_block = dims(tiles.shape)
    groups, group = dims(kernel.shape)[0], dims(kernel.shape)[5]
    in_group = oc_chunk // groups
    oc_block = group // in_group
    ico = te.reduce_axis((0, ic_chunk), name="ic_outer")
    ici = te.reduce_axis((0, ic_block), name="ic_inner")

    def element(eps: Any, nu: Any, b: Any, c: Any, ty: Any, tx: Any, ci: Any) -> Any:
        value = tiles(eps, nu, b, ico.var, ty, tx, ici.var)
        oc, position = tir.indexdiv(c, in_group), tir.indexmod(c, in_group) * oc_block + ci
        weight = _as(kernel(oc, eps, nu, ico.var, ici.var, position), dtype)
        return te.sum(value * weight, axis=[ico, ici])

    shape = (reach, reach, n, oc_chunk, rows, columns, oc_block)
    return te.compute(shape, element, name="products")


def _transformed_products(products: te.Tensor, m: int) -> te.Tensor:
    """A' p A of every tile."""
    reach, _, n, oc_chunk, rows, columns, oc_block = dims(products.shape)

    def along_y(i: Any, nu: Any, b: Any, c: Any, ty: Any, tx: Any, ci: Any) -> Any:
        line = [products(eps, nu, b, c, ty, tx, ci) for eps in range(reach)]
        return chosen(i, output_line(line, m))

    rest = (n, oc_chunk, rows, columns, oc_block)
    half = te.compute((m, reach, *rest), along_y, name="product_lines")
    return te.compute((m, m, *rest), _along_second(half, reach, output_line, m), name="inverse")


def _along_second(
    half: te.Tensor, reach: int, line: Callable[[Sequence[Any], int], list[Any]], m: int
) -> Callable[..., Any]:
    def element(i: Any, j: Any, b: Any, c: Any, ty: Any, tx: Any, ci: Any) -> Any:
        values = [half(i, k, b, c, ty, tx, ci) for k in range(reach)]
        return chosen(j, line(values, m))

    return element
