"""Buffers that roll: less memory, nothing computed twice, the same result."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tir.schedule.programs import elementwise_chain, two_stencils
from tests.tir.schedule.random_traces import require_same_results
from tvm import tir
from tvm.ir.structural import assert_structural_equal
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip


@T.prim_func
def smoothed(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((10,), "float32")
    for i in T.serial(10):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(3)
    for i in T.serial(8):
        with T.block("C"):
            vi = T.axis.remap("S", [i])
            C[vi] = B[vi] + B[vi + 2]


def shape_of(sch: tir.Schedule, name: str) -> list[int]:
    (buffer,) = [b for b in sch.get(sch.get_block("root")).alloc_buffers if b.name == name]
    return [int(extent) for extent in buffer.shape]


def tiled_stencils(rows: int, columns: int, order: str) -> tir.Schedule:
    sch = tir.Schedule(two_stencils, debug_mask="all")
    i, j, _ = sch.get_loops("D")
    i_outer, i_inner = sch.split(i, [None, rows])
    j_outer, j_inner = sch.split(j, [None, columns])
    outer = [i_outer, j_outer] if order == "rows" else [j_outer, i_outer]
    sch.reorder(*outer, i_inner, j_inner)
    sch.compute_at("C", outer[1])
    sch.compute_at("B", outer[1])
    return sch


def test_a_buffer_has_room_for_one_iteration() -> None:
    @T.prim_func
    def expected(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((3,), "float32")
        for i in T.serial(8):
            for ax0 in T.serial(3):
                with T.block("B"):
                    T.where(i < 1 or 2 <= ax0)  # noqa: SIM300
                    vi = T.axis.opaque(10, i + ax0)
                    B[vi % 3] = A[vi] * T.float32(3)
            with T.block("C"):
                vi = T.axis.opaque(8, i)
                T.reads(B[0:3])
                C[vi] = B[vi % 3] + B[(vi + 2) % 3]

    sch = tir.Schedule(smoothed, debug_mask="all")
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    assert_structural_equal(sch.mod["main"], expected.with_attr("global_symbol", "smoothed"))
    verify_trace_roundtrip(sch, smoothed)


@pytest.mark.parametrize("rows, columns", [(1, 9), (2, 3), (4, 2), (3, 4), (10, 1)])
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_rolled_stencils_compute_the_same(rows: int, columns: int, order: str) -> None:
    sch = tiled_stencils(rows, columns, order)
    rolled = []
    for name in ("B", "C"):
        before = shape_of(sch, name)
        try:
            sch.rolling_buffer(name, 0)
        except tir.ScheduleError as rejected:
            assert "moves what it writes" in str(rejected)
            continue
        rolled.append(name)
        assert np.prod(shape_of(sch, name)) <= np.prod(before)
    assert rolled
    require_same_results(sch, two_stencils)


def test_both_buffers_of_a_chain_roll_along_the_outer_loop() -> None:
    sch = tiled_stencils(2, 3, "rows")
    sch.rolling_buffer("B", 0)
    sch.rolling_buffer("C", "C")
    assert shape_of(sch, "B") == [4, 11]
    # rows of C do not overlap: it rolls along its columns
    assert shape_of(sch, "C") == [10, 5]
    verify_trace_roundtrip(sch, two_stencils)


@pytest.mark.parametrize("kind", ["parallel", "blockIdx.x", "vectorize"])
def test_loops_that_share_the_buffer_run_in_order(kind: str) -> None:
    sch = tir.Schedule(smoothed)
    (i,) = sch.get_loops("C")
    sch.compute_at("B", i)
    getattr(sch, kind)(i) if "." not in kind else sch.bind(i, kind)
    with pytest.raises(tir.ScheduleError, match="do not run one after the other"):
        sch.rolling_buffer("B", 0)


def test_buffers_that_do_not_overlap_are_rejected() -> None:
    sch = tir.Schedule(elementwise_chain)
    sch.compute_at("C", sch.get_loops("D")[0])
    with pytest.raises(tir.ScheduleError, match=r"rolling-buffer.*(?s:.*)no loop around it"):
        sch.rolling_buffer("C", 0)
    with pytest.raises(tir.ScheduleError, match="is not allocated"):
        sch.rolling_buffer("D", 0)
    with pytest.raises(tir.ScheduleError, match="no loop is around it and all blocks"):
        sch.rolling_buffer("B", 0)
