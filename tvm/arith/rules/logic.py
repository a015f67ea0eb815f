"""Conjunction, disjunction, negation.

`And` and `Or` stop at their first operand when it decides, so operands may be dropped but no rule evaluates one earlier
than before; expressions under a condition are pure.
"""

from tvm.ir.rules import fold, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, integral, max_, min_

x, y, z, lanes = pattern_vars("x y z lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")

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
    rule(x & (y & z), (x & y) & z, as_written=True),
    rule(broadcast(x, lanes) & broadcast(y, lanes), broadcast(x & y, lanes)),
    # of two bounds the tighter one; none fits between crossing ones
    rule((x < c0) & (x < c1), x < fold(min_(c0, c1))),
    rule((x <= c0) & (x <= c1), x <= fold(min_(c0, c1))),
    rule((x < c0) & (x <= c1), x < c0, when=c0 <= c1),
    rule((x < c0) & (x <= c1), x <= c1, when=c1 < c0),
    rule((c0 <= x) & (c1 <= x), fold(max_(c0, c1)) <= x),
    rule((c0 < x) & (c1 < x), fold(max_(c0, c1)) < x),
    rule((c0 < x) & (c1 <= x), c0 < x, when=c1 <= c0),
    rule((c0 < x) & (c1 <= x), c1 <= x, when=c0 < c1),
    rule((c0 <= x) & (x < c1), False, when=c0 >= c1),
    rule((c0 <= x) & (x < c1), x == c0, when=c0 + 1 == c1),
    rule((c0 < x) & (x < c1), False, when=c0 + 1 >= c1),
    rule((c0 < x) & (x < c1), x == fold(c0 + 1), when=c0 + 2 == c1),
    rule((c0 <= x) & (x <= c1), False, when=c0 > c1),
    rule((c0 <= x) & (x <= c1), x == c0, when=c0 == c1),
    rule((c0 < x) & (x <= c1), False, when=c0 >= c1),
    rule((c0 < x) & (x <= c1), x == c1, when=c0 + 1 == c1),
    rule((x == c0) & (x == c1), False, when=c0 != c1),
    rule((x == c0) & (x != c1), x == c0, when=c0 != c1),
    rule((x == c0) & (x < c1), x == c0, when=c0 < c1),
    rule((x == c0) & (x < c1), False, when=c0 >= c1),
    rule((x == c0) & (x <= c1), x == c0, when=c0 <= c1),
    rule((x == c0) & (x <= c1), False, when=c0 > c1),
    rule((x == c0) & (c1 <= x), x == c0, when=c1 <= c0),
    rule((x == c0) & (c1 <= x), False, when=c1 > c0),
    rule((x == c0) & (c1 < x), x == c0, when=c1 < c0),
    rule((x == c0) & (c1 < x), False, when=c1 >= c0),
    # a known quotient and what is known of the remainder: x = (x//c)*c + x%c
    rule(
        (x // c0 == c1) & (x % c0 == c2),
        x == fold(c0 * c1 + c2),
        when=(c0 > 0) & (c2 >= 0) & (c2 < c0),
    ),
    rule(
        (x // c0 == c1) & (x % c0 < c2),
        (fold(c0 * c1) <= x) & (x < fold(c0 * c1 + c2)),
        when=(c0 > 0) & (c2 > 0) & (c2 <= c0),
    ),
    rule(
        (x // c0 == c1) & (x % c0 <= c2),
        (fold(c0 * c1) <= x) & (x <= fold(c0 * c1 + c2)),
        when=(c0 > 0) & (c2 >= 0) & (c2 < c0),
    ),
    rule(
        (x // c0 == c1) & (c2 < x % c0),
        (fold(c0 * c1 + c2) < x) & (x < fold(c0 * (c1 + 1))),
        when=(c0 > 0) & (c2 >= -1) & (c2 < c0),
    ),
    rule(
        (x // c0 == c1) & (c2 <= x % c0),
        (fold(c0 * c1 + c2) <= x) & (x < fold(c0 * (c1 + 1))),
        when=(c0 > 0) & (c2 >= 0) & (c2 < c0),
    ),
    # the definition of a quotient
    rule((y * c0 <= x) & (x - y * c0 < c0), y == x // c0, when=c0 > 0),
    # an upper bound whose last remainders are excluded
    rule(
        (x < c0) & (x % c1 < c2),
        (x < fold((c0 - 1) // c1 * c1 + c2)) & (x % c1 < c2),
        when=(c1 > 0) & (c2 > 0) & ((c0 - 1) % c1 >= c2),
    ),
    rule(
        (x <= c0) & (x % c1 < c2),
        (x < fold(c0 // c1 * c1 + c2)) & (x % c1 < c2),
        when=(c1 > 0) & (c2 > 0) & (c0 % c1 >= c2),
    ),
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
    rule(x | (y | z), (x | y) | z, as_written=True),
    rule(broadcast(x, lanes) | broadcast(y, lanes), broadcast(x | y, lanes)),
    # of two bounds the looser one; crossing ones leave nothing out
    rule((x < c0) | (x < c1), x < fold(max_(c0, c1))),
    rule((x <= c0) | (x <= c1), x <= fold(max_(c0, c1))),
    rule((x < c0) | (x <= c1), x < c0, when=c1 < c0),
    rule((x < c0) | (x <= c1), x <= c1, when=c0 <= c1),
    rule((c0 <= x) | (c1 <= x), fold(min_(c0, c1)) <= x),
    rule((c0 < x) | (c1 < x), fold(min_(c0, c1)) < x),
    rule((c0 < x) | (c1 <= x), c0 < x, when=c0 < c1),
    rule((c0 < x) | (c1 <= x), c1 <= x, when=c1 <= c0),
    rule((c0 <= x) | (x < c1), True, when=integral(x) & (c0 <= c1)),
    rule((c0 <= x) | (x < c1), x != c1, when=integral(x) & (c0 == c1 + 1)),
    rule((c0 < x) | (x < c1), True, when=integral(x) & (c0 < c1)),
    rule((c0 < x) | (x < c1), x != c0, when=integral(x) & (c0 == c1)),
    rule((c0 <= x) | (x <= c1), True, when=integral(x) & (c0 <= c1 + 1)),
    rule((c0 <= x) | (x <= c1), x != fold(c1 + 1), when=integral(x) & (c0 == c1 + 2)),
    rule((c0 < x) | (x <= c1), True, when=integral(x) & (c0 <= c1)),
    rule((c0 < x) | (x <= c1), x != c0, when=integral(x) & (c0 == c1 + 1)),
    rule((x != c0) | (x != c1), True, when=c0 != c1),
    rule((x != c0) | (x == c1), x != c0, when=c0 != c1),
    rule((x == c0) | (x < c1), x < c1, when=c0 < c1),
    rule((x == c0) | (x < c1), x <= c1, when=c0 == c1),
    rule((x == c0) | (x <= c1), x <= c1, when=c0 <= c1),
    rule((x == c0) | (c1 <= x), c1 <= x, when=c1 <= c0),
    rule((x == c0) | (c1 < x), c1 < x, when=c1 < c0),
    rule((x == c0) | (c1 < x), c1 <= x, when=c0 == c1),
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
