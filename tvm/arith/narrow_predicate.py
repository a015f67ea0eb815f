"""Conditions without some of their variables, which hold only where the original holds for all values of these.

i < n          ->    i < 0                      for n in [0, 8)
i + n < 10     ->    i + 7 < 10
i == n         ->    i <= 0 and 7 <= i
i % n == 0     ->    False
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm._ffi import register_func
from tvm.error import RuntimeTypeError
from tvm.ir.expr import PrimExpr
from tvm.support import deep
from tvm.tir import expr as tir
from tvm.tir import op

from .analyzer import Analyzer
from .pattern import uses

_GREATER = (tir.GT, tir.GE)


class _NotMonotonic(Exception):
    """Neither end of a variable's range stands for all of it."""


@register_func("arith.NarrowPredicateExpression", override=True)
@deep
def narrow_predicate_expression(
    expr: PrimExpr, free_parameters: Mapping[tir.Var, tir.Range]
) -> PrimExpr:
    """A condition that implies the given one whatever the values of the free parameters.

    Parameters
    ----------
    expr : PrimExpr
        A condition.
    free_parameters : dict of Var to Range
        The variables that may not occur in the result, and the values that they have.

    Returns
    -------
    PrimExpr
        False stands for parts of which no such condition is known, as those that read memory.
    """
    if not expr.dtype.is_bool:
        raise RuntimeTypeError(
            f"narrow_predicate_expression requires a condition, got {expr.dtype}"
        )
    narrowed: PrimExpr = _Narrower(free_parameters).condition(expr, True)
    return narrowed


class _Narrower:
    """Puts the worst values in the place of variables: for a condition to be narrowed those for which it fails."""

    def __init__(self, ranges: Mapping[tir.Var, tir.Range]) -> None:
        analyzer = Analyzer()
        self.variables = list(ranges)
        self.least = {var: domain.min for var, domain in ranges.items()}
        self.most = {
            var: analyzer.simplify(op.subtract(op.add(domain.min, domain.extent), 1))
            for var, domain in ranges.items()
        }

    def condition(self, e: Any, narrow: bool) -> Any:
        """The condition narrowed, or widened: inside a negation it is the other way round."""
        cls = type(e)
        if cls in (tir.And, tir.Or):
            return _rebuilt(e, self.condition(e.a, narrow), self.condition(e.b, narrow))
        if cls is tir.Not:
            inner = self.condition(e.a, not narrow)
            if inner is e.a:
                return e
            return op.logical_not(inner) if type(inner) is tir.IntImm else tir.Not(inner)
        try:
            return self._comparison(e, narrow)
        except _NotMonotonic:
            return tir.const(not narrow, "bool")

    def _comparison(self, e: Any, narrow: bool) -> Any:
        cls = type(e)
        if cls in (tir.EQ, tir.NE) and uses(e, self.variables):
            part, join = (tir.LE, tir.And) if cls is tir.EQ else (tir.LT, tir.Or)
            sides = [self._comparison(part(*pair), narrow) for pair in ((e.a, e.b), (e.b, e.a))]
            return join(*sides)
        if cls in (tir.LT, tir.LE):
            return _rebuilt(e, self.value(e.a, narrow), self.value(e.b, not narrow))
        if cls in _GREATER:
            return _rebuilt(e, self.value(e.a, not narrow), self.value(e.b, narrow))
        for child in e.children():
            self.value(child, narrow)  # rejects what reads memory
        return self._unless_used(e)

    def value(self, e: Any, high: bool) -> Any:
        """The greatest value, or the least one, over the ranges of the variables."""
        cls = type(e)
        if isinstance(e, tir.Var):
            return (self.most if high else self.least).get(e, e)
        if cls in (tir.Add, tir.Min, tir.Max):
            return _rebuilt(e, self.value(e.a, high), self.value(e.b, high))
        if cls is tir.Sub:
            return _rebuilt(e, self.value(e.a, high), self.value(e.b, not high))
        if cls in (tir.Mul, tir.FloorDiv, tir.Div) and type(e.b) is tir.IntImm and e.b.value:
            return _rebuilt(e, self.value(e.a, high == (e.b.value > 0)), e.b)
        if cls in (tir.BufferLoad, tir.FloorMod, tir.Mod):
            raise _NotMonotonic
        for child in e.children():
            self.value(child, high)
        return self._unless_used(e)

    def _unless_used(self, e: Any) -> Any:
        if uses(e, self.variables):
            raise _NotMonotonic
        return e


def _rebuilt(e: Any, a: PrimExpr, b: PrimExpr) -> Any:
    return e if a is e.a and b is e.b else type(e)(a, b)
