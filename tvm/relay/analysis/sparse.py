"""Which weights have so many zeros that a sparse product pays, and those weights in sparse form.

Blocks of a matrix that have an element other than zero are stored, row by row of blocks: their
elements (`.data`), the columns of blocks they stand in (`.indices`), and where each row of blocks
begins (`.indptr`).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, TypeGuard

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call, Var
from tvm.relay.op.registry import ops
from tvm.relay.traverse import post_order
from tvm.runtime.ndarray import NDArray
from tvm.support.docstrings import described_by

Array = np.ndarray[Any, Any]


class SparseAnalysisResult(NamedTuple):
    """The weights found, and for each the shapes of its three parts, one after the other."""

    weight_name: list[str]
    weight_shape: list[list[int]]


class SparseMatrix(NamedTuple):
    """A matrix by rows of blocks."""

    data: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    indptr: np.ndarray[Any, Any]


def by_blocks(matrix: np.ndarray[Any, Any], block: tuple[int, int]) -> SparseMatrix:
    """The blocks of a matrix that are not all zeros."""
    (rows, columns), (height, width) = matrix.shape, block
    if rows % height or columns % width:
        raise TVMError(f"a matrix of {rows} x {columns} has no whole blocks of {height} x {width}")
    blocks = matrix.reshape(rows // height, height, columns // width, width).swapaxes(1, 2)
    is_kept = np.any(blocks != 0, axis=(2, 3))
    _, indices = np.nonzero(is_kept)
    indptr = np.concatenate([[0], np.cumsum(is_kept.sum(axis=1))])
    return SparseMatrix(blocks[is_kept], indices.astype("int32"), indptr.astype("int32"))


def sparsity(array: np.ndarray[Any, Any]) -> float:
    """The share of zeros."""
    return 1.0 - np.count_nonzero(array) / max(array.size, 1)


def dense_weights(expr: RelayExpr) -> list[str]:
    """The names of the variables that are weights of dense layers."""
    found = [
        n.args[1]
        for n in post_order(expr)
        if isinstance(n, Call) and n.op is ops.nn.dense and isinstance(n.args[1], Var)
    ]
    return list(dict.fromkeys([v.name_hint for v in found if isinstance(v, Var)]))


def conv2d_weights(expr: RelayExpr, layout: str, kernel_size: int) -> list[str]:
    """The names of the weights of plain convolutions with square windows of that size."""
    found = [n.args[1] for n in post_order(expr) if is_sparse_conv2d(n, layout, kernel_size)]
    return list(dict.fromkeys([v.name_hint for v in found if isinstance(v, Var)]))


def is_sparse_conv2d(node: RelayExpr, layout: str, kernel_size: int) -> TypeGuard[Call]:
    """Whether a sparse convolution can do what the node does: stride 1, as large as its data."""
    if not isinstance(node, Call) or node.op is not ops.nn.conv2d:
        return False
    attrs = node.attrs
    border = (kernel_size - 1) // 2
    return (
        attrs.data_layout == layout
        and attrs.out_layout in ("", layout)
        and attrs.groups == 1
        and tuple(attrs.kernel_size or ()) == (kernel_size, kernel_size)
        and all([s == 1 for s in (*attrs.strides, *attrs.dilation)])
        and all([p == border for p in attrs.padding])
    )


def process_dense(
    expr: RelayExpr,
    params: MutableMapping[str, NDArray],
    block_size: tuple[int, int],
    sparsity_threshold: float,
) -> SparseAnalysisResult:
    """Replace weights of dense layers with many zeros by their sparse parts.

    Parameters
    ----------
    expr : relay.Expr
        The network.
    params : dict of str to NDArray
        Its parameters; sparse ones are replaced by `name.data`, `name.indices` and `name.indptr`.
    block_size : tuple of int
        Rows and columns of the blocks that are zero or not.
    sparsity_threshold : float
        The least share of zeros of a weight that is replaced, from 0 to 1.

    Returns
    -------
    SparseAnalysisResult
        The names and shapes of the weights that were replaced.
    """
    result = SparseAnalysisResult([], [])
    for name in dense_weights(expr):
        weight = _known(params, name)
        if weight is not None and sparsity(weight) >= sparsity_threshold:
            _replace(params, name, by_blocks(weight, block_size), result)
    return result


@described_by(process_dense)
def process_conv2d(
    expr: RelayExpr,
    params: MutableMapping[str, NDArray],
    block_size: tuple[int, int],
    sparsity_threshold: float,
    layout: str,
    kernel_size: int,
    reg_task_input: bool = True,
) -> SparseAnalysisResult:
    """Replace weights of convolutions with many zeros by their sparse parts.

    `reg_task_input` is for tuners, which read the parts from `params`.

    Parameters
    ----------
    layout : str
        "NHWC" or "NCHW"; other convolutions stay.
    kernel_size : int
        The extent of the windows, 1 or 3.
    reg_task_input : bool
        For tuners, which read the parts from `params`.

    Returns
    -------
    SparseAnalysisResult
        The names and shapes of the weights that were replaced.
    """
    del reg_task_input
    result = SparseAnalysisResult([], [])
    for name in conv2d_weights(expr, layout, kernel_size):
        weight = _known(params, name)
        if weight is not None and sparsity(weight) >= sparsity_threshold:
            _replace(params, name, sparse_kernel(weight, layout, block_size), result)
    return result


def sparse_kernel(weight: Array, layout: str, block_size: tuple[int, int]) -> SparseMatrix:
    """A row an output channel; the columns as the sparse convolution wants them."""
    rows = weight.transpose((3, 0, 1, 2) if layout == "NHWC" else (0, 1, 2, 3))
    return by_blocks(rows.reshape(rows.shape[0], -1), block_size)


def _known(params: Mapping[str, NDArray], name: str) -> np.ndarray[Any, Any] | None:
    return params[name].numpy() if name in params else None


def _replace(
    params: MutableMapping[str, NDArray],
    name: str,
    matrix: SparseMatrix,
    result: SparseAnalysisResult,
) -> None:
    for part in SparseMatrix._fields:
        params[f"{name}.{part}"] = nd.array(getattr(matrix, part))
    del params[name]
    result.weight_name.append(name)
    result.weight_shape.append([int(d) for part in matrix for d in part.shape])
