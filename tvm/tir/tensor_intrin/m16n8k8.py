"""Tensor cores through ``mma.m16n8k8``: fill, load by ldmatrix, multiply and add, store.

Buffers of the scopes ``m16n8k8.matrixA``, ``matrixB`` and ``matrixC`` are spread over the registers of a warp by
``TransformMmaBufferLayout``: in tiles of 32 by 8, of 8 by 32 and of 16 by 8.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from typing import Any

from tvm.script import tir as T
from tvm.tir.buffer import Buffer
from tvm.tir.expr import const
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import match_tile, registered
from tvm.tir.tensor_intrin.tiles import (
    copied,
    filled,
    multiplied,
    multiplied_by,
    rows_or_columns,
    tile,
)

WARP = 32
PTX_NAMES = {"float16": "fp16", "float32": "fp32"}


def get_index_A(elem_offset: Any, stride: Any) -> Any:
    """Where a thread's elements of a first factor of 16 by 8 begin.

    Parameters
    ----------
    elem_offset : PrimExpr
        Of the tile, in the whole buffer.
    stride : PrimExpr
        The elements from one row to the next.
    """
    i, j = elem_offset // stride, elem_offset % stride
    tile = i // 32 * (stride // 8) + j // 8
    return tile * 8 + i % 32 // 16 * 4


def get_index_B(elem_offset: Any, stride: Any) -> Any:
    """Where a thread's elements of a second factor of 8 by 8 begin.

    Parameters
    ----------
    elem_offset : PrimExpr
        Of the tile, in the whole buffer.
    stride : PrimExpr
        The elements from one row to the next.
    """
    i, j = elem_offset // stride, elem_offset % stride
    tile = i // 8 * (stride // 32) + j // 32
    return tile * 8 + j % 32 // 8 * 2


def get_index_C(elem_offset: Any, stride: Any) -> Any:
    """Which pair of a thread's elements is the first of a result of 16 by 8.

    Parameters
    ----------
    elem_offset : PrimExpr
        Of the tile, in the whole buffer.
    stride : PrimExpr
        The elements from one row to the next.
    """
    row, column = elem_offset // stride // 8, elem_offset % stride // 8
    return row // 2 * 2 * (stride // 8) + row % 2 + column * 2


def index_map_m16n8k8_matrixC(ind: Any) -> list[Any]:
    """The tile and the elements of a thread that an element of a result is of.

    Parameters
    ----------
    ind : sequence of PrimExpr
    """
    i, j = ind[0], ind[1]
    return [i // 8 // 2, j // 8, i // 8 % 2, j % 8 % 2]


def get_mma_init_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str
) -> tuple[PrimFunc, PrimFunc]:
    """Fill a result with zeros.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    """
    del k_dim
    zero = const(0, dtype)

    desc = filled(tile((m_dim, n_dim), dtype, "m16n8k8.matrixC"), (m_dim, n_dim))

    @T.prim_func
    def mma_init_impl(c: T.handle) -> None:
        dst = match_tile(c, (m_dim, n_dim), dtype, "m16n8k8.matrixC")
        with T.block("root"):
            T.reads()
            T.writes(dst[0:m_dim, 0:n_dim])
            tx = T.launch_thread("threadIdx.x", WARP)
            for half in range(m_dim // 8):
                for v in T.vectorized(n_dim // 4):
                    dst[half * 8 + tx // 4, tx % 4 * (n_dim // 4) + v] = zero

    return desc, mma_init_impl


def get_mma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> tuple[PrimFunc, PrimFunc]:
    """Load a tile of a factor by ldmatrix.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
        The sizes of the product: the tile of a first factor has 32 by 8 elements, that of a second one 8 by 32.
    dtype : str
    shared_scope : str
        Where the tile is.
    is_b : bool
        Whether it is of the second factor.
    is_col_major : bool
        Whether the tile is transposed.
    """
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    fragment_scope = "m16n8k8.matrixB" if is_b else "m16n8k8.matrixA"
    source = (columns, rows) if is_col_major else (rows, columns)
    # the hardware reads rows of eight: four matrices below each other, or side by side and transposed
    is_wide = is_b != is_col_major
    get_index = get_index_B if is_b else get_index_A

    def row_of(thread: Any, stride: Any) -> Any:
        return thread % 8 * stride + thread // 8 * 8 if is_wide else thread * stride

    desc = copied(
        tile(source, dtype, shared_scope),
        tile((rows, columns), dtype, fragment_scope),
        (rows, columns),
        source_at=rows_or_columns(is_col_major),
    )

    @T.prim_func
    def mma_load_impl(a: T.handle, c: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        d0 = T.int32()
        d1 = T.int32()
        src = match_tile(a, source, dtype, shared_scope, [s0, s1])
        dst = match_tile(c, (rows, columns), dtype, fragment_scope, [d0, d1])
        with T.block("root"):
            T.reads(src[0 : source[0], 0 : source[1]])
            T.writes(dst[0:rows, 0:columns])
            tx = T.launch_thread("threadIdx.x", WARP)
            T.evaluate(
                T.ptx_ldmatrix(
                    dtype, is_wide, 4, ".b16", dst.data, get_index(dst.elem_offset, d0),
                    src.access_ptr("r"), row_of(tx, s0),
                )
            )  # fmt: skip

    return desc, mma_load_impl


def get_mma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> tuple[PrimFunc, PrimFunc]:
    """Multiply two tiles and add to a third one.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    in_dtype, out_dtype : str
    b_transposed : bool
        Whether the second factor is stored by columns.
    """
    shape = f"m{m_dim}n{n_dim}k{k_dim}"
    names = [PTX_NAMES[dtype] for dtype in (in_dtype, in_dtype, out_dtype)]
    operands = (
        tile((m_dim, k_dim), in_dtype, "m16n8k8.matrixA"),
        tile((n_dim, k_dim) if b_transposed else (k_dim, n_dim), in_dtype, "m16n8k8.matrixB"),
        tile((m_dim, n_dim), out_dtype, "m16n8k8.matrixC"),
    )

    def multiply(A: Buffer, a1: Any, B: Buffer, b1: Any, C: Buffer, c1: Any) -> Any:
        return T.ptx_mma(
            out_dtype, shape, "row", "col", names[0], names[1], names[2],
            A.data, get_index_A(A.elem_offset, a1),
            B.data, get_index_B(B.elem_offset, b1),
            C.data, get_index_C(C.elem_offset, c1) * 2, False,
        )  # fmt: skip

    b_at = rows_or_columns(b_transposed)
    desc = multiplied(operands, (m_dim, n_dim, k_dim), b_at=b_at)
    return desc, multiplied_by(operands, multiply)


def get_mma_store_dummy_intrin(
    m_dim: int, n_dim: int, k_dim: int, dtype: str
) -> tuple[PrimFunc, PrimFunc]:
    """Store a result, by the loops that ``LowerAutoCopy`` distributes.

    Parameters
    ----------
    m_dim, n_dim, k_dim : int
    dtype : str
    """
    del k_dim

    desc = copied(
        tile((m_dim, n_dim), dtype, "m16n8k8.matrixC"),
        tile((m_dim, n_dim), dtype, "global"),
        (m_dim, n_dim),
    )

    return desc, desc


registered("mma_init_m16n8k8_f32", get_mma_init_intrin(16, 8, 8, "float32"))
for _matrix in "AB":
    _load = get_mma_load_intrin(32, 32, 8, "float16", "shared.dyn", _matrix == "B", False)
    registered(f"mma_load_m16n8k8_f16_{_matrix}_shared_dyn", _load)
registered("mma_sync_m16n8k8_f16f16f32", get_mma_sync_intrin(16, 8, 8, "float16", "float32", False))
registered("mma_store_m16n8k8_f32_global", get_mma_store_dummy_intrin(16, 8, 8, "float32"))
