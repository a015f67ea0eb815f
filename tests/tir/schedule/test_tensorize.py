"""Intrinsics in the place of blocks."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined"

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip
from tvm.tir.schedule.transform import tile_with_tensor_intrin
from tvm.tir.tensor_intrin import hexagon
from tvm.tir.tensor_intrin.arm_cpu import ARM_DOT_4x4_i8_SDOT_INTRIN
from tvm.tir.tensor_intrin.cuda import WMMA_SYNC_16x16x16_f16f16f16_INTRIN
from tvm.tir.tensor_intrin.x86 import AVX512_DOT_16x4_INTRIN, VNNI_DOT_16x4_INTRIN


@T.prim_func
def dense(
    A: T.Buffer((4, 32), "uint8"), B: T.Buffer((2, 8, 16, 4), "int8"), C: T.Buffer((4, 32), "int32")
):
    for i, j, k in T.grid(4, 32, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(
                B[vj // 16, vk // 4, vj % 16, vk % 4], "int32"
            )


def tensorized(intrin: str) -> tir.Schedule:
    """The product, with an intrinsic for 16 outputs."""
    sch = tir.Schedule(dense, debug_mask="all")
    block = sch.get_block("C")
    loop = tile_with_tensor_intrin(sch, block, intrin)
    assert loop is not None
    reduction = sch.get_loops(block)[2]
    sch.decompose_reduction(block, reduction)
    sch.tensorize(loop, intrin)
    return sch


@pytest.mark.parametrize("intrin", [VNNI_DOT_16x4_INTRIN, AVX512_DOT_16x4_INTRIN])
def test_dot_products_of_bytes_take_the_place_of_a_tile(intrin: str) -> None:
    sch = tensorized(intrin)
    assert "call_llvm_pure_intrin" in sch.mod.script()
    verify_trace_roundtrip(sch, dense)


def test_the_vnni_instruction_computes_the_product() -> None:
    features = tvm.target.codegen.llvm_get_system_cpu()
    target = "llvm -mcpu=cascadelake"
    if not tvm.target.codegen.target_has_features(
        "avx512vnni", tvm.target.Target(f"llvm -mcpu={features}")
    ):
        pytest.skip("this processor has no AVX512-VNNI")
    func = tvm.build(tensorized(VNNI_DOT_16x4_INTRIN).mod, target=target)
    numbers = np.random.default_rng(0)
    a = numbers.integers(0, 50, (4, 32)).astype("uint8")
    b = numbers.integers(-50, 50, (2, 8, 16, 4)).astype("int8")
    c = tvm.nd.array(np.zeros((4, 32), "int32"))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    plain = b.transpose(1, 3, 0, 2).reshape(32, 32).astype("int32")
    np.testing.assert_array_equal(c.numpy(), a.astype("int32") @ plain)


def test_an_intrinsic_that_does_something_else_is_rejected() -> None:
    sch = tir.Schedule(dense)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j_outer, j_inner = sch.split(j, factors=[None, 4])
    k_outer, k_inner = sch.split(k, factors=[None, 4])
    sch.reorder(i, j_outer, k_outer, j_inner, k_inner)
    sch.decompose_reduction(block, k_outer)
    with pytest.raises(tir.ScheduleError, match="doesn't match the tensor intrin|description"):
        sch.tensorize(j_inner, ARM_DOT_4x4_i8_SDOT_INTRIN)


def test_products_of_hexagon_take_the_place_of_loops() -> None:
    @T.prim_func
    def product(
        A: T.Buffer((4, 8), "uint8"), B: T.Buffer((2, 32, 4), "int8"), C: T.Buffer((4, 32), "int32")
    ):
        for i, outer, j, k in T.grid(4, 2, 32, 4):
            with T.block("C"):
                vi, vo, vj, vk = T.axis.remap("SRSR", [i, outer, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vo * 4 + vk], "int32") * T.cast(
                    B[vo, vj, vk], "int32"
                )

    sch = tir.Schedule(product)
    _, outer, j, _ = sch.get_loops("C")
    sch.decompose_reduction("C", outer)
    sch.tensorize(j, hexagon.VRMPY_u8i8i32_INTRIN)
    assert "llvm.hexagon.V6.vrmpybusv.acc.128B" in sch.mod["main"].script()


def test_products_of_halves_with_sums_of_halves_are_written_without_casts() -> None:
    @T.prim_func
    def product(
        A: T.Buffer((16, 16), "float16", offset_factor=16, scope="wmma.matrix_a"),
        B: T.Buffer((16, 16), "float16", offset_factor=16, scope="wmma.matrix_b"),
        C: T.Buffer((16, 16), "float16", offset_factor=16, scope="wmma.accumulator"),
    ):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(product)
    sch.tensorize(sch.get_loops("C")[0], WMMA_SYNC_16x16x16_f16f16f16_INTRIN)
    assert "tvm_mma_sync" in sch.mod.script()
