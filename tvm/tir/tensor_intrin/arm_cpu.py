"""Dot products of bytes on Arm: NEON multiplications, and the dot product instructions."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from tvm.script import tir as T
from tvm.tir.function import PrimFunc

from .common import dot_product_desc, registered
from .dot_product_common import (
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
)


@T.prim_func
def neon_4x4_i8i8i32_impl(
    A: T.Buffer((4,), "int8", offset_factor=1),
    B: T.Buffer((4, 4), "int8", offset_factor=1),
    C: T.Buffer((4,), "int32", offset_factor=1),
) -> None:
    with T.block("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        A_int8 = A.vload([0], "int8x4")
        re_int32 = T.reinterpret(A_int8, dtype="int32")
        vec_ai32 = T.broadcast(re_int32, 2)
        vec_a = T.reinterpret(vec_ai32, dtype="int8x8")
        vec_b = B.vload([0, 0], dtype="int8x16")
        # products of the first two rows of B, then of the other two
        vec_b_low = T.vectorlow(vec_b, dtype="int8x8")
        multiply_low = T.call_llvm_pure_intrin(
            "llvm.aarch64.neon.smull.v8i16",
            T.uint32(2), vec_a, vec_b_low, dtype="int16x8",
        )  # fmt: skip
        pair1 = T.call_llvm_pure_intrin(
            "llvm.aarch64.neon.saddlp.v4i32.v8i16",
            T.uint32(1), multiply_low, dtype="int32x4",
        )  # fmt: skip
        vec_b_high = T.vectorhigh(vec_b, dtype="int8x8")
        multiply_high = T.call_llvm_pure_intrin(
            "llvm.aarch64.neon.smull.v8i16",
            T.uint32(2), vec_a, vec_b_high, dtype="int16x8",
        )  # fmt: skip
        pair2 = T.call_llvm_pure_intrin(
            "llvm.aarch64.neon.saddlp.v4i32.v8i16",
            T.uint32(1), multiply_high, dtype="int32x4",
        )  # fmt: skip
        C[T.ramp(T.int32(0), 1, 4)] += T.call_llvm_pure_intrin(
            "llvm.aarch64.neon.addp.v4i32",
            T.uint32(2), pair1, pair2, dtype="int32x4",
        )  # fmt: skip


def get_dotprod_intrin(in_dtype: str, out_dtype: str) -> tuple[PrimFunc, PrimFunc]:
    """The instruction of four dot products: what it does, and the call.

    Parameters
    ----------
    in_dtype : str
        ``int8`` or ``uint8``.
    out_dtype : str
        ``int32`` or ``uint32``.
    """
    instruction = "udot" if in_dtype == "uint8" else "sdot"
    intrinsic = f"llvm.aarch64.neon.{instruction}.v4i32.v16i8"
    in_x4, out_x4 = f"{in_dtype}x4", f"{out_dtype}x4"
    in_x16 = f"{in_dtype}x16"

    @T.prim_func
    def dot_prod_impl(
        A: T.Buffer((4,), in_dtype, offset_factor=1),
        B: T.Buffer((4, 4), in_dtype, offset_factor=1),
        C: T.Buffer((4,), out_dtype, offset_factor=1),
    ) -> None:
        with T.block("root"):
            T.reads(C[0:4], A[0:4], B[0:4, 0:4])
            T.writes(C[0:4])
            A_i8x4 = A.vload([0], in_x4)
            A_i32 = T.reinterpret(A_i8x4, dtype=out_dtype)
            vec_ai32 = T.broadcast(A_i32, 4)
            vec_a = T.reinterpret(vec_ai32, dtype=in_x16)
            vec_b = B.vload([0, 0], dtype=in_x16)
            vec_c = C.vload([0], dtype=out_x4)
            C[T.ramp(T.int32(0), 1, 4)] = T.call_llvm_pure_intrin(
                intrinsic, T.uint32(3), vec_c, vec_a, vec_b, dtype=out_x4
            )

    return dot_product_desc(4, 4, (in_dtype, in_dtype, out_dtype)), dot_prod_impl


ARM_DOT_4x4_i8_NEON_INTRIN = registered(
    "dot_4x4_i8i8s32_neon",
    (dot_product_desc(4, 4, ("int8", "int8", "int32")), neon_4x4_i8i8i32_impl),
)
ARM_DOT_4x4_i8_SDOT_INTRIN = registered("dot_4x4_i8i8s32_sdot", get_dotprod_intrin("int8", "int32"))
ARM_DOT_4x4_u8_UDOT_INTRIN = registered(
    "dot_4x4_u8u8u32_udot", get_dotprod_intrin("uint8", "uint32")
)
ARM_DOT_4x4_u8_HDOT_INTRIN = registered(
    "dot_4x4_u8u8i32_hdot", get_dotprod_intrin("uint8", "int32")
)

__all__ = [
    "ARM_DOT_4x4_i8_NEON_INTRIN", "ARM_DOT_4x4_i8_SDOT_INTRIN", "ARM_DOT_4x4_u8_HDOT_INTRIN",
    "ARM_DOT_4x4_u8_UDOT_INTRIN", "DP4A_S8S8S32_INTRIN", "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN", "DP4A_U8U8U32_INTRIN", "get_dotprod_intrin",
]  # fmt: skip
