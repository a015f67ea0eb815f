"""C's division and remainder. Where nothing is negative they agree with the rounded-down kind."""

from tvm.ir.rules import calling, fold, pattern_consts, pattern_vars, rule, rules

from .notation import (
    broadcast,
    evaluate_truncdiv,
    evaluate_truncmod,
    lower,
    ramp,
    truncdiv,
    truncmod,
    upper,
)

x, y, z, b, lanes = pattern_vars("x y z b lanes")
c0, c1 = pattern_consts("c0 c1")

TRUNCDIV_WRAPPING = rules(
    rule(truncdiv(x, 1), x),
    rule(truncdiv(broadcast(x, lanes), broadcast(y, lanes)), broadcast(truncdiv(x, y), lanes)),
)

TRUNCDIV_NO_OVERFLOW = rules(
    rule(
        truncdiv(x, c0),
        fold(calling(evaluate_truncdiv, lower(x), c0)),
        when=(c0 > 0)
        & (calling(evaluate_truncdiv, lower(x), c0) == calling(evaluate_truncdiv, upper(x), c0)),
    ),
    rule(truncdiv(x, x), 1, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(truncdiv(x * c0, c1), x * fold(c0 // c1), when=(c1 != 0) & (c0 % c1 == 0)),
    rule(truncdiv(x * c0, c1), truncdiv(x, fold(c1 // c0)), when=(c0 != 0) & (c1 % c0 == 0)),
    rule(truncdiv(truncdiv(x, c0), c1), truncdiv(x, fold(c0 * c1)), when=(c0 > 0) & (c1 > 0)),
    rule(
        truncdiv(x * c0 + y, c1),
        x * fold(c0 // c1) + truncdiv(y, c1),
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
    rule(truncdiv(x * y, y), x, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule(truncdiv(x * y, z * y), truncdiv(x, z), when=(lower(y) >= 0) | (upper(y) <= 0)),
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
    rule(truncmod(x, c0), x, when=(c0 > 0) & (lower(x) > 0 - c0) & (upper(x) < c0)),
    rule(
        truncmod(x, c0),
        fold(calling(evaluate_truncmod, lower(x), c0)),
        when=(c0 > 0) & (lower(x) == upper(x)),
    ),
    rule(truncmod(x, x), 0, when=(lower(x) >= 0) | (upper(x) <= 0)),
    rule(truncmod(x * c0, c1), 0, when=(c1 != 0) & (c0 % c1 == 0)),
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
    rule(truncmod(truncmod(x, c0), c1), truncmod(x, c1), when=(c0 > 0) & (c1 > 0) & (c0 % c1 == 0)),
    rule(truncmod(x * y, y), 0, when=(lower(y) >= 0) | (upper(y) <= 0)),
    rule(
        truncmod(ramp(b, c0, lanes), broadcast(c1, lanes)),
        broadcast(truncmod(b, c1), lanes),
        when=(c1 > 0) & (c0 % c1 == 0) & (c0 >= 0) & (lower(b) >= 0),
    ),
)
