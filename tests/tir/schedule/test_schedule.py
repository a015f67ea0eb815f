"""Schedules: finding blocks, the trace, errors, and programs that build and run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tests.tir.schedule.programs import elementwise_chain, matmul, matmul_relu
from tests.tir.schedule.zoo import in_place_updates, scalar_total
from tvm import tir
from tvm.tir.schedule import Trace
from tvm.tir.schedule.testing import verify_trace_roundtrip


def test_a_tiled_matmul_builds_and_runs() -> None:
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_outer, i_inner = sch.split(i, factors=[None, 4])
    j_outer, j_inner = sch.split(j, factors=[None, 5])
    sch.reorder(i_outer, j_outer, k, i_inner, j_inner)
    sch.vectorize(j_inner)
    sch.parallel(i_outer)
    sch.decompose_reduction(block, k)
    func = tvm.build(sch.mod, target="llvm")
    a, b = [np.random.default_rng(0).random(shape, "float32") for shape in ((12, 8), (8, 10))]
    c = tvm.nd.array(np.zeros((12, 10), "float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_a_trace_is_replayed_from_python_and_json() -> None:
    sch = tir.Schedule(matmul_relu, debug_mask="all")
    i, _, _ = sch.get_loops("C")
    outer, _ = sch.split(i, factors=[None, 4])
    sch.reverse_compute_at("D", outer)
    sch.annotate(outer, "pragma", {"key": [1, "two"]})
    verify_trace_roundtrip(sch, matmul_relu)
    again = tir.Schedule(matmul_relu)
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_a_simplified_trace_leaves_out_what_is_not_used() -> None:
    sch = tir.Schedule(matmul)
    sch.get_block("root")
    _, _, k = sch.get_loops(sch.get_block("C"))
    sch.unroll(k)
    assert [inst.kind.name for inst in sch.trace.simplified(True).insts] == [
        "GetBlock", "GetLoops", "Unroll",
    ]  # fmt: skip


def test_a_rejected_primitive_leaves_the_program_as_it_was() -> None:
    sch = tir.Schedule(matmul, debug_mask="all")
    before = sch.mod
    _, _, k = sch.get_loops("C")
    with pytest.raises(tir.ScheduleError, match=r"(?s)parallel.*vk, which is not data parallel"):
        sch.parallel(k)
    assert sch.mod is before
    sch.unroll(k)


def test_a_missing_block_is_named_with_a_hint() -> None:
    sch = tir.Schedule(matmul_relu)
    with pytest.raises(tir.ScheduleError, match="Cannot find a block with the name: DD"):
        sch.get_block("DD")


def test_copies_are_scheduled_apart() -> None:
    sch = tir.Schedule(elementwise_chain)
    block = sch.get_block("C")
    other = sch.copy()
    other.compute_inline(block)
    assert sch.get(block).name_hint == "C"
    with pytest.raises(ValueError, match="no longer part of the program"):
        other.get(block)


def test_loops_are_not_merged_with_those_that_need_their_whole_sum() -> None:
    sch = tir.Schedule(scalar_total)
    total, scaled = sch.get_child_blocks(sch.get_block("root"))
    with pytest.raises(tir.ScheduleError, match="reduces what the other loops use"):
        sch.merge(sch.get_loops(total)[0], sch.get_loops(scaled)[0])


def test_loops_are_not_merged_with_those_whose_sum_is_in_a_block_inside() -> None:
    sch = tir.Schedule(scalar_total)
    total, scaled = sch.get_child_blocks(sch.get_block("root"))
    sch.loop_partition(sch.get_loops(total)[1], [2, None])
    outer = sch.get_loops(sch.get_block("total_j_common"))[0]
    with pytest.raises(tir.ScheduleError, match="reduces what the other loops use"):
        sch.merge(outer, sch.get_loops(scaled)[0])


def test_a_cache_of_what_is_written_has_no_earlier_values() -> None:
    sch = tir.Schedule(in_place_updates)
    both = sch.blockize(sch.get_child_blocks(sch.get_block("root")))
    with pytest.raises(tir.ScheduleError, match="would begin without its values"):
        sch.cache_write(both, 0, "global")
