"""Comparisons.

Normal form: no `>` and `>=`; what both sides have in common is gone; constants stand alone on their side. Which of `<`
and `<=` is written stays, but for `x < y + 1` and `x + 1 <= y`.
"""

from tvm.ir.rules import calling, fold, pattern_consts, pattern_vars, rule, rules

from .notation import (
    broadcast,
    lower,
    max_,
    min_,
    modulus,
    ramp,
    residue,
    symbolic,
    truncdiv,
    truncmod,
    upper,
)

x, y, z, w, b, lanes = pattern_vars("x y z w b lanes")
c0, c1, c2 = pattern_consts("c0 c1 c2")


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


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
    rule(x * y == 0, (x == 0) | (y == 0), when=symbolic(y)),
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
    rule(x * y != 0, (x != 0) & (y != 0), when=symbolic(y)),
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
    rule(x + c0 < c1, x < fold(c1 - c0)),
    rule(c1 < x + c0, fold(c1 - c0) < x),
    rule(c0 - x < c1, fold(c0 - c1) < x),
    rule(c1 < c0 - x, x < fold(c0 - c1)),
    rule(x * c0 < c1, x < fold(calling(ceildiv, c1, c0)), when=c0 > 0),
    rule(x * c0 < c1, fold(c1 // c0) < x, when=c0 < 0),
    rule(c1 < x * c0, fold(c1 // c0) < x, when=c0 > 0),
    rule(c1 < x * c0, x < fold(calling(ceildiv, c1, c0)), when=c0 < 0),
    rule(x // c0 < c1, x < fold(c0 * c1), when=c0 > 0),
    rule(c1 < x // c0, fold((c1 + 1) * c0 - 1) < x, when=c0 > 0),
    # below zero truncation rounds up
    rule(truncdiv(x, c0) < c1, x < fold(c0 * c1), when=(c0 > 0) & (c1 > 0)),
    rule(truncdiv(x, c0) < c1, x < fold(c0 * (c1 - 1) + 1), when=(c0 > 0) & (c1 <= 0)),
    rule(c1 < truncdiv(x, c0), fold((c1 + 1) * c0 - 1) < x, when=(c0 > 0) & (c1 >= 0)),
    rule(c1 < truncdiv(x, c0), fold(c0 * c1) < x, when=(c0 > 0) & (c1 < 0)),
    rule(x * c0 < y * c0, x < y, when=c0 > 0),
    rule(x * c0 < y * c0, y < x, when=c0 < 0),
    rule(x + y < x + z, y < z),
    rule(x + y < z + y + w, x < z + w),
    rule(x - y < x - z, z < y),
    rule(x - y < z - y, x < z),
    rule(x + y < x, y < 0),
    rule(x < x + y, y > 0),
    rule(x - y < x, y > 0),
    rule(x < x - y, y < 0),
    rule(x - y < 0, x < y),
    rule(x + c0 < y, x < y + fold(0 - c0), when=c0 < 0),
    rule(x < y + c0, x + fold(0 - c0) < y, when=c0 < 0),
    rule(x < y + 1, x <= y),
    rule(x + c0 < y + c1, x < y + fold(c1 - c0)),
    # (x + c)//d*d = x + c - (x + c)%d
    rule(x // c0 * c0 < x, x % c0 > 0),
    rule(x // c0 * c0 < x + y, x % c0 + y > 0),
    rule(x // c0 * c0 < x - y, y < x % c0),
    rule(truncdiv(x, c0) * c0 < x, truncmod(x, c0) > 0),
    rule(truncdiv(x, c0) * c0 < x + y, truncmod(x, c0) + y > 0),
    rule(truncdiv(x, c0) * c0 < x - y, y < truncmod(x, c0)),
    rule(min_(x, c0) < c1, True, when=c0 < c1),
    rule(min_(x, c0) < c1, x < c1, when=c0 >= c1),
    rule(max_(x, c0) < c1, False, when=c0 >= c1),
    rule(max_(x, c0) < c1, x < c1, when=c0 < c1),
    rule(c1 < min_(x, c0), False, when=c0 <= c1),
    rule(c1 < min_(x, c0), c1 < x, when=c0 > c1),
    rule(c1 < max_(x, c0), True, when=c0 > c1),
    rule(c1 < max_(x, c0), c1 < x, when=c0 <= c1),
    rule(x + c0 < max_(x, c1), x < fold(c1 - c0), when=c0 >= 0),
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
    rule(x <= y, x == y, when=lower(x) == upper(y)),
    rule(x + c0 <= c1, x <= fold(c1 - c0)),
    rule(c0 <= x + c1, fold(c0 - c1) <= x),
    rule(c0 - x <= c1, fold(c0 - c1) <= x),
    rule(c0 <= c1 - x, x <= fold(c1 - c0)),
    rule(x * c0 <= c1, x <= fold(c1 // c0), when=c0 > 0),
    rule(x * c0 <= c1, fold(calling(ceildiv, c1, c0)) <= x, when=c0 < 0),
    rule(c0 <= x * c1, fold(calling(ceildiv, c0, c1)) <= x, when=c1 > 0),
    rule(c0 <= x * c1, x <= fold(c0 // c1), when=c1 < 0),
    rule(x // c0 <= c1, x <= fold((c1 + 1) * c0 - 1), when=c0 > 0),
    rule(c0 <= x // c1, fold(c0 * c1) <= x, when=c1 > 0),
    rule(truncdiv(x, c0) <= c1, x <= fold((c1 + 1) * c0 - 1), when=(c0 > 0) & (c1 >= 0)),
    rule(truncdiv(x, c0) <= c1, x <= fold(c0 * c1), when=(c0 > 0) & (c1 < 0)),
    rule(c0 <= truncdiv(x, c1), fold(c0 * c1) <= x, when=(c1 > 0) & (c0 > 0)),
    rule(c0 <= truncdiv(x, c1), fold((c0 - 1) * c1 + 1) <= x, when=(c1 > 0) & (c0 <= 0)),
    rule(min_(x, c0) <= c1, True, when=c0 <= c1),
    rule(min_(x, c0) <= c1, x <= c1, when=c0 > c1),
    rule(max_(x, c0) <= c1, False, when=c0 > c1),
    rule(max_(x, c0) <= c1, x <= c1, when=c0 <= c1),
    rule(c0 <= min_(x, c1), c0 <= x, when=c0 <= c1),
    rule(c0 <= min_(x, c1), False, when=c0 > c1),
    rule(c0 <= max_(x, c1), True, when=c0 <= c1),
    rule(c0 <= max_(x, c1), c0 <= x, when=c0 > c1),
    rule(x * c0 <= y * c0, x <= y, when=c0 > 0),
    rule(x * c0 <= y * c0, y <= x, when=c0 < 0),
    rule(x + y <= x + z, y <= z),
    rule(x - y <= x - z, z <= y),
    rule(x - y <= z - y, x <= z),
    rule(x + y <= x, y <= 0),
    rule(x <= x + y, y >= 0),
    rule(x - y <= x, y >= 0),
    rule(x <= x - y, y <= 0),
    rule(x - y >= 0, y <= x),
    rule(x - y <= 0, x <= y),
    rule(x - y >= 1, y < x),
    rule(x + 1 <= y, x < y),
    rule(x + c0 <= y, x <= y + fold(0 - c0), when=c0 < 0),
    rule(x <= y + c0, x + fold(0 - c0) <= y, when=c0 < 0),
    rule(x + c0 <= y + c1, x <= y + fold(c1 - c0)),
    rule(x // c0 * c0 <= x, True, when=c0 > 0),
    # (x + c)//d*d = x + c - (x + c)%d
    rule(x <= x // c0 * c0, x % c0 == 0, when=c0 > 0),
    rule(x + y <= x // c0 * c0, x % c0 + y <= 0),
    rule(x - y <= x // c0 * c0, x % c0 <= y),
    rule(x <= (x + c1) // c0 * c0, (x + c1) % c0 <= c1),
    rule(x + y <= (x + c1) // c0 * c0, (x + c1) % c0 + y <= c1),
    rule(x - y <= (x + c1) // c0 * c0, (x + c1) % c0 <= y + c1),
    rule(x <= truncdiv(x, c0) * c0, truncmod(x, c0) <= 0),
    rule(x + y <= truncdiv(x, c0) * c0, truncmod(x, c0) + y <= 0),
    rule(x - y <= truncdiv(x, c0) * c0, truncmod(x, c0) <= y),
    rule(x <= truncdiv(x + c1, c0) * c0, truncmod(x + c1, c0) <= c1),
    rule(x + y <= truncdiv(x + c1, c0) * c0, truncmod(x + c1, c0) + y <= c1),
    rule(x - y <= truncdiv(x + c1, c0) * c0, truncmod(x + c1, c0) <= y + c1),
    rule(min_(x, y) <= x, True),
    rule(x <= max_(x, y), True),
    rule(x <= min_(x, y), x <= y),
    rule(max_(x, y) <= x, y <= x),
)
