"""Sparse matrices by rows (CSR): arrays of them, and placeholders in expressions.

A matrix is kept as `data`, the elements that are not zero, row after row; `indices`, the column of
each; and `indptr`, where each row begins, with the end of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm import te, tir
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.device import cpu
from tvm.runtime.ndarray import NDArray

_INDEX = "int32"
_KINDS = ("csr",)


class CSRNDArray:
    """A sparse matrix in memory.

    Parameters
    ----------
    arg1 : numpy.ndarray or tuple
        A dense matrix; or (data, indices, indptr).
    device : Device, optional
        Where the arrays are, by default the CPU.
    shape : tuple, optional
        Rows and columns; required for three arrays.
    """

    def __init__(
        self, arg1: Any, device: Device | None = None, shape: Sequence[int] | None = None
    ) -> None:
        device = device or cpu(0)
        if isinstance(arg1, (tuple, list)):
            if shape is None or len(arg1) != 3:
                raise ValueError(
                    "a sparse matrix requires data, indices, indptr and shape=(rows, columns)"
                )
            parts = [np.asarray(a.numpy() if isinstance(a, NDArray) else a) for a in arg1]
            self.shape = tuple(shape)
        else:
            dense = np.asarray(arg1)
            if dense.ndim != 2:
                raise ValueError(f"a sparse matrix has 2 dimensions, got shape {dense.shape}")
            rows, columns = np.nonzero(dense)
            ends = np.cumsum(np.count_nonzero(dense, axis=1))
            parts = [dense[rows, columns], columns, np.concatenate([[0], ends])]
            self.shape = dense.shape
        self.data = nd.array(parts[0], device)
        self.indices = nd.array(parts[1].astype(_INDEX), device)
        self.indptr = nd.array(parts[2].astype(_INDEX), device)

    @property
    def dtype(self) -> str:
        """Of the elements."""
        return str(self.data.dtype)

    @property
    def stype(self) -> str:
        """The kind of storage: "csr"."""
        return "csr"

    def numpy(self) -> np.ndarray:
        """The dense matrix."""
        dense = np.zeros(self.shape, self.dtype)
        ends = self.indptr.numpy()
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        dense[rows, self.indices.numpy()] = self.data.numpy()
        return dense

    def asnumpy(self) -> np.ndarray:
        """`numpy()` by its older name."""
        return self.numpy()


def array(
    source_array: Any,
    device: Device | None = None,
    shape: Sequence[int] | None = None,
    stype: str = "csr",
) -> CSRNDArray:
    """A sparse matrix in memory; see `CSRNDArray`."""
    _check_kind(stype)
    return CSRNDArray(source_array, device, shape)


class SparsePlaceholderOp:
    """A sparse matrix that a function is given; its parts are placeholders."""

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: str, name: str) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.name = name
        self.nonzeros = nonzeros


class CSRPlaceholderOp(SparsePlaceholderOp):
    """Three placeholders: `data`, `indices` and `indptr`."""

    def __init__(self, shape: Sequence[Any], nonzeros: Any, dtype: str, name: str) -> None:
        super().__init__(shape, nonzeros, dtype, name)
        self.stype = "csr"
        self.data = te.placeholder((nonzeros,), dtype, f"{name}_data")
        self.indices = te.placeholder((nonzeros,), _INDEX, f"{name}_indices")
        self.indptr = te.placeholder((self.shape[0] + 1,), _INDEX, f"{name}_indptr")


def placeholder(
    shape: Sequence[Any],
    nonzeros: Any = None,
    dtype: str | None = None,
    name: str = "placeholder",
    stype: str | None = None,
) -> CSRPlaceholderOp:
    """A sparse matrix that a function is given.

    Parameters
    ----------
    shape : sequence
        Rows and columns.
    nonzeros : int or PrimExpr, optional
        How many elements are stored, by default a variable.
    dtype : str, optional
        Of the elements, by default float32.
    name : str
        Prefix of the names of the parts.
    stype : str, optional
        The kind of storage: "csr".
    """
    _check_kind(stype or "csr")
    if len(shape) != 2:
        raise ValueError(f"a sparse matrix has 2 dimensions, got shape {tuple(shape)}")
    if nonzeros is None:
        nonzeros = tir.Var(f"{name}_nonzeros", "int32")
    return CSRPlaceholderOp(shape, nonzeros, dtype or "float32", name)


def _check_kind(stype: str) -> None:
    if stype not in _KINDS:
        raise NotImplementedError(f"sparse matrices are stored as {_KINDS[0]}, got {stype!r}")
