"""The cost of tiles whose sums stay in registers."""

from __future__ import annotations

import pytest

from tvm.target.cpu_timing import CpuTiming
from tvm.topi.cpu.fitted import CONV2D, MATMUL, WINOGRAD, TileRates
from tvm.topi.cpu.tile_cost import TileStep, relative_cycles, step_cycles
from tvm.topi.nn.conv2d.layout_choice import (
    full_vector_channels,
    is_faster_in_rows,
    row_columns,
)

TIMING = CpuTiming(fmas_per_cycle=2, fma_latency=4)
FREE = TileRates(load=0.0, l2_bandwidth=32.0)


def test_a_large_tile_without_loads_takes_its_multiply_adds() -> None:
    assert step_cycles(TileStep(28, 0), FREE, TIMING) == 14
    assert relative_cycles(TileStep(28, 0), FREE, TIMING) == 1


def test_few_sums_wait_for_their_chains() -> None:
    assert step_cycles(TileStep(2, 0), FREE, TIMING) == 4


def test_traffic_bounds_a_step_that_reuses_little() -> None:
    assert step_cycles(TileStep(8, 0, l2_bytes=256), FREE, TIMING) == 8


@pytest.mark.parametrize("rates", [CONV2D, MATMUL, WINOGRAD])
def test_more_loads_never_make_a_step_faster(rates: TileRates) -> None:
    cycles = [step_cycles(TileStep(12, loads), rates, TIMING) for loads in range(30)]
    assert cycles == sorted(cycles) and cycles[0] < cycles[-1]


def test_loads_that_do_not_overlap_lengthen_a_chain() -> None:
    overlapping = TileRates(load=0.5, l2_bandwidth=32.0)
    serial = TileRates(load=0.5, l2_bandwidth=32.0, loads_overlap=False)
    step = TileStep(fmas=2, loads=4)
    assert step_cycles(step, overlapping, TIMING) == 4
    assert step_cycles(step, serial, TIMING) == 8


def test_few_channels_are_faster_in_rows_where_their_window_is_large() -> None:
    assert is_faster_in_rows(3, (9, 9), 16, is_blocked=True)
    assert not is_faster_in_rows(3, (1, 1), 16, is_blocked=True)
    assert not is_faster_in_rows(12, (9, 9), 16, is_blocked=False)


def test_rows_are_full_vectors_unless_too_much_is_in_vain() -> None:
    assert row_columns(131, 16) == 144
    assert row_columns(18, 16) == 24
    assert row_columns(64, 16) == 64


def test_filters_of_zeros_pay_where_sums_are_long() -> None:
    assert full_vector_channels(24, 8, 16, terms=4000) == 32
    assert full_vector_channels(24, 8, 16, terms=100) is None
    assert full_vector_channels(32, 16, 16, terms=4000) is None
