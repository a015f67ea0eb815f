"""Random sparse matrices."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tvm.error import RuntimeValueError, TVMError
from tvm.support.later import names_from_above

__getattr__ = names_from_above(__name__)


def random_bsr_matrix(m: int, n: int, bs_r: int, bs_c: int, density: float, dtype: str) -> Any:
    """A random matrix by rows of blocks.

    Parameters
    ----------
    m, n : int
        The matrix' extents.
    bs_r, bs_c : int
        A block's extents, which divide the matrix'.
    density : float
        The part of the elements that are not zero.
    dtype : str
        The elements' dtype.

    Returns
    -------
    scipy.sparse.bsr_matrix
        Its `data` are the blocks (blocks, bs_r, bs_c), `indices` their columns, `indptr` where each
        row of blocks begins.
    """
    try:
        sparse = importlib.import_module("scipy.sparse")
    except ImportError as error:
        raise TVMError(
            "random_bsr_matrix requires the package scipy", hint="pip install scipy"
        ) from error
    if m % bs_r or n % bs_c:
        raise RuntimeValueError(f"blocks of {bs_r} x {bs_c} do not divide a matrix of {m} x {n}")
    rows, columns = m // bs_r, n // bs_c
    count = int(density * m * n) // (bs_r * bs_c) + 1
    chosen = np.sort(np.random.choice(rows * columns, min(count, rows * columns), replace=False))
    blocks = np.random.randn(len(chosen), bs_r, bs_c).astype(dtype)
    begins = np.searchsorted(chosen // columns, np.arange(rows + 1)).astype("int32")
    matrix = (blocks, (chosen % columns).astype("int32"), begins)
    return sparse.bsr_matrix(matrix, shape=(m, n))
