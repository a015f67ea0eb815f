"""Dot products of vectors of 128 bytes on Hexagon, and reads by its DMA engine."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined"

from __future__ import annotations

from tvm.script import tir as T
from tvm.tir.function import PrimFunc

from .common import dot_product_desc, registered


def generate_dma_load_intrin(size: int, dtype: str) -> tuple[PrimFunc, PrimFunc]:
    """A copy of neighbouring elements to memory near the processor: what it does, and the calls.

    Parameters
    ----------
    size : int
        The number of elements.
    dtype : str
        Their type.
    """

    @T.prim_func
    def sync_dma_load_desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (size,), dtype, offset_factor=1, scope="global")
        C = T.match_buffer(c, (size,), dtype, offset_factor=1, scope="global.vtcm")
        with T.block("root"):
            T.reads(A[0:size])
            T.writes(C[0:size])
            for i in T.serial(size):
                with T.block("load"):
                    vii = T.axis.remap("S", [i])
                    C[vii] = A[vii]

    @T.prim_func
    def sync_dma_load_impl(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (size,), dtype, offset_factor=1, scope="global")
        C = T.match_buffer(c, (size,), dtype, offset_factor=1, scope="global.vtcm")
        with T.block("root"):
            T.reads(A[0:size])
            T.writes(C[0:size])
            T.evaluate(
                T.tvm_call_packed(
                    "device_api.hexagon.dma_copy_dltensor",
                    T.tvm_stack_make_array(
                        T.address_of(C[0], dtype="handle"),
                        T.tvm_stack_make_shape(size, dtype="handle"),
                        0, 1, C.dtype, 0, dtype="handle",
                    ),
                    T.tvm_stack_make_array(
                        T.address_of(A[0], dtype="handle"),
                        T.tvm_stack_make_shape(size, dtype="handle"),
                        0, 1, A.dtype, 0, dtype="handle",
                    ),
                    T.cast(size, dtype="int"),
                    T.cast(False, dtype="int"),  # the cache is not bypassed
                    dtype="int32",
                )
            )  # fmt: skip

    return sync_dma_load_desc, sync_dma_load_impl


def _dot_product(
    dtypes: tuple[str, str], depth: int, instruction: str, mem_scope: str, by_scalar: bool = False
) -> tuple[PrimFunc, PrimFunc]:
    """32 dot products of a few elements of A with rows of B: what they do, and the instruction."""
    dtype_a, dtype_b = dtypes
    vector_a, vector_b = f"{dtype_a}x{depth}", f"{dtype_b}x{32 * depth}"

    @T.prim_func
    def dot_product_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (depth,), dtype_a, offset_factor=1, scope=mem_scope)
        B = T.match_buffer(b, (32, depth), dtype_b, offset_factor=1, scope=mem_scope)
        C = T.match_buffer(c, (32,), "int32", offset_factor=1, scope=mem_scope)
        with T.block("root"):
            T.reads(C[0:32], A[0:depth], B[0:32, 0:depth])
            T.writes(C[0:32])
            A_word = T.reinterpret(A.vload([0], vector_a), dtype="int32")
            B_words = T.reinterpret(B.vload([0, 0], dtype=vector_b), dtype="int32x32")
            C_words = C[T.ramp(T.int32(0), 1, 32)]
            C[T.ramp(T.int32(0), 1, 32)] = T.call_llvm_pure_intrin(
                instruction,
                T.uint32(3),
                C_words,
                B_words if by_scalar else T.broadcast(A_word, 32),
                A_word if by_scalar else B_words,
                dtype="int32x32",
            )

    desc = dot_product_desc(32, depth, (dtype_a, dtype_b, "int32"), mem_scope)
    return desc, dot_product_impl


def generate_dot_product_32x4_u8u8i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """32 dot products of four unsigned bytes, by ``vrmpy``."""
    return _dot_product(("uint8", "uint8"), 4, "llvm.hexagon.V6.vrmpyub.acc.128B", mem_scope, True)


def generate_dot_product_32x4_u8i8i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """32 dot products of four unsigned bytes with signed ones, by ``vrmpy``."""
    return _dot_product(("uint8", "int8"), 4, "llvm.hexagon.V6.vrmpybusv.acc.128B", mem_scope)


def generate_dot_product_32x2_i16i16i32(mem_scope: str = "global") -> tuple[PrimFunc, PrimFunc]:
    """32 dot products of two signed numbers of 16 bits, by ``vdmpy``."""
    return _dot_product(("int16", "int16"), 2, "llvm.hexagon.V6.vdmpyhvsat.acc.128B", mem_scope)


VRMPY_u8u8i32_INTRIN = registered("dot_32x4_u8u8i32_vrmpy", generate_dot_product_32x4_u8u8i32())
VRMPY_u8i8i32_INTRIN = registered("dot_32x4_u8i8i32_vrmpy", generate_dot_product_32x4_u8i8i32())
VDMPY_i16i16i32_INTRIN = registered(
    "dot_product_32x2_i16i16i32_vdmpy", generate_dot_product_32x2_i16i16i32()
)
VRMPY_u8u8i32_VTCM_INTRIN = registered(
    "dot_32x4_u8u8i32_vtcm_vrmpy", generate_dot_product_32x4_u8u8i32("global.vtcm")
)
VRMPY_u8i8i32_VTCM_INTRIN = registered(
    "dot_32x4_u8i8i32_vtcm_vrmpy", generate_dot_product_32x4_u8i8i32("global.vtcm")
)
DMA_READ_128_u8 = registered("dma_read_128_u8", generate_dma_load_intrin(128, "uint8"))
DMA_READ_1024_u8 = registered("dma_read_1024_u8", generate_dma_load_intrin(1024, "uint8"))
DMA_READ_128_i8 = registered("dma_read_128_i8", generate_dma_load_intrin(128, "int8"))
DMA_READ_1024_i8 = registered("dma_read_1024_i8", generate_dma_load_intrin(1024, "int8"))
