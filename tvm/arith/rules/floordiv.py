"""Division rounded down. Divisors in conditions are positive, so floor(x/c) is monotonic in x."""

from math import gcd

from tvm.ir.rules import calling, fold, in_order, pattern_consts, pattern_vars, rule, rules

from .notation import (
    INT32_LEAST,
    below,
    broadcast,
    lower,
    max_,
    min_,
    modulus,
    of_one_sign,
    ramp,
    residue,
    stays_inside,
    upper,
)

x, y, z, b, lanes = pattern_vars("x y z b lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")


FLOORDIV_WRAPPING = rules(
    rule(x // 1, x),
    rule(broadcast(x, lanes) // broadcast(y, lanes), broadcast(x // y, lanes)),
)

FLOORDIV_NO_OVERFLOW = rules(
    # the least number has no opposite
    rule(x // c0, (x * -1) // fold(0 - c0), when=(c0 < 0) & (lower(x) > INT32_LEAST)),
    rule(
        x // (y * c0),
        (x * -1) // (y * fold(0 - c0)),
        when=(c0 < 0) & (lower(x) > INT32_LEAST),
    ),
    # bounds that fall into one multiple
    rule(x // c0, fold(lower(x) // c0), when=(c0 > 0) & (lower(x) // c0 == upper(x) // c0)),
    rule(x // x, 1, when=of_one_sign(x)),
    rule(0 // x, 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    # multiples leave the division
    rule((x * c0) // c1, x * fold(c0 // c1), when=(c1 > 0) & (c0 % c1 == 0)),
    rule((x * c0 + y) // c1, x * fold(c0 // c1) + y // c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((x * c0 - y) // c1, x * fold(c0 // c1) + (0 - y) // c1, when=(c1 > 0) & (c0 % c1 == 0)),
    rule((y - x * c0) // c1, y // c1 - x * fold(c0 // c1), when=(c1 > 0) & (c0 % c1 == 0)),
    rule(
        (x * c0 + y + z) // c1, x * fold(c0 // c1) + (y + z) // c1, when=(c1 > 0) & (c0 % c1 == 0)
    ),
    rule(
        (x + c0) // c1,
        (x + fold(c0 % c1)) // c1 + fold(c0 // c1),
        when=(c1 > 0) & ((c0 < 0) | (c0 >= c1)),
    ),
    rule(
        (x + y) // c0,
        x // c0 + y // c0,
        when=(c0 > 0) & (modulus(y) % c0 == 0) & (residue(y) % c0 == 0) & (modulus(y) != 0),
    ),
    # common divisors of dividend and divisor
    rule((x * c0) // c1, x // fold(c1 // c0), when=(c0 > 0) & (c1 > 0) & (c1 % c0 == 0)),
    rule(
        (x * c0 + y) // c1,
        x // fold(c1 // c0),
        when=(c0 > 0) & (c1 > 0) & (c1 % c0 == 0) & (lower(y) >= 0) & (upper(y) < c0),
    ),
    rule(
        (x * c0 + y) // c1,
        (x + y // c0) // fold(c1 // c0),
        when=(c0 > 1) & (c1 > 0) & (c1 % c0 == 0),
    ),
    rule(
        (x * c0 + y + z) // c1,
        x // fold(c1 // c0),
        when=(c0 > 0)
        & (c1 > 0)
        & (c1 % c0 == 0)
        & (lower(y) + lower(z) >= 0)
        & (upper(y) + upper(z) < c0),
    ),
    # what the quotients leave is less than one divisor
    rule(
        (x * c0 + y) // c1,
        x * fold(c0 // c1),
        when=(c1 > 0) & (c0 % c1 * lower(x) + lower(y) >= 0) & (c0 % c1 * upper(x) + upper(y) < c1),
    ),
    rule(
        min_(x * c0, y) // c1,
        in_order(min_(x * fold(c0 // c1), y // c1)),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule(
        max_(x * c0, y) // c1,
        in_order(max_(x * fold(c0 // c1), y // c1)),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule((x % 2 + 1) // 2, x % 2),
    # divisions of divisions
    rule((x // c0) // c1, x // fold(c0 * c1), when=(c0 > 0) & (c1 > 0)),
    rule((x // c0 + c2) // c1, (x + fold(c0 * c2)) // fold(c0 * c1), when=(c0 > 0) & (c1 > 0)),
    rule((x % c0) // c1, (x // c1) % fold(c0 // c1), when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    # symbolic divisors: a quotient by zero is zero
    rule((x * y) // y, x, when=of_one_sign(y)),
    rule((x * y) // (z * y), x // z, when=of_one_sign(y)),
    rule((x * y + z) // y, in_order(x + z // y), when=of_one_sign(y)),
    rule((x * y * c0 + z) // (y * c0), x + z // (y * c0), when=of_one_sign(y)),
    rule((x + y + z) // x, in_order(y + z) // x + 1, when=of_one_sign(x)),
    rule((x + y) // y, x // y + 1, when=of_one_sign(y)),
    rule((x - y) // y, x // y - 1, when=of_one_sign(y)),
    rule(x // y, 0, when=(lower(x) >= 0) & (lower(y) > 0) & below(x, y)),
    # vectors: a stride that the divisor divides, or lanes that stay inside one multiple
    rule(
        ramp(b, c0, lanes) // broadcast(c1, lanes),
        ramp(b // c1, fold(c0 // c1), lanes),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule(
        ramp(b, c0, lanes) // broadcast(c1, lanes),
        broadcast(b // c1, lanes),
        when=(c1 > 0)
        & (c0 >= 0)
        & stays_inside(c0, lanes, residue(b), calling(gcd, modulus(b), c1)),
    ),
)
