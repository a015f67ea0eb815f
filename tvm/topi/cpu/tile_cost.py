"""What a tile whose sums stay in registers costs, in cycles of one core.

    step = TileStep(fmas=28, loads=16, l2_bytes=128)   # two vectors of weights, 14 elements of data
    step_cycles(step, CONV2D, info.timing)             # 15.6: multiply-adds alone would take 14

All micro-kernels are ranked by this: convolutions, products, Winograd's products, attention.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.target.cpu_timing import CpuTiming

from .fitted import TileRates


@dataclass(frozen=True, slots=True)
class TileStep:
    """What one step of the sums does for all of a tile."""

    fmas: int  # multiply-adds of vectors, each to a sum of its own
    loads: int  # vectors of one operand, elements of the other one
    l2_bytes: float = 0.0  # loaded from beyond L1


def relative_cycles(step: TileStep, rates: TileRates, timing: CpuTiming) -> float:
    """Cycles of a step in those that its multiply-adds take alone.

    The longest of multiply-adds, their chain, loads and traffic bounds it; and loads hinder the others.
    """
    alone = timing.fmas_per_cycle / step.fmas
    loads_each = step.loads / step.fmas
    bound = max(1.0, timing.fma_latency * alone, step.l2_bytes / rates.l2_bandwidth * alone)
    loads = timing.fmas_per_cycle * rates.load * loads_each
    bound = max(bound, loads) if rates.loads_overlap else bound * max(1.0, loads)
    hindered = bound * (1 + rates.load_slowdown * loads_each)
    return hindered + timing.fmas_per_cycle * rates.load_contention * loads_each


def step_cycles(step: TileStep, rates: TileRates, timing: CpuTiming) -> float:
    """Cycles of a step."""
    return step.fmas / timing.fmas_per_cycle * relative_cycles(step, rates, timing)
