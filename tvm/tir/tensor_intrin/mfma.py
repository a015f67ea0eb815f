"""Matrix cores of AMD's GPUs: load, fill, multiply and add, store.

A wave of 64 threads holds a tile together: a buffer of scope ``warp`` has a row for each thread, and in it the
elements that the thread holds.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tir as T
from tvm.tir.expr import const
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import registered
from tvm.tir.tensor_intrin.tiles import Layout, Operand, copied, filled, loaded, multiplied

WAVE = 64
TILE = 16  # rows of the first factor and columns of the second one
LOCAL = TILE * TILE // WAVE  # elements of the result that a thread holds
SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32"}
NAMES = {**SHORT, "int8": "s8"}


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a first factor of 16 by 4."""
    return j * 16 + i, const(0, "int32")


def thread_id_shared_access_64x1_to_16x4_layout_A(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a first factor of 16 by 4 that a register of a thread holds."""
    return thread_id % 16, thread_id // 16 + local_id


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a second factor of 4 by 16."""
    return i * 16 + j, const(0, "int32")


def thread_id_shared_access_64x1_to_4x16_layout_B(thread_id: Any, local_id: Any) -> tuple[Any, Any]:
    """The element of a second factor of 4 by 16 that a register of a thread holds."""
    return thread_id // 16, thread_id % 16 + local_id


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a first factor of 16 by 16."""
    return i + 16 * (j // 4), j % 4


def thread_id_shared_access_64x4_to_16x16_layout_A(
    thread_id: Any, local_id: Any
) -> tuple[Any, Any]:
    """The element of a first factor of 16 by 16 that a register of a thread holds."""
    return thread_id % 16, (thread_id // 16) * 4 + local_id


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a second factor of 16 by 16."""
    return j + (i // 4) * 16, i % 4


def thread_id_shared_access_64x4_to_16x16_layout_B(
    thread_id: Any, local_id: Any
) -> tuple[Any, Any]:
    """The element of a second factor of 16 by 16 that a register of a thread holds."""
    return local_id + (thread_id // 16) * 4, thread_id % 16


def shared_16x16_to_local_64x4_layout_C(i: Any, j: Any) -> tuple[Any, Any]:
    """The thread, and its register, that holds an element of a result of 16 by 16."""
    return shared_16x16_to_local_64x4_layout_B(i, j)


def thread_id_shared_access_64x4_to_16x16_layout_C(
    thread_id: Any, local_id: Any
) -> tuple[Any, Any]:
    """The element of a result of 16 by 16 that a register of a thread holds."""
    return thread_id_shared_access_64x4_to_16x16_layout_B(thread_id, local_id)


def get_mma_fill_intrin(dtype: str, local_size: int) -> tuple[PrimFunc, PrimFunc]:
    """Fill a tile in registers with zeros.

    Parameters
    ----------
    dtype : str
    local_size : int
        How many elements a thread holds.
    """
    zero = const(0, dtype)

    registers = partial(T.match_buffer, shape=(WAVE, local_size), dtype=dtype, scope="warp")
    desc = filled(registers, (TILE, TILE), shared_16x16_to_local_64x4_layout_C)

    @T.prim_func
    def mma_fill_impl(a: T.handle) -> None:
        C_warp = T.match_buffer(a, (WAVE, local_size), dtype=dtype, scope="warp", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:WAVE, 0:local_size])
            for tx in T.thread_binding(0, WAVE, "threadIdx.x"):
                for local_id in T.serial(0, local_size):
                    C_warp[tx, local_id] = zero

    return desc, mma_fill_impl


def get_mfma_load_intrin(
    k_dim: int = 4,
    dtype: str = "float32",
    scope: str = "shared",
    is_b: bool = False,
    transposed: bool = False,
) -> tuple[PrimFunc, PrimFunc]:
    """Load a factor of a product into registers.

    Parameters
    ----------
    k_dim : int
        The columns of the first factor, 4 or 16.
    dtype : str
    scope : str
        Where the tile is.
    is_b : bool
        Whether it is the second factor.
    transposed : bool
        Whether the second factor is stored by columns.
    """
    local_size = TILE * k_dim // WAVE
    rows, columns = (k_dim, TILE) if is_b and not transposed else (TILE, k_dim)
    layout, back = _layouts(k_dim, is_b and not transposed)

    registers = _held((WAVE, local_size), dtype, "warp")
    source = _held((rows, columns), dtype, scope)
    desc = loaded(registers, source, (rows, columns), layout)

    @T.prim_func
    def mfma_load_impl(reg_handle: T.handle, memory_handle: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        memory = T.match_buffer(
            memory_handle, (rows, columns), dtype, align=64, offset_factor=1, scope=scope,
            strides=[s0, s1],
        )  # fmt: skip
        reg = T.match_buffer(
            reg_handle, (WAVE, local_size), dtype, align=64, offset_factor=1, scope="warp"
        )
        with T.block("root"):
            T.reads(memory[0:rows, 0:columns])
            T.writes(reg[0:WAVE, 0:local_size])
            for tx in T.thread_binding(0, WAVE, "threadIdx.x"):
                for local_id in T.serial(0, local_size):
                    row, column = T.meta_var(back(tx, local_id))
                    reg[tx, local_id] = memory[row, column]

    return desc, mfma_load_impl


def get_mfma_intrin(
    k_dim: int, in_dtype: str = "float32", out_dtype: str = "float32", b_transposed: bool = False
) -> tuple[PrimFunc, PrimFunc]:
    """Multiply two tiles and add to a third one.

    Parameters
    ----------
    k_dim : int
        The columns of the first factor, 4 or 16.
    in_dtype, out_dtype : str
    b_transposed : bool
        Whether the second factor is stored by columns.
    """
    local_in = TILE * k_dim // WAVE
    layout_a, layout_b = _layouts(k_dim, False)[0], _layouts(k_dim, not b_transposed)[0]
    name = f"llvm.amdgcn.mfma.{SHORT[out_dtype]}.16x16x{k_dim}{SHORT[in_dtype]}"
    out_vector = f"{out_dtype}x{LOCAL}"

    def at_b(k: Any, j: Any) -> tuple[Any, Any]:
        return layout_b(j, k) if b_transposed else layout_b(k, j)

    def operand(tile: Any, thread: Any) -> Any:
        """What a thread holds, four bytes as the integer that they are."""
        vector = tile[thread, 0:local_in]
        return T.reinterpret(vector, dtype="int32") if in_dtype == "int8" else vector

    factor = _held((WAVE, local_in), in_dtype, "warp")
    sums = _held((WAVE, LOCAL), out_dtype, "warp")
    layout_c = shared_16x16_to_local_64x4_layout_C
    desc = multiplied((factor, factor, sums), (TILE, TILE, k_dim), layout_a, at_b, layout_c)

    @T.prim_func
    def mfma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (WAVE, local_in), in_dtype, offset_factor=1, scope="warp")
        B = T.match_buffer(b, (WAVE, local_in), in_dtype, offset_factor=1, scope="warp")
        C = T.match_buffer(c, (WAVE, LOCAL), out_dtype, offset_factor=1, scope="warp")
        with T.block("root"):
            T.reads(A[0:WAVE, 0:local_in], B[0:WAVE, 0:local_in], C[0:WAVE, 0:LOCAL])
            T.writes(C[0:WAVE, 0:LOCAL])
            for tx in T.thread_binding(0, WAVE, "threadIdx.x"):
                C[tx, 0:LOCAL] = T.call_llvm_pure_intrin(
                    name, T.uint32(6), operand(A, tx), operand(B, tx), C[tx, 0:LOCAL],
                    T.int32(0), T.int32(0), T.int32(0), dtype=out_vector,
                )  # fmt: skip

    return desc, mfma_sync_impl


def get_mfma_store_intrin(
    local_size: int = 4, dtype: str = "float32", scope: str = "global"
) -> tuple[PrimFunc, PrimFunc]:
    """Store a tile that is in registers.

    Parameters
    ----------
    local_size : int
        How many elements a thread holds.
    dtype : str
    scope : str
        Where the tile goes.
    """
    back = thread_id_shared_access_64x4_to_16x16_layout_C

    registers = partial(T.match_buffer, shape=(WAVE, local_size), dtype=dtype, scope="warp")
    target = partial(T.match_buffer, shape=(TILE, TILE), dtype=dtype, scope=scope)
    layout = shared_16x16_to_local_64x4_layout_C
    desc = copied(registers, target, (TILE, TILE), source_at=layout)

    @T.prim_func
    def mfma_store_impl(a: T.handle, c: T.handle) -> None:
        s0 = T.int32()
        s1 = T.int32()
        C_warp = T.match_buffer(a, (WAVE, local_size), dtype=dtype, scope="warp", offset_factor=1)
        C = T.match_buffer(
            c, (TILE, TILE), dtype=dtype, scope=scope, offset_factor=1, strides=[s0, s1]
        )
        with T.block("root"):
            T.reads(C_warp[0:WAVE, 0:local_size])
            T.writes(C[0:TILE, 0:TILE])
            for tx in T.thread_binding(0, WAVE, "threadIdx.x"):
                for local_id in T.serial(0, local_size):
                    row, column = T.meta_var(back(tx, local_id))
                    C[row, column] = C_warp[tx, local_id]

    return desc, mfma_store_impl


def _held(shape: tuple[int, int], dtype: str, scope: str) -> Operand:
    return partial(T.match_buffer, shape=shape, dtype=dtype, scope=scope, offset_factor=1)


def _layouts(k_dim: int, is_by_rows: bool) -> tuple[Layout, Layout]:
    """Where a factor's elements are held, and the way back; rows of the first factor lie like columns
    of the second."""
    if k_dim not in (4, 16):
        raise ValueError(f"matrix cores multiply tiles of 4 or 16 columns, got k_dim {k_dim}")
    if k_dim == 4:
        if is_by_rows:
            return shared_4x16_to_local_64x1_layout_B, thread_id_shared_access_64x1_to_4x16_layout_B
        return shared_16x4_to_local_64x1_layout_A, thread_id_shared_access_64x1_to_16x4_layout_A
    if is_by_rows:
        return shared_16x16_to_local_64x4_layout_B, thread_id_shared_access_64x4_to_16x16_layout_B
    return shared_16x16_to_local_64x4_layout_A, thread_id_shared_access_64x4_to_16x16_layout_A


def _fill(dtype: str) -> str:
    return registered(f"ROCM_mfma_fill_16x16_{SHORT[dtype]}", get_mma_fill_intrin(dtype, LOCAL))


def _load(k_dim: int, dtype: str, is_b: bool) -> str:
    shape = f"{TILE}x{k_dim}"
    name = f"rocm_mfma_load_{shape}_{'b' if is_b else 'a'}_shared_{NAMES[dtype]}"
    return registered(name, get_mfma_load_intrin(k_dim, dtype, "shared", is_b))


def _multiply(k_dim: int, in_dtype: str, out_dtype: str) -> str:
    short = "".join([*[NAMES[in_dtype]] * 2, NAMES[out_dtype].replace("i32", "s32")])
    return registered(f"rocm_mfma_{short}", get_mfma_intrin(k_dim, in_dtype, out_dtype))


def _store(dtype: str) -> str:
    short = NAMES[dtype].replace("i32", "s32")
    return registered(f"rocm_mfma_store_16x16_{short}", get_mfma_store_intrin(LOCAL, dtype))


ROCM_MFMA_fill_16x16_f32_INTRIN = _fill("float32")
ROCM_MFMA_fill_16x16_i32_INTRIN = _fill("int32")
ROCM_MFMA_LOAD_16x4_A_SHARED_f32_INTRIN = _load(4, "float32", False)
ROCM_MFMA_LOAD_16x4_B_SHARED_f32_INTRIN = _load(4, "float32", True)
ROCM_MFMA_LOAD_16x16_A_SHARED_f16_INTRIN = _load(16, "float16", False)
ROCM_MFMA_LOAD_16x16_B_SHARED_f16_INTRIN = _load(16, "float16", True)
ROCM_MFMA_LOAD_16x16_A_SHARED_s8_INTRIN = _load(16, "int8", False)
ROCM_MFMA_LOAD_16x16_B_SHARED_s8_INTRIN = _load(16, "int8", True)
ROCM_MFMA_f32f32f32_INTRIN = _multiply(4, "float32", "float32")
ROCM_MFMA_f16f16f32_INTRIN = _multiply(16, "float16", "float32")
ROCM_MFMA_s8s8s32_INTRIN = _multiply(16, "int8", "int32")
ROCM_MFMA_STORE_16x16_f32_INTRIN = _store("float32")
ROCM_MFMA_STORE_16x16_s32_INTRIN = _store("int32")
