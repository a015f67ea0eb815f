"""Solving index equations: which iterations of a computation read a given element.

    Y[i] reads X[i + k]  for i < n, k < 3      ->    element X[j] is read where i = j - k, for the
                                                     k < 3 with 0 <= j - k < n

Instead of a sum over all iterations with a test, as the definition of a derivative has it, this
gives a sum over the iterations that pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.arith import Analyzer, detect_linear_equation
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.constants import is_one
from tvm.tir.expr import FloorDiv, FloorMod, IntImm, IterVar, IterVarType, Range, Var, const
from tvm.tir.stmt_functor import substitute, variables_of

from ..schedule.intervals import Interval, from_range, in_dtype, interval_of

Equation = tuple[PrimExpr, PrimExpr]


@dataclass
class IterationSolver:
    """Finds the iteration variables in terms of what is given, and of those that stay free."""

    analyzer: Analyzer
    free: dict[Var, Range]
    solution: dict[Var, PrimExpr] = field(default_factory=dict)
    conditions: list[PrimExpr] = field(default_factory=list)

    def solve(self, equations: list[Equation]) -> None:
        """Use every equation ``expr == value``, where ``value`` has no iteration variables."""
        for var, domain in list(self.free.items()):
            if is_one(domain.extent):
                del self.free[var]
                self.solution[var] = domain.min
        pending = list(equations)
        while pending:
            expr, value = pending.pop(0)
            expr = self._simple(substitute(expr, self.solution))
            value = in_dtype(value, expr.dtype)
            used = [var for var in variables_of(expr) if var in self.free]
            if not used:
                self._require(op.equal(expr, value))
            elif isinstance(expr, (FloorDiv, FloorMod)) and isinstance(expr.b, IntImm):
                pending.insert(0, self._without_division(expr, value, pending))
            elif (form := self._linear(expr, used)) is not None:
                self._eliminate(*form, value)
            else:
                self._require(op.equal(expr, value))

    def axes(self) -> list[IterVar]:
        """The free variables, as reduction axes."""
        return [
            IterVar(domain, Var(var.name, var.dtype), IterVarType.CommReduce)
            for var, domain in self.free.items()
        ]

    def _simple(self, expr: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(expr)

    def _require(self, condition: PrimExpr) -> None:
        condition = substitute(condition, self.solution)
        if not self.analyzer.can_prove(condition):
            self.conditions.append(condition)

    def _new(self, name: str, low: PrimExpr, extent: PrimExpr) -> PrimExpr:
        if is_one(extent):
            return low
        var = Var(name, extent.dtype)
        self.free[var] = Range.from_min_extent(low, extent)
        self.analyzer.bind(var, self.free[var])
        return var

    def _without_division(
        self, expr: FloorDiv | FloorMod, value: PrimExpr, pending: list[Equation]
    ) -> Equation:
        """``e // c == v`` is ``e == v*c + r``, and ``e % c == v`` is ``e == q*c + v``."""
        other_kind = FloorMod if isinstance(expr, FloorDiv) else FloorDiv
        for position, (other, other_value) in enumerate(pending):
            now = self._simple(substitute(other, self.solution))
            if isinstance(now, other_kind) and structural_equal((now.a, now.b), (expr.a, expr.b)):
                del pending[position]
                pair = (value, in_dtype(other_value, value.dtype))
                quotient, rest = pair if other_kind is FloorMod else pair[::-1]
                self._require(op.all(op.greater_equal(rest, 0), op.less(rest, expr.b)))
                return expr.a, op.add(op.multiply(quotient, expr.b), rest)
        if isinstance(expr, FloorDiv):
            rest = self._new("rest", const(0, expr.dtype), expr.b)
            return op.subtract(expr.a, rest), op.multiply(value, expr.b)
        self._require(op.all(op.greater_equal(value, 0), op.less(value, expr.b)))
        domains = {var: from_range(domain) for var, domain in self.free.items()}
        number = op.floordiv(expr.a, expr.b)
        known = self.analyzer.const_int_bound(number)
        if known.max_value - known.min_value < 1 << 31:
            low, high = [const(int(v), expr.dtype) for v in (known.min_value, known.max_value)]
            ends = Interval(low, high)
        else:
            ends = interval_of(number, domains, self.analyzer)
        if ends.low is None or ends.high is None:
            # nothing is known: as many multiples as there are iterations
            ends = from_range(next(iter(self.free.values())))
        assert ends.low is not None and ends.high is not None
        extent = self._simple(op.add(op.subtract(ends.high, ends.low), 1))
        quotient = self._new("quotient", ends.low, extent)
        return op.subtract(expr.a, op.multiply(quotient, expr.b)), value

    def _linear(self, expr: PrimExpr, used: list[Var]) -> tuple[dict[Var, int], PrimExpr] | None:
        """Coefficients and constant, or None."""
        form = detect_linear_equation(expr, used)
        coefficients: dict[Var, int] = {}
        for var, coefficient in zip(used, form, strict=False):
            if not isinstance(coefficient, IntImm):
                return None
            if coefficient.value:
                coefficients[var] = coefficient.value
        return (coefficients, form[-1]) if coefficients else None

    def _eliminate(self, coefficients: dict[Var, int], constant: PrimExpr, value: PrimExpr) -> None:
        """Solve for the variable of the largest span: few iterations are left then."""
        spans = {var: abs(c) * self._extent(var) for var, c in coefficients.items()}
        chosen = max(spans, key=lambda var: spans[var])
        factor = coefficients.pop(chosen)
        step = abs(factor)
        result = self._by_stride(coefficients, constant, value, step) if step > 1 else None
        if result is None:
            result = self._simple(op.subtract(value, self._sum(coefficients, constant)))
            if step > 1:
                self._require(op.equal(op.floormod(result, step), 0))
                result = op.floordiv(result, step)
        if factor < 0:
            result = op.negative(result)
        result = self._simple(substitute(result, self.solution))
        self._set(chosen, in_dtype(result, chosen.dtype))

    def _sum(self, coefficients: dict[Var, int], constant: PrimExpr) -> PrimExpr:
        total = constant
        for var, coefficient in coefficients.items():
            total = op.add(total, op.multiply(in_dtype(var, constant.dtype), coefficient))
        return total

    def _by_stride(
        self, coefficients: dict[Var, int], constant: PrimExpr, value: PrimExpr, step: int
    ) -> PrimExpr | None:
        """``u`` of ``step*u + v + others == value``, where v runs over the values that fit only.

        With ``x = value - others - min(v)`` those are ``v = min(v) + x % step + step*repeat``, and
        then ``u = x // step - repeat``.
        """
        for var, sign in coefficients.items():
            domain = self.free[var]
            if abs(sign) == 1 and isinstance(domain.extent, IntImm):
                break
        else:
            return None
        others = {v: c for v, c in coefficients.items() if v is not var}
        rest = op.subtract(value, self._sum(others, constant))
        rest = op.subtract(rest if sign == 1 else op.negative(rest), domain.min)
        rest = self._simple(substitute(rest, self.solution))
        count = const(-(-domain.extent.value // step), var.dtype)
        repeat = self._new(f"{var.name}.step", const(0, var.dtype), count)
        first = in_dtype(self._simple(op.floormod(rest, step)), var.dtype)
        self._set(var, op.add(op.add(domain.min, first), op.multiply(repeat, step)))
        found = op.subtract(op.floordiv(rest, step), in_dtype(repeat, rest.dtype))
        return found if sign == 1 else op.negative(found)

    def _extent(self, var: Var) -> float:
        extent = self.free[var].extent
        return extent.value if isinstance(extent, IntImm) else float("inf")

    def _set(self, var: Var, value: PrimExpr) -> None:
        domain = self.free.pop(var)
        value = substitute(value, self.solution)
        for known, before in self.solution.items():
            self.solution[known] = substitute(before, {var: value})
        self.solution[var] = value
        self.conditions = [substitute(c, {var: value}) for c in self.conditions]
        end = op.add(domain.min, domain.extent)
        self._require(op.greater_equal(value, domain.min))
        self._require(op.less(value, end))
