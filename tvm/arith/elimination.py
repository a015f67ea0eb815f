"""The elimination of Fourier and Motzkin: inequalities solved for one variable after the other.

    x + y <= 20, x - y >= 10      x <= 20 - y, y + 10 <= x, and without x:  y + 10 <= 20 - y

A bound from below and one from above together say something about the variables that remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd, lcm

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.expr import EQ, GE, GT, LE, LT, IntImm, Var, const

from .analyzer import Analyzer
from .pattern import conjuncts, detect_linear_equation


@dataclass
class Bounds:
    """The ends of ``coef * var``, both included, in terms of variables behind it."""

    dtype: DType
    coef: int = 1
    lower: list[PrimExpr] = field(default_factory=list)
    upper: list[PrimExpr] = field(default_factory=list)


class Inequalities:
    """The bounds of each variable in terms of those behind it."""

    def __init__(self, variables: Sequence[Var], relations: Sequence[PrimExpr]) -> None:
        self.simplify = Analyzer().simplify
        self.rest: list[PrimExpr] = []  # what is not linear
        self.bounds: dict[Var, Bounds] = {}
        self.is_contradiction = False
        self.current: list[PrimExpr] = []  # expressions that are not positive
        for relation in relations:
            for part in conjuncts(relation):
                self._take(part)
        for var in variables:
            self._eliminate(var)
        self.rest += [op.less_equal(expr, const(0, expr.dtype)) for expr in self.current]

    def _take(self, relation: PrimExpr) -> None:
        if not isinstance(relation, (EQ, GE, GT, LE, LT)) or not relation.a.dtype.is_int:
            self.rest.append(relation)
            return
        a, b = (
            (relation.b, relation.a) if isinstance(relation, (GE, GT)) else (relation.a, relation.b)
        )
        strict = 1 if isinstance(relation, (GT, LT)) else 0
        self._add(op.add(op.subtract(a, b), strict))
        if isinstance(relation, EQ):
            self._add(op.subtract(b, a))

    def _add(self, expr: PrimExpr) -> None:
        """Know that an expression is not positive."""
        expr = self.simplify(expr)
        if isinstance(expr, IntImm):
            self.is_contradiction |= expr.value > 0
            return
        kept = []
        for other in self.current:
            difference = self.simplify(op.subtract(expr, other))
            if not isinstance(difference, IntImm):
                kept.append(other)
            elif difference.value <= 0:
                return  # the other one says more
        self.current = [*kept, expr]

    def _eliminate(self, var: Var) -> None:
        above: list[tuple[int, PrimExpr]] = []  # factor * var + expr <= 0
        below: list[tuple[int, PrimExpr]] = []
        known, self.current = self.current, []
        for expr in known:
            linear = detect_linear_equation(expr, [var])
            if not linear or not isinstance(linear[0], IntImm):
                self.rest.append(op.less_equal(expr, const(0, expr.dtype)))
                continue
            factor, rest = linear[0].value, linear[1]
            if factor == 0:
                self.current.append(expr)
            else:
                (above if factor > 0 else below).append((factor, rest))
        for (up, high), (down, low) in product(above, below):
            divisor = gcd(up, down)
            scaled = op.multiply(high, -down // divisor), op.multiply(low, up // divisor)
            self._add(op.add(*scaled))
        self.bounds[var] = self._bounds(var, above, below)

    def _bounds(
        self, var: Var, above: list[tuple[int, PrimExpr]], below: list[tuple[int, PrimExpr]]
    ) -> Bounds:
        coef = lcm(*[abs(factor) for factor, _ in (*above, *below)])
        return Bounds(
            var.dtype,
            coef,
            [self.simplify(op.multiply(low, coef // -factor)) for factor, low in below],
            [self.simplify(op.multiply(high, -(coef // factor))) for factor, high in above],
        )

    def conditions(self) -> list[PrimExpr]:
        """All that is known, as comparisons."""
        found: list[PrimExpr] = []
        for var, bounds in self.bounds.items():
            scaled = self.simplify(op.multiply(var, bounds.coef))
            equal = [
                low
                for low in bounds.lower
                if any(_is_zero(self.simplify(op.subtract(low, up))) for up in bounds.upper)
            ]
            found += [op.equal(scaled, end) for end in equal]
            for side, compare in (
                (bounds.lower, op.greater_equal),
                (bounds.upper, op.less_equal),
            ):
                for end in side:
                    if not any(_is_zero(self.simplify(op.subtract(end, e))) for e in equal):
                        found.append(compare(scaled, end))
        return [*found, *self.rest]


def _is_zero(expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0
