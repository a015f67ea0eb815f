"""Comparisons.

Normal form: no `>` and `>=`; against a constant an upper bound is `x < c`, a lower bound `c <= x`; what both sides have in
common is gone; constants stand alone on their side.
"""

from tvm.ir.rules import fold, pattern_consts, pattern_vars, rule, rules

from .notation import broadcast, lower, max_, min_, modulus, ramp, residue, upper

x, y, z, w, b, lanes = pattern_vars("x y z w b lanes")
c0, c1 = pattern_consts("c0 c1")

EQ_ANY = rules(
    rule(broadcast(x, lanes) == broadcast(y, lanes), broadcast(x == y, lanes)),
)
NE_ANY = rules(
    rule(broadcast(x, lanes) != broadcast(y, lanes), broadcast(x != y, lanes)),
)
LT_ANY = rules(
    rule(broadcast(x, lanes) < broadcast(y, lanes), broadcast(x < y, lanes)),
)
LE_ANY = rules(
    rule(broadcast(x, lanes) <= broadcast(y, lanes), broadcast(x <= y, lanes)),
)

# no NaN among integers
EQ_WRAPPING = rules(rule(x == x, True))
NE_WRAPPING = rules(rule(x != x, False))
LT_WRAPPING = rules(rule(x < x, False))
LE_WRAPPING = rules(rule(x <= x, True))

EQ_NO_OVERFLOW = rules(
    rule(x == y, False, when=(upper(x) < lower(y)) | (upper(y) < lower(x))),
    rule(x == c0, False, when=(modulus(x) != 0) & ((c0 - residue(x)) % modulus(x) != 0)),
    rule(x + c0 == c1, x == fold(c1 - c0)),
    rule(c0 - x == c1, x == fold(c0 - c1)),
    rule(x * c0 == c1, x == fold(c1 // c0), when=(c0 != 0) & (c1 % c0 == 0)),
    rule(x * c0 == c1, False, when=(c0 != 0) & (c1 % c0 != 0)),
    rule(x * c0 == y * c0, x == y, when=c0 != 0),
    rule(x - y == 0, x == y),
    rule(x - y == c0, x == y + c0),
    rule(x + y == x + z, y == z),
    rule(x - y == x - z, y == z),
    rule(x - y == z - y, x == z),
    rule(x + y == x, y == 0),
    rule(x - y == x, y == 0),
    rule(x - y == y * c0, x == y * fold(c0 + 1)),
)
NE_NO_OVERFLOW = rules(
    rule(x != y, True, when=(upper(x) < lower(y)) | (upper(y) < lower(x))),
    rule(x != c0, True, when=(modulus(x) != 0) & ((c0 - residue(x)) % modulus(x) != 0)),
    rule(x + c0 != c1, x != fold(c1 - c0)),
    rule(c0 - x != c1, x != fold(c0 - c1)),
    rule(x * c0 != c1, x != fold(c1 // c0), when=(c0 != 0) & (c1 % c0 == 0)),
    rule(x * c0 != c1, True, when=(c0 != 0) & (c1 % c0 != 0)),
    rule(x * c0 != y * c0, x != y, when=c0 != 0),
    rule(x - y != 0, x != y),
    rule(x - y != c0, x != y + c0),
    rule(x + y != x + z, y != z),
    rule(x - y != x - z, y != z),
    rule(x - y != z - y, x != z),
    rule(x + y != x, y != 0),
    rule(x - y != x, y != 0),
)
LT_NO_OVERFLOW = rules(
    rule(x < y, True, when=upper(x) < lower(y)),
    rule(x < y, False, when=lower(x) >= upper(y)),
    rule(c0 < x, fold(c0 + 1) <= x),
    rule(x + c0 < c1, x < fold(c1 - c0)),
    rule(c0 - x < c1, fold(c0 - c1 + 1) <= x),
    rule(x * c0 < c1, x < fold(0 - (0 - c1) // c0), when=c0 > 0),
    rule(x * c0 < c1, fold((0 - c1) // (0 - c0) + 1) <= x, when=c0 < 0),
    rule(x // c0 < c1, x < fold(c0 * c1), when=c0 > 0),
    rule(x * c0 < y * c0, x < y, when=c0 > 0),
    rule(x * c0 < y * c0, y < x, when=c0 < 0),
    rule(x + y < x + z, y < z),
    rule(x + y < z + y + w, x < z + w),
    rule(x - y < x - z, z < y),
    rule(x - y < z - y, x < z),
    rule(x + y < x, y < 0),
    rule(x < x + y, y >= 1),
    rule(x - y < x, y >= 1),
    rule(x < x - y, y < 0),
    rule(x - y < 0, x < y),
    rule(x + c0 < y, x < y + fold(0 - c0), when=c0 < 0),
    rule(x < y + c0, x + fold(0 - c0) < y, when=c0 < 0),
    rule(x < y + 1, x <= y),
    rule(x + c0 < y + c1, x < y + fold(c1 - c0)),
    rule(min_(x, c0) < c1, True, when=c0 < c1),
    rule(min_(x, c0) < c1, x < c1, when=c0 >= c1),
    rule(max_(x, c0) < c1, False, when=c0 >= c1),
    rule(max_(x, c0) < c1, x < c1, when=c0 < c1),
    rule(min_(x, y) < x, y < x),
    rule(x < max_(x, y), x < y),
    rule(x < min_(x, y), False),
    rule(max_(x, y) < x, False),
    # all lanes or none
    rule(
        ramp(b, c0, lanes) < broadcast(x, lanes),
        broadcast(True, lanes),
        when=(c0 >= 0) & (upper(b) + c0 * (lanes - 1) < lower(x)),
    ),
    rule(
        ramp(b, c0, lanes) < broadcast(x, lanes),
        broadcast(False, lanes),
        when=(c0 >= 0) & (lower(b) >= upper(x)),
    ),
)
LE_NO_OVERFLOW = rules(
    rule(x <= y, True, when=upper(x) <= lower(y)),
    rule(x <= y, False, when=lower(x) > upper(y)),
    rule(x <= c0, x < fold(c0 + 1)),
    rule(c0 <= x + c1, fold(c0 - c1) <= x),
    rule(c0 <= c1 - x, x < fold(c1 - c0 + 1)),
    rule(c0 <= x * c1, fold(0 - (0 - c0) // c1) <= x, when=c1 > 0),
    rule(c0 <= x * c1, x < fold((0 - c0) // (0 - c1) + 1), when=c1 < 0),
    rule(c0 <= x // c1, fold(c0 * c1) <= x, when=c1 > 0),
    rule(c0 <= min_(x, c1), c0 <= x, when=c0 <= c1),
    rule(c0 <= min_(x, c1), False, when=c0 > c1),
    rule(c0 <= max_(x, c1), True, when=c0 <= c1),
    rule(c0 <= max_(x, c1), c0 <= x, when=c0 > c1),
    rule(x * c0 <= y * c0, x <= y, when=c0 > 0),
    rule(x * c0 <= y * c0, y <= x, when=c0 < 0),
    rule(x + y <= x + z, y <= z),
    rule(x - y <= x - z, z <= y),
    rule(x - y <= z - y, x <= z),
    rule(x + y <= x, y < 1),
    rule(x <= x + y, y >= 0),
    rule(x - y <= x, y >= 0),
    rule(x <= x - y, y < 1),
    rule(x - y >= 0, y <= x),
    rule(x - y >= 1, y < x),
    rule(x + c0 <= y, x + fold(c0 - 1) < y, when=c0 > 0),
    rule(x <= y + c0, x < y + fold(c0 + 1)),
    rule(x + c0 <= y, x <= y + fold(0 - c0), when=c0 < 0),
    rule(x + c0 <= y + c1, x <= y + fold(c1 - c0)),
    rule(min_(x, y) <= x, True),
    rule(x <= max_(x, y), True),
    rule(x <= min_(x, y), x <= y),
    rule(max_(x, y) <= x, y <= x),
    rule(x // c0 * c0 <= x, True, when=c0 > 0),
)
