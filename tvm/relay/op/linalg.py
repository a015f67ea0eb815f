"""Linear algebra of batches of matrices: factors, triangular systems, spectra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import TupleWrapper

from .computes import computed_by
from .operator import Expr, OperatorFunction, P, R, operator
from .registry import Precision, ops
from .schedules import EXTERN_SCHEDULES
from .types import apply, expect, expect_dim, expect_tensor, shape_of_type, tensor


def _of_matrices(
    name: str,
    infer_type: Callable[..., Type],
    compute: Callable[..., Any],
    *attributes: str,
    results: int | None = None,
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """An operator of batches of matrices, which topi computes with attributes of the call."""
    return operator(
        name,
        results=results,
        infer_type=infer_type,
        compute=computed_by(compute, *attributes),
        schedules=EXTERN_SCHEDULES,
        precision=Precision.KEEP_FLOAT32,
    )


def _matrices(ty: Type, who: str, argument: str) -> TensorType:
    found = expect_tensor(ty, who, argument)
    expect(len(found.shape) >= 2, f"{who} requires matrices for {argument}, got {found}")
    is_known = found.dtype in ("float32", "float64")
    expect(is_known, f"{who} requires float32 or float64 for {argument}, got {found.dtype}")
    return found


def _square(ty: Type, who: str, argument: str) -> TensorType:
    found = _matrices(ty, who, argument)
    expect_dim(found.shape[-1], found.shape[-2], who, "the number of columns")
    return found


Matrices: TypeAlias = Annotated[TensorType, _matrices]
SquareMatrices: TypeAlias = Annotated[TensorType, _square]


def _count(shape: Sequence[Any]) -> Any:
    return apply(min, shape[-2], shape[-1])


def _lu_type(attrs: Attrs, data: Matrices) -> Type:
    shape = shape_of_type(data)
    batch = shape[:-2]
    pivots = tensor((*batch, _count(shape)), "int32")
    return TupleType((data, pivots, tensor((*batch, 1), "int32")))


@_of_matrices("linalg.lu_factor", _lu_type, topi.linalg.lu_factor, results=3)
def lu_factor(data: Expr) -> TupleWrapper:
    """Lower and upper factor of matrices, with rows exchanged for the largest pivots.

    Parameters
    ----------
    data : relay.Expr
        (..., m, n) of float32 or float64.

    Returns
    -------
    tuple of relay.Expr
        Both factors in one matrix; the row that each was exchanged with, from 1 (..., min(m, n));
        the first zero pivot, from 1, or 0 (..., 1).
    """


def _cholesky_type(attrs: Attrs, data: SquareMatrices) -> Type:
    return TupleType((data, tensor((*shape_of_type(data)[:-2], 1), "int32")))


@_of_matrices("linalg.cholesky", _cholesky_type, topi.linalg.cholesky, results=2)
def cholesky(data: Expr) -> TupleWrapper:
    """The lower factor of positive definite matrices, and the first minor that is not, or 0."""


def _solve_type(attrs: Any, matrix: SquareMatrices, values: Matrices) -> Type:
    who = "linalg.solve_triangular"
    rows = shape_of_type(matrix)[:-1]
    expect(
        len(matrix.shape) == len(values.shape) and matrix.dtype == values.dtype,
        f"{who} requires one rank and dtype, got {matrix} and {values}",
    )
    for have, wanted in zip(shape_of_type(values), rows, strict=False):
        expect_dim(have, wanted, who, "the sizes of values")
    return values


@_of_matrices("linalg.solve_triangular", _solve_type, topi.linalg.solve_triangular, "upper", "unit")
def solve_triangular(
    matrix: Expr, values: Expr, upper: bool = False, unit: bool = False
) -> RelayExpr:
    """Solve ``matrix @ x = values`` for triangular matrices."""


def _qr_type(attrs: Attrs, data: Matrices) -> Type:
    shape = shape_of_type(data)
    return TupleType((data, tensor((*shape[:-2], _count(shape)), data.dtype)))


@_of_matrices("linalg.householder_qr", _qr_type, topi.linalg.householder_qr, results=2)
def householder_qr(data: Expr) -> TupleWrapper:
    """The upper factor of matrices, the vectors of reflections below it, and their factors."""


def _product_type(attrs: Any, vectors: Matrices, factors: TensorType) -> Type:
    expect(
        len(factors.shape) == len(vectors.shape) - 1 and factors.dtype == vectors.dtype,
        "linalg.householder_product requires one row of factors for each matrix, "
        f"got {vectors} and {factors}",
    )
    return tensor((*shape_of_type(vectors)[:-1], attrs.columns), vectors.dtype)


@_of_matrices(
    "linalg.householder_product", _product_type, topi.linalg.householder_product, "columns"
)
def householder_product(vectors: Expr, factors: Expr, columns: int) -> RelayExpr:
    """The first columns of the product of the reflections that `householder_qr` gives."""


def _permutation_type(attrs: Any, pivots: TensorType) -> Type:
    expect(
        len(pivots.shape) >= 2 and pivots.dtype == "int32",
        f"linalg.pivots_to_permutation requires one row of int32 for each matrix, got {pivots}",
    )
    return tensor((*shape_of_type(pivots)[:-2], attrs.rows), "int32")


@_of_matrices(
    "linalg.pivots_to_permutation", _permutation_type, topi.linalg.pivots_to_permutation, "rows"
)
def pivots_to_permutation(pivots: Expr, rows: int) -> RelayExpr:
    """The order of rows after the exchanges of `lu_factor`."""


def _eigh_type(attrs: Any, data: SquareMatrices) -> Type:
    return TupleType((tensor(shape_of_type(data)[:-1], data.dtype), data, data))


@_of_matrices("linalg.eigh", _eigh_type, topi.linalg.eigh, "upper")
def eigh(data: Expr, upper: bool = False) -> list[RelayExpr]:
    """Eigenvalues of symmetric matrices in ascending order, and an eigenvector in each row."""
    found = TupleWrapper(ops.linalg.eigh(data, upper=bool(upper)), 3)
    return [found[0], found[1]]


def _svd_type(attrs: Attrs, data: Matrices) -> Type:
    *batch, rows, columns = shape_of_type(data)
    if isinstance(rows, int) and isinstance(columns, int):
        expect(rows <= columns, f"linalg.svd requires at most as many rows as columns, got {data}")
    kind = data.dtype
    return TupleType((tensor((*batch, rows), kind), tensor((*batch, rows, rows), kind), data))


@_of_matrices("linalg.svd", _svd_type, topi.linalg.svd, results=3)
def svd(data: Expr) -> TupleWrapper:
    """Singular values in descending order, and left and right singular vectors in rows.

    Parameters
    ----------
    data : relay.Expr
        (..., m, n), m <= n. The right vector of a value of zero is zeros.
    """
