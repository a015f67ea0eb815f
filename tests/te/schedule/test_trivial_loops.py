"""Loops of one iteration."""

from __future__ import annotations

from tvm import te
from tvm.tir import For
from tvm.tir.stmt_functor import post_order_visit


def loops_of(keep_trivial_loop: bool) -> list[int]:
    A = te.placeholder((1, 8), name="A")
    B = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="B")
    schedule = te.create_schedule(B.op).normalize()
    stmt = te.schedule.ScheduleOps(schedule, te.schedule.InferBound(schedule), keep_trivial_loop)
    extents: list[int] = []
    post_order_visit(stmt, lambda s: extents.append(int(s.extent)) if isinstance(s, For) else None)
    return extents


def test_schedule_ops_drops_loops_of_one_iteration() -> None:
    assert loops_of(keep_trivial_loop=False) == [8]


def test_schedule_ops_keeps_loops_of_one_iteration_on_request() -> None:
    assert loops_of(keep_trivial_loop=True) == [8, 1]
