"""Tensor cores through wmma fragments: load, fill, multiply and add, store.

A fragment is a tile that the threads of a warp hold together. Buffers of a ``wmma`` scope are made of them.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import match_tile, registered
from tvm.tir.tensor_intrin.m16n8k8 import *  # noqa: F403
from tvm.tir.tensor_intrin.mma import *  # noqa: F403
from tvm.tir.tensor_intrin.tiles import copied, filled, multiplied, rows_or_columns, tile

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}


def get_wmma_fragment_index(buffer: Buffer, stride: Any, m_dim: int, n_dim: int) -> Any:
    """The number of the fragment that a tile of a buffer is.

    Parameters
    ----------
    buffer : Buffer
        A view of the tile.
    stride : PrimExpr
        The elements from one row of the whole buffer to the next.
    m_dim, n_dim : int
        The rows and columns of a fragment.
    """
    row = buffer.elem_offset // stride // m_dim
    column = buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def get_wmma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> tuple[PrimFunc, PrimFunc]:
    """Load a tile into a fragment.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
        The sizes of the product.
    dtype : str
    shared_scope : str
        Where the tile is.
    is_b : bool
        Whether it is of the second factor.
    is_col_major : bool
        Whether the tile is transposed.
    """
    fragment_scope = f"wmma.matrix_{'b' if is_b else 'a'}"
    layout = "col_major" if is_col_major else "row_major"
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    if is_col_major:
        rows, columns = columns, rows

    desc = copied(
        tile((rows, columns), dtype, shared_scope),
        tile((rows, columns), dtype, fragment_scope),
        (rows, columns),
    )

    @T.prim_func
    def wmma_load_impl(a: T.handle, c: T.handle) -> None:
        s1 = T.int32()
        s0 = T.int32()
        d1 = T.int32()
        d0 = T.int32()
        A = match_tile(a, (rows, columns), dtype, shared_scope, [s1, s0])
        C = match_tile(c, (rows, columns), dtype, fragment_scope, [d1, d0])
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(C, d1, rows, columns),
                    A.access_ptr("r"), s1, layout, dtype="handle",
                )
            )  # fmt: skip

    return desc, wmma_load_impl


def get_wmma_fill_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str
) -> tuple[PrimFunc, PrimFunc]:
    """Fill an accumulator with zeros.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    """
    desc = filled(tile((m_dim, n_dim), dtype, "wmma.accumulator"), (m_dim, n_dim))

    @T.prim_func
    def wmma_fill_impl(c: T.handle) -> None:
        d1 = T.int32()
        d0 = T.int32()
        C = match_tile(c, (m_dim, n_dim), dtype, "wmma.accumulator", [d1, d0])
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(C, d1, m_dim, n_dim),
                    T.float32(0), dtype="handle",
                )
            )  # fmt: skip

    return desc, wmma_fill_impl


def get_wmma_store_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str
) -> tuple[PrimFunc, PrimFunc]:
    """Store an accumulator as a tile.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    scope : str
        Where the tile is.
    """

    desc = copied(
        tile((m_dim, n_dim), dtype, "wmma.accumulator"),
        tile((m_dim, n_dim), dtype, scope),
        (m_dim, n_dim),
    )

    @T.prim_func
    def wmma_store_impl(a: T.handle, c: T.handle) -> None:
        s1 = T.int32()
        s0 = T.int32()
        d1 = T.int32()
        d0 = T.int32()
        A = match_tile(a, (m_dim, n_dim), dtype, "wmma.accumulator", [d1, d0])
        C = match_tile(c, (m_dim, n_dim), dtype, scope, [s1, s0])
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    A.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(A, d1, m_dim, n_dim),
                    C.access_ptr("w"), s1, "row_major", dtype="handle",
                )
            )  # fmt: skip

    return desc, wmma_store_impl


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> tuple[PrimFunc, PrimFunc]:
    """Multiply two fragments and add to a third one.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    in_dtype, out_dtype : str
    b_transposed : bool
        Whether the second factor is stored by columns.
    """
    b_rows, b_columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    operands = (
        tile((m_dim, k_dim), in_dtype, "wmma.matrix_a"),
        tile((b_rows, b_columns), in_dtype, "wmma.matrix_b"),
        tile((m_dim, n_dim), out_dtype, "wmma.accumulator"),
    )
    b_at = rows_or_columns(b_transposed)
    desc = multiplied(operands, (m_dim, n_dim, k_dim), b_at=b_at)

    @T.prim_func
    def wmma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1 = T.int32()
        a0 = T.int32()
        b1 = T.int32()
        b0 = T.int32()
        c1 = T.int32()
        c0 = T.int32()
        A = match_tile(a, (m_dim, k_dim), in_dtype, "wmma.matrix_a", [a1, a0])
        B = match_tile(b, (b_rows, b_columns), in_dtype, "wmma.matrix_b", [b1, b0])
        C = match_tile(c, (m_dim, n_dim), out_dtype, "wmma.accumulator", [c1, c0])
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_mma_sync(
                    C.data, get_wmma_fragment_index(C, c1, m_dim, n_dim),
                    A.data, get_wmma_fragment_index(A, a1, m_dim, k_dim),
                    B.data, get_wmma_fragment_index(B, b1, b_rows, b_columns),
                    C.data, get_wmma_fragment_index(C, c1, m_dim, n_dim),
                    dtype="handle",
                )
            )  # fmt: skip

    return desc, wmma_sync_impl


def _load(dtype: str, matrix: str, transposed: bool, scope: str) -> str:
    suffix = ("_trans" if transposed else "") + f"_{scope.replace('.', '_')}"
    name = f"wmma_load_16x16x16_{_SHORT[dtype]}_{matrix}{suffix}"
    return registered(
        name, get_wmma_load_intrin(16, 16, 16, dtype, scope, matrix == "b", transposed)
    )


def _sync(in_dtype: str, out_dtype: str, transposed: bool) -> str:
    short = "".join([_SHORT[in_dtype], _SHORT[in_dtype], _SHORT[out_dtype]])
    name = f"wmma_sync_16x16x16_{short}{'_trans' if transposed else ''}"
    return registered(name, get_wmma_sync_intrin(16, 16, 16, in_dtype, out_dtype, transposed))


def _fill(dtype: str) -> str:
    return registered(
        f"wmma_fill_16x16x16_{_SHORT[dtype]}", get_wmma_fill_intrin(16, 16, 16, dtype)
    )


def _store(dtype: str, scope: str) -> str:
    name = f"wmma_store_16x16x16_{_SHORT[dtype]}_{scope.replace('.', '_')}"
    return registered(name, get_wmma_store_intrin(16, 16, 16, dtype, scope))


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """The names of the intrinsics of a product: init, load_a, load_b, compute, store.

    Parameters
    ----------
    load_scope : str
        ``"shared"`` or ``"shared.dyn"``.
    store_scope : str
        ``"global"``, ``"shared"`` or ``"shared.dyn"``.
    in_dtype, out_dtype : str
    trans_b : bool
        Whether the second factor is stored by columns.
    """
    return {
        "init": _fill(out_dtype),
        "load_a": _load(in_dtype, "a", False, load_scope),
        "load_b": _load(in_dtype, "b", trans_b, load_scope),
        "compute": _sync(in_dtype, out_dtype, trans_b),
        "store": _store(out_dtype, store_scope),
    }


WMMA_SYNC_16x16x16_f16f16f32_INTRIN = _sync("float16", "float32", False)
WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN = _sync("float16", "float32", True)
WMMA_SYNC_16x16x16_f16f16f16_INTRIN = _sync("float16", "float16", False)
WMMA_SYNC_16x16x16_f16f16f16_TRANS_INTRIN = _sync("float16", "float16", True)
WMMA_SYNC_16x16x16_s8s8s32_INTRIN = _sync("int8", "int32", False)
WMMA_SYNC_16x16x16_s8s8s32_TRANS_INTRIN = _sync("int8", "int32", True)
WMMA_LOAD_16x16x16_F16_A_INTRIN = _load("float16", "a", False, "shared")
WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN = _load("float16", "a", False, "shared.dyn")
WMMA_LOAD_16x16x16_F16_B_INTRIN = _load("float16", "b", False, "shared")
WMMA_LOAD_16x16x16_F16_B_DYN_INTRIN = _load("float16", "b", False, "shared.dyn")
WMMA_LOAD_16x16x16_F16_A_TRANS_INTRIN = _load("float16", "a", True, "shared")
WMMA_LOAD_16x16x16_F16_A_TRANS_DYN_INTRIN = _load("float16", "a", True, "shared.dyn")
WMMA_LOAD_16x16x16_F16_B_TRANS_INTRIN = _load("float16", "b", True, "shared")
WMMA_LOAD_16x16x16_F16_B_TRANS_DYN_INTRIN = _load("float16", "b", True, "shared.dyn")
WMMA_LOAD_16x16x16_S8_A_INTRIN = _load("int8", "a", False, "shared")
WMMA_LOAD_16x16x16_S8_A_DYN_INTRIN = _load("int8", "a", False, "shared.dyn")
WMMA_LOAD_16x16x16_S8_B_INTRIN = _load("int8", "b", False, "shared")
WMMA_LOAD_16x16x16_S8_B_DYN_INTRIN = _load("int8", "b", False, "shared.dyn")
WMMA_LOAD_16x16x16_S8_A_TRANS_INTRIN = _load("int8", "a", True, "shared")
WMMA_LOAD_16x16x16_S8_A_TRANS_DYN_INTRIN = _load("int8", "a", True, "shared.dyn")
WMMA_LOAD_16x16x16_S8_B_TRANS_INTRIN = _load("int8", "b", True, "shared")
WMMA_LOAD_16x16x16_S8_B_TRANS_DYN_INTRIN = _load("int8", "b", True, "shared.dyn")
WMMA_FILL_16x16x16_F32_INTRIN = _fill("float32")
WMMA_FILL_16x16x16_F16_INTRIN = _fill("float16")
WMMA_FILL_16x16x16_S32_INTRIN = _fill("int32")
WMMA_STORE_16x16x16_F32_SHARED_INTRIN = _store("float32", "shared")
WMMA_STORE_16x16x16_F32_SHARED_DYN_INTRIN = _store("float32", "shared.dyn")
WMMA_STORE_16x16x16_F16_SHARED_INTRIN = _store("float16", "shared")
WMMA_STORE_16x16x16_F16_SHARED_DYN_INTRIN = _store("float16", "shared.dyn")
WMMA_STORE_16x16x16_S32_SHARED_INTRIN = _store("int32", "shared")
WMMA_STORE_16x16x16_S32_SHARED_DYN_INTRIN = _store("int32", "shared.dyn")
WMMA_STORE_16x16x16_F32_GLOBAL_INTRIN = _store("float32", "global")
WMMA_STORE_16x16x16_F16_GLOBAL_INTRIN = _store("float16", "global")
WMMA_STORE_16x16x16_S32_GLOBAL_INTRIN = _store("int32", "global")
