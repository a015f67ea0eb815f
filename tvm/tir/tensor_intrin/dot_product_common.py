"""Dot products of four bytes, as GPUs and embedded processors have them."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from tvm.script import tir as T
from tvm.tir.function import PrimFunc

from .common import registered

DTYPES = {"int8": "s8", "uint8": "u8", "int32": "s32", "uint32": "u32"}


def get_dp4a_intrin(dtype_a: str, dtype_b: str, dtype_c: str) -> tuple[PrimFunc, PrimFunc]:
    """The dot product of four elements that is added to one: what it does, and the call.

    Parameters
    ----------
    dtype_a, dtype_b : str
        ``int8`` or ``uint8``.
    dtype_c : str
        ``int32`` or ``uint32``.
    """
    if dtype_c == "uint32":
        dtype_a = dtype_b = "uint8"
    vec_type_a = f"{dtype_a}x4"
    vec_type_b = f"{dtype_b}x4"

    @T.prim_func
    def dp4a_desc(
        A: T.Buffer((4,), dtype_a, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), dtype_b, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), dtype_c, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            for i in range(4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[0] = C[0] + T.cast(A[vi], dtype_c) * T.cast(B[vi], dtype_c)

    @T.prim_func
    def dp4a_impl(
        A: T.Buffer((4,), dtype_a, offset_factor=1, align=4, scope="shared"),
        B: T.Buffer((4,), dtype_b, offset_factor=1, align=4, scope="shared"),
        C: T.Buffer((1,), dtype_c, offset_factor=1, align=4, scope="local"),
    ) -> None:
        with T.block("root"):
            T.reads(C[0], A[0:4], B[0:4])
            T.writes(C[0])
            C[0] += T.call_pure_extern(
                "__dp4a", A.vload([0], vec_type_a), B.vload([0], vec_type_b), T.uint32(0)
                if dtype_c == "uint32" else T.int32(0), dtype=dtype_c,
            )  # fmt: skip

    return dp4a_desc, dp4a_impl


def _register(dtype_a: str, dtype_b: str, dtype_c: str) -> str:
    name = f"dp4a_{DTYPES[dtype_a]}{DTYPES[dtype_b]}{DTYPES[dtype_c]}"
    return registered(name, get_dp4a_intrin(dtype_a, dtype_b, dtype_c))


DP4A_S8S8S32_INTRIN = _register("int8", "int8", "int32")
DP4A_U8S8S32_INTRIN = _register("uint8", "int8", "int32")
DP4A_S8U8S32_INTRIN = _register("int8", "uint8", "int32")
DP4A_U8U8U32_INTRIN = _register("uint8", "uint8", "uint32")
