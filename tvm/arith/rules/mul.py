"""Products."""

from tvm.ir.rules import fold, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, max_, min_, ramp, select

x, y, z, b, s, lanes = pattern_vars("x y z b s lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

MUL_ANY = rules(
    rule(x * 1, x),
    rule(broadcast(x, lanes) * broadcast(y, lanes), broadcast(x * y, lanes)),
)

MUL_WRAPPING = rules(
    rule(x * 0, 0),
    rule(ramp(b, s, lanes) * broadcast(x, lanes), ramp(b * x, s * x, lanes)),
    # constants move outwards and meet
    rule((x * c0) * c1, x * fold(c0 * c1)),
    rule((x * c0) * y, (x * y) * c0),
    rule((x + c0) * c1, x * c1 + fold(c0 * c1)),
    rule((c0 - x) * c1, fold(c0 * c1) - x * c1),
    rule((x - y) * c0, (y - x) * fold(0 - c0), when=c0 < 0),
    rule(select(z, c0, c1) * c2, select(z, fold(c0 * c2), fold(c1 * c2))),
)

MUL_NO_OVERFLOW = rules(
    rule(min_(x, y) * max_(x, y), x * y),
)
