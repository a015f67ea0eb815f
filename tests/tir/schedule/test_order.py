"""What primitives must not bring into another order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tir.schedule.programs import padded_conv1d
from tests.tir.schedule.random_traces import run
from tests.tir.schedule.zoo import running_sums
from tvm import tir
from tvm.script import tir as T


def test_iterations_that_read_what_others_wrote_keep_their_order() -> None:
    sch = tir.Schedule(running_sums)
    loops = sch.split(sch.fuse(*sch.get_loops("B")), [2, None])
    with pytest.raises(tir.ScheduleError, match="may have been written in another iteration"):
        sch.reorder(*reversed(loops))


def test_loops_that_write_one_buffer_are_not_merged() -> None:
    sch = tir.Schedule(padded_conv1d, debug_mask="all")
    i, _ = sch.split(sch.get_loops("P")[0], [4, None])
    constant = sch.decompose_padding("P", i)
    outer, _ = sch.split(sch.get_loops("Y")[0], [4, None])
    with pytest.raises(tir.ScheduleError, match="the order in which P is written"):
        sch.merge(sch.get_loops(constant)[0], outer)
    for found, wanted in zip(run(sch.mod["main"]), run(padded_conv1d), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_what_a_later_iteration_changes_is_not_read_before() -> None:
    sch = tir.Schedule(padded_conv1d, debug_mask="all")
    sch.decompose_padding("P", sch.get_loops("P")[0])
    with pytest.raises(tir.ScheduleError, match="has not been written completely"):
        sch.merge(sch.get_loops("P")[0], sch.get_loops("Y")[0])


@T.prim_func
def row_sums(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 9):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] += A[vi, vk]


def test_a_reduction_begins_with_its_initial_value() -> None:
    sch = tir.Schedule(row_sums, debug_mask="all")
    outer, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 6])
    with pytest.raises(tir.ScheduleError, match="initial value would be written after"):
        sch.reorder(inner, outer)
    sch.decompose_reduction("B", outer)
    sch.reorder(*reversed(sch.get_loops("B_update")))
    for found, wanted in zip(run(sch.mod["main"]), run(row_sums), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_fused_loops_are_reordered_where_they_do_not_share_a_reduction() -> None:
    sch = tir.Schedule(row_sums, debug_mask="all")
    outer, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 3])
    sch.reorder(inner, outer)
    for found, wanted in zip(run(sch.mod["main"]), run(row_sums), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


@T.prim_func
def overlapping_windows(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    for j, x, r in T.grid(9, 3, 3):
        with T.block("B"):
            vi = T.axis.spatial(12, j + x)
            vr = T.axis.reduce(3, r)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi] * T.Cast("float32", vr)


def test_a_reduction_that_is_repeated_in_part_is_initialised_inside() -> None:
    sch = tir.Schedule(overlapping_windows, debug_mask="all")
    outer, inner, _ = sch.get_loops("B")
    with pytest.raises(tir.ScheduleError, match="repeat can't be initialised outside"):
        sch.decompose_reduction("B", outer)
    sch.decompose_reduction("B", inner)
    for found, wanted in zip(run(sch.mod["main"]), run(overlapping_windows), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


@T.prim_func
def matmul(
    A: T.Buffer((10, 7), "float32"),
    B: T.Buffer((7, 10), "float32"),
    C: T.Buffer((10, 10), "float32"),
):
    for i, j, k in T.grid(10, 10, 7):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@pytest.mark.parametrize("count", [2, 3])
def test_fused_loops_whose_parts_do_not_come_out_even_are_no_repetition(count: int) -> None:
    sch = tir.Schedule(matmul, debug_mask="all")
    fused = sch.fuse(*sch.get_loops("C")[:count])
    outer, _, _ = sch.split(fused, [None, 4, 8])
    sch.decompose_reduction("C", outer)
    for found, wanted in zip(run(sch.mod["main"]), run(matmul), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)
