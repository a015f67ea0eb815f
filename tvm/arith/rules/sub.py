"""Differences. A constant is subtracted by adding its negation, so that sums need one form of each rule."""

from tvm.ir.rules import fold, in_order, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, lower, max_, min_, ramp, same, select, symbolic, truncdiv, truncmod

x, y, z, w, b, s, t, lanes = pattern_vars("x y z w b s t lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

SUB_ANY = rules(
    rule(broadcast(x, lanes) - broadcast(y, lanes), broadcast(x - y, lanes)),
)

SUB_WRAPPING = rules(
    rule(x - 0, x),
    rule(x - x, 0),
    rule(ramp(b, s, lanes) - ramp(x, t, lanes), ramp(b - x, s - t, lanes)),
    rule(ramp(b, s, lanes) - broadcast(x, lanes), ramp(b - x, s, lanes)),
    rule(broadcast(x, lanes) - ramp(b, s, lanes), ramp(x - b, 0 - s, lanes)),
    rule(0 - x * c0, x * fold(0 - c0)),
    rule(0 - (x - y), y - x),
    rule(0 - x, x * -1),
    rule(x - c0, x + fold(0 - c0)),
    # terms on both sides cancel
    rule((x + y) - x, y),
    rule(x - (x + y), 0 - y),
    rule((x + y) - (x + z), y - z),
    rule((x + y) - (x - z), y + z),
    rule((x - y) - x, 0 - y),
    rule(x - (x - y), y),
    rule((x - y) - (x - z), z - y),
    rule((x - y) - (z - y), x - z),
    rule((x - y) - (x + z), 0 - (y + z)),
    rule(((x + y) + z) - x, y + z),
    rule(((x + y) + z) - (x + w), (y + z) - w),
    rule(((x + y) + z) - ((x + w) + t), (y + z) - (w + t)),
    rule(((x - y) + z) - x, z - y),
    rule((x + z) - ((x + y) + w), z - (y + w)),
    rule(x - ((x + y) + z), 0 - (y + z)),
    rule(x - (y + (x - z)), z - y),
    # equal factors
    rule(x * c0 - y * c0, (x - y) * c0),
    rule(x * y - x, x * (y - 1), when=symbolic(x)),
    rule(x - x * y, x * (1 - y), when=symbolic(x)),
    rule(x * y - z * y, y * (x - z)),
    rule((x + y * c0) - y * c1, x + y * fold(c0 - c1)),
    rule((x + y * c0) - y, x + y * fold(c0 - 1)),
    # constants move outwards and meet
    rule((c0 - x) - (c1 - y), (y - x) + fold(c0 - c1)),
    rule((x + c0) - y, (x - y) + c0),
    rule(c0 - (x + c1), fold(c0 - c1) - x),
    rule(c0 - (c1 - x), x + fold(c0 - c1)),
    rule(x - (y + c0), (x - y) + fold(0 - c0)),
    rule(x - (c0 - y), (x + y) + fold(0 - c0)),
    rule((c0 - x) - y, c0 - (x + y)),
    # no negative factors in sums
    rule(x - y * c0, x + y * fold(0 - c0), when=c0 < 0),
    rule(select(w, x, y) - select(w, z, t), select(w, x - z, y - t)),
    rule(select(w, x, y) - x, select(w, 0, y - x)),
    rule(select(w, x, y) - y, select(w, x - y, 0)),
)

SUB_EXTREMA = rules(
    rule(min_(x, y) - x, min_(y - x, 0)),
    rule(max_(x, y) - x, max_(y - x, 0)),
    rule(x - min_(x, y), max_(x - y, 0), when=symbolic(x)),
    rule(x - max_(x, y), min_(x - y, 0), when=symbolic(x)),
    rule(min_(x + y, z) - x, in_order(min_(z - x, y))),
    rule(max_(x + y, z) - x, in_order(max_(z - x, y))),
    rule(x - min_(x + y, z), in_order(max_(0 - y, x - z))),
    rule(x - max_(x + y, z), in_order(min_(0 - y, x - z))),
    rule((x + y) - min_(x, z), max_(x - z, 0) + y),
    rule((x + y) - max_(x, z), min_(x - z, 0) + y),
    # two minima of operands equally far apart
    rule(min_(x, y) - min_(z, w), x - z, when=same(x - z, y - w)),
    rule(max_(x, y) - max_(z, w), x - z, when=same(x - z, y - w)),
)

# x = (x//c)*c + x%c
SUB_FLOORDIV = rules(
    rule(x - (x // y) * y, x % y),
    rule((x // y) * y - x, 0 - x % y),
    rule(x - x % y, (x // y) * y),
    rule(x % y - x, 0 - (x // y) * y),
    rule(x - ((x + y) // c0) * c0, (x + y) % c0 - y),
    rule(((x + y) // c0) * c0 - x, y - (x + y) % c0),
    rule(x - ((x - y) // c0) * c0, (x - y) % c0 + y),
    rule(((x - y) // c0) * c0 - x, (0 - (x - y) % c0) - y),
    rule(x * c1 - (x // c0) * c2, (x % c0) * c1, when=c2 == c0 * c1),
    rule((x // c0) * c2 - x * c1, (x % c0) * fold(0 - c1), when=c2 == c0 * c1),
    rule(x * c1 - ((x + y) // c0) * c2, ((x + y) % c0 - y) * c1, when=c2 == c0 * c1),
    rule(((x + y) // c0) * c2 - x * c1, (y - (x + y) % c0) * c1, when=c2 == c0 * c1),
    rule(x * c1 - ((x - y) // c0) * c2, ((x - y) % c0 + y) * c1, when=c2 == c0 * c1),
    rule(((x - y) // c0) * c2 - x * c1, (0 - (x - y) % c0 - y) * c1, when=c2 == c0 * c1),
    # floor((u + d)/c) - floor(u/c) = floor((u mod c + d)/c)
    rule(
        (x + c0) // c2 - (x + c1) // c2,
        ((x + fold(c1 % c2)) % c2 + fold(c0 - c1)) // c2,
        when=c2 > 0,
    ),
    rule((x + y) // c2 - x // c2, (x % c2 + y) // c2, when=c2 > 0),
    rule(x // c2 - (x + c1) // c2, ((x + fold(c1 % c2)) % c2 + fold(0 - c1)) // c2, when=c2 > 0),
    rule((x + 1) // 2 - x % 2, x // 2),
)

SUB_TRUNCDIV = rules(
    rule(x - truncdiv(x, c0) * c0, truncmod(x, c0)),
    rule(truncdiv(x, c0) * c0 - x, 0 - truncmod(x, c0)),
    rule(x - truncdiv(x + y, c0) * c0, truncmod(x + y, c0) - y),
    rule(truncdiv(x + y, c0) * c0 - x, y - truncmod(x + y, c0)),
    rule(x - truncdiv(x - y, c0) * c0, truncmod(x - y, c0) + y),
    rule(truncdiv(x - y, c0) * c0 - x, (0 - truncmod(x - y, c0)) - y),
    rule(x * c1 - truncdiv(x, c0) * c2, truncmod(x, c0) * c1, when=c2 == c0 * c1),
    rule(truncdiv(x, c0) * c2 - x * c1, truncmod(x, c0) * fold(0 - c1), when=c2 == c0 * c1),
    rule(x * c1 - truncdiv(x + y, c0) * c2, (truncmod(x + y, c0) - y) * c1, when=c2 == c0 * c1),
    rule(truncdiv(x + y, c0) * c2 - x * c1, (y - truncmod(x + y, c0)) * c1, when=c2 == c0 * c1),
    rule(x * c1 - truncdiv(x - y, c0) * c2, (truncmod(x - y, c0) + y) * c1, when=c2 == c0 * c1),
    rule(truncdiv(x - y, c0) * c2 - x * c1, (0 - truncmod(x - y, c0) - y) * c1, when=c2 == c0 * c1),
    # of numbers that are not negative, as with floors
    rule(
        truncdiv(x + c0, c2) - truncdiv(x + c1, c2),
        truncdiv(truncmod(x + c1, c2) + fold(c0 - c1), c2),
        when=(c2 > 0) & (c0 >= c1) & (lower(x) + c1 >= 0),
    ),
    rule(
        truncdiv(x + c0, c2) - truncdiv(x, c2),
        truncdiv(truncmod(x, c2) + c0, c2),
        when=(c2 > 0) & (c0 >= 0) & (lower(x) >= 0),
    ),
)

SUB_NO_OVERFLOW = SUB_EXTREMA + SUB_FLOORDIV + SUB_TRUNCDIV
