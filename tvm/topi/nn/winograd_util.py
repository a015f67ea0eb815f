"""The matrices of Winograd's minimal filtering for tiles and windows of any size.

    Y = A' ((G g G') * (B' d B)) A

Products of polynomials are found from their values at as many points as they have coefficients,
infinity among them; the transposed algorithm filters.
"""

from __future__ import annotations

import numpy as np

from tvm import te
from tvm.error import RuntimeValueError

from ..utils import const_matrix


def winograd_transform_matrices(
    tile_size: int, kernel_size: int, out_dtype: str
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A, B and G as tensors of constants.

    Parameters
    ----------
    tile_size : int
        The outputs of a tile along an axis.
    kernel_size : int
        The window's extent, at least 2.
    out_dtype : str
        The elements' dtype.
    """
    matrices = transform_matrices(tile_size, kernel_size)
    a, b, g = [
        const_matrix(matrix.astype(out_dtype), name)
        for matrix, name in zip(matrices, "ABG", strict=True)
    ]
    return a, b, g


def transform_matrices(tile: int, kernel: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (n, tile), B (n, n) and G (n, kernel) with n = tile + kernel - 1, in float64."""
    if tile < 1 or kernel < 2:
        raise RuntimeValueError(
            f"Winograd's transform requires a tile of 1 or more and a window of 2 or more, "
            f"got {tile} and {kernel}"
        )
    count = tile + kernel - 1
    points = _points(count - 1)
    a, g = [np.zeros((count, extent)) for extent in (tile, kernel)]
    b = np.zeros((count, count))
    for i, point in enumerate(points):
        others = np.delete(points, i)
        a[i] = point ** np.arange(tile)
        g[i] = point ** np.arange(kernel) / np.prod(point - others)
        b[: count - 1, i] = np.atleast_1d(np.poly(others))[::-1]
    # infinity sees the highest coefficients alone
    a[-1, -1] = g[-1, -1] = 1
    b[:, -1] = np.poly(points)[::-1]
    return a, b, g


def _points(count: int) -> np.ndarray:
    """0, then numbers near 1 with both signs and their inverses."""
    found = [0.0]
    size = 1.0
    while len(found) < count:
        found += [size, -size] if size == 1 else [1 / size, -1 / size, size, -size]
        size += 1
    return np.array(found[:count])
