"""What a core does in a cycle, and how fast caches and memory give it data.

The numbers are of server cores with AVX2 or AVX-512; cost models rank by their ratios, which processors of other
kinds share. `python -m benchmarks.roofline` measures the peaks.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuTiming:
    """Rates of one core, in its cycles."""

    fmas_per_cycle: int = 2  # vector multiply-adds that start
    fma_latency: int = 4
    l2_ways: int = 16
    l2_bandwidth: int = 64  # bytes a cycle from L2, when a kernel begins
    shared_bandwidth: int = 24  # bytes a cycle from L2 or L3, beside multiply-adds
    memory_bandwidth: int = 9  # bytes a cycle from memory for all cores: 28 GB/s to two of 3.2 GHz
