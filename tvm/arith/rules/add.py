"""Sums."""

from tvm.ir.rules import fold, in_order, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, max_, min_, ramp, select, symbolic, truncdiv, truncmod

x, y, z, w, b, s, t, lanes = pattern_vars("x y z w b s t lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

ADD_ANY = rules(
    rule(broadcast(x, lanes) + broadcast(y, lanes), broadcast(x + y, lanes)),
)

# integers of any width form a ring, wrapping around or not
ADD_WRAPPING = rules(
    rule(x + 0, x),
    rule(ramp(b, s, lanes) + ramp(x, t, lanes), ramp(b + x, s + t, lanes)),
    rule(ramp(b, s, lanes) + broadcast(x, lanes), ramp(in_order(b + x), s, lanes)),
    rule(x + x, x * 2),
    rule(x + x * y, x * (y + 1), when=symbolic(x)),
    rule(x * c0 + y * c0, (x + y) * c0),
    rule(x * y + z * y, y * (x + z)),
    rule((x - y) + y, x),
    rule((x - y) + (y - z), x - z),
    rule(x + (y - (x + z)), y - z),
    rule(x + (y - (x - z)), y + z),
    # constants move outwards and meet
    rule((x + c0) + c1, x + fold(c0 + c1)),
    rule((c0 - x) + c1, fold(c0 + c1) - x),
    rule((x + c0) + y, in_order(x + y) + c0),
    rule(x + (c0 - y), (x - y) + c0),
    # no negative factors in sums
    rule(x + y * c0, x - y * fold(0 - c0), when=c0 < 0),
    rule((x - y * c0) + y * c1, x + y * fold(c1 - c0)),
    rule((x + y * c0) + y * c1, x + y * fold(c0 + c1)),
    rule((x + y) + y, x + y * 2),
    rule((x + y * c0) + y, x + y * fold(c0 + 1)),
    rule((x - y * c0) + y, x - y * fold(c0 - 1)),
    rule(select(w, x, y) + select(w, z, t), select(w, x + z, y + t)),
)

ADD_NO_OVERFLOW = rules(
    rule(min_(x, y) + max_(x, y), x + y),
    rule(min_(x, y - z) + z, in_order(min_(x + z, y))),
    rule(max_(x, y - z) + z, in_order(max_(x + z, y))),
    rule(min_(x, y + c0) + c1, in_order(min_(x + c1, y)), when=c0 + c1 == 0),
    rule(max_(x, y + c0) + c1, in_order(max_(x + c1, y)), when=c0 + c1 == 0),
    # the parts of a division
    rule(truncdiv(x, c0) * c0 + truncmod(x, c0), x),
    rule(x + truncdiv(x, c0) * c1, truncmod(x, c0), when=(c0 != 0) & (c0 + c1 == 0)),
    rule((x // y) * y + x % y, x),
    rule((z + (x // y) * y) + x % y, z + x),
    rule((z + x % y) + (x // y) * y, z + x),
    # of a remainder, the quotient and what is left
    rule((x % (w * y) // y) * y + x % y, x % (w * y)),
    rule((z + (x % (w * y) // y) * y) + x % y, z + x % (w * y)),
    rule((x // c0) * c1 + (x % c0) * c2, x * c2, when=c1 == c0 * c2),
    rule(x // 2 + x % 2, (x + 1) // 2),
    rule((x % 2 + c0) // 2 + x // 2, (x + c0) // 2),
    # of neighbours one is odd
    rule(x % 2 + (x + c0) % 2, 1, when=c0 % 2 == 1),
)
