"""Conjunction, disjunction, negation.

`And` and `Or` stop at their first operand when it decides, so operands may be dropped but no rule evaluates one earlier
than before; expressions under a condition are pure.
"""

from tvm.ir.rules import fold, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, integral, max_, min_

x, y, z, lanes = pattern_vars("x y z lanes")
c0, c1 = pattern_consts("c0 c1")

AND = rules(
    rule(x & True, x),
    rule(x & False, False),
    rule(x & x, x),
    rule(x & ~x, False),
    rule((x & y) & x, x & y),
    rule((x & y) & (x & z), (x & y) & z),
    rule((x & y) & ~x, False),
    rule((x | y) & x, x),
    rule((x | y) & ~x, y & ~x),
    rule(broadcast(x, lanes) & broadcast(y, lanes), broadcast(x & y, lanes)),
    # of two bounds the tighter one; none fits between crossing ones
    rule((x < c0) & (x < c1), x < fold(min_(c0, c1))),
    rule((c0 <= x) & (c1 <= x), fold(max_(c0, c1)) <= x),
    rule((c0 <= x) & (x < c1), False, when=c0 >= c1),
    rule((c0 <= x) & (x < c1), x == c0, when=c0 + 1 == c1),
    rule((x == c0) & (x == c1), False, when=c0 != c1),
    rule((x == c0) & (x != c1), x == c0, when=c0 != c1),
    rule((x == c0) & (x < c1), x == c0, when=c0 < c1),
    rule((x == c0) & (x < c1), False, when=c0 >= c1),
    rule((x == c0) & (c1 <= x), x == c0, when=c1 <= c0),
    rule((x == c0) & (c1 <= x), False, when=c1 > c0),
    rule((x == y) & (x != y), False),
    rule((x < y) & (y < x), False),
    rule((x < y) & (y <= x), False, when=integral(x)),
    rule((x <= y) & (y <= x), x == y),
    rule((x < y) & (x <= y), x < y),
    rule((x < y) & (x == y), False),
    rule((x < y) & (x != y), x < y),
    rule((x <= y) & (x == y), x == y),
    rule((x <= y) & (x != y), x < y),
)

OR = rules(
    rule(x | False, x),
    rule(x | True, True),
    rule(x | x, x),
    rule(x | ~x, True),
    rule((x | y) | x, x | y),
    rule((x | y) | (x | z), (x | y) | z),
    rule((x | y) | ~x, True),
    rule((x & y) | x, x),
    rule((x & y) | ~x, y | ~x),
    rule((x & y) | (x & z), x & (y | z)),
    rule(broadcast(x, lanes) | broadcast(y, lanes), broadcast(x | y, lanes)),
    rule((x < c0) | (x < c1), x < fold(max_(c0, c1))),
    rule((c0 <= x) | (c1 <= x), fold(min_(c0, c1)) <= x),
    rule((c0 <= x) | (x < c1), True, when=integral(x) & (c0 <= c1)),
    rule((c0 <= x) | (x < c1), x != c1, when=integral(x) & (c0 == c1 + 1)),
    rule((x != c0) | (x != c1), True, when=c0 != c1),
    rule((x != c0) | (x == c1), x != c0, when=c0 != c1),
    rule((x == c0) | (x < c1), x < c1, when=c0 < c1),
    rule((x == c0) | (c1 <= x), c1 <= x, when=c1 <= c0),
    rule((x == y) | (x != y), True),
    rule((x < y) | (y <= x), True, when=integral(x)),
    rule((x <= y) | (y <= x), True, when=integral(x)),
    rule((x < y) | (x <= y), x <= y),
    rule((x < y) | (x == y), x <= y),
    rule((x < y) | (y < x), x != y, when=integral(x)),
    rule((x <= y) | (x == y), x <= y),
)

NOT = rules(
    rule(~(~x), x),
    rule(~(x < y), y <= x, when=integral(x)),
    rule(~(x <= y), y < x, when=integral(x)),
    rule(~(x == y), x != y),
    rule(~(x != y), x == y),
    rule(~(x & y), ~x | ~y),
    rule(~(x | y), ~x & ~y),
    rule(~broadcast(x, lanes), broadcast(~x, lanes)),
)

# two truth values
EQ_BOOLEAN = rules(
    rule(x == x, True),
    rule(x == True, x),  # noqa: E712
    rule(x == False, ~x),  # noqa: E712
)
NE_BOOLEAN = rules(
    rule(x != x, False),
    rule(x != True, ~x),  # noqa: E712
    rule(x != False, x),  # noqa: E712
)
