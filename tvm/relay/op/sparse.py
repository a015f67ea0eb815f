"""Sparse tensors given by the indices of their elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Tuple, TupleWrapper
from tvm.topi.sparse_rows import sparse_fill_empty_rows_shapes

from .operator import Expr, operator
from .schedules import EXTERN_SCHEDULES
from .types import Tensor1, Tensor2, expect, expect_dim, shape_of_type, tensor, unknown


def _fill_type(
    attrs: Attrs,
    sparse_indices: Tensor2,
    sparse_values: Tensor1,
    dense_shape: Tensor1,
    default_value: TensorType,
) -> Type:
    who = "sparse_fill_empty_rows"
    count, rank = shape_of_type(sparse_indices)
    expect_dim(shape_of_type(sparse_values)[0], count, who, "the number of values")
    expect_dim(shape_of_type(dense_shape)[0], rank, who, "the number of extents")
    expect(
        len(extents_of_one := shape_of_type(default_value)) < 2
        and not any([isinstance(n, int) and n != 1 for n in extents_of_one]),
        f"{who} requires one number for default_value, got {default_value}",
    )
    return TupleType(
        (
            tensor((unknown(), rank), sparse_indices.dtype),
            tensor((unknown(),), sparse_values.dtype),
            tensor((unknown(),), "bool"),
        )
    )


def _fold_fill(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    indices, values, extents, default = arrays
    rows = int(extents[0])
    is_empty = np.bincount(indices[:, 0], minlength=rows)[:rows] == 0
    if not rows:
        return [indices[:0], values[:0], is_empty]
    added = np.zeros((int(is_empty.sum()), indices.shape[1]), indices.dtype)
    added[:, 0] = np.flatnonzero(is_empty)
    everywhere = np.concatenate([indices, added])
    filled = np.concatenate([values, np.full(len(added), default.reshape(()), values.dtype)])
    order = np.argsort(everywhere[:, 0], kind="stable")
    return [everywhere[order], filled[order], is_empty]


@operator(
    "sparse_fill_empty_rows",
    support_level=3,
    results=3,
    infer_type=_fill_type,
    compute=lambda attrs, inputs, out_type: topi.sparse_fill_empty_rows(
        *inputs, *[field.shape for field in out_type.fields]
    ),
    schedules=EXTERN_SCHEDULES,
    shape_func=lambda attrs, inputs, out_ranks: sparse_fill_empty_rows_shapes(inputs[0], inputs[2]),
    shape_reads=(0, 2),
    fold=_fold_fill,
)
def sparse_fill_empty_rows_raw(
    sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr
) -> TupleWrapper:
    """As `sparse_fill_empty_rows`, as one call."""


def sparse_fill_empty_rows(
    sparse_indices: RelayExpr,
    sparse_values: RelayExpr,
    dense_shape: RelayExpr,
    default_value: RelayExpr,
) -> Tuple:
    """Give each row of a sparse matrix that has no element one, at its beginning.

    Parameters
    ----------
    sparse_indices, sparse_values : relay.Expr
        (elements, rank) and (elements,).
    dense_shape : relay.Expr
        (rank,).
    default_value : relay.Expr
        The new elements' value, of one element.

    Returns
    -------
    relay.Tuple
        The new indices and values in the order of rows, and which rows had no element.
    """
    call = sparse_fill_empty_rows_raw(sparse_indices, sparse_values, dense_shape, default_value)
    return Tuple(list(call))


def _reshape_type(
    attrs: Attrs, sparse_indices: Tensor2, prev_shape: Tensor1, new_shape: Tensor1
) -> Type:
    who = "sparse_reshape"
    count, rank = shape_of_type(sparse_indices)
    expect_dim(shape_of_type(prev_shape)[0], rank, who, "the number of extents")
    new_rank = shape_of_type(new_shape)[0]
    return TupleType((tensor((count, new_rank), sparse_indices.dtype), new_shape))


def _fold_reshape(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    indices, before, after = arrays
    total, known = int(np.prod(before)), int(np.prod(after[after >= 0]))
    shape = [int(n) if n >= 0 else total // max(known, 1) for n in after]
    if 0 in shape:
        return [np.zeros((len(indices), len(shape)), indices.dtype), np.array(shape, after.dtype)]
    flat = np.ravel_multi_index(tuple(indices.T), tuple(before)) if len(indices) else []
    found = np.stack(np.unravel_index(np.asarray(flat, "int64"), shape), -1)
    return [found.astype(indices.dtype), np.array(shape, after.dtype)]


@operator(
    "sparse_reshape",
    support_level=3,
    results=2,
    infer_type=_reshape_type,
    compute=lambda attrs, inputs, out_type: topi.sparse_reshape(
        *inputs, *[field.shape for field in out_type.fields]
    ),
    schedules=EXTERN_SCHEDULES,
    fold=_fold_reshape,
)
def sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> TupleWrapper:
    """The indices of a sparse tensor's elements in another shape.

    Parameters
    ----------
    sparse_indices : relay.Expr
        (elements, rank).
    prev_shape, new_shape : relay.Expr
        The dense shapes before and after; one extent of the new one may be -1.

    Returns
    -------
    tuple of relay.Expr
        The new indices, and the new shape without -1.
    """
