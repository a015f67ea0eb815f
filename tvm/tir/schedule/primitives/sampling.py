"""Numbers and places drawn at random, the same ones for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from tvm.error import RuntimeValueError
from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import IntImm, IterVar

from ..analyses.bindings import loops_bound_to
from ..analyses.block_kind import is_output_block
from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import common_ancestor, loops_of, only_child, scope_of

Draw = Callable[[int], int]  # a number from 0 up to, but not, the argument
PRECISION = 1 << 30


def draw_index(draw: Draw, probabilities: Sequence[float]) -> int:
    """The index of one of several weights, as often as they say."""
    limits = list(accumulate(probabilities))
    point = draw(PRECISION) / PRECISION * limits[-1]
    return next((i for i, limit in enumerate(limits) if point < limit), len(limits) - 1)


def perfect_tile(draw: Draw, extent: int, n: int, max_innermost: int) -> list[int]:
    """Factors whose product is the extent, each way to choose them as likely."""
    if n < 1:
        raise RuntimeValueError(f"a tile requires at least one factor, got {n}")
    innermost = [d for d in divisors(extent) if max_innermost <= 0 or d <= max_innermost]
    if n == 1:
        return [extent]
    weights = [float(factorisations(extent // d, n - 1)) for d in innermost]
    last = innermost[draw_index(draw, weights)]
    return [*_factors(draw, extent // last, n - 1), last]


def _factors(draw: Draw, extent: int, n: int) -> list[int]:
    factors: list[int] = []
    for left in range(n - 1, 0, -1):
        choices = divisors(extent)
        chosen = choices[
            draw_index(draw, [float(factorisations(extent // d, left)) for d in choices])
        ]
        factors.append(chosen)
        extent //= chosen
    return [*factors, extent]


def divisors(number: int) -> list[int]:
    """All divisors, the least first."""
    low = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return [*low, *[number // d for d in reversed(low) if d * d != number]]


def factorisations(number: int, n: int) -> int:
    """In how many ways a number is a product of n factors, in order."""
    count, prime = 1, 2
    while number > 1:
        if prime * prime > number:
            prime = number
        power = 0
        while number % prime == 0:
            number //= prime
            power += 1
        count *= math.comb(power + n - 1, n - 1)
        prime += 1
    return count


def partitioned_tile(
    draw: Draw, extent: int, n: int, position: int, inner_factor: int
) -> list[int]:
    """Factors of which those from a position on have a product that is a multiple of another one."""
    if not 0 < position < n:
        raise RuntimeValueError(
            f"partition_pos requires a position from 1 to {n - 1}, got {position}"
        )
    if inner_factor <= 0:
        raise RuntimeValueError(f"innerpart_factor requires a positive number, got {inner_factor}")
    if extent % inner_factor:
        return [extent, *[1] * (n - 1)]
    rest = extent // inner_factor
    outer_part = divisors(rest)[draw(len(divisors(rest)))]
    outer = _factors(draw, outer_part, position)
    inner = _factors(draw, extent // outer_part, n - position)
    return [*outer, *inner]


def constant_extent(loop: StmtSRef) -> int:
    """The extent of a loop; rejected if it is not constant."""
    extent = loop.loop.extent
    if not isinstance(extent, IntImm):
        raise PrimitiveError(
            "ScheduleError: The loop's extent is not constant",
            f"A tile of {{0}} requires a constant extent, got {extent}",
            loop.loop,
        )
    return extent.value


def compute_locations(state: ScheduleState, block: StmtSRef) -> tuple[list[StmtSRef], list[int]]:
    """The loops that a block may be computed at, with their numbers: -1 the root, -2 inlined.

    Loops of one iteration do not count, nor those inside of all reductions of the blocks that use it.
    """
    scope = scope_of(block)
    locations, numbers = [StmtSRef.inline_mark()], [-2]
    consumers = state.get_block_scope(scope).consumers(block)
    if is_output_block(state, block, scope) or not consumers or not _may_be_inlined(block):
        locations, numbers = [], []
    locations.append(StmtSRef.root_mark())
    numbers.append(-1)
    if not consumers or is_output_block(state, block, scope):
        return locations, numbers
    place = consumers[0] if len(consumers) == 1 else common_ancestor(consumers)
    loops = loops_of(place) if place.is_block else [*loops_of(place), place]
    depth = min([_depth_of_reductions(state, consumer) for consumer in consumers])
    for position, loop in enumerate(loops[:depth]):
        extent = loop.loop.extent
        if not (isinstance(extent, IntImm) and extent.value == 1):
            locations.append(loop)
            numbers.append(position)
        inner = loops[position + 1].stmt if position + 1 < len(loops) else None
        if inner is not None and not only_child(loop.loop, inner):
            break
    return locations, numbers


def _may_be_inlined(block: StmtSRef) -> bool:
    return block.block.init is None


def _depth_of_reductions(state: ScheduleState, block: StmtSRef) -> int:
    """How many loops there are up to the innermost that a block reduces over; all if it does not."""
    loops = loops_of(block)
    reduced = loops_bound_to(state.realize_of(block), IterVar.CommReduce)
    inside = [i for i, loop in enumerate(loops) if loop.loop.loop_var in reduced]
    return inside[-1] + 1 if inside else len(loops)
