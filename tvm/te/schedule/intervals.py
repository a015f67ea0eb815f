"""Intervals of integer expressions: what values an index takes while loops run.

    i in [0, 3]:    i + io*4   in   [io*4, io*4 + 3]

Ends are expressions; None is no bound. An interval whose ends are one object is a single point.

``arith.interval`` answers questions about sets: its sets are nodes of the IR, and every step is simplified. Bounds of
stages are inferred by the thousand, and keep their ends as the schedule's user wrote them until a range is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.dtype import DType
from tvm.tir import op
from tvm.tir.expr import (
    Add,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    ProducerLoad,
    Range,
    Select,
    Sub,
    Var,
    const,
)

End = PrimExpr | None


class Interval:
    """The integers from ``low`` to ``high``, both included."""

    __slots__ = ("high", "low")

    def __init__(self, low: End, high: End) -> None:
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        return f"[{self.low}, {self.high}]"

    @property
    def is_point(self) -> bool:
        """Whether there is one value only."""
        return self.low is self.high and self.low is not None

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None


EVERYTHING = Interval(None, None)


def point(value: PrimExpr) -> Interval:
    """The interval of one value."""
    return Interval(value, value)


def from_range(domain: Range) -> Interval:
    """The values of a range."""
    if type(domain.extent) is IntImm and domain.extent.value == 1:
        return point(domain.min)
    last = last_of(domain)
    return Interval(domain.min, None if _has_load(last) else last)


class _LoadFinder(Visitor):
    found = False

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.found = True


def _has_load(end: PrimExpr) -> bool:
    """Whether an end depends on elements, which are not known where ranges are used."""
    if type(end) is IntImm:
        return False
    finder = _LoadFinder()
    finder.visit(end)
    return finder.found


def last_of(domain: Range) -> PrimExpr:
    """The last value of a range."""
    low, extent = domain.min, domain.extent
    if type(low) is IntImm and low.value == 0:
        return op.subtract(extent, 1)
    return op.subtract(op.add(low, extent), 1)


def to_range(interval: Interval, default: Range, analyzer: Analyzer) -> Range:
    """The range that covers an interval, in the dtype of ``default``, which stands for no bound."""
    low, high = interval.low, interval.high
    if low is None or high is None:
        return default
    dtype = default.extent.dtype
    low = in_dtype(simple(low, analyzer), dtype)
    if interval.is_point:
        return Range.from_min_extent(low, const(1, dtype))
    extent = in_dtype(simple(op.add(op.subtract(high, interval.low), 1), analyzer), dtype)
    if type(extent) is IntImm and extent.value < 0:
        # what an empty loop reads
        extent = const(0, dtype)
    return Range.from_min_extent(low, extent)


def simple(value: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """The value simplified; most are constants already."""
    return value if type(value) is IntImm else analyzer.simplify(value)


def in_dtype(value: PrimExpr, dtype: DType) -> PrimExpr:
    """The value in an index dtype."""
    if value.dtype is dtype:
        return value
    return const(value.value, dtype) if type(value) is IntImm else op.cast(value, dtype)


def smaller(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """The smaller of two ends: one of them where it can be told, else their Min."""
    order = compare(a, b, analyzer)
    if order is None:
        return op.minimum(a, b)
    return a if order <= 0 else b


def larger(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """The larger of two ends: one of them where it can be told, else their Max."""
    order = compare(a, b, analyzer)
    if order is None:
        return op.maximum(a, b)
    return a if order >= 0 else b


def compare(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> int | None:
    """The sign of ``a - b``, where it is known; 0 stands for equal."""
    if a is b:
        return 0
    difference = op.subtract(a, b)
    difference = simple(difference, analyzer)
    if type(difference) is IntImm:
        return difference.value
    if analyzer.can_prove(op.less_equal(a, b)):
        return -1
    return 1 if analyzer.can_prove(op.greater_equal(a, b)) else None


def union(a: Interval, b: Interval, analyzer: Analyzer) -> Interval:
    """The smallest interval that contains both."""
    if a.low is None or b.low is None:
        low = None
    else:
        low = smaller(a.low, b.low, analyzer)
    if a.high is None or b.high is None:
        high = None
    else:
        high = larger(a.high, b.high, analyzer)
    return Interval(low, high)


def interval_of(expr: PrimExpr, domains: Mapping[Var, Interval], analyzer: Analyzer) -> Interval:
    """The values of ``expr`` while each variable of ``domains`` runs over its interval."""
    found: Interval = IntervalEvaluator(domains, analyzer).visit(expr)
    return found


class IntervalEvaluator(Visitor):
    """Interval arithmetic over an expression."""

    def __init__(self, domains: Mapping[Var, Interval], analyzer: Analyzer) -> None:
        self.domains = dict(domains)
        self.analyzer = analyzer

    def visit_var(self, var: Var) -> Interval:
        return self.domains.get(var) or point(var)

    def visit_int_imm(self, value: IntImm) -> Interval:
        return point(value)

    def visit_prim_expr(self, expr: PrimExpr) -> Interval:
        """Anything else is known only if it does not depend on the domains."""
        inner = [self.visit(part) for part in expr.children()]
        if any(not value.is_point for value in inner):
            return EVERYTHING
        if all(value.low is part for value, part in zip(inner, expr.children(), strict=True)):
            return point(expr)
        values = iter(inner)
        return point(expr.map_children(lambda _: next(values).low))

    def visit_producer_load(self, load: ProducerLoad) -> Interval:
        # where ranges are used, an element may not be there: yet, or at all for what a guard skips
        return EVERYTHING

    def _binary(self, expr: Any) -> tuple[Interval, Interval, Interval | None]:
        """Both operands, and the result if both are points."""
        a, b = self.visit(expr.a), self.visit(expr.b)
        if not (a.is_point and b.is_point):
            return a, b, None
        if a.low is expr.a and b.low is expr.b:
            return a, b, point(expr)
        return a, b, point(_FOLDING[type(expr)](a.low, b.low))

    def visit_add(self, expr: Add) -> Interval:
        a, b, known = self._binary(expr)
        return known or Interval(_lift(op.add, a.low, b.low), _lift(op.add, a.high, b.high))

    def visit_sub(self, expr: Sub) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        return Interval(_lift(op.subtract, a.low, b.high), _lift(op.subtract, a.high, b.low))

    def visit_mul(self, expr: Mul) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        if a.is_point:
            a, b = b, a
        if b.is_point:
            sign = self._sign(b.low)
            if sign is None:
                return EVERYTHING
            low, high = (a.low, a.high) if sign >= 0 else (a.high, a.low)
            return Interval(_lift(op.multiply, low, b.low), _lift(op.multiply, high, b.low))
        if self._is_non_negative(a) and self._is_non_negative(b):
            return Interval(_lift(op.multiply, a.low, b.low), _lift(op.multiply, a.high, b.high))
        return EVERYTHING

    def _sign(self, value: Any) -> int | None:
        if type(value) is IntImm:
            return value.value
        if self.analyzer.can_prove(op.greater_equal(value, 0)):
            return 1
        return -1 if self.analyzer.can_prove(op.less_equal(value, 0)) else None

    def _is_non_negative(self, interval: Interval) -> bool:
        sign = None if interval.low is None else self._sign(interval.low)
        return sign is not None and sign >= 0

    def _is_positive(self, value: Any) -> bool:
        if type(value) is IntImm:
            return value.value > 0
        return bool(self.analyzer.can_prove(op.greater(value, 0)))

    def visit_floor_div(self, expr: FloorDiv) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        if not b.is_point or not self._is_positive(b.low):
            return EVERYTHING
        return Interval(_lift(op.floordiv, a.low, b.low), _lift(op.floordiv, a.high, b.low))

    def visit_floor_mod(self, expr: FloorMod) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        if not b.is_point or b.low is None or not self._is_positive(b.low):
            return EVERYTHING
        divisor = b.low
        if a.low is not None and a.high is not None:
            blocks = op.floordiv(a.low, divisor), op.floordiv(a.high, divisor)
            if compare(*blocks, self.analyzer) == 0:
                return Interval(op.floormod(a.low, divisor), op.floormod(a.high, divisor))
        return Interval(const(0, expr.dtype), op.subtract(divisor, 1))

    def visit_div(self, expr: Div) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        if b.is_point and self._is_positive(b.low):
            # truncation keeps the order too
            return Interval(_lift(op.truncdiv, a.low, b.low), _lift(op.truncdiv, a.high, b.low))
        return EVERYTHING

    def visit_mod(self, expr: Mod) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        if not b.is_point or b.low is None or not self._is_positive(b.low):
            return EVERYTHING
        last = op.subtract(b.low, 1)
        if self._is_non_negative(a):
            return Interval(const(0, expr.dtype), last)
        return Interval(op.subtract(1, b.low), last)

    def visit_min(self, expr: Min) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        low = None if a.low is None or b.low is None else smaller(a.low, b.low, self.analyzer)
        if a.high is None or b.high is None:
            return Interval(low, b.high if a.high is None else a.high)
        return Interval(low, smaller(a.high, b.high, self.analyzer))

    def visit_max(self, expr: Max) -> Interval:
        a, b, known = self._binary(expr)
        if known is not None:
            return known
        high = None if a.high is None or b.high is None else larger(a.high, b.high, self.analyzer)
        if a.low is None or b.low is None:
            return Interval(b.low if a.low is None else a.low, high)
        return Interval(larger(a.low, b.low, self.analyzer), high)

    def visit_select(self, expr: Select) -> Interval:
        condition = self.visit(expr.condition)
        a, b = self.visit(expr.true_value), self.visit(expr.false_value)
        if condition.is_point and a.is_point and b.is_point:
            parts = zip((condition, a, b), expr.children(), strict=True)
            unchanged = all([value.low is part for value, part in parts])
            return point(expr if unchanged else op.select(condition.low, a.low, b.low))
        return union(a, b, self.analyzer)

    def visit_cast(self, expr: Cast) -> Interval:
        value = self.visit(expr.value)
        if value.is_point:
            return point(expr if value.low is expr.value else in_dtype(value.low, expr.dtype))
        kind = expr.value.dtype
        if kind.is_bool:
            return Interval(const(0, expr.dtype), const(1, expr.dtype))
        if not (kind.is_int and expr.dtype.is_int):
            return EVERYTHING
        low = None if value.low is None else in_dtype(value.low, expr.dtype)
        return Interval(low, None if value.high is None else in_dtype(value.high, expr.dtype))

    def visit_let(self, expr: Let) -> Interval:
        self.domains[expr.var] = self.visit(expr.value)
        found: Interval = self.visit(expr.body)
        return found

    def visit_call(self, call: Call) -> Interval:
        name = getattr(call.op, "name", "")
        if name == "tir.if_then_else":
            a, b = self.visit(call.args[1]), self.visit(call.args[2])
            return union(a, b, self.analyzer)
        if name == "tir.likely":
            value = self.visit(call.args[0])
            return self.visit_prim_expr(call) if value.is_point else value
        if name == "tir.shift_right" and type(call.args[1]) is IntImm:
            a, by = self.visit(call.args[0]), call.args[1]
            return Interval(_lift(op.shift_right, a.low, by), _lift(op.shift_right, a.high, by))
        return self.visit_prim_expr(call)


_FOLDING: dict[type, Callable[[Any, Any], PrimExpr]] = {
    Add: op.add,
    Sub: op.subtract,
    Mul: op.multiply,
    FloorDiv: op.floordiv,
    FloorMod: op.floormod,
    Div: op.truncdiv,
    Mod: op.truncmod,
    Min: op.minimum,
    Max: op.maximum,
}


def _lift(function: Callable[[Any, Any], PrimExpr], a: End, b: End) -> End:
    return None if a is None or b is None else function(a, b)
