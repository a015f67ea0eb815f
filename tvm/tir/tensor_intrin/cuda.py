"""Tensor cores through wmma fragments: load, fill, multiply and add, store.

A fragment is a tile that the threads of a warp hold together. Buffers of a ``wmma`` scope are made of them.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import registered
from tvm.tir.tensor_intrin.m16n8k8 import *  # noqa: F403
from tvm.tir.tensor_intrin.mma import *  # noqa: F403
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
    layout = "col_major" if is_col_major else "row_major"
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    shape = (columns, rows) if is_col_major else (rows, columns)
    source = tile(shape, dtype, shared_scope)
    fragment = tile(shape, dtype, f"wmma.matrix_{'b' if is_b else 'a'}")

    def load(A: Buffer, source_stride: Any, C: Buffer, stride: Any) -> Any:
        index = get_wmma_fragment_index(C, stride, *shape)
        return T.tvm_load_matrix_sync(
            C.data, m_dim, n_dim, k_dim, index, A.access_ptr("r"), source_stride, layout,
            dtype="handle",
        )  # fmt: skip

    return copied(source, fragment, shape), copied_by(source, fragment, load)


def get_wmma_fill_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str
) -> tuple[PrimFunc, PrimFunc]:
    """Fill an accumulator with zeros.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    """
    shape = (m_dim, n_dim)
    sums = tile(shape, dtype, "wmma.accumulator")

    def fill(C: Buffer, stride: Any) -> Any:
        index = get_wmma_fragment_index(C, stride, *shape)
        return T.tvm_fill_fragment(C.data, m_dim, n_dim, k_dim, index, T.float32(0), dtype="handle")

    return filled(sums, shape), filled_by(sums, fill)


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
    shape = (m_dim, n_dim)
    sums, target = tile(shape, dtype, "wmma.accumulator"), tile(shape, dtype, scope)

    def store(A: Buffer, stride: Any, C: Buffer, target_stride: Any) -> Any:
        index = get_wmma_fragment_index(A, stride, *shape)
        return T.tvm_store_matrix_sync(
            A.data, m_dim, n_dim, k_dim, index, C.access_ptr("w"), target_stride, "row_major",
            dtype="handle",
        )  # fmt: skip

    return copied(sums, target, shape), copied_by(sums, target, store)


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
    b_shape = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    operands = (
        tile((m_dim, k_dim), in_dtype, "wmma.matrix_a"),
        tile(b_shape, in_dtype, "wmma.matrix_b"),
        tile((m_dim, n_dim), out_dtype, "wmma.accumulator"),
    )

    def multiply(A: Buffer, a1: Any, B: Buffer, b1: Any, C: Buffer, c1: Any) -> Any:
        sums = (C.data, get_wmma_fragment_index(C, c1, m_dim, n_dim))
        return T.tvm_mma_sync(
            *sums, A.data, get_wmma_fragment_index(A, a1, m_dim, k_dim),
            B.data, get_wmma_fragment_index(B, b1, *b_shape), *sums, dtype="handle",
        )  # fmt: skip

    b_at = rows_or_columns(b_transposed)
    desc = multiplied(operands, (m_dim, n_dim, k_dim), b_at=b_at)
    return desc, multiplied_by(operands, multiply)


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
