"""Choices. Both values may be evaluated, so either may be dropped."""

from tvm.ir.rules import pattern_vars, rule, rules

from .notation import broadcast, select

x, y, z, w, v, lanes = pattern_vars("x y z w v lanes")

SELECT = rules(
    rule(select(w, x, x), x),
    rule(select(~w, x, y), select(w, y, x)),
    rule(select(w, select(w, x, y), z), select(w, x, z)),
    rule(select(w, x, select(w, y, z)), select(w, x, z)),
    rule(select(w, x, select(v, x, y)), select(w | v, x, y)),
    rule(select(w, select(v, x, y), y), select(w & v, x, y)),
    rule(select(broadcast(w, lanes), x, y), select(w, x, y)),
)

SELECT_BOOLEAN = rules(
    rule(select(w, True, False), w),
    rule(select(w, False, True), ~w),
    rule(select(w, x, False), w & x),
    rule(select(w, True, x), w | x),
    rule(select(w, False, x), ~w & x),
    rule(select(w, x, True), ~w | x),
)
