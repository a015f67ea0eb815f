"""log, log2, log10, log1p, and the inverse hyperbolic functions, of both types.

x = 2**k * (1 + f) and log x = k ln 2 + f + (log(1 + f) - f): the file of each type takes a number
apart and has the tail in the brackets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .bits import Lanes, copysign, fabs, fma, number, select, sqrt

INFINITY = float("inf")
NAN = float("nan")
# from here on 1 is nothing beside the square of a number, in either type
LARGE = 1e9


@dataclass(frozen=True, slots=True)
class Logarithms:
    """The functions of one type; its constants are sums of two numbers."""

    split: Callable[[Lanes], tuple[Lanes, Lanes]]  # k and f
    tail: Callable[[Lanes], Lanes]  # log(1 + f) - f
    ln2: tuple[float, float]
    log2_e: tuple[float, float]
    log10_e: tuple[float, float]
    log10_2: tuple[float, float]
    unit: float  # below it, log1p(x) is x

    def log(self, x: Lanes) -> Lanes:
        return self._with_loss(x, None)

    def log2(self, x: Lanes) -> Lanes:
        return self._other_base(x, self.log2_e, (1.0, 0.0))

    def log10(self, x: Lanes) -> Lanes:
        return self._other_base(x, self.log10_e, self.log10_2)

    def _with_loss(self, x: Lanes, loss: Lanes | None) -> Lanes:
        """log(x) + loss"""
        k, f = self.split(x)
        tail = self.tail(f) if loss is None else self.tail(f) + loss
        return with_limits(x, fma(k, self.ln2[0], f + fma(k, self.ln2[1], tail)))

    def _other_base(
        self, x: Lanes, factor: tuple[float, float], of_two: tuple[float, float]
    ) -> Lanes:
        """log(x) times a constant in two parts: the large part meets f itself, which is exact."""
        k, f = self.split(x)
        rest = fma(self.tail(f), factor[0], f * number(x, factor[1]))
        if of_two[1]:
            rest = fma(k, of_two[1], rest)
        return with_limits(x, fma(k, of_two[0], fma(f, factor[0], rest)))

    def log1p(self, x: Lanes) -> Lanes:
        """log(u) for u = 1 + x rounded, corrected by what the rounding lost over u."""
        one = number(x, 1.0)
        u = one + x
        # the larger of 1 and x is subtracted first: that is exact
        lost = select(x < one, x - (u - one), one - (u - x))
        return select(fabs(x) < number(x, self.unit), x, self._with_loss(u, lost / u))

    def asinh(self, x: Lanes) -> Lanes:
        """log1p(a + a**2 / (1 + sqrt(a**2 + 1))) for a = |x|; log(a) + ln 2 where the square overflows."""
        one, size = number(x, 1.0), fabs(x)
        square = size * size
        near = self.log1p(size + square / (one + sqrt(square + one)))
        far = self.log(size) + number(x, math.log(2.0))
        return copysign(select(size < number(x, LARGE), near, far), x)

    def acosh(self, x: Lanes) -> Lanes:
        """log1p(t + sqrt(2 t + t**2)) for t = x - 1, which is exact near 1."""
        t = x - number(x, 1.0)
        near = self.log1p(t + sqrt(fma(t, t, t + t)))
        far = self.log(x) + number(x, math.log(2.0))
        return select(x < number(x, 1.0), NAN, select(x < number(x, LARGE), near, far))

    def atanh(self, x: Lanes) -> Lanes:
        """log1p(2 a / (1 - a)) / 2 for a = |x|"""
        size = fabs(x)
        value = self.log1p((size + size) / (number(x, 1.0) - size))
        return copysign(value * number(x, 0.5), x)


def with_limits(x: Lanes, value: Lanes) -> Lanes:
    """``value`` for positive finite ``x``; what a logarithm is elsewhere."""
    value = select(x < number(x, INFINITY), value, x)  # infinity, NaN
    value = select(x < number(x, 0.0), NAN, value)
    return select(x.equal(number(x, 0.0)), -INFINITY, value)
