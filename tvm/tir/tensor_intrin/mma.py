"""Tensor cores through the registers of a warp: load by ldmatrix, fill, multiply and add, store.

A buffer of scope ``warp`` has a row for each thread of the warp and in it the elements that the thread holds.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tir as T
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import match_tile, registered
from tvm.tir.tensor_intrin.tiles import Layout, copied, filled, loaded, multiplied, tile

WARP = 32
TILE = 16  # rows of the first factor and columns of the second one
SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32"}
PTX_NAMES = {"float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32"}


def shared_16x16_to_ldmatrix_32x8_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a tile of 16 by 16."""
    return 4 * (i % 8) + (j % 8) // 2, 4 * (j // 8) + (i // 8) * 2 + (j % 2)


def shared_16x32_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a tile of 16 by 32."""
    return 4 * (i % 8) + (j % 16) // 4, 8 * (j // 16) + (i // 8) * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a tile of 32 by 16."""
    return (i % 16) // 4 + 4 * (j % 8), 8 * (j // 8) + (i // 16) * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a tile of 16 by 16 that a thread's register holds."""
    row = 8 * (local_id % 4 // 2) + thread_id // 4
    return row, 8 * (local_id // 4) + (thread_id % 4) * 2 + local_id % 2


def index_map_shared_16x16_to_ldmatrix_32x8_layout(ind: Any) -> tuple[Any, Any]:
    """The thread and register of an element, given by its two indices."""
    i, j = ind
    return shared_16x16_to_ldmatrix_32x8_layout(i, j)


def _load_layout(k_dim: int, is_b: bool, transposed: bool) -> Layout:
    if k_dim == TILE:
        return shared_16x16_to_ldmatrix_32x8_layout
    if is_b and not transposed:
        return shared_32x16_to_ldmatrix_32x16_layout
    return shared_16x32_to_ldmatrix_32x16_layout


def _shared_offset(k_dim: int, is_b: bool, transposed: bool, thread: Any, stride: Any) -> Any:
    """Where the row begins that a thread hands to ldmatrix."""
    half = k_dim // 2
    if is_b and transposed:
        return stride * 8 * (thread // 16) + (thread % 8) * stride + half * (thread % 16 // 8)
    if is_b and k_dim != TILE:
        return stride * thread
    if transposed:
        return stride * 8 * (thread // 16) + stride * (thread % 8) + half * (thread % 16 // 8)
    return stride * (thread % 16) + half * (thread // 16)


def get_ldmatrix_intrin(
    k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared"
) -> tuple[PrimFunc, PrimFunc]:
    """Load a tile of a factor from shared memory into the registers of a warp.

    Parameters
    ----------
    k_dim : int
        How many products are summed at once: 16, or 32 for types of one byte.
    dtype : str
    matrix_name : str
        ``"A"`` or ``"B"``.
    transposed : bool
        Whether the tile is stored by columns.
    shared_scope : str
        ``"shared"`` or ``"shared.dyn"``.
    """
    is_b = matrix_name == "B"
    local_size = TILE * k_dim // WARP
    rows, columns = (k_dim, TILE) if is_b != transposed else (TILE, k_dim)
    layout = _load_layout(k_dim, is_b, transposed)
    by_columns = is_b != transposed and k_dim == TILE

    def offset(thread: Any, stride: Any) -> Any:
        return _shared_offset(k_dim, is_b, transposed, thread, stride)

    registers = tile((WARP, local_size), dtype, "warp")
    source = tile((rows, columns), dtype, shared_scope)
    desc = loaded(registers, source, (rows, columns), layout)

    @T.prim_func
    def ldmatrix_impl(warp_handle: T.handle, shared_handle: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        shared = match_tile(shared_handle, (rows, columns), dtype, shared_scope, [s0, s1])
        warp = match_tile(warp_handle, (WARP, local_size), dtype, "warp")
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP, 0:local_size])
            for tx in T.thread_binding(0, WARP, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        by_columns, 4, ".b16", warp.data, warp.elem_offset + local_size * tx,
                        shared.access_ptr("r"), offset(tx, s0), dtype=dtype,
                    )
                )  # fmt: skip

    return desc, ldmatrix_impl


def get_mma_intrin(
    k_dim: int, out_dtype: str, a_transposed: bool = False, b_transposed: bool = False
) -> tuple[PrimFunc, PrimFunc]:
    """Multiply two tiles in registers and add to a third one.

    Parameters
    ----------
    k_dim : int
        How many products are summed at once: 16 of ``float16``, 32 of ``int8``.
    out_dtype : str
    a_transposed, b_transposed : bool
        Whether the factors are stored by columns.
    """
    in_dtype = "float16" if k_dim == TILE else "int8"
    local_in, local_out = TILE * k_dim // WARP, TILE * TILE // WARP
    layout_a = _load_layout(k_dim, False, a_transposed)
    layout_b = _load_layout(k_dim, True, b_transposed)
    layout_c = shared_16x16_to_ldmatrix_32x8_layout
    shape = f"m16n8k{k_dim}"
    names = [PTX_NAMES[dtype] for dtype in (in_dtype, in_dtype, out_dtype)]
    half_in, half_out = local_in // 2, local_out // 2

    def at_a(i: Any, k: Any) -> tuple[Any, Any]:
        return layout_a(k, i) if a_transposed else layout_a(i, k)

    def at_b(k: Any, j: Any) -> tuple[Any, Any]:
        return layout_b(j, k) if b_transposed else layout_b(k, j)

    factor = tile((WARP, local_in), in_dtype, "warp")
    sums = tile((WARP, local_out), out_dtype, "warp")
    desc = multiplied((factor, factor, sums), (TILE, TILE, k_dim), at_a, at_b, layout_c)

    @T.prim_func
    def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = match_tile(a, (WARP, local_in), in_dtype, "warp")
        B = match_tile(b, (WARP, local_in), in_dtype, "warp")
        C = match_tile(c, (WARP, local_out), out_dtype, "warp")
        with T.block("root"):
            T.reads(C[0:WARP, 0:local_out], A[0:WARP, 0:local_in], B[0:WARP, 0:local_in])
            T.writes(C[0:WARP, 0:local_out])
            for tx in T.thread_binding(0, WARP, "threadIdx.x"):
                T.evaluate(
                    T.ptx_mma(
                        out_dtype, shape, "row", "col", names[0], names[1], names[2],
                        A.data, A.elem_offset + tx * local_in,
                        B.data, B.elem_offset + tx * local_in,
                        C.data, C.elem_offset + tx * local_out, False,
                    )
                )  # fmt: skip
                T.evaluate(
                    T.ptx_mma(
                        out_dtype, shape, "row", "col", names[0], names[1], names[2],
                        A.data, A.elem_offset + tx * local_in,
                        B.data, B.elem_offset + tx * local_in + half_in,
                        C.data, C.elem_offset + tx * local_out + half_out, False,
                    )
                )  # fmt: skip

    return desc, mma_sync_impl


def get_mma_fill_intrin(dtype: str, local_size: int) -> tuple[PrimFunc, PrimFunc]:
    """Fill a tile in registers with zeros.

    Parameters
    ----------
    dtype : str
    local_size : int
        How many elements a thread holds.
    """
    registers = partial(T.match_buffer, shape=(WARP, local_size), dtype=dtype, scope="warp")
    desc = filled(registers, (TILE, TILE), shared_16x16_to_ldmatrix_32x8_layout)

    @T.prim_func
    def mma_fill_impl(a: T.handle) -> None:
        C_warp = T.match_buffer(a, (WARP, local_size), dtype=dtype, scope="warp", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:WARP, 0:local_size])
            for _tx in T.thread_binding(0, WARP, "threadIdx.x"):
                T.evaluate(T.mma_fill(local_size, C_warp.data, C_warp.elem_offset, dtype=dtype))

    return desc, mma_fill_impl


def get_mma_store_intrin(
    dtype: str, local_size: int, scope: str = "global", use_mma_store_intrinic: bool = True
) -> tuple[PrimFunc, PrimFunc]:
    """Store a tile that is in registers.

    Parameters
    ----------
    dtype : str
    local_size : int
        How many elements a thread holds.
    scope : str
        Where the tile goes.
    use_mma_store_intrinic : bool
        Whether one intrinsic stores all, or each thread stores pairs of elements.
    """
    back = ldmatrix_32x8_to_shared_16x16_layout

    registers = partial(T.match_buffer, shape=(WARP, local_size), dtype=dtype, scope="warp")
    target = partial(T.match_buffer, shape=(TILE, TILE), dtype=dtype, scope=scope)
    layout = shared_16x16_to_ldmatrix_32x8_layout
    desc = copied(registers, target, (TILE, TILE), source_at=layout)

    @T.prim_func
    def mma_store_impl(a: T.handle, c: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        C_warp = T.match_buffer(a, (WARP, local_size), dtype=dtype, scope="warp", offset_factor=1)
        C = T.match_buffer(
            c, (TILE, TILE), dtype=dtype, scope=scope, offset_factor=1, strides=[s0, s1]
        )
        with T.block("root"):
            T.reads(C_warp[0:WARP, 0:local_size])
            T.writes(C[0:TILE, 0:TILE])
            for _tx in T.thread_binding(0, WARP, "threadIdx.x"):
                T.evaluate(
                    T.mma_store(
                        TILE, TILE, C.access_ptr("w"), C_warp.data, C_warp.elem_offset, s0,
                        dtype=dtype,
                    )
                )  # fmt: skip

    @T.prim_func
    def mma_store_by_pairs(a: T.handle, c: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        C_warp = T.match_buffer(a, (WARP, local_size), dtype=dtype, scope="warp", offset_factor=1)
        C = T.match_buffer(
            c, (TILE, TILE), dtype=dtype, scope=scope, offset_factor=1, strides=[s0, s1]
        )
        with T.block("root"):
            T.reads(C_warp[0:WARP, 0:local_size])
            T.writes(C[0:TILE, 0:TILE])
            for tx in T.thread_binding(0, WARP, "threadIdx.x"):
                for local_id_o in T.serial(local_size // 2):
                    for local_id_i in T.vectorized(2):
                        local_id = T.meta_var(local_id_o * 2 + local_id_i)
                        row, column = T.meta_var(back(tx, local_id))
                        C[row, column] = C_warp[tx, local_id]

    return desc, mma_store_impl if use_mma_store_intrinic else mma_store_by_pairs


def _k_dim(dtype: str) -> int:
    return TILE if dtype == "float16" else 2 * TILE


def _load(dtype: str, matrix: str, transposed: bool, scope: str = "shared") -> str:
    suffix = ("_trans" if transposed else "") + ("_dyn" if scope == "shared.dyn" else "")
    name = f"mma_ldmatrix_{SHORT[dtype]}_{matrix.lower()}{suffix}"
    return registered(name, get_ldmatrix_intrin(_k_dim(dtype), dtype, matrix, transposed, scope))


def _multiply(in_dtype: str, out_dtype: str, trans_a: bool = False, trans_b: bool = False) -> str:
    suffix = ("_trans_a" if trans_a else "") + ("_trans_b" if trans_b else "")
    name = f"mma_{SHORT[in_dtype]}{SHORT[in_dtype]}{SHORT[out_dtype]}{suffix}"
    return registered(name, get_mma_intrin(_k_dim(in_dtype), out_dtype, trans_a, trans_b))


def _fill(dtype: str) -> str:
    return registered(f"mma_fill_16x16_{SHORT[dtype]}", get_mma_fill_intrin(dtype, 8))


def _store(dtype: str, scope: str, at_once: bool = True) -> str:
    kind = "" if at_once else "simple_"
    name = f"mma_store_16x16_{SHORT[dtype]}_{scope.replace('.', '_')}_{kind}".rstrip("_")
    return registered(name, get_mma_store_intrin(dtype, 8, scope, at_once))


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """The names of the intrinsics of a product: init, load_a, load_b, compute, store.

    Parameters
    ----------
    load_scope : str
        ``"shared"`` or ``"shared.dyn"``.
    store_scope : str
        ``"global"``, ``"shared"`` or ``"shared.dyn"``.
    in_dtype, out_dtype : str
    trans_a, trans_b : bool
        Whether the factors are stored by columns.
    not_use_mma_store_intrinic : bool
        Whether each thread stores its elements by itself.
    store_to_smem_dtype : str, optional
        The data type of what is stored, if it is another one.
    """
    return {
        "init": _fill(out_dtype),
        "load_a": _load(in_dtype, "A", trans_a, load_scope),
        "load_b": _load(in_dtype, "B", trans_b, load_scope),
        "compute": _multiply(in_dtype, out_dtype, trans_a, trans_b),
        "store": _store(
            store_to_smem_dtype or out_dtype, store_scope, not not_use_mma_store_intrinic
        ),
    }


LDMATRIX_f16_A_INTRIN = _load("float16", "A", False)
LDMATRIX_f16_A_DYN_INTRIN = _load("float16", "A", False, "shared.dyn")
LDMATRIX_f16_A_TRANS_INTRIN = _load("float16", "A", True)
LDMATRIX_f16_A_TRANS_DYN_INTRIN = _load("float16", "A", True, "shared.dyn")
LDMATRIX_f16_B_INTRIN = _load("float16", "B", False)
LDMATRIX_f16_B_DYN_INTRIN = _load("float16", "B", False, "shared.dyn")
LDMATRIX_f16_B_TRANS_INTRIN = _load("float16", "B", True)
LDMATRIX_f16_B_TRANS_DYN_INTRIN = _load("float16", "B", True, "shared.dyn")
LDMATRIX_i8_A_INTRIN = _load("int8", "A", False)
LDMATRIX_i8_A_DYN_INTRIN = _load("int8", "A", False, "shared.dyn")
LDMATRIX_i8_B_INTRIN = _load("int8", "B", False)
LDMATRIX_i8_B_DYN_INTRIN = _load("int8", "B", False, "shared.dyn")
LDMATRIX_i8_B_TRANS_INTRIN = _load("int8", "B", True)
LDMATRIX_i8_B_TRANS_DYN_INTRIN = _load("int8", "B", True, "shared.dyn")
MMA_f16f16f32_INTRIN = _multiply("float16", "float32")
MMA_f16f16f32_TRANS_B_INTRIN = _multiply("float16", "float32", trans_b=True)
MMA_f16f16f32_TRANS_A_INTRIN = _multiply("float16", "float32", trans_a=True)
MMA_f16f16f32_TRANS_A_TRANS_B_INTRIN = _multiply("float16", "float32", True, True)
MMA_f16f16f16_INTRIN = _multiply("float16", "float16")
MMA_f16f16f16_TRANS_B_INTRIN = _multiply("float16", "float16", trans_b=True)
MMA_f16f16f16_TRANS_A_INTRIN = _multiply("float16", "float16", trans_a=True)
MMA_f16f16f16_TRANS_A_TRANS_B_INTRIN = _multiply("float16", "float16", True, True)
MMA_i8i8i32_INTRIN = _multiply("int8", "int32")
MMA_i8i8i32_TRANS_B_INTRIN = _multiply("int8", "int32", trans_b=True)
MMA_fill_16x16_f32_INTRIN = _fill("float32")
MMA_fill_16x16_f16_INTRIN = _fill("float16")
MMA_fill_16x16_i32_INTRIN = _fill("int32")
MMA_store_16x16_f32_global_INTRIN = _store("float32", "global")
MMA_store_16x16_f32_shared_INTRIN = _store("float32", "shared")
MMA_store_16x16_f32_shared_dyn_INTRIN = _store("float32", "shared.dyn")
MMA_store_16x16_f16_global_INTRIN = _store("float16", "global")
MMA_store_16x16_f16_shared_INTRIN = _store("float16", "shared")
MMA_store_16x16_f16_shared_dyn_INTRIN = _store("float16", "shared.dyn")
MMA_store_16x16_i32_global_INTRIN = _store("int32", "global")
MMA_store_16x16_i32_shared_INTRIN = _store("int32", "shared")
MMA_store_16x16_i32_shared_dyn_INTRIN = _store("int32", "shared.dyn")
