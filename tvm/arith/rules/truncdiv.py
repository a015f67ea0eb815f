"""C's division and remainder. Where nothing is negative they agree with the rounded-down kind."""

from math import gcd

from tvm.ir.rules import calling, fold, in_order, pattern_consts, pattern_vars, rule, rules
from tvm.tir.fold import truncated_quotient

from .notation import (
    INT32_LEAST,
    broadcast,
    evaluate_truncmod,
    lower,
    max_,
    min_,
    modulus,
    nonzero,
    of_one_sign,
    positive,
    ramp,
    residue,
    stays_inside,
    symbolic,
    truncdiv,
    truncmod,
    upper,
)

x, y, z, b, lanes = pattern_vars("x y z b lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

TRUNCDIV_WRAPPING = rules(
    rule(truncdiv(x, 1), x),
    rule(truncdiv(broadcast(x, lanes), broadcast(y, lanes)), broadcast(truncdiv(x, y), lanes)),
)

TRUNCDIV_NO_OVERFLOW = rules(
    rule(
        truncdiv(x, c0),
        fold(calling(truncated_quotient, lower(x), c0)),
        when=(c0 > 0)
        & (calling(truncated_quotient, lower(x), c0) == calling(truncated_quotient, upper(x), c0)),
    ),
    rule(truncdiv(x, x), 1, when=nonzero(x)),
    rule(truncdiv(0, x), 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(truncdiv(x * c0, c1), x * fold(c0 // c1), when=(c1 != 0) & (c0 % c1 == 0)),
    # sums of multiples leave no remainder, of whatever sign they are
    rule(
        truncdiv(x * c0 + c2, c1),
        x * fold(c0 // c1) + fold(c2 // c1),
        when=(c1 != 0) & (c0 % c1 == 0) & (c2 % c1 == 0),
    ),
    rule(
        truncdiv(x * c0 + y * c2, c1),
        in_order(x * fold(c0 // c1) + y * fold(c2 // c1)),
        when=(c1 != 0) & (c0 % c1 == 0) & (c2 % c1 == 0),
    ),
    rule(
        truncdiv(x * c0 - y * c2, c1),
        x * fold(c0 // c1) - y * fold(c2 // c1),
        when=(c1 != 0) & (c0 % c1 == 0) & (c2 % c1 == 0),
    ),
    rule(truncdiv(x * c0, c1), truncdiv(x, fold(c1 // c0)), when=(c0 != 0) & (c1 % c0 == 0)),
    rule(truncdiv(truncdiv(x, c0), c1), truncdiv(x, fold(c0 * c1)), when=(c0 > 0) & (c1 > 0)),
    rule(
        truncdiv(x * c0 + y, c1),
        in_order(x * fold(c0 // c1) + truncdiv(y, c1)),
        when=(c1 > 0) & (c0 % c1 == 0) & (lower(x * c0 + y) >= 0) & (lower(y) >= 0),
    ),
    rule(
        truncdiv(x * c0 + y, c1),
        truncdiv(x, fold(c1 // c0)),
        when=(c0 > 0)
        & (c1 > 0)
        & (c1 % c0 == 0)
        & (lower(x) >= 0)
        & (lower(y) >= 0)
        & (upper(y) < c0),
    ),
    rule(
        truncdiv(truncdiv(x, c0) + c1, c2),
        truncdiv(x + fold(c0 * c1), fold(c0 * c2)),
        when=(c0 > 0) & (c1 >= 0) & (c2 > 0) & (lower(x) >= 0),
    ),
    rule(
        truncdiv(x + c0, c1),
        truncdiv(x, c1) + fold(c0 // c1),
        when=(c1 > 0) & (c0 >= 0) & (c0 % c1 == 0) & (lower(x) >= 0),
    ),
    rule(
        truncdiv(x * c0 + y + z, c1),
        x * fold(c0 // c1) + truncdiv(y + z, c1),
        when=(c0 >= 0) & (c1 > 0) & (c0 % c1 == 0) & (lower(x) >= 0) & (lower(y) + lower(z) >= 0),
    ),
    # truncation is monotonic
    rule(
        truncdiv(min_(x * c0, y), c1),
        in_order(min_(x * fold(c0 // c1), truncdiv(y, c1))),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule(
        truncdiv(max_(x * c0, y), c1),
        in_order(max_(x * fold(c0 // c1), truncdiv(y, c1))),
        when=(c1 > 0) & (c0 % c1 == 0),
    ),
    rule(truncdiv(x * y, y), x, when=of_one_sign(y)),
    rule(
        truncdiv(x + y, x),
        truncdiv(y, x) + 1,
        when=positive(x) & (lower(y) >= 0),
    ),
    rule(
        truncdiv((x + y) + z, x),
        truncdiv(in_order(y + z), x) + 1,
        when=positive(x) & (lower(y) + lower(z) >= 0),
    ),
    rule(
        truncdiv(x * y + z, y),
        in_order(x + truncdiv(z, y)),
        when=(lower(x) >= 0) & positive(y) & (lower(z) >= 0),
    ),
    rule(truncdiv(x * y, z * y), truncdiv(x, z), when=of_one_sign(y)),
    rule(
        truncdiv(ramp(b, c0, lanes), broadcast(c1, lanes)),
        broadcast(truncdiv(b, c1), lanes),
        when=(c1 > 0)
        & (c0 >= 0)
        & (lower(b) >= 0)
        & stays_inside(c0, lanes, residue(b), calling(gcd, modulus(b), c1)),
    ),
    rule(
        truncdiv(ramp(b, c0, lanes), broadcast(c1, lanes)),
        ramp(truncdiv(b, c1), fold(c0 // c1), lanes),
        when=(c1 > 0) & (c0 % c1 == 0) & (c0 >= 0) & (lower(b) >= 0),
    ),
)

TRUNCMOD_WRAPPING = rules(
    rule(truncmod(x, 1), 0),
    rule(truncmod(broadcast(x, lanes), broadcast(y, lanes)), broadcast(truncmod(x, y), lanes)),
)

TRUNCMOD_NO_OVERFLOW = rules(
    rule(truncmod(x, c0), truncmod(x, fold(0 - c0)), when=(c0 < 0) & (c0 > INT32_LEAST)),
    rule(truncmod(x, c0), x, when=(c0 > 0) & (lower(x) > 0 - c0) & (upper(x) < c0)),
    rule(
        truncmod(x, c0),
        fold(calling(evaluate_truncmod, lower(x), c0)),
        when=(c0 > 0) & (lower(x) == upper(x)),
    ),
    rule(truncmod(x, x), 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(truncmod(0, x), 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(truncmod(x * c0, c1), 0, when=(c1 != 0) & (c0 % c1 == 0)),
    rule(truncmod(x, c1), 0, when=(c1 > 0) & (modulus(x) % c1 == 0) & (residue(x) % c1 == 0)),
    # digits of a remainder are digits of the number
    rule(
        truncmod(truncdiv(truncmod(x, c0), c1), c2),
        truncdiv(truncmod(x, fold(c1 * c2)), c1),
        when=(c0 > 0) & (c1 > 0) & (c2 > 0) & (c0 % (c1 * c2) == 0),
    ),
    rule(
        truncmod(x * c0, c1),
        truncmod(x, fold(c1 // c0)) * c0,
        when=(c0 > 0) & (c1 > 0) & (c1 % c0 == 0),
    ),
    rule(
        truncmod(x * c0 + y, c1),
        truncmod(y, c1),
        when=(c1 > 0) & (c0 % c1 == 0) & (lower(x * c0 + y) >= 0) & (lower(y) >= 0),
    ),
    rule(
        truncmod(y - x * c0, c1),
        truncmod(y, c1),
        when=(c1 > 0) & (c0 % c1 == 0) & (lower(y - x * c0) >= 0) & (lower(y) >= 0),
    ),
    rule(
        truncmod(x + c0, c1),
        truncmod(x, c1),
        when=(c1 > 0) & (c0 >= 0) & (c0 % c1 == 0) & (lower(x) >= 0),
    ),
    rule(
        truncmod(x, c0),
        fold(residue(x) % c0),
        when=(c0 > 0) & (modulus(x) % c0 == 0) & (lower(x) >= 0),
    ),
    rule(truncmod(truncmod(x, c0), c1), truncmod(x, c1), when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    rule(truncmod(x * y, y), 0, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule(
        truncmod(ramp(b, c0, lanes), broadcast(c1, lanes)),
        ramp(truncmod(b, c1), c0, lanes),
        when=(c1 > 0)
        & (c0 >= 0)
        & (lower(b) >= 0)
        & stays_inside(c0, lanes, residue(b), calling(gcd, modulus(b), c1)),
    ),
    rule(
        truncmod(ramp(b, c0, lanes), broadcast(c1, lanes)),
        truncmod(ramp(truncmod(b, c1), c0, lanes), broadcast(c1, lanes)),
        when=(c1 > 0) & (c0 >= 0) & (modulus(b) % c1 == 0) & (lower(b) >= 0) & symbolic(b),
    ),
    rule(
        truncmod(ramp(b, c0, lanes), broadcast(c1, lanes)),
        broadcast(truncmod(b, c1), lanes),
        when=(c1 > 0) & (c0 % c1 == 0) & (c0 >= 0) & (lower(b) >= 0),
    ),
)
