"""Expressions of block variables that are computed before the loops around the block."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.tir.schedule.programs import elementwise_chain, padded_conv1d
from tests.tir.schedule.random_traces import require_same_results, run
from tvm import tir
from tvm.ir.structural import assert_structural_equal
from tvm.script import tir as T
from tvm.tir.schedule.testing import verify_trace_roundtrip


@T.prim_func
def gathered(A: T.Buffer((6, 12), "float32"), B: T.Buffer((4, 9, 7), "float32")):
    for i, j, k in T.grid(4, 9, 7):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            T.reads(A[0:6, 0:12])
            B[vi, vj, vk] = A[(vi * 3 + vj) % 6, vk * 5 % 12] + A[(vi * 3 + vj) % 6, 11]


@T.prim_func
def pooled(A: T.Buffer((8, 13), "float32"), B: T.Buffer((7,), "float32")):
    for i, r in T.grid(5, 4):
        with T.block("B"):
            vi = T.axis.spatial((2, 7), i + 2)
            vr = T.axis.reduce(4, r)
            with T.init():
                B[vi % 5 + 1] = T.float32(0)
            B[vi % 5 + 1] = B[vi % 5 + 1] + A[(vi * 3 + vr * 5) % 8, vi * 2 % 13]


def check_same(sch: tir.Schedule, original: tir.PrimFunc) -> None:
    verify_trace_roundtrip(sch, original)
    require_same_results(sch, original)


def test_indices_are_computed_before_the_loops() -> None:
    @T.prim_func
    def expected(A: T.Buffer((6, 12), "float32"), B: T.Buffer((4, 9, 7), "float32")):
        index_var_0 = T.alloc_buffer((4, 9), "int32", strides=(9, 1))
        index_var_1 = T.alloc_buffer((7,), "int32", strides=(1,))
        for ax0, ax1 in T.grid(4, 9):
            with T.block("index_0"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                index_var_0[v0, v1] = (v0 * 3 + v1) % 6
        for ax0 in T.serial(7):
            with T.block("index_1"):
                v0 = T.axis.remap("S", [ax0])
                index_var_1[v0] = v0 * 5 % 12
        for i, j, k in T.grid(4, 9, 7):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                T.reads(A[0:6, 0:12])
                B[vi, vj, vk] = A[index_var_0[vi, vj], index_var_1[vk]] + A[index_var_0[vi, vj], 11]

    sch = tir.Schedule(gathered, debug_mask="all")
    blocks = sch.cache_index("B", "global")
    assert [sch.get(block).name_hint for block in blocks] == ["index_0", "index_1"]
    assert_structural_equal(sch.mod["main"], expected.with_attr("global_symbol", "gathered"))
    check_same(sch, gathered)


def test_what_is_computed_less_often_stays() -> None:
    sch = tir.Schedule(gathered, debug_mask="all")
    (block,) = sch.cache_index("B", "global", cse_thresh=2)
    (written,) = sch.get(block).writes
    assert [int(extent) for extent in written.buffer.shape] == [4, 9]
    assert sch.cache_index("B", "global", 3) == []
    check_same(sch, gathered)


def test_indices_of_reductions_and_of_domains_with_an_offset() -> None:
    sch = tir.Schedule(pooled, debug_mask="all")
    i, r = sch.get_loops("B")
    sch.split(i, [None, 2])
    blocks = sch.cache_index("B", "global")
    shapes = [[int(e) for e in sch.get(b).writes[0].buffer.shape] for b in blocks]
    assert shapes == [[5, 4], [5], [5]]
    check_same(sch, pooled)


def test_programs_with_cached_indices_build() -> None:
    sch = tir.Schedule(gathered)
    sch.cache_index("B", "global")
    (expected,) = run(gathered)[1:]
    a = tvm.nd.array(run(gathered)[0])
    b = tvm.nd.array(np.zeros((4, 9, 7), "float32"))
    tvm.build(sch.mod, target="llvm")(a, b)
    np.testing.assert_allclose(b.numpy(), expected, 1e-5)


def test_blocks_of_indices_stay_before_their_use() -> None:
    sch = tir.Schedule(gathered, debug_mask="all")
    (index,) = sch.cache_index("B", "global", 2)
    assert sch.get(sch.get_consumers(index)[0]).name_hint == "B"
    with pytest.raises(tir.ScheduleError, match="has not been written completely"):
        sch.reverse_compute_at("B", sch.get_loops(index)[0])
    sch.compute_at(index, sch.get_loops("B")[0])
    check_same(sch, gathered)


def test_values_that_are_loaded_are_no_indices() -> None:
    sch = tir.Schedule(padded_conv1d)
    assert sch.cache_index("P", "global") != []
    reads = [sch.get(block).reads for block in sch.get_producers(sch.get_block("P"))]
    assert reads == [() for _ in reads]
    check_same(sch, padded_conv1d)


def test_caching_indices_of_no_block_or_nowhere_is_rejected() -> None:
    sch = tir.Schedule(gathered)
    with pytest.raises(tir.ScheduleError, match="does not operate on the root block"):
        sch.cache_index("root", "global")
    with pytest.raises(tir.ScheduleError, match="storage scope 'nowhere' is invalid"):
        sch.cache_index("B", "nowhere")
    assert tir.Schedule(elementwise_chain).cache_index("C", "global") == []
