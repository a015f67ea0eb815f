"""Minima and maxima. Each pair of rules says the same of both."""

from tvm.ir.rules import fold, in_order, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, lower, max_, min_, ordered, select, symbolic, truncdiv, upper

x, y, z, w, t, lanes = pattern_vars("x y z w t lanes")
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
    rule(min_(min_(x, y), x), min_(x, y), as_written=True),
    rule(min_(min_(x, y), y), min_(x, y), as_written=True),
    rule(min_(x, min_(x, y)), min_(x, y), as_written=True),
    rule(min_(y, min_(x, y)), min_(x, y), as_written=True),
    rule(min_(max_(x, y), x), x),
    rule(min_(max_(x, y), min_(x, y)), min_(x, y)),
    rule(min_(max_(x, y), max_(x, z)), max_(in_order(min_(y, z)), x)),
    rule(min_(min_(x, y), min_(x, z)), min_(min_(y, z), x)),
    rule(min_(min_(min_(x, y), z), x), min_(min_(x, y), z), as_written=True),
    rule(min_(min_(min_(x, y), z), y), min_(min_(x, y), z), as_written=True),
    rule(min_(min_(min_(x, y), z), x), min_(min_(x, y), z)),
    rule(min_(min_(x, c0), y), min_(min_(x, y), c0)),
    rule(
        min_(min_(x, broadcast(y, lanes)), broadcast(z, lanes)),
        min_(x, broadcast(min_(y, z), lanes)),
    ),
    rule(min_(select(w, x, y), select(w, z, t)), select(w, min_(x, z), min_(y, t))),
)
MAX_WRAPPING = rules(
    rule(max_(x, y), x, when=lower(x) >= upper(y)),
    rule(max_(max_(x, c0), c1), max_(x, fold(max_(c0, c1)))),
    rule(max_(min_(x, c0), c1), c1, when=c0 <= c1),
    rule(max_(max_(x, y), x), max_(x, y), as_written=True),
    rule(max_(max_(x, y), y), max_(x, y), as_written=True),
    rule(max_(x, max_(x, y)), max_(x, y), as_written=True),
    rule(max_(y, max_(x, y)), max_(x, y), as_written=True),
    rule(max_(min_(x, y), x), x),
    rule(max_(min_(x, y), max_(x, y)), max_(x, y)),
    rule(max_(min_(x, y), min_(x, z)), min_(in_order(max_(y, z)), x)),
    rule(max_(max_(x, y), max_(x, z)), max_(max_(y, z), x)),
    rule(max_(max_(max_(x, y), z), x), max_(max_(x, y), z), as_written=True),
    rule(max_(max_(max_(x, y), z), y), max_(max_(x, y), z), as_written=True),
    rule(max_(max_(max_(x, y), z), x), max_(max_(x, y), z)),
    rule(max_(max_(x, c0), y), max_(max_(x, y), c0)),
    rule(
        max_(max_(x, broadcast(y, lanes)), broadcast(z, lanes)),
        max_(x, broadcast(max_(y, z), lanes)),
    ),
    rule(max_(select(w, x, y), select(w, z, t)), select(w, max_(x, z), max_(y, t))),
)

MIN_NO_OVERFLOW = rules(
    # common terms and factors leave
    rule(min_(x + c0, x), x + fold(min_(c0, 0))),
    rule(min_(x + c0, x + c1), x + fold(min_(c0, c1))),
    rule(min_(c0 - x, c1 - x), fold(min_(c0, c1)) - x),
    rule(min_(x + y, x + z), in_order(min_(y, z)) + x),
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
    rule(min_(truncdiv(x + c1, c0) * c0, x), x, when=(c0 > 0) & (c1 == c0 - 1)),
    rule(min_(x // c0, y // c0), min_(x, y) // c0, when=c0 > 0),
    rule(min_(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(min_(x, y), c0), when=c0 > 0),
    rule(min_(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(max_(x, y), c0), when=c0 < 0),
    rule(min_(x * z, y * z), z * min_(x, y), when=(lower(z) >= 0) & symbolic(z)),
    rule(min_(x // c0, y // c0), max_(x, y) // c0, when=c0 < 0),
    rule(min_(x, y), x, when=ordered(x, y)),
)
MAX_NO_OVERFLOW = rules(
    rule(max_(x + c0, x), x + fold(max_(c0, 0))),
    rule(max_(x + c0, x + c1), x + fold(max_(c0, c1))),
    rule(max_(c0 - x, c1 - x), fold(max_(c0, c1)) - x),
    rule(max_(x + y, x + z), in_order(max_(y, z)) + x),
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
    rule(
        max_(truncdiv(x + c1, c0) * c0, x),
        truncdiv(x + c1, c0) * c0,
        when=(c0 > 0) & (c1 == c0 - 1),
    ),
    rule(max_(x // c0, y // c0), max_(x, y) // c0, when=c0 > 0),
    rule(max_(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(max_(x, y), c0), when=c0 > 0),
    rule(max_(truncdiv(x, c0), truncdiv(y, c0)), truncdiv(min_(x, y), c0), when=c0 < 0),
    rule(max_(x * z, y * z), z * max_(x, y), when=(lower(z) >= 0) & symbolic(z)),
    rule(max_(x // c0, y // c0), min_(x, y) // c0, when=c0 < 0),
    rule(max_(x, y), x, when=ordered(y, x)),
)
