"""Operators on sparse matrices, given by rows (CSR) or by rows of blocks (BSR)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import TupleWrapper, const

from ..attributes import as_list
from ..computes import computed_by
from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Expr, Operand, Spatial2, operator
from ..schedules import EXTERN_SCHEDULES, for_all_targets
from ..types import Dim, apply, expect, expect_dim, expect_tensor, shape_of_type, tensor


def _sparse_rows(arg_types: Sequence[Type], who: str, has_blocks: bool = True) -> Dim:
    """The rows of a sparse matrix; checks its three parts."""
    data = expect_tensor(arg_types[0], who, "the sparse data")
    indices = expect_tensor(arg_types[1], who, "the sparse indices", 1)
    indptr = expect_tensor(arg_types[2], who, "the sparse indptr", 1)
    shape = shape_of_type(data)
    ranks = (1, 3) if has_blocks else (1,)
    expect(
        len(shape) in ranks,
        f"{who} requires sparse data of rank {' or '.join(map(str, ranks))}, got {data}",
    )
    expect_dim(shape_of_type(indices)[0], shape[0], who, "the number of sparse indices")
    height = 1 if len(shape) == 1 else shape[1]
    return apply(lambda n, h: (n - 1) * h, shape_of_type(indptr)[0], height)


def _dense_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A matrix of the dense one's dtype: (rows of the dense, rows of the sparse), or the other way
    round if `sparse_lhs`."""
    who = "nn.sparse_dense"
    dense = expect_tensor(arg_types[0], who, "dense_mat", 2)
    rows = _sparse_rows(arg_types[1:], who)
    count = shape_of_type(dense)[0]
    return tensor((rows, count) if attrs.sparse_lhs else (count, rows), dense.dtype)


def _add_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    """A tensor of the dense matrix' shape and dtype."""
    who = "nn.sparse_add"
    dense = expect_tensor(arg_types[0], who, "dense_mat", 2)
    rows = _sparse_rows(arg_types[1:], who, has_blocks=False)
    expect_dim(rows, shape_of_type(dense)[0], who, "the rows of the sparse matrix")
    sparse = arg_types[1]
    assert isinstance(sparse, TensorType)
    expect(sparse.dtype == dense.dtype, f"{who} requires one dtype, got {dense} and {sparse}")
    return dense


def _transpose_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    """A tuple of three tensors of the operands' types: data, indices and pointers of rows."""
    _sparse_rows(arg_types, "nn.sparse_transpose", has_blocks=False)
    return TupleType(tuple(arg_types))


def _conv2d_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor in the layout of `data` and of its dtype, with a channel for each row of the sparse
    weight."""
    who = "nn.sparse_conv2d"
    data = expect_tensor(arg_types[0], who, rank=4)
    expect(
        attrs.layout in ("NHWC", "NCHW"),
        f"{who} requires a layout of NHWC or NCHW, got {attrs.layout!r}",
    )
    expect(
        attrs.kernel_size in ((1, 1), (3, 3)),
        f"{who} requires a kernel_size of 1 or 3, got {attrs.kernel_size}",
    )
    extents = axes_extents(shape_of_type(data), attrs.layout, who)
    extents["C"] = _sparse_rows(arg_types[1:], who)
    return tensor(shape_in_layout(extents, attrs.layout), data.dtype)


def _parts(matrix: Any) -> list[RelayExpr]:
    """The data, indices and indptr of a matrix: fields of these names, or three elements."""
    if hasattr(matrix, "indptr"):
        matrix = (matrix.data, matrix.indices, matrix.indptr)
    return [
        part if isinstance(part, RelayExpr) else const(part) for part in as_list(matrix, "arrays")
    ]


# the data, indices and indptr of a matrix
Sparse = Annotated[Any, Operand(_parts, names=("sparse_data", "sparse_indices", "sparse_indptr"))]


@operator(
    "nn.sparse_dense",
    support_level=1,
    infer_type=_dense_type,
    compute=computed_by(topi.nn.sparse_dense, "sparse_lhs"),
    schedules=for_all_targets(topi.generic.schedule_sparse_dense),
)
def sparse_dense(dense_mat: Expr, sparse_mat: Sparse, sparse_lhs: bool = False) -> RelayExpr:
    """A product of a dense and a sparse matrix: dense @ sparse.T, or sparse @ dense.T.

    Parameters
    ----------
    dense_mat : relay.Expr
        A matrix.
    sparse_mat : tuple, or object with the fields data, indices and indptr
        A sparse matrix with as many columns, by rows or by rows of blocks.
    """


@operator(
    "nn.sparse_add",
    support_level=1,
    infer_type=_add_type,
    compute=computed_by(topi.nn.sparse_add),
    schedules=EXTERN_SCHEDULES,
)
def sparse_add(dense_mat: Expr, sparse_mat: Sparse) -> RelayExpr:
    """The sum of a dense and a sparse matrix.

    Parameters
    ----------
    dense_mat : relay.Expr
        A matrix.
    sparse_mat : tuple, or object with the fields data, indices and indptr
        A sparse matrix by rows (CSR), of the same shape.
    """


@operator(
    "nn.sparse_transpose",
    support_level=1,
    infer_type=_transpose_type,
    compute=computed_by(topi.nn.sparse_transpose),
    schedules=for_all_targets(topi.generic.schedule_sparse_transpose),
    results=3,
)
def sparse_transpose(x: Sparse) -> TupleWrapper:
    """The transpose of a square sparse matrix by rows (CSR): its data, indices and indptr.

    Parameters
    ----------
    x : tuple, or object with the fields data, indices and indptr
        The matrix.
    """


@operator(
    "nn.sparse_conv2d",
    infer_type=_conv2d_type,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.sparse_conv2d(
            inputs[0], inputs[1], inputs[2], inputs[3], attrs.layout, attrs.kernel_size[0]
        )
    ],
    schedules=for_all_targets(topi.generic.schedule_sparse_conv2d),
)
def sparse_conv2d(
    dense_mat: Expr,
    sparse_mat: Sparse,
    layout: str = "NHWC",
    kernel_size: Spatial2 = (1, 1),
) -> RelayExpr:
    """A convolution of stride 1 whose result is as large as its data, with a sparse weight.

    Parameters
    ----------
    dense_mat : relay.Expr
        Images.
    sparse_mat : tuple, or object with the fields data, indices and indptr
        A sparse matrix with a row for each output channel. Its columns are (y, x, channel) for
        "NHWC" and (channel, y, x) for "NCHW".
    layout : str
        "NHWC" or "NCHW".
    kernel_size : int or pair of int
        The window's extents, 1 or 3.
    """
