"""Systems of linear equations and inequalities over the integers.

    x + y == 20, x - y == 10                     x = 15, y = 5
    x + y == 0,  x in [-5, 5), y in [0, 10)      x = n0, y = -n0, n0 in [-9, 1), -5 <= n0
    x + y <= 20, x - y >= 10, y in [0, 10)       y in [0, 6), x in [y + 10, y + 21), x <= 20 - y

Equations are brought to Smith's normal form; inequalities are solved by the elimination of
Fourier and Motzkin, one variable after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm._ffi import register_func
from tvm.error import TVMError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.tir import op
from tvm.tir.expr import IntImm, Range, Var, as_expr, const
from tvm.tir.stmt_functor import substitute

from .analyzer import Analyzer
from .elimination import Bounds, Inequalities
from .int_set import eval_set
from .interval import IntervalSet, last_value
from .smith import DiagonalForm

Ranges = Mapping[Var, Range]


class IntGroupBounds(Node, key="arith.IntGroupBounds"):
    """What bounds ``coef * var``: from below, exactly, and from above; ends are included."""

    coef: PrimExpr
    lower: tuple[PrimExpr, ...]
    equal: tuple[PrimExpr, ...]
    upper: tuple[PrimExpr, ...]

    def __init__(
        self, coef: Any, lower: Sequence[Any], equal: Sequence[Any], upper: Sequence[Any]
    ) -> None:
        sides = [tuple([as_expr(end) for end in side]) for side in (lower, equal, upper)]
        self._init(as_expr(coef), *sides)

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds that a range gives."""
        one = const(1, rng.extent.dtype)
        if isinstance(rng.extent, IntImm) and rng.extent.value == 1:
            return IntGroupBounds(one, (), (rng.min,), ())
        return IntGroupBounds(one, (rng.min,), (), (last_value(rng),))

    def find_best_range(self, ranges: Ranges | None = None) -> Range | None:
        """The smallest range within the bounds while other variables run over ``ranges``; None
        without a bound on either side."""
        analyzer = Analyzer()
        best: Range | None = None
        for low in (*self.equal, *self.lower):
            for high in (*self.equal, *self.upper):
                found = self._range_between(low, high, ranges or {}, analyzer)
                if found is not None and (best is None or _is_smaller(found, best, analyzer)):
                    best = found
        return best

    def _range_between(
        self, low: PrimExpr, high: PrimExpr, ranges: Ranges, analyzer: Analyzer
    ) -> Range | None:
        width = analyzer.simplify(op.floordiv(op.subtract(high, low), self.coef))
        widest = eval_set(width, _intervals(ranges))
        if not (isinstance(widest, IntervalSet) and widest.has_upper_bound()):
            return None
        up = op.subtract(op.add(low, self.coef), 1)
        start = analyzer.simplify(op.floordiv(up, self.coef))
        extent = analyzer.simplify(op.add(widest.max_value, 1))
        return Range.from_min_extent(start, extent)


class IntConstraints(Node, key="arith.IntConstraints"):
    """Variables, the ranges they run over, and relations that hold between them."""

    variables: tuple[Var, ...]
    ranges: dict[Var, Range]
    relations: tuple[PrimExpr, ...]

    def __init__(
        self, variables: Sequence[Var], ranges: Ranges | None, relations: Sequence[PrimExpr]
    ) -> None:
        self._init(tuple(variables), dict(ranges or {}), tuple(relations))


class IntConstraintsTransform(Node, key="arith.IntConstraintsTransform"):
    """Two systems with the same solutions, and the variables of each in terms of the other's."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: dict[Var, PrimExpr]
    dst_to_src: dict[Var, PrimExpr]


def solve_linear_equations(
    equations: Sequence[PrimExpr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Ranges | None = None,
) -> IntConstraintsTransform:
    """Solve linear equations over the integers.

    Parameters
    ----------
    equations : list of PrimExpr or IntConstraints
        Comparisons ``a == b``; others are kept as relations.
    variables : list of Var, optional
        The unknowns.
    ranges : dict of Var to Range, optional
        What the unknowns run over.

    Returns
    -------
    IntConstraintsTransform
        To a system of as many new variables as the equations leave free, or to one whose only
        relation is false if nothing solves them.
    """
    src = _constraints(equations, variables, ranges)
    if not src.variables:
        return IntConstraintsTransform(src, src, {}, {})
    form = DiagonalForm(src.variables, src.relations)
    if form.is_contradiction:
        return _without_solution(src)
    free, src_to_dst, dst_to_src = form.solution()
    domains = {var: _range_of(value, src.ranges) for var, value in dst_to_src.items()}
    known = {var: domain for var, domain in domains.items() if domain is not None}
    analyzer = _binding(known)
    conditions = [*form.conditions, *_bounds_of_ranges(src)]
    relations = [analyzer.simplify(substitute(c, src_to_dst)) for c in conditions]
    dst = IntConstraints(free, known, [r for r in relations if not _is(r, True)])
    return IntConstraintsTransform(src, dst, src_to_dst, dst_to_src)


def solve_linear_inequalities(
    equations: Sequence[PrimExpr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Ranges | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """Solve linear inequalities over the integers.

    Parameters
    ----------
    equations : list of PrimExpr or IntConstraints
        Comparisons; those that are not linear are kept as relations.
    variables : list of Var, optional
        The unknowns; the range of each is given in terms of those behind it.
    ranges : dict of Var to Range, optional
        What the unknowns run over at most.
    deskew_range : bool
        Whether to give new variables, whose ranges begin at 0.

    Returns
    -------
    IntConstraints or IntConstraintsTransform
        The ranges, and the relations that they do not say; or, with ``deskew_range``, the
        transform to the new variables.
    """
    src = _constraints(equations, variables, ranges)
    solved = Inequalities(src.variables, [*src.relations, *_bounds_of_ranges(src)])
    if solved.is_contradiction:
        return _without_solution(src) if deskew_range else IntConstraints((), {}, _FALSE)
    return _deskewed(src, solved) if deskew_range else _as_ranges(src, solved)


def inequalities_as_conditions(
    variables: Sequence[Var], ranges: Ranges, equations: Sequence[PrimExpr]
) -> list[PrimExpr]:
    """The bounds of each variable in terms of those behind it, as comparisons, which hold together."""
    src = _constraints(equations, variables, ranges)
    solved = Inequalities(src.variables, [*src.relations, *_bounds_of_ranges(src)])
    return list(_FALSE) if solved.is_contradiction else solved.conditions()


register_func("arith.SolveInequalitiesAsCondition", inequalities_as_conditions, override=True)

_FALSE = (const(False, "bool"),)


def _as_ranges(src: IntConstraints, solved: Inequalities) -> IntConstraints:
    """The smallest range of each variable, in terms of those behind it."""
    found: dict[Var, Range] = {}
    fixed: dict[Var, PrimExpr] = {}
    for var in reversed(src.variables):
        domain = _group(solved.bounds[var], fixed).find_best_range(found)
        if domain is None:
            continue
        found[var] = domain
        if isinstance(domain.extent, IntImm) and domain.extent.value == 1:
            fixed[var] = domain.min
    analyzer = _binding(dict(reversed(list(found.items()))))
    relations = [c for c in solved.conditions() if not analyzer.can_prove(c)]
    if any([_is(analyzer.simplify(relation), False) for relation in relations]):
        return IntConstraints((), {}, _FALSE)
    return IntConstraints(src.variables, found, relations)


def _deskewed(src: IntConstraints, solved: Inequalities) -> IntConstraintsTransform:
    """The transform to variables that begin at 0; those with one value disappear."""
    src_to_dst: dict[Var, PrimExpr] = {}
    dst_to_src: dict[Var, PrimExpr] = {}
    domains: dict[Var, Range] = {}
    simplify = Analyzer().simplify
    for var in reversed(src.variables):
        best = _group(solved.bounds[var], src_to_dst).find_best_range(domains)
        if best is None:
            src_to_dst[var] = dst_to_src[var] = var
        elif isinstance(best.extent, IntImm) and best.extent.value <= 1:
            if best.extent.value < 1:
                return _without_solution(src)
            src_to_dst[var] = best.min
        else:
            new = Var(f"{var.name}.shifted", var.dtype)
            src_to_dst[var] = simplify(op.add(new, best.min))
            dst_to_src[new] = simplify(op.subtract(var, substitute(best.min, dst_to_src)))
            domains[new] = Range.from_min_extent(const(0, var.dtype), best.extent)
    analyzer = _binding(domains)
    conditions = [analyzer.simplify(substitute(c, src_to_dst)) for c in solved.conditions()]
    if any([_is(condition, False) for condition in conditions]):
        return _without_solution(src)
    relations = [c for c in conditions if not _is(c, True)]
    dst = IntConstraints(tuple(reversed(list(dst_to_src))), domains, relations)
    return IntConstraintsTransform(src, dst, src_to_dst, dst_to_src)


def _constraints(
    equations: Sequence[PrimExpr] | IntConstraints,
    variables: Sequence[Var] | None,
    ranges: Ranges | None,
) -> IntConstraints:
    if isinstance(equations, IntConstraints):
        if variables is not None or ranges is not None:
            raise TVMError("IntConstraints say their variables and ranges themselves")
        return equations
    return IntConstraints(variables or (), ranges, [as_expr(equation) for equation in equations])


def _without_solution(src: IntConstraints) -> IntConstraintsTransform:
    return IntConstraintsTransform(src, IntConstraints((), {}, _FALSE), {}, {})


def _bounds_of_ranges(src: IntConstraints) -> list[PrimExpr]:
    """What the ranges of the variables say."""
    found = []
    for var in src.variables:
        if (domain := src.ranges.get(var)) is not None:
            found.append(op.less_equal(domain.min, var))
            found.append(op.less(var, op.add(domain.min, domain.extent)))
    return found


def _group(bounds: Bounds, known: Mapping[Var, PrimExpr]) -> IntGroupBounds:
    """Bounds with what is known put in; those that meet are exact."""
    analyzer = Analyzer()
    lower, upper = [
        [analyzer.simplify(substitute(end, known)) for end in side]
        for side in (bounds.lower, bounds.upper)
    ]
    equal = [end for end in lower if any([structural_equal(end, other) for other in upper])]
    return IntGroupBounds(const(bounds.coef, bounds.dtype), lower, equal, upper)


def _range_of(value: PrimExpr, ranges: Ranges) -> Range | None:
    """What a value runs over while the variables do; None without ends."""
    values = eval_set(value, _intervals(ranges))
    if not (isinstance(values, IntervalSet) and values.has_lower_bound()):
        return None
    if not values.has_upper_bound():
        return None
    simplify = Analyzer().simplify
    extent = op.add(op.subtract(values.max_value, values.min_value), 1)
    return Range.from_min_extent(simplify(values.min_value), simplify(extent))


def _intervals(ranges: Ranges) -> dict[Var, IntervalSet]:
    return {var: IntervalSet.from_range(domain) for var, domain in ranges.items()}


def _binding(ranges: Ranges) -> Analyzer:
    analyzer = Analyzer()
    for var, domain in ranges.items():
        analyzer.bind(var, domain)
    return analyzer


def _is_smaller(a: Range, b: Range, analyzer: Analyzer) -> bool:
    difference = analyzer.simplify(op.subtract(a.extent, b.extent))
    if isinstance(difference, IntImm):
        return bool(difference.value < 0)
    return isinstance(a.extent, IntImm) and not isinstance(b.extent, IntImm)


def _is(expr: PrimExpr, value: bool) -> bool:
    return isinstance(expr, IntImm) and bool(expr.value) == value


__all__ = [
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "solve_linear_equations",
    "solve_linear_inequalities",
]
