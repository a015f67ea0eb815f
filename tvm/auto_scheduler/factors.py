"""Factorizations of extents: the sizes that tiles may have."""

from __future__ import annotations

import random
from functools import cache


@cache
def divisors(number: int) -> tuple[int, ...]:
    """The divisors from 1 up."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(dict.fromkeys([*small, *[number // d for d in reversed(small)]]))


@cache
def factorizations(extent: int, count: int, largest_last: int) -> tuple[tuple[int, ...], ...]:
    """All lengths of ``count`` inner loops whose product divides an extent.

    Parameters
    ----------
    extent : int
        The extent.
    count : int
        How many loops; the outermost one, which has what is left, does not count.
    largest_last : int
        The innermost loop has at most so many iterations.
    """
    if not count:
        return ((),)
    found = []
    for last in divisors(extent):
        if last <= largest_last:
            for rest in factorizations(extent // last, count - 1, extent):
                found.append((*rest, last))
    return tuple(found)


def random_lengths(
    rng: random.Random, extent: int, count: int, largest_last: int
) -> tuple[int, ...]:
    """One of the factorizations, each as likely."""
    return rng.choice(factorizations(extent, count, largest_last))


def moved_factor(
    rng: random.Random, extent: int, lengths: tuple[int, ...], largest_last: int
) -> tuple[int, ...] | None:
    """Other lengths: a factor of one loop goes to another one. None if none can."""
    product = 1
    for length in lengths:
        product *= length
    parts = [max(extent // product, 1), *lengths]
    order = list(range(len(parts)))
    rng.shuffle(order)
    for place, source in enumerate(order):
        target = order[(place + 1) % len(order)]
        room = largest_last // parts[target] if target == len(parts) - 1 else parts[source]
        choices = [d for d in divisors(parts[source]) if 1 < d <= room]
        if choices:
            factor = rng.choice(choices)
            parts[source] //= factor
            parts[target] *= factor
            return tuple(parts[1:])
    return None
