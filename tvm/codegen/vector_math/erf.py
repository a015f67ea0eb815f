"""The error function: a polynomial below 0.93, above it 1 - exp(-x Q(x))."""

from __future__ import annotations

from .bits import Lanes, clamp, copysign, fabs, fma, number, polynomial, select
from .exponential import exp

BORDER = 0.93
# erf rounds to 1 from here on
ONE = 3.95
# erf(x) / x - 1 in x**2
SMALL = (0.12837916612625122, -0.3761262893676758, 0.11283625662326813, -0.02685573138296604,
         0.005192405078560114, -0.0008049769676290452, 7.996649947017431e-05)  # fmt: skip
# -log(1 - erf(x)) / x
LARGE = (1.128551721572876, 0.635625422000885, 0.10526234656572342, -0.02267369255423546,
         0.0029298339504748583, -4.9451682571088895e-05, -4.561119567370042e-05,
         4.940955932397628e-06)  # fmt: skip


def erf(x: Lanes) -> Lanes:
    size = clamp(fabs(x), 0.0, ONE)
    square = x * x
    small = fma(x, polynomial(square, SMALL), x)
    large = number(x, 1.0) - exp(-(size * polynomial(size, LARGE)))
    return select(fabs(x) < number(x, BORDER), small, copysign(large, x))
