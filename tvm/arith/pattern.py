"""Shapes of expressions: linear in given variables, bounds on given variables, repeated parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support import deep
from tvm.tir import expr as tir
from tvm.tir import op

from .analyzer import Analyzer
from .interning import Interner


class _UsesOf(Visitor):
    """Finds a variable in an expression."""

    def __init__(self, variables: Sequence[PrimExpr]) -> None:
        self._wanted = {id(var) for var in variables}
        self.found = False

    def visit_var(self, var: tir.Var) -> None:
        self.found = self.found or id(var) in self._wanted


def uses(expr: PrimExpr, variables: Sequence[PrimExpr]) -> bool:
    """Whether any of the variables occurs in the expression."""
    finder = _UsesOf(variables)
    finder.visit(expr)
    return finder.found


def split_linear(expr: PrimExpr, var: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """(a, b) with `expr = a*var + b` and no var in either; None if there is no such pair."""
    zero = tir.const(0, expr.dtype)
    if expr is var:
        return tir.const(1, expr.dtype), zero
    if not uses(expr, [var]):
        return zero, expr
    if not isinstance(expr, (tir.Add, tir.Sub, tir.Mul)):
        return None
    left, right = split_linear(expr.a, var), split_linear(expr.b, var)
    if left is None or right is None:
        return None
    if isinstance(expr, tir.Add):
        return op.add(left[0], right[0]), op.add(left[1], right[1])
    if isinstance(expr, tir.Sub):
        return op.subtract(left[0], right[0]), op.subtract(left[1], right[1])
    if not uses(expr.b, [var]):
        return op.multiply(left[0], expr.b), op.multiply(left[1], expr.b)
    if not uses(expr.a, [var]):
        return op.multiply(right[0], expr.a), op.multiply(right[1], expr.a)
    return None


@deep
def detect_linear_equation(expr: Any, var_list: Sequence[tir.Var]) -> tuple[PrimExpr, ...]:
    """The coefficients of the variables and the constant term; empty if the expression is not linear.

    x*4 + y*n + z    in [x, y]    ->    (4, n, z)
    """
    analyzer = Analyzer()
    rest = analyzer.simplify(tir.as_expr(expr))
    coefficients: list[PrimExpr] = []
    for var in var_list:
        found = split_linear(rest, var)
        if found is None or uses(found[0], var_list):
            return ()
        coefficients.append(analyzer.simplify(found[0]))
        rest = found[1]
    return (*coefficients, analyzer.simplify(rest))


@deep
def detect_clip_bound(expr: Any, var_list: Sequence[tir.Var]) -> tuple[PrimExpr | None, ...]:
    """The least and greatest value of each variable that a conjunction of comparisons allows.

    A pair `(min, max)` for each variable, None where the condition sets no bound; empty if some
    comparison is not a bound of a single variable of the list.
    """
    analyzer = Analyzer()
    lows: dict[int, PrimExpr | None] = {id(var): None for var in var_list}
    highs: dict[int, PrimExpr | None] = {id(var): None for var in var_list}
    conditions = conjuncts(tir.as_expr(expr))
    forms = [not_negative_forms(condition) for condition in conditions]
    if not all(forms):
        return ()
    for form in chain(*forms):
        bounded = _bounded_variable(form, var_list, analyzer)
        if bounded is None:
            return ()
        var, factor, rest = bounded
        # factor*var + rest >= 0
        if factor > 0:
            end, known = analyzer.simplify(op.negative(rest)), lows[id(var)]
            lows[id(var)] = end if known is None else analyzer.simplify(op.max(known, end))
        else:
            end, known = rest, highs[id(var)]
            highs[id(var)] = end if known is None else analyzer.simplify(op.min(known, end))
    return tuple([ends[id(var)] for var in var_list for ends in (lows, highs)])


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that a conjunction joins."""
    if isinstance(condition, tir.And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    if isinstance(condition, tir.Call) and getattr(condition.op, "name", "") == "tir.likely":
        return conjuncts(condition.args[0])
    if isinstance(condition, tir.Not) and (opposite := _opposite(condition.a)) is not None:
        return conjuncts(opposite)
    parts = _parts_of_extremum(condition)
    return [condition] if parts is None else [*conjuncts(parts[0]), *conjuncts(parts[1])]


_OPPOSITES = {tir.LT: op.greater_equal, tir.LE: op.greater, tir.GT: op.less_equal, tir.GE: op.less}


def _opposite(condition: PrimExpr) -> PrimExpr | None:
    """The negation of a comparison of integers or of a disjunction; None for other conditions."""
    if isinstance(condition, tir.Or):
        return op.logical_and(op.logical_not(condition.a), op.logical_not(condition.b))
    if isinstance(condition, tir.Not):
        return condition.a
    if not isinstance(condition, tir.CmpExpr) or not condition.a.dtype.is_int:
        return None
    compare = _OPPOSITES.get(type(condition))
    return None if compare is None else compare(condition.a, condition.b)


def _parts_of_extremum(condition: Any) -> tuple[PrimExpr, PrimExpr] | None:
    """min(x, y) > c as x > c and y > c, and so on; None for other conditions."""
    if isinstance(condition, (tir.GT, tir.GE)):
        small, large = condition.b, condition.a
    elif isinstance(condition, (tir.LT, tir.LE)):
        small, large = condition.a, condition.b
    else:
        return None
    compare = op.less if isinstance(condition, (tir.LT, tir.GT)) else op.less_equal
    if isinstance(large, tir.Min):
        return compare(small, large.a), compare(small, large.b)
    if isinstance(small, tir.Max):
        return compare(small.a, large), compare(small.b, large)
    return None


def not_negative_forms(condition: PrimExpr) -> list[PrimExpr]:
    """The expressions that are at least 0 exactly if the comparison holds; none for other conditions."""
    if isinstance(condition, tir.LT):
        return [op.subtract(op.subtract(condition.b, condition.a), 1)]
    if isinstance(condition, tir.LE):
        return [op.subtract(condition.b, condition.a)]
    if isinstance(condition, tir.GT):
        return [op.subtract(op.subtract(condition.a, condition.b), 1)]
    if isinstance(condition, tir.GE):
        return [op.subtract(condition.a, condition.b)]
    if isinstance(condition, tir.EQ):
        return [op.subtract(condition.a, condition.b), op.subtract(condition.b, condition.a)]
    return []


def _bounded_variable(
    form: PrimExpr, var_list: Sequence[tir.Var], analyzer: Analyzer
) -> tuple[tir.Var, int, PrimExpr] | None:
    form = analyzer.simplify(form)
    present = [var for var in var_list if uses(form, [var])]
    found = split_linear(form, present[0]) if len(present) == 1 else None
    if found is None:
        return None
    factor = analyzer.simplify(found[0])
    if not isinstance(factor, tir.IntImm) or abs(factor.value) != 1:
        return None
    return present[0], factor.value, analyzer.simplify(found[1])


@deep
def detect_common_subexpr(expr: Any, threshold: int) -> dict[PrimExpr, int]:
    """Subexpressions that occur at least `threshold` times, with their number of occurrences."""
    interner = Interner()
    counts: dict[int, int] = {}
    nodes: dict[int, PrimExpr] = {}
    waiting: list[Any] = [interner.intern(tir.as_expr(expr))]
    while waiting:
        node = waiting.pop()
        children = [child for child in node.children() if isinstance(child, PrimExpr)]
        waiting += children
        if children:
            nodes[id(node)] = node
            counts[id(node)] = counts.get(id(node), 0) + 1
    return {nodes[key]: count for key, count in counts.items() if count >= threshold}
