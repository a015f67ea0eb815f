"""Einsums that run over multiples of given extents, on padded operands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tir.schedule.programs import matmul, matmul_relu, padded_conv1d, softmax, square_sum
from tests.tir.schedule.random_traces import require_same_results
from tvm import tir
from tvm.ir.structural import assert_structural_equal
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip
from tvm.tir.schedule.transform import tile_with_tensor_intrin


def check_same(sch: tir.Schedule, original: tir.PrimFunc) -> None:
    verify_trace_roundtrip(sch, original)
    require_same_results(sch, original)


def test_operands_are_padded_with_zeros_and_results_are_copied_back() -> None:
    @T.prim_func
    def expected(
        A: T.Buffer((12, 8), "float32"),
        B: T.Buffer((8, 10), "float32"),
        C: T.Buffer((12, 10), "float32"),
    ):
        A_pad = T.alloc_buffer((12, 9), "float32")
        B_pad = T.alloc_buffer((9, 12), "float32")
        C_pad = T.alloc_buffer((12, 12), "float32")
        for i, k in T.grid(12, 9):
            with T.block("A_pad"):
                vi, vk = T.axis.remap("SS", [i, k])
                T.reads(A[vi, vk])
                A_pad[vi, vk] = T.if_then_else(vk < 8, A[vi, vk], T.float32(0))
        for k, j in T.grid(9, 12):
            with T.block("B_pad"):
                vk, vj = T.axis.remap("SS", [k, j])
                T.reads(B[vk, vj])
                B_pad[vk, vj] = T.if_then_else(vk < 8 and vj < 10, B[vk, vj], T.float32(0))
        for i, j, k in T.grid(12, 12, 9):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = T.float32(0)
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for i, j in T.grid(12, 10):
            with T.block("C_pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_pad[vi, vj]

    sch = tir.Schedule(matmul, debug_mask="all")
    sch.pad_einsum("C", [4, 6, 3])
    assert_structural_equal(sch.mod["main"], expected.with_attr("global_symbol", "matmul"))
    check_same(sch, matmul)


@pytest.mark.parametrize("padding", [[5, 4, 4], [1, 1, 5], [8, 9, 6], [3, 1, 1]])
def test_padded_products_compute_the_same(padding: list[int]) -> None:
    sch = tir.Schedule(matmul_relu, debug_mask="all")
    block = sch.get_block("C")
    sch.pad_einsum(block, padding)
    extents = [int(axis.dom.extent) for axis in sch.get(block).iter_vars]
    assert all(extent % factor == 0 for extent, factor in zip(extents, padding, strict=True))
    check_same(sch, matmul_relu)


def test_open_extents_are_rounded_up() -> None:
    @T.prim_func
    def scaled(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 6), "float32")
        B = T.match_buffer(b, (n, 6), "float32")
        for i, j in T.grid(n, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(scaled, debug_mask="all")
    sch.pad_einsum("B", [16, 1])
    (n,) = sch.mod["main"].buffer_map[sch.mod["main"].params[0]].shape[:1]
    assert_structural_equal(sch.get(sch.get_loops("B")[0]).extent, (n + 15) // 16 * 16)
    a = np.arange(30, dtype="float32").reshape(5, 6)
    b = np.zeros_like(a)
    tir.interp.interpret(sch.mod["main"], a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_a_sum_of_squares_pads_several_reductions() -> None:
    sch = tir.Schedule(square_sum, debug_mask="all")
    sch.pad_einsum("C", [1, 4, 4])
    check_same(sch, square_sum)


def test_reductions_that_zeros_change_are_rejected() -> None:
    sch = tir.Schedule(softmax)
    with pytest.raises(tir.ScheduleError, match="zeros along vk change what it reduces to"):
        sch.pad_einsum("M", [1, 3])
    sch.pad_einsum("M", [4, 1])
    check_same(sch, softmax)


def test_what_is_no_einsum_is_rejected() -> None:
    sch = tir.Schedule(padded_conv1d)
    with pytest.raises(tir.ScheduleError, match=r"the index .* of P is no variable"):
        sch.pad_einsum("Y", [4, 4])
    with pytest.raises(tir.ScheduleError, match="a positive factor for each of its 2 variables"):
        sch.pad_einsum("Y", [4])
    sch = tir.Schedule(matmul)
    sch.split(sch.get_loops("C")[0], [None, 3])
    with pytest.raises(tir.ScheduleError, match="the value of vi is not a loop of its own"):
        sch.pad_einsum("C", [4, 4, 4])


def test_tiles_of_an_intrinsic_are_padded_to() -> None:
    @T.prim_func
    def product(
        A: T.Buffer((4, 4), "float32"),
        B: T.Buffer((4, 4), "float32"),
        C: T.Buffer((4, 4), "float32"),
    ):
        with T.block("root"):
            T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            for i, j, k in T.grid(4, 4, 4):
                with T.block("product"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    tir.TensorIntrin.register("padded_product_4x4x4", product, product, override=True)
    sch = tir.Schedule(matmul_relu, debug_mask="all")
    tile = tile_with_tensor_intrin(sch, sch.get_block("C"), "padded_product_4x4x4", True)
    assert sch.get(tile).extent == 4
    # the product's block feeds the next one, which reads the padded buffer
    assert [sch.get(b).name_hint for b in sch.get_consumers(sch.get_block("C"))] == ["D"]
    check_same(sch, matmul_relu)


def test_an_axis_that_is_not_in_the_result_is_not_padded() -> None:
    @T.prim_func
    def last_row(A: T.Buffer((1, 5), "float32"), C: T.Buffer((5,), "float32")):
        for i, j in T.grid(1, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vj] = A[vi, vj]

    sch = tir.Schedule(last_row)
    with pytest.raises(tir.ScheduleError, match="vi is padded, but no index of C"):
        sch.pad_einsum("C", [4, 1])
    sch.pad_einsum("C", [1, 4])
    check_same(sch, last_row)
