"""Blocks that pad: what they become part of, and how they are taken apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tir.schedule.random_traces import run
from tvm.script import tir as T
from tvm.tir import PrimFunc, Schedule, ScheduleError


@T.prim_func
def padded_sums(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    B = T.alloc_buffer((12,), "float32")
    P = T.alloc_buffer((14,), "float32")
    for i in range(12):
        with T.block("B"):
            v = T.axis.spatial(12, i)
            B[v] = A[v] * T.float32(2)
    for i in range(14):
        with T.block("pad"):
            v = T.axis.spatial(14, i)
            P[v] = T.if_then_else(v >= 1 and v < 13, B[v - 1], T.float32(0))
    for i, r in T.grid(12, 3):
        with T.block("C"):
            v, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + P[v + vr]


def agrees(sch: Schedule, func: PrimFunc) -> bool:
    pairs = zip(run(sch.mod["main"]), run(func), strict=True)
    return all(np.allclose(found, wanted) for found, wanted in pairs)


def test_a_block_is_not_computed_where_some_of_it_has_no_place() -> None:
    # elements of the border belong to no element of B
    sch = Schedule(padded_sums)
    with pytest.raises(ScheduleError, match="beyond the elements from 0 to 11"):
        sch.reverse_compute_inline("pad")
    sch.compute_inline("B")
    assert agrees(sch, padded_sums)


def test_the_border_may_be_filled_before_loops_that_are_shared() -> None:
    sch = Schedule(padded_sums)
    loop, _ = sch.get_loops("C")
    outer, _ = sch.split(loop, [3, None])
    sch.compute_at("pad", outer)
    filled = sch.decompose_padding("pad", sch.get_loops("pad")[0])
    assert len(sch.get_loops(filled)) == 2
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 4
    assert agrees(sch, padded_sums)


def test_a_block_is_not_computed_where_several_of_its_elements_would_be() -> None:
    # each element of P is read for three elements of its copy
    sch = Schedule(padded_sums)
    sch.reindex("C", ("read", 0))
    with pytest.raises(ScheduleError, match="whose indices have an inverse"):
        sch.reverse_compute_inline("P_reindex")
