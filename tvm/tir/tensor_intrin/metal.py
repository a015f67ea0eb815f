"""Matrices of 8 by 8 that a simdgroup of Apple's GPUs holds: fill, load, multiply and add, store.

Buffers of scope ``metal.simdgroup`` are made of them.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import registered
from tvm.tir.tensor_intrin.tiles import (
    copied,
    copied_by,
    filled,
    filled_by,
    multiplied,
    multiplied_by,
    rows_or_columns,
    tile,
)

SCOPE = "metal.simdgroup"
SIDE = 8
SHORT = {"float16": "f16", "float32": "f32", "bfloat16": "bf16"}


def get_simdgroup_index(buffer: Buffer, stride: Any, col: int, row: int) -> Any:
    """The number of the matrix that a tile of a buffer is.

    Parameters
    ----------
    buffer : Buffer
        A view of the tile.
    stride : PrimExpr
        The elements from one row of the whole buffer to the next.
    col, row : int
        The sizes of a matrix.
    """
    first, second = buffer.elem_offset // stride // col, buffer.elem_offset % stride // row
    return first * (stride // row) + second


def get_make_filled_simdgroup_matrix_intrin(
    dtype: str, col: int = 8, row: int = 8
) -> tuple[PrimFunc, PrimFunc]:
    """Fill a matrix with zeros.

    Parameters
    ----------
    dtype : str
    col, row : int
    """
    shape = (col, row)
    target = tile(shape, dtype, SCOPE)

    def fill(A: Buffer, stride: Any) -> Any:
        index = get_simdgroup_index(A, stride, col, row)
        return T.make_filled_simdgroup_matrix(A.data, index, T.float32(0), col, row)

    return filled(target, shape), filled_by(target, fill)


def get_simdgroup_load_intrin(
    dtype: str, scope: str, col: int = 8, row: int = 8, transpose_matrix: bool = False
) -> tuple[PrimFunc, PrimFunc]:
    """Load a tile as a matrix.

    Parameters
    ----------
    dtype : str
    scope : str
        Where the tile is.
    col, row : int
    transpose_matrix : bool
        Whether the tile is stored transposed.
    """
    shape = (col, row)
    source, target = tile(shape, dtype, scope), tile(shape, dtype, SCOPE)

    def load(A: Buffer, source_stride: Any, C: Buffer, stride: Any) -> Any:
        index = get_simdgroup_index(C, stride, col, row)
        return T.simdgroup_load(
            C.data, index, A.access_ptr("r"), source_stride, col, row, transpose_matrix
        )

    desc = copied(source, target, shape, target_at=rows_or_columns(transpose_matrix))
    return desc, copied_by(source, target, load)


def get_simdgroup_store_intrin(
    dtype: str, scope: str, col: int = 8, row: int = 8, transpose_matrix: bool = False
) -> tuple[PrimFunc, PrimFunc]:
    """Store a matrix as a tile.

    Parameters
    ----------
    dtype : str
    scope : str
        Where the tile goes.
    col, row : int
    transpose_matrix : bool
        Whether the tile is stored transposed.
    """
    shape = (col, row)
    source, target = tile(shape, dtype, SCOPE), tile(shape, dtype, scope)

    def store(A: Buffer, stride: Any, C: Buffer, target_stride: Any) -> Any:
        index = get_simdgroup_index(A, stride, col, row)
        return T.simdgroup_store(
            A.data, index, C.access_ptr("w"), target_stride, col, row, transpose_matrix
        )

    desc = copied(source, target, shape, target_at=rows_or_columns(transpose_matrix))
    return desc, copied_by(source, target, store)


def get_simdgroup_multiply_accumulate_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str
) -> tuple[PrimFunc, PrimFunc]:
    """Multiply two matrices and add to a third one.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    """
    operands = (
        tile((m_dim, k_dim), dtype, SCOPE),
        tile((k_dim, n_dim), dtype, SCOPE),
        tile((m_dim, n_dim), dtype, SCOPE),
    )

    def multiply(A: Buffer, a1: Any, B: Buffer, b1: Any, C: Buffer, c1: Any) -> Any:
        sums = (C.data, get_simdgroup_index(C, c1, m_dim, n_dim))
        return T.simdgroup_multiply_accumulate(
            *sums, A.data, get_simdgroup_index(A, a1, m_dim, k_dim),
            B.data, get_simdgroup_index(B, b1, k_dim, n_dim), *sums,
        )  # fmt: skip

    return multiplied(operands, (m_dim, n_dim, k_dim)), multiplied_by(operands, multiply)


def _name(what: str, dtype: str, *more: str) -> str:
    return "_".join(["simdgroup", what, "8x8x8", SHORT[dtype], *more])


def _fill(dtype: str) -> str:
    return registered(_name("make_filled", dtype), get_make_filled_simdgroup_matrix_intrin(dtype))


def _load(dtype: str, scope: str, transposed: bool) -> str:
    more = [scope.replace(".", "_"), *(["trans"] if transposed else [])]
    intrin = get_simdgroup_load_intrin(dtype, scope, SIDE, SIDE, transposed)
    return registered(_name("load", dtype, *more), intrin)


def _multiply(dtype: str) -> str:
    intrin = get_simdgroup_multiply_accumulate_intrin(SIDE, SIDE, SIDE, dtype)
    return registered(_name("multiply_accumulate", dtype), intrin)


def _store(dtype: str, scope: str) -> str:
    intrin = get_simdgroup_store_intrin(dtype, scope, SIDE, SIDE)
    return registered(_name("store", dtype, scope.replace(".", "_")), intrin)


def get_simdgroup_intrin_group(
    load_scope: str, store_scope: str, dtype: str, trans_a: bool = False, trans_b: bool = False
) -> dict[str, str]:
    """The names of the intrinsics of a product: init, load_a, load_b, compute, store.

    Parameters
    ----------
    load_scope : str
        ``"shared"``.
    store_scope : str
        ``"global"`` or ``"shared"``.
    dtype : str
    trans_a, trans_b : bool
        Whether the factors are stored by columns.
    """
    return {
        "init": _fill(dtype),
        "load_a": _load(dtype, load_scope, trans_a),
        "load_b": _load(dtype, load_scope, trans_b),
        "compute": _multiply(dtype),
        "store": _store(dtype, store_scope),
    }


for _dtype in SHORT:
    for _trans in (False, True):
        get_simdgroup_intrin_group("shared", "global", _dtype, _trans, _trans)
    _store(_dtype, "shared")
