"""Remainders of division rounded down: they have the sign of the divisor."""

from math import gcd

from tvm.ir.rules import calling, fold, in_order, pattern_consts, pattern_vars, rule, rules

from .notation import (
    INT32_LEAST,
    below,
    broadcast,
    lower,
    modulus,
    ramp,
    residue,
    stays_inside,
    symbolic,
    upper,
)

x, y, z, b, lanes = pattern_vars("x y z b lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

FLOORMOD_WRAPPING = rules(
    rule(x % 1, 0),
    rule(broadcast(x, lanes) % broadcast(y, lanes), broadcast(x % y, lanes)),
)

FLOORMOD_NO_OVERFLOW = rules(
    # the least number has no opposite
    rule(x % c0, 0 - (x * -1) % fold(0 - c0), when=(c0 < 0) & (lower(x) > INT32_LEAST)),
    # bounds that fall into one multiple, and known remainders
    rule(x % c0, x, when=(c0 > 0) & (lower(x) >= 0) & (upper(x) < c0)),
    rule(x % c0, x - fold(lower(x) // c0 * c0), when=(c0 > 0) & (lower(x) // c0 == upper(x) // c0)),
    rule(x % c0, fold(residue(x) % c0), when=(c0 > 0) & (modulus(x) % c0 == 0)),
    rule(x % x, 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(0 % x, 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    # multiples vanish
    rule((x * c0 + y) % c1, y % c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((x * c0 - y) % c1, (0 - y) % c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((y - x * c0) % c1, y % c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((x * c0 + y + z) % c1, (y + z) % c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((x + c0) % c1, (x + fold(c0 % c1)) % c1, when=(c1 > 0) & ((c0 < 0) | (c0 >= c1))),
    rule((x * c0 + y) % c1, in_order(x * fold(c0 % c1) + y) % c1, when=(c1 > 0) & (c0 > c1)),
    rule((x * c0) % c1, (x * fold(c0 % c1)) % c1, when=(c1 > 0) & (c0 > c1)),
    rule((x + y) % c0, x % c0, when=(c0 > 0) & (modulus(y) % c0 == 0) & (residue(y) % c0 == 0)),
    # common divisors of dividend and divisor
    rule((x * c0) % c1, (x % fold(c1 // c0)) * c0, when=(c0 > 0) & (c1 > 0) & (c1 % c0 == 0)),
    rule(
        (x * c0 + y) % c1,
        (x % fold(c1 // c0)) * c0 + y,
        when=(c0 > 0) & (c1 > 0) & (c1 % c0 == 0) & (lower(y) >= 0) & (upper(y) < c0),
    ),
    # remainders of remainders
    rule((x % c0) % c1, x % c1, when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    rule((x % c0 + y) % c1, (x + y) % c1, when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    rule((y - x % c0) % c1, (y - x) % c1, when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    rule((x % c0 * c2 + y) % c1, (x * c2 + y) % c1, when=(c0 > 0) & (c1 > 0) & (c0 * c2 % c1 == 0)),
    # symbolic divisors: what is divided by zero has no value that could be lost
    rule((x * y) % y, 0),
    rule((x * y * c0) % y, 0),
    rule((x + (x * -1) % y) % y, 0),
    rule((x * y * c0 + z) % (y * c0), z % (y * c0)),
    rule((x * y + z) % y, z % y, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule((x + y) % y, x % y, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule((x - y) % y, x % y, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule((x % y) % y, x % y, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule(x % y, x, when=(lower(x) >= 0) & (lower(y) > 0) & below(x, y)),
    # vectors: a stride that the divisor divides, or lanes that stay inside one multiple
    rule(
        ramp(b, c0, lanes) % broadcast(c1, lanes),
        broadcast(b % c1, lanes),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule(
        ramp(b, c0, lanes) % broadcast(c1, lanes),
        ramp(b % c1, c0, lanes),
        when=(c1 > 0)
        & (c0 >= 0)
        & stays_inside(c0, lanes, residue(b), calling(gcd, modulus(b), c1)),
    ),
    rule(
        ramp(b, c0, lanes) % broadcast(c1, lanes),
        ramp(b % c1, c0, lanes) % broadcast(c1, lanes),
        when=(c1 > 0) & (modulus(b) % c1 == 0) & symbolic(b),
    ),
)
