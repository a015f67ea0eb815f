"""Products with sparse matrices, given by rows (CSR) or by rows of blocks (BSR).

A matrix is three tensors: the blocks (or elements), the column of each, and for each row of blocks
where it begins and ends among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import IRBuilder

from ..loops import load, nest, store
from ..rewrites import sparse_dense_alter_layout as sparse_dense_alter_layout
from ..utils import arrangement, dims

Body = Callable[[Sequence[tir.Buffer], Sequence[tir.Buffer]], tir.Stmt]


def block_extents(data: te.Tensor) -> tuple[Any, Any]:
    """The extents of a block; one element of a matrix by rows."""
    shape = dims(data.shape)
    return (1, 1) if len(shape) == 1 else (shape[1], shape[2])


def _block_row(
    ib: IRBuilder,
    ins: Sequence[tir.Buffer],
    row: Any,
    extents: tuple[Any, Any],
    factor: Callable[[PrimExpr], PrimExpr],
    keep: Callable[[Any, PrimExpr], None],
) -> None:
    """A row of blocks times a column: `factor(k)` is the column's element, `keep` gets each sum."""
    data, indices, indptr = ins
    rows, columns = extents
    dtype = data.dtype
    total = ib.allocate(dtype, rows, "total", scope="local")
    with ib.for_range(0, rows, "a") as a:
        total[a] = tir.const(0, dtype)
    begin = ib.let("begin", load(indptr, [row]).astype("int32"))
    end = ib.let("end", load(indptr, [row + 1]).astype("int32"))
    with ib.for_range(0, end - begin, "j") as j, ib.for_range(0, columns, "c") as c:
        block = begin + j
        value = ib.let("value", factor(load(indices, [block]).astype("int32") * columns + c))
        with ib.for_range(0, rows, "a") as a:
            at = [block] if len(data.shape) == 1 else [block, a, c]
            total[a] = total[a] + load(data, at) * value
    with ib.for_range(0, rows, "a") as a:
        keep(row * rows + a, total[a])


def _rows_of(indptr: te.Tensor) -> Any:
    return dims(indptr.shape)[0] - 1


def sparse_dense_sp_rhs(
    data: te.Tensor, weight_data: te.Tensor, weight_indices: te.Tensor, weight_indptr: te.Tensor
) -> te.Tensor:
    """data @ weight.T, of a sparse weight.

    Parameters
    ----------
    data : te.Tensor
        (M, K).
    weight_data, weight_indices, weight_indptr : te.Tensor
        A sparse matrix (N, K).
    """
    return _dense(data, (weight_data, weight_indices, weight_indptr), lambda row, m: (m, row))


def sparse_dense_sp_lhs(
    data_data: te.Tensor, data_indices: te.Tensor, data_indptr: te.Tensor, weight: te.Tensor
) -> te.Tensor:
    """data @ weight.T, of sparse data.

    Parameters
    ----------
    data_data, data_indices, data_indptr : te.Tensor
        A sparse matrix (M, K).
    weight : te.Tensor
        (N, K).
    """
    return _dense(weight, (data_data, data_indices, data_indptr), lambda row, n: (row, n))


def sparse_dense(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    sparse_lhs: bool = False,
) -> te.Tensor:
    """A product of a dense and a sparse matrix: dense @ sparse.T, or sparse @ dense.T.

    Parameters
    ----------
    dense_data : te.Tensor
        A matrix.
    sparse_data, sparse_indices, sparse_indptr : te.Tensor
        A sparse matrix with as many columns.
    sparse_lhs : bool
        The sparse matrix stands on the left.
    """
    sparse = (sparse_data, sparse_indices, sparse_indptr)
    if sparse_lhs:
        return sparse_dense_sp_lhs(*sparse, dense_data)
    return sparse_dense_sp_rhs(dense_data, *sparse)


def _dense(
    dense: te.Tensor, sparse: Sequence[te.Tensor], place: Callable[[Any, Any], tuple[Any, Any]]
) -> te.Tensor:
    """Every row of the sparse matrix times every row of the dense one."""
    extents = block_extents(sparse[0])
    rows, others = _rows_of(sparse[2]), dims(dense.shape)[0]

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        with (
            ib.for_range(0, rows, "row", kind="parallel") as row,
            ib.for_range(0, others, "m") as m,
        ):

            def keep(at: Any, value: PrimExpr) -> None:
                out[place(at, m)] = value

            _block_row(ib, ins[1:], row, extents, lambda k: load(ins[0], [m, k]), keep)
        return ib.get()

    return te.extern(
        [place(rows * extents[0], others)], [dense, *sparse], body, dtype=dense.dtype,
        name="sparse_dense", tag="sparse_dense",
    )  # fmt: skip


def sparse_conv2d(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> te.Tensor:
    """A convolution of stride 1 whose result is as large as its data, with a sparse weight.

    Parameters
    ----------
    dense_data : te.Tensor
        Images.
    sparse_data, sparse_indices, sparse_indptr : te.Tensor
        A sparse matrix with a row for each output channel. Its columns are (y, x, channel) for
        "NHWC" and (channel, y, x) for "NCHW".
    layout : str
        "NHWC" or "NCHW".
    kernel_size : int
        The window's extents, 1 or 3.
    """
    if layout not in ("NHWC", "NCHW"):
        raise RuntimeValueError(f"sparse_conv2d requires a layout of NHWC or NCHW, got {layout!r}")
    extents = block_extents(sparse_data)
    sizes = dict(zip(layout, dims(dense_data.shape), strict=True))
    height, width, channels = sizes["H"], sizes["W"], sizes["C"]
    square, before = kernel_size * kernel_size, (kernel_size - 1) // 2
    rows = _rows_of(sparse_indptr)

    arranged = arrangement(layout)

    def window(k: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """The channel and the position in the window of a column."""
        if layout == "NHWC":
            return tir.indexmod(k, channels), tir.indexdiv(k, channels)
        return tir.indexdiv(k, square), tir.indexmod(k, square)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        images, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with (
            ib.for_range(0, sizes["N"] * height, "line", kind="parallel") as line,
            ib.for_range(0, rows, "row") as row,
            ib.for_range(0, width, "x") as x,
        ):
            n, y = tir.indexdiv(line, height), tir.indexmod(line, height)

            def factor(k: PrimExpr) -> PrimExpr:
                c, position = window(k)
                v = y + tir.indexdiv(position, kernel_size) - before
                u = x + tir.indexmod(position, kernel_size) - before
                inside = tir.all(v >= 0, v < height, u >= 0, u < width)
                return tir.if_then_else(
                    inside, images[arranged(n, c, v, u)], tir.const(0, dense_data.dtype)
                )

            def keep(c: Any, value: PrimExpr) -> None:
                out[arranged(n, c, y, x)] = value

            _block_row(ib, ins[1:], row, extents, factor, keep)
        return ib.get()

    return te.extern(
        [arranged(sizes["N"], rows * extents[0], height, width)],
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        body,
        dtype=dense_data.dtype,
        name="sparse_conv2d",
        tag="sparse_conv2d",
    )


def sparse_add(
    dense_data: te.Tensor,
    sparse_data: te.Tensor,
    sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor,
) -> te.Tensor:
    """The sum of a dense and a sparse matrix.

    Parameters
    ----------
    dense_data : te.Tensor
        A matrix.
    sparse_data, sparse_indices, sparse_indptr : te.Tensor
        A sparse matrix by rows (CSR), of the same shape.
    """
    rows, columns = dims(dense_data.shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        values, indices, indptr = [ib.buffer_ptr(x) for x in ins[1:]]
        out = ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, "row", kind="parallel") as row:
            ib.emit(
                nest("c", [columns], lambda v: store(outs[0], load(ins[0], [row, *v]), [row, *v]))
            )
            begin = ib.let("begin", indptr[row].astype("int32"))
            with ib.for_range(0, indptr[row + 1].astype("int32") - begin, "j") as j:
                column = ib.let("column", indices[begin + j].astype("int32"))
                out[row, column] = out[row, column] + values[begin + j]
        return ib.get()

    return te.extern(
        [dense_data.shape],
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        body,
        dtype=dense_data.dtype,
        name="sparse_add",
        tag="sparse_add",
    )


def sparse_transpose(
    sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor
) -> list[te.Tensor]:
    """The transpose of a square sparse matrix by rows (CSR), by rows too.

    Parameters
    ----------
    sparse_data, sparse_indices, sparse_indptr : te.Tensor
        The matrix.
    """
    rows = _rows_of(sparse_indptr)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        values, columns, begins = [ib.buffer_ptr(x) for x in ins]
        out, indices, indptr, following = [ib.buffer_ptr(x) for x in outs]
        kind, position = sparse_indices.dtype, sparse_indptr.dtype
        with ib.for_range(0, rows + 1, "i") as i:
            indptr[i] = tir.const(0, position)
        with ib.for_range(0, begins[rows].astype("int32"), "j") as j:
            after = ib.let("after", columns[j].astype("int32") + 1)
            indptr[after] = indptr[after] + tir.const(1, position)
        with ib.for_range(0, rows, "i") as i:
            following[i] = indptr[i]
            indptr[i + 1] = indptr[i + 1] + indptr[i]
        with ib.for_range(0, rows, "i") as i:
            begin = ib.let("begin", begins[i].astype("int32"))
            with ib.for_range(0, begins[i + 1].astype("int32") - begin, "j") as j:
                column = ib.let("column", columns[begin + j].astype("int32"))
                at = ib.let("at", following[column].astype("int32"))
                out[at] = values[begin + j]
                indices[at] = i.astype(kind)
                following[column] = following[column] + tir.const(1, position)
        return ib.get()

    found = te.extern(
        [sparse_data.shape, sparse_indices.shape, sparse_indptr.shape, (rows,)],
        [sparse_data, sparse_indices, sparse_indptr],
        body,
        dtype=[sparse_data.dtype, sparse_indices.dtype, sparse_indptr.dtype, sparse_indptr.dtype],
        name="sparse_transpose",
        tag="sparse_transpose_csr",
    )
    return list(found[:3])
