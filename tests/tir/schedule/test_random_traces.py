"""Random schedules compute what the program did before."""

from __future__ import annotations

import pytest

from tests.tir.schedule.random_traces import check


@pytest.mark.parametrize("seed", range(30))
def test_random_schedules_compute_the_same(seed: int) -> None:
    check(seed)
