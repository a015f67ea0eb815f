"""Where allocations go in their pools: two greedy orders, and a search among orders.

All place one allocation after the other. A build puts each into the first gap among those that are
in use with it. The global functions of the greedy orders, which programs call, put it behind all of
those in its pool, where release 0.18 has it, and most often need more memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tvm._ffi.registry import register_func
from tvm.error import TVMError
from tvm.ir.memory_pools import UNLIMITED, PoolInfo
from tvm.tir.usmp.utils import BufferInfo, PoolAllocation

Placement = dict[BufferInfo, PoolAllocation]
Algorithm = Callable[[Sequence[BufferInfo], int], Placement]

# the offset among the spans that conflicting allocations take in a pool, in order of their offsets
Fit = Callable[[BufferInfo, Sequence[tuple[int, int]]], int]

_ATTEMPTS = 200  # of the search


def greedy_by_size(buffers: Sequence[BufferInfo], memory_pressure: int) -> Placement:
    """The largest first."""
    return _place(_by_size(buffers))


def greedy_by_conflicts(buffers: Sequence[BufferInfo], memory_pressure: int) -> Placement:
    """Those with the most conflicts first."""
    return _place(_by_conflicts(buffers))


@register_func("tir.usmp.algo.greedy_by_size", override=True)
def _behind_by_size(buffers: Sequence[BufferInfo], memory_pressure: int) -> Placement:
    return _place(_by_size(buffers), _behind)


@register_func("tir.usmp.algo.greedy_by_conflicts", override=True)
def _behind_by_conflicts(buffers: Sequence[BufferInfo], memory_pressure: int) -> Placement:
    return _place(_by_conflicts(buffers), _behind)


@register_func("tir.usmp.algo.hill_climb", override=True)
def hill_climb(buffers: Sequence[BufferInfo], memory_pressure: int) -> Placement:
    """Start with the largest first, and exchange places in the order while that saves memory."""
    rng = random.Random(0)
    order = _by_size(buffers)
    best = _place(order)
    best_size = total_size(best)
    for _ in range(_ATTEMPTS):
        if best_size <= memory_pressure or len(order) < 2:
            break
        tried = _exchanged(order, best, rng)
        try:
            placement = _place(tried)
        except TVMError:
            continue  # this order does not fit
        if (size := total_size(placement)) <= best_size:
            order, best, best_size = tried, placement, size
    return best


ALGORITHMS: dict[str, Algorithm] = {
    "greedy_by_size": greedy_by_size,
    "greedy_by_conflicts": greedy_by_conflicts,
    "hill_climb": hill_climb,
}


def pool_sizes(placement: Placement) -> dict[PoolInfo, int]:
    """The bytes that each pool needs."""
    sizes: dict[PoolInfo, int] = {}
    for buffer, place in placement.items():
        end = place.offset + buffer.size
        sizes[place.pool_info] = max(sizes.get(place.pool_info, 0), end)
    return sizes


def total_size(placement: Placement) -> int:
    """The bytes of all pools."""
    return sum(pool_sizes(placement).values())


def _by_size(buffers: Sequence[BufferInfo]) -> list[BufferInfo]:
    names_backwards = sorted(buffers, key=lambda b: b.name_hint, reverse=True)
    return sorted(names_backwards, key=lambda b: (-b.size, -len(b.conflicts)))


def _by_conflicts(buffers: Sequence[BufferInfo]) -> list[BufferInfo]:
    names_backwards = sorted(buffers, key=lambda b: b.name_hint, reverse=True)
    return sorted(names_backwards, key=lambda b: (-len(b.conflicts), -b.size))


def _exchanged(
    order: Sequence[BufferInfo], placement: Placement, rng: random.Random
) -> list[BufferInfo]:
    """The order with one that reaches the top of its pool exchanged with one it conflicts with."""
    sizes = pool_sizes(placement)
    top = [b for b, place in placement.items() if place.offset + b.size == sizes[place.pool_info]]
    chosen = rng.choice(top)
    near = chosen.conflicts or list(order)
    other = rng.choice([*near, *rng.choice(near).conflicts])
    positions = {buffer: i for i, buffer in enumerate(order)}
    result = list(order)
    if other in positions:
        i, j = positions[chosen], positions[other]
        result[i], result[j] = result[j], result[i]
    return result


def _first_gap(buffer: BufferInfo, taken: Sequence[tuple[int, int]]) -> int:
    offset = 0
    for first, end in taken:
        if offset + buffer.size <= first:
            break
        offset = max(offset, _aligned(end, buffer.alignment))
    return offset


def _behind(buffer: BufferInfo, taken: Sequence[tuple[int, int]]) -> int:
    return max([_aligned(end, buffer.alignment) for _, end in taken], default=0)


def _place(order: Sequence[BufferInfo], fit: Fit = _first_gap) -> Placement:
    placement: Placement = {}
    for buffer in order:
        placement[buffer] = _find_place(buffer, placement, fit)
    return placement


def _find_place(buffer: BufferInfo, placement: Placement, fit: Fit) -> PoolAllocation:
    """The offset in the first pool with room."""
    for pool in buffer.pool_candidates:
        taken = sorted(
            [
                (place.offset, place.offset + other.size)
                for other in buffer.conflicts
                if (place := placement.get(other)) is not None and place.pool_info is pool
            ]
        )
        offset = fit(buffer, taken)
        if pool.size_hint_bytes in (UNLIMITED, None) or (
            offset + buffer.size <= pool.size_hint_bytes
        ):
            return PoolAllocation(pool, offset)
    names = ", ".join(
        [f"{p.pool_name} ({p.size_hint_bytes} bytes)" for p in buffer.pool_candidates]
    )
    raise TVMError(
        f"static memory planning found no room for {buffer.name_hint} of {buffer.size} bytes "
        f"in the pools {names}",
        hint="give a pool more bytes, or add one",
    )


def _aligned(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment
