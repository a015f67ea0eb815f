"""Sets of integers with symbolic ends, and the set of values an expression has while variables run over sets.

i in [0, n), j in [0, 4):    i*4 + j    in    [0, n*4)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.support.scope import deep
from tvm.tir import expr as tir
from tvm.tir import op

if TYPE_CHECKING:
    from .analyzer import Analyzer

# the ends of unbounded intervals; identified by themselves
_POS_INF = tir.Var("pos_inf", "handle")
_NEG_INF = tir.Var("neg_inf", "handle")


def pos_inf() -> tir.Var:
    """The end of an interval without upper end."""
    return _POS_INF


def neg_inf() -> tir.Var:
    """The end of an interval without lower end."""
    return _NEG_INF


class IntSet(Node, key="arith.IntSet"):
    """A set of integers."""

    def is_nothing(self) -> bool:
        """Whether the set is empty."""
        return False

    def is_everything(self) -> bool:
        """Whether nothing is known about the members."""
        return False

    @staticmethod
    def vector(vec: Any) -> IntervalSet:
        """The set of a vector's lanes."""
        if isinstance(vec, tir.Ramp):
            last = op.add(vec.base, op.multiply(vec.stride, vec.lanes - 1))
            if isinstance(vec.stride, tir.IntImm):
                return IntervalSet(
                    *((vec.base, last) if vec.stride.value >= 0 else (last, vec.base))
                )
            return IntervalSet(op.min(vec.base, last), op.max(vec.base, last))
        return IntSet.single_point(vec.value if isinstance(vec, tir.Broadcast) else vec)

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """The set of one value."""
        value = tir.as_expr(point)
        return IntervalSet(value, value)


class IntervalSet(IntSet, key="arith.IntervalSet"):
    """The integers from `min_value` to `max_value`, both included."""

    min_value: PrimExpr
    max_value: PrimExpr

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self._init(tir.as_expr(min_value), tir.as_expr(max_value))

    def is_nothing(self) -> bool:
        return self.min_value is _POS_INF or self.max_value is _NEG_INF

    def is_everything(self) -> bool:
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    def is_single_point(self) -> bool:
        """Whether both ends are one expression."""
        return self.min_value is self.max_value

    def has_lower_bound(self) -> bool:
        return self.min_value is not _NEG_INF and self.min_value is not _POS_INF

    def has_upper_bound(self) -> bool:
        return self.max_value is not _POS_INF and self.max_value is not _NEG_INF

    @staticmethod
    def from_range(domain: tir.Range) -> IntervalSet:
        """The members of a range."""
        return IntervalSet(domain.min, last_value(domain))


class PresburgerSet(IntSet, key="arith.PresburgerSet"):
    """Classic name; sets described by relations are not built here."""


EVERYTHING = IntervalSet(_NEG_INF, _POS_INF)
NOTHING = IntervalSet(_POS_INF, _NEG_INF)


def last_value(domain: tir.Range) -> PrimExpr:
    """The greatest member of a range."""
    return op.subtract(op.add(domain.min, domain.extent), 1)


def as_interval(value: Any) -> IntervalSet:
    """A Range, a set or an expression as an interval."""
    if isinstance(value, IntervalSet):
        return value
    if isinstance(value, tir.Range):
        return IntervalSet.from_range(value)
    if isinstance(value, tir.IterVar):
        return EVERYTHING if value.dom is None else IntervalSet.from_range(value.dom)
    return IntSet.single_point(value)


def _less(analyzer: Analyzer, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if a is _NEG_INF or b is _NEG_INF:
        return _NEG_INF
    if a is _POS_INF or a is b:
        return b
    return a if b is _POS_INF else analyzer.simplify(op.min(a, b))


def _greater(analyzer: Analyzer, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if a is _POS_INF or b is _POS_INF:
        return _POS_INF
    if a is _NEG_INF or a is b:
        return b
    return a if b is _NEG_INF else analyzer.simplify(op.max(a, b))


def union(analyzer: Analyzer, a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The smallest interval that holds both."""
    if a.is_nothing():
        return b
    if b.is_nothing():
        return a
    return IntervalSet(
        _less(analyzer, a.min_value, b.min_value), _greater(analyzer, a.max_value, b.max_value)
    )


def intersect(analyzer: Analyzer, a: IntervalSet, b: IntervalSet) -> IntervalSet:
    """The members of both."""
    low = _greater(analyzer, a.min_value, b.min_value)
    high = _less(analyzer, a.max_value, b.max_value)
    if low is _POS_INF or high is _NEG_INF:
        return NOTHING
    if low is not _NEG_INF and high is not _POS_INF and analyzer.can_prove(op.less(high, low)):
        return NOTHING
    return IntervalSet(low, high)


@deep
def evaluate_set(analyzer: Analyzer, expr: PrimExpr, dom_map: Mapping[Any, Any]) -> IntervalSet:
    """The interval of the expression's values while the variables run over their sets."""
    domains = {_variable(var): as_interval(domain) for var, domain in dom_map.items()}
    return _IntervalEvaluator(analyzer, domains).visit(analyzer.simplify(expr))


def evaluate_range(
    analyzer: Analyzer, domain: tir.Range, dom_map: Mapping[Any, Any]
) -> IntervalSet:
    """The union of all ranges that `domain` is while the variables run over their sets."""
    low = evaluate_set(analyzer, domain.min, dom_map)
    high = evaluate_set(analyzer, last_value(domain), dom_map)
    return IntervalSet(low.min_value, high.max_value)


def _variable(var: Any) -> Any:
    return var.var if isinstance(var, tir.IterVar) else var


class _IntervalEvaluator:
    """Interval arithmetic on expressions."""

    def __init__(self, analyzer: Analyzer, domains: Mapping[Any, IntervalSet]) -> None:
        self.analyzer = analyzer
        self.domains = {id(var): domain for var, domain in domains.items()}
        self._memo: dict[int, tuple[PrimExpr, IntervalSet]] = {}
        self._methods: dict[type, Callable[[Any], IntervalSet]] = {
            tir.Var: self._var,
            tir.SizeVar: self._var,
            tir.Add: self._add,
            tir.Sub: self._sub,
            tir.Mul: self._mul,
            tir.FloorDiv: self._divide,
            tir.Div: self._divide,
            tir.FloorMod: self._modulo,
            tir.Mod: self._modulo,
            tir.Min: self._extremum,
            tir.Max: self._extremum,
            tir.Select: lambda e: union(
                self.analyzer, self.visit(e.true_value), self.visit(e.false_value)
            ),
            tir.Cast: self._cast,
            tir.Ramp: self._ramp,
            tir.Broadcast: lambda e: self.visit(e.value),
            tir.Call: self._call,
        }

    def visit(self, expr: Any) -> IntervalSet:
        found = self._memo.get(id(expr))
        if found is None:
            found = self._memo[id(expr)] = (expr, self._visit(expr))
        return found[1]

    def _visit(self, expr: Any) -> IntervalSet:
        method = self._methods.get(expr.__class__)
        if method is not None:
            return method(expr)
        return self._opaque(expr)

    def _opaque(self, expr: Any) -> IntervalSet:
        """A value we cannot look into: one point unless a variable with a domain is inside."""
        parts = [self.visit(child) for child in expr.children() if isinstance(child, PrimExpr)]
        fixed = all([part.is_single_point() for part in parts])
        if fixed:
            return IntervalSet(expr, expr)
        return IntervalSet(0, 1) if expr.dtype.is_bool else EVERYTHING

    def _var(self, var: tir.Var) -> IntervalSet:
        found = self.domains.get(id(var))
        if found is None:
            return IntervalSet(var, var)
        # ends may mention other variables that have domains
        if found.is_single_point():
            return self._end(found.min_value, var)
        low, high = self._end(found.min_value, var), self._end(found.max_value, var)
        return IntervalSet(low.min_value, high.max_value)

    def _end(self, end: PrimExpr, var: tir.Var) -> IntervalSet:
        if end is _NEG_INF or end is _POS_INF or end is var:
            return IntervalSet(end, end)
        domain = self.domains.pop(id(var))
        try:
            return self.visit(end)
        finally:
            self.domains[id(var)] = domain

    def _simple(self, expr: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(expr)

    def _point(self, expr: Any, *parts: IntervalSet) -> IntervalSet | None:
        """The expression itself if all its operands are single, unchanged points."""
        if all([part.is_single_point() for part in parts]):
            operands = [part.min_value for part in parts]
            if all([new is old for new, old in zip(operands, expr.children(), strict=True)]):
                return IntervalSet(expr, expr)
            value = self._simple(type(expr)(*operands))
            return IntervalSet(value, value)
        return None

    def _add(self, expr: tir.Add) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        low = self._sum(a.min_value, b.min_value, _NEG_INF)
        return IntervalSet(low, self._sum(a.max_value, b.max_value, _POS_INF))

    def _sum(self, a: PrimExpr, b: PrimExpr, infinity: PrimExpr) -> PrimExpr:
        if _is_infinite(a) or _is_infinite(b):
            return infinity
        return self._simple(op.add(a, b))

    def _sub(self, expr: tir.Sub) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        low = _NEG_INF if _is_infinite(a.min_value) or _is_infinite(b.max_value) else None
        high = _POS_INF if _is_infinite(a.max_value) or _is_infinite(b.min_value) else None
        return IntervalSet(
            self._simple(op.subtract(a.min_value, b.max_value)) if low is None else low,
            self._simple(op.subtract(a.max_value, b.min_value)) if high is None else high,
        )

    def _mul(self, expr: tir.Mul) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        if a.is_single_point():
            a, b = b, a
        if not b.is_single_point():
            return self._from_constant_bound(expr, a, b)
        factor = b.min_value
        sign = self._sign(factor)
        if sign is None:
            return EVERYTHING
        low, high = (a.min_value, a.max_value) if sign else (a.max_value, a.min_value)
        return IntervalSet(
            _NEG_INF if _is_infinite(low) else self._simple(op.multiply(low, factor)),
            _POS_INF if _is_infinite(high) else self._simple(op.multiply(high, factor)),
        )

    def _from_constant_bound(self, expr: Any, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        ends = (a.min_value, a.max_value, b.min_value, b.max_value)
        values = [end.value for end in ends if isinstance(end, tir.IntImm)]
        if len(values) < 4:
            return EVERYTHING
        corners = [x * y for x in values[:2] for y in values[2:]]
        return IntervalSet(tir.const(min(corners), expr.dtype), tir.const(max(corners), expr.dtype))

    def _sign(self, expr: PrimExpr) -> bool | None:
        """True if not negative, False if not positive."""
        bound = self.analyzer.const_int_bound(expr)
        if bound.min_value >= 0:
            return True
        return False if bound.max_value <= 0 else None

    def _divide(self, expr: Any) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        if not b.is_single_point():
            return EVERYTHING
        divisor = b.min_value
        sign = self._sign(divisor)
        if sign is None or self.analyzer.can_prove_equal(divisor, 0):
            return EVERYTHING
        low, high = (a.min_value, a.max_value) if sign else (a.max_value, a.min_value)
        divide = type(expr)
        return IntervalSet(
            _NEG_INF if _is_infinite(low) else self._simple(divide(low, divisor)),
            _POS_INF if _is_infinite(high) else self._simple(divide(high, divisor)),
        )

    def _modulo(self, expr: Any) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        if not b.is_single_point() or not self._sign(b.min_value):
            return EVERYTHING
        divisor = b.min_value
        zero = tir.const(0, expr.dtype)
        last = self._simple(op.subtract(divisor, 1))
        if _is_infinite(a.min_value) or _is_infinite(a.max_value):
            low = zero if type(expr) is tir.FloorMod else self._simple(op.negative(last))
            return IntervalSet(low, last)
        analyzer = self.analyzer
        if type(expr) is tir.Mod and not analyzer.can_prove(op.greater_equal(a.min_value, 0)):
            return IntervalSet(self._simple(op.negative(last)), last)
        quotient = self._simple(op.floordiv(a.min_value, divisor))
        if analyzer.can_prove_equal(quotient, op.floordiv(a.max_value, divisor)):
            offset = self._simple(op.multiply(quotient, divisor))
            return IntervalSet(
                self._simple(op.subtract(a.min_value, offset)),
                self._simple(op.subtract(a.max_value, offset)),
            )
        if analyzer.can_prove(op.greater_equal(a.min_value, 0)):
            is_small = analyzer.can_prove(op.less_equal(a.max_value, last))
            return IntervalSet(zero, a.max_value if is_small else last)
        return IntervalSet(zero, last)

    def _extremum(self, expr: Any) -> IntervalSet:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if (point := self._point(expr, a, b)) is not None:
            return point
        choose = _less if type(expr) is tir.Min else _greater
        return IntervalSet(
            choose(self.analyzer, a.min_value, b.min_value),
            choose(self.analyzer, a.max_value, b.max_value),
        )

    def _cast(self, expr: tir.Cast) -> IntervalSet:
        inner = self.visit(expr.value)
        if inner.is_single_point() and inner.min_value is expr.value:
            return IntervalSet(expr, expr)
        if not (expr.dtype.is_int and expr.value.dtype.is_int):
            return EVERYTHING
        ends = [
            end if _is_infinite(end) else self._simple(op.cast(end, expr.dtype))
            for end in (inner.min_value, inner.max_value)
        ]
        return IntervalSet(*ends)

    def _ramp(self, expr: tir.Ramp) -> IntervalSet:
        base, stride = self.visit(expr.base), self.visit(expr.stride)
        if not stride.is_single_point() or (sign := self._sign(stride.min_value)) is None:
            return EVERYTHING
        reach = op.multiply(stride.min_value, expr.lanes - 1)
        low, high = base.min_value, base.max_value
        if sign:
            high = high if _is_infinite(high) else self._simple(op.add(high, reach))
        else:
            low = low if _is_infinite(low) else self._simple(op.add(low, reach))
        return IntervalSet(low, high)

    def _call(self, expr: tir.Call) -> IntervalSet:
        name = getattr(expr.op, "name", "")
        if name == "tir.if_then_else":
            return union(self.analyzer, self.visit(expr.args[1]), self.visit(expr.args[2]))
        if name == "tir.likely":
            return self.visit(expr.args[0])
        return self._opaque(expr)


def _is_infinite(end: PrimExpr) -> bool:
    return end is _NEG_INF or end is _POS_INF
