"""Copies that are made in each iteration of a loop."""

from __future__ import annotations

import pytest

from tests.tir.schedule.programs import elementwise_chain, matmul, padded_conv1d, two_stencils
from tests.tir.schedule.random_traces import require_same_results
from tvm import tir
from tvm.ir.structural import assert_structural_equal
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip


def check_same(sch: tir.Schedule, original: tir.PrimFunc) -> None:
    verify_trace_roundtrip(sch, original)
    require_same_results(sch, original)


def test_tiles_of_a_product_are_copied() -> None:
    @T.prim_func
    def expected(
        A: T.Buffer((12, 8), "float32"),
        B: T.Buffer((8, 10), "float32"),
        C: T.Buffer((12, 10), "float32"),
    ):
        A_shared = T.alloc_buffer((12, 8), "float32", scope="shared")
        C_local = T.alloc_buffer((12, 10), "float32", scope="local")
        for i_0 in T.serial(3):
            for k_0 in T.serial(2):
                with T.block("A_shared"):
                    v0 = T.axis.spatial(3, i_0)
                    v1 = T.axis.spatial(2, k_0)
                    T.reads(A[v0 * 4 : v0 * 4 + 4, v1 * 4 : v1 * 4 + 4])
                    T.writes(A_shared[v0 * 4 : v0 * 4 + 4, v1 * 4 : v1 * 4 + 4])
                    T.block_attr({"auto_copy": 1})
                    for ax0, ax1 in T.grid(4, 4):
                        A_shared[v0 * 4 + ax0, v1 * 4 + ax1] = A[v0 * 4 + ax0, v1 * 4 + ax1]
                for i_1, j, k_1 in T.grid(4, 10, 4):
                    with T.block("C"):
                        vi = T.axis.spatial(12, i_0 * 4 + i_1)
                        vj = T.axis.spatial(10, j)
                        vk = T.axis.reduce(8, k_0 * 4 + k_1)
                        with T.init():
                            C_local[vi, vj] = T.float32(0)
                        C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vk, vj]
            with T.block("C_local"):
                v0 = T.axis.spatial(3, i_0)
                T.reads(C_local[v0 * 4 : v0 * 4 + 4, 0:10])
                T.writes(C[v0 * 4 : v0 * 4 + 4, 0:10])
                T.block_attr({"auto_copy": 1})
                for ax0, ax1 in T.grid(4, 10):
                    C[v0 * 4 + ax0, ax1] = C_local[v0 * 4 + ax0, ax1]

    sch = tir.Schedule(matmul, debug_mask="all")
    i, j, k = sch.get_loops("C")
    i_outer, i_inner = sch.split(i, [None, 4])
    k_outer, k_inner = sch.split(k, [None, 4])
    sch.reorder(i_outer, k_outer, i_inner, j, k_inner)
    copy = sch.read_at(k_outer, "C", 0, "shared")
    assert sch.get(copy).name_hint == "A_shared"
    sch.write_at(i_outer, "C", "C", "local")
    assert_structural_equal(sch.mod["main"], expected.with_attr("global_symbol", "matmul"))
    check_same(sch, matmul)


@pytest.mark.parametrize("factor", [1, 3, 4, 7])
def test_what_several_blocks_read_is_copied_once(factor: int) -> None:
    sch = tir.Schedule(elementwise_chain, debug_mask="all")
    outer, _ = sch.split(sch.get_loops("D")[0], [None, factor])
    sch.compute_at("C", outer)
    sch.read_at(outer, "C", 0, "global")
    assert len(sch.get_consumers(sch.get_block("B_global"))) == 2
    sch.write_at(outer, "D", 0, "global")
    check_same(sch, elementwise_chain)


@pytest.mark.parametrize("factor", [1, 3, 5])
def test_overlapping_regions_are_copied(factor: int) -> None:
    sch = tir.Schedule(two_stencils, debug_mask="all")
    outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
    sch.read_at(outer, "C", "B", "global")
    check_same(sch, two_stencils)


def test_copies_that_would_miss_accesses_are_rejected() -> None:
    sch = tir.Schedule(elementwise_chain)
    row = sch.get_loops("D")[0]
    with pytest.raises(tir.ScheduleError, match="the loop is not around the block"):
        sch.read_at(row, "C", 0, "global")
    sch.compute_at("C", row)
    with pytest.raises(tir.ScheduleError, match="C is written in the loop too"):
        sch.read_at(row, "D", "C", "global")
    with pytest.raises(tir.ScheduleError, match="D in the loop accesses C too"):
        sch.write_at(row, "C", 0, "global")
    with pytest.raises(tir.ScheduleError, match="The read buffer index 7 is out of range"):
        sch.read_at(row, "D", 7, "global")


def test_elements_that_a_block_leaves_out_are_not_copied_back() -> None:
    sch = tir.Schedule(padded_conv1d, debug_mask="all")
    padded = sch.get_child_blocks(sch.get_block("root"))[0]
    outer, _ = sch.split(sch.get_loops(padded)[-1], [None, 4])
    sch.decompose_padding(padded, sch.get_loops(padded)[1])
    with pytest.raises(tir.ScheduleError, match="it may leave out elements"):
        sch.write_at(sch.get_loops(padded)[1], padded, 0, "global")
