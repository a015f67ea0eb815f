"""Blocks of blocks, and blocks that use loops themselves."""

from __future__ import annotations

import pytest

import tvm
from tests.tir.schedule.programs import square_sum
from tests.tir.schedule.random_traces import require_same_results
from tests.tir.schedule.zoo import row_argmax, scalar_total
from tvm import te, tir
from tvm.script import tir as T


def test_the_initialisation_of_a_tile_has_its_predicate() -> None:
    sch = tir.Schedule(square_sum, debug_mask="all")
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 5])
    sch.blockize(outer)
    assert "T.where(b_1_init < 4)" in sch.mod["main"].script()
    require_same_results(sch, square_sum)


def test_a_block_that_uses_a_loop_stays_inside_of_it() -> None:
    sch = tir.Schedule(scalar_total, debug_mask="all")
    sch.loop_partition(sch.get_loops("total")[1], [2, None])
    partitioned = sch.get_child_blocks(sch.get_block("root"))[0]
    with pytest.raises(tir.ScheduleError, match="but it uses i"):
        sch.compute_at(partitioned, sch.get_loops("B")[1])


def test_regions_whose_extents_move_are_cached_in_full() -> None:
    @T.prim_func
    def steps(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 4), "float32")):
        for i in range(6):
            with T.block("rows"):
                vi = T.axis.spatial(6, i)
                T.reads(A[vi, 0 : vi % 2 + 3])
                T.writes(C[vi, 0 : vi % 2 + 3])
                for j in range(vi % 2 + 3):
                    C[vi, j] = A[vi, j] * T.float32(2)

    sch = tir.Schedule(steps, debug_mask="all")
    sch.cache_read("rows", 0, "global")
    require_same_results(sch, steps)


def test_padded_loops_of_one_value_leave_no_trace_in_the_outer_block() -> None:
    """The init of the outer block has not the loops that pad an axis of extent 1."""
    n, j, k = 1, 4, 5
    a = te.placeholder((n, k, j), name="A")
    axis = te.reduce_axis((0, k), name="k")
    total = te.compute((n, j), lambda i, x: te.sum(a[i, axis, x], axis=axis), name="B")
    func = te.create_prim_func([a, total])
    sch = tir.Schedule(func, debug_mask="all")
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 3])
    sch.blockize(outer, preserve_unit_iters=False)
    tir.analysis.verify_well_formed(sch.mod["main"])
    require_same_results(sch, func)
    replayed = tir.Schedule(func)
    sch.trace.apply_to_schedule(replayed, remove_postproc=False)
    tvm.ir.assert_structural_equal(replayed.mod, sch.mod)


def test_a_reduction_is_not_cut_where_its_axes_are_fused() -> None:
    """Nine values a row in steps of two: rows go on in the next turn of the outer loop."""
    sch = tir.Schedule(row_argmax, debug_mask="all")
    fused = sch.fuse(*sch.get_loops("argmax"))
    _, inner = sch.split(fused, [None, 2])
    with pytest.raises(tir.ScheduleError, match="can not be divided into"):
        sch.blockize(inner)
