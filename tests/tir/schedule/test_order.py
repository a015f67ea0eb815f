"""What primitives must not bring into another order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tir.schedule.programs import padded_conv1d
from tests.tir.schedule.random_traces import run
from tests.tir.schedule.zoo import running_sums
from tvm import tir


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
