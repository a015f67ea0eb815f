"""Minima and maxima. Each pair of rules says the same of both."""

from tvm.ir.rules import fold, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, lower, max_, min_, ordered, upper

x, y, z, lanes = pattern_vars("x y z lanes")
c0, c1 = pattern_consts("c0 c1")

MIN_ANY = rules(
    rule(min_(x, x), x),
    rule(min_(broadcast(x, lanes), broadcast(y, lanes)), broadcast(min_(x, y), lanes)),
)
MAX_ANY = rules(
    rule(max_(x, x), x),
    rule(max_(broadcast(x, lanes), broadcast(y, lanes)), broadcast(max_(x, y), lanes)),
)

# laws of order alone: they hold for integers of any width
MIN_WRAPPING = rules(
    rule(min_(x, y), x, when=upper(x) <= lower(y)),
    rule(min_(min_(x, c0), c1), min_(x, fold(min_(c0, c1)))),
    rule(min_(max_(x, c0), c1), c1, when=c0 >= c1),
    rule(min_(max_(x, c0), c1), max_(min_(x, c1), c0), when=c0 < c1),
    rule(min_(min_(x, y), x), min_(x, y)),
    rule(min_(max_(x, y), x), x),
    rule(min_(max_(x, y), min_(x, y)), min_(x, y)),
    rule(min_(max_(x, y), max_(x, z)), max_(min_(y, z), x)),
    rule(min_(min_(x, y), min_(x, z)), min_(min_(y, z), x)),
    rule(min_(min_(min_(x, y), z), x), min_(min_(x, y), z)),
    rule(min_(min_(x, c0), y), min_(min_(x, y), c0)),
)
MAX_WRAPPING = rules(
    rule(max_(x, y), x, when=lower(x) >= upper(y)),
    rule(max_(max_(x, c0), c1), max_(x, fold(max_(c0, c1)))),
    rule(max_(min_(x, c0), c1), c1, when=c0 <= c1),
    rule(max_(max_(x, y), x), max_(x, y)),
    rule(max_(min_(x, y), x), x),
    rule(max_(min_(x, y), max_(x, y)), max_(x, y)),
    rule(max_(min_(x, y), min_(x, z)), min_(max_(y, z), x)),
    rule(max_(max_(x, y), max_(x, z)), max_(max_(y, z), x)),
    rule(max_(max_(max_(x, y), z), x), max_(max_(x, y), z)),
    rule(max_(max_(x, c0), y), max_(max_(x, y), c0)),
)

MIN_NO_OVERFLOW = rules(
    # common terms and factors leave
    rule(min_(x + c0, x), x + fold(min_(c0, 0))),
    rule(min_(x + c0, x + c1), x + fold(min_(c0, c1))),
    rule(min_(c0 - x, c1 - x), fold(min_(c0, c1)) - x),
    rule(min_(x + y, x + z), min_(y, z) + x),
    rule(min_(x - y, x - z), x - max_(y, z)),
    rule(min_(x - y, z - y), min_(x, z) - y),
    rule(min_(x + y, x), x + min_(y, 0)),
    rule(min_(x - y, x), x - max_(y, 0)),
    rule(min_(x + c0, c1), min_(x, fold(c1 - c0)) + c0),
    rule(min_(c0 - x, c1), c0 - max_(x, fold(c0 - c1))),
    rule(min_(x * c0, y * c0), min_(x, y) * c0, when=c0 > 0),
    rule(min_(x * c0, y * c0), max_(x, y) * c0, when=c0 < 0),
    rule(min_(x * c0, c1), min_(x, fold(c1 // c0)) * c0, when=(c0 > 0) & (c1 % c0 == 0)),
    rule(min_(x * c0, c1), max_(x, fold(c1 // c0)) * c0, when=(c0 < 0) & (c1 % c0 == 0)),
    rule(min_(x * c0, y * c1), min_(x, y * fold(c1 // c0)) * c0, when=(c0 > 0) & (c1 % c0 == 0)),
    # multiples below and above a value
    rule(min_((x // c0) * c0, x), (x // c0) * c0, when=c0 > 0),
    rule(min_((x + c1) // c0 * c0, x), x, when=(c0 > 0) & (c1 == c0 - 1)),
    rule(min_(x // c0, y // c0), min_(x, y) // c0, when=c0 > 0),
    rule(min_(x // c0, y // c0), max_(x, y) // c0, when=c0 < 0),
    rule(min_(x, y), x, when=ordered(x, y)),
)
MAX_NO_OVERFLOW = rules(
    rule(max_(x + c0, x), x + fold(max_(c0, 0))),
    rule(max_(x + c0, x + c1), x + fold(max_(c0, c1))),
    rule(max_(c0 - x, c1 - x), fold(max_(c0, c1)) - x),
    rule(max_(x + y, x + z), max_(y, z) + x),
    rule(max_(x - y, x - z), x - min_(y, z)),
    rule(max_(x - y, z - y), max_(x, z) - y),
    rule(max_(x + y, x), x + max_(y, 0)),
    rule(max_(x - y, x), x - min_(y, 0)),
    rule(max_(x + c0, c1), max_(x, fold(c1 - c0)) + c0),
    rule(max_(c0 - x, c1), c0 - min_(x, fold(c0 - c1))),
    rule(max_(x * c0, y * c0), max_(x, y) * c0, when=c0 > 0),
    rule(max_(x * c0, y * c0), min_(x, y) * c0, when=c0 < 0),
    rule(max_(x * c0, c1), max_(x, fold(c1 // c0)) * c0, when=(c0 > 0) & (c1 % c0 == 0)),
    rule(max_(x * c0, c1), min_(x, fold(c1 // c0)) * c0, when=(c0 < 0) & (c1 % c0 == 0)),
    rule(max_(x * c0, y * c1), max_(x, y * fold(c1 // c0)) * c0, when=(c0 > 0) & (c1 % c0 == 0)),
    rule(max_((x // c0) * c0, x), x, when=c0 > 0),
    rule(max_((x + c1) // c0 * c0, x), (x + c1) // c0 * c0, when=(c0 > 0) & (c1 == c0 - 1)),
    rule(max_(x // c0, y // c0), max_(x, y) // c0, when=c0 > 0),
    rule(max_(x // c0, y // c0), min_(x, y) // c0, when=c0 < 0),
    rule(max_(x, y), x, when=ordered(y, x)),
)
