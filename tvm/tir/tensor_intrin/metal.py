"""Matrices of 8 by 8 that a simdgroup of Apple's GPUs holds: fill, load, multiply and add, store.

Buffers of scope ``metal.simdgroup`` are made of them.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import match_tile, registered
from tvm.tir.tensor_intrin.tiles import copied, filled, multiplied, rows_or_columns, tile

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
    desc = filled(tile((col, row), dtype, SCOPE), (col, row))

    @T.prim_func
    def impl(a: T.handle) -> None:
        d1 = T.int32()
        d0 = T.int32()
        A = match_tile(a, (col, row), dtype, SCOPE, [d1, d0])
        with T.block("root"):
            T.reads()
            T.writes(A[0:col, 0:row])
            T.evaluate(
                T.make_filled_simdgroup_matrix(
                    A.data, get_simdgroup_index(A, d1, col, row), T.float32(0), col, row
                )
            )

    return desc, impl


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
    target_at = rows_or_columns(transpose_matrix)
    desc = copied(tile(shape, dtype, scope), tile(shape, dtype, SCOPE), shape, target_at=target_at)

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1 = T.int32()
        s0 = T.int32()
        d1 = T.int32()
        d0 = T.int32()
        A = match_tile(a, (col, row), dtype, scope, [s1, s0])
        C = match_tile(c, (col, row), dtype, SCOPE, [d1, d0])
        with T.block("root"):
            T.reads(A[0:col, 0:row])
            T.writes(C[0:col, 0:row])
            T.evaluate(
                T.simdgroup_load(
                    C.data, get_simdgroup_index(C, d1, col, row), A.access_ptr("r"), s1, col, row,
                    transpose_matrix,
                )
            )  # fmt: skip

    return desc, impl


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
    target_at = rows_or_columns(transpose_matrix)
    desc = copied(tile(shape, dtype, SCOPE), tile(shape, dtype, scope), shape, target_at=target_at)

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s1 = T.int32()
        s0 = T.int32()
        d1 = T.int32()
        d0 = T.int32()
        A = match_tile(a, (col, row), dtype, SCOPE, [s1, s0])
        C = match_tile(c, (col, row), dtype, scope, [d1, d0])
        with T.block("root"):
            T.reads(A[0:col, 0:row])
            T.writes(C[0:col, 0:row])
            T.evaluate(
                T.simdgroup_store(
                    A.data, get_simdgroup_index(A, s1, col, row), C.access_ptr("w"), d1, col, row,
                    transpose_matrix,
                )
            )  # fmt: skip

    return desc, impl


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
    desc = multiplied(operands, (m_dim, n_dim, k_dim))

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1 = T.int32()
        a0 = T.int32()
        b1 = T.int32()
        b0 = T.int32()
        c1 = T.int32()
        c0 = T.int32()
        A = match_tile(a, (m_dim, k_dim), dtype, SCOPE, [a1, a0])
        B = match_tile(b, (k_dim, n_dim), dtype, SCOPE, [b1, b0])
        C = match_tile(c, (m_dim, n_dim), dtype, SCOPE, [c1, c0])
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:k_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.simdgroup_multiply_accumulate(
                    C.data, get_simdgroup_index(C, c1, m_dim, n_dim),
                    A.data, get_simdgroup_index(A, a1, m_dim, k_dim),
                    B.data, get_simdgroup_index(B, b1, k_dim, n_dim),
                    C.data, get_simdgroup_index(C, c1, m_dim, n_dim),
                )
            )  # fmt: skip

    return desc, impl


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
