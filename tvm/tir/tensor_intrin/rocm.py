"""Dot products of four bytes on AMD's GPUs; matrix cores are in ``mfma``."""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined"

from __future__ import annotations

from tvm.script import tir as T

from .common import registered
from .dot_product_common import get_dp4a_intrin
from .mfma import *  # noqa: F403


@T.prim_func
def sdot4(
    A: T.Buffer((4,), "int8", offset_factor=1, align=4, scope="shared"),
    B: T.Buffer((4,), "int8", offset_factor=1, align=4, scope="shared"),
    C: T.Buffer((1,), "int32", offset_factor=1, align=4, scope="local"),
) -> None:
    with T.block("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] += T.call_llvm_pure_intrin(
            "llvm.amdgcn.sdot4",
            T.uint32(4),
            T.reinterpret(A.vload([0], "int8x4"), dtype="int32"),
            T.reinterpret(B.vload([0], "int8x4"), dtype="int32"),
            T.int32(0),
            T.bool(1),
            dtype="int32",
        )


AMDGPU_SDOT4_INTRIN = registered("sdot4", (get_dp4a_intrin("int8", "int8", "int32")[0], sdot4))
