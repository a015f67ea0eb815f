"""x86 helpers of the classic API."""

from __future__ import annotations

from .cpu import cpu_info


def get_simd_32bit_lanes() -> int:
    """32-bit values in one vector register of the current target."""
    return cpu_info().fp32_lanes
