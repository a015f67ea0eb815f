"""Constant bounds: the least and the greatest value an integer expression can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.support.dtype import DType
from tvm.tir import expr as tir

if TYPE_CHECKING:
    from .analyzer import Analyzer

POS_INF = (1 << 63) - 1
NEG_INF = -POS_INF

# RISC-V's registers have at most 65536 bits, in blocks of 64
MOST_VSCALE = 1024

# up to which number each integer is a float
_EXACT_INTEGERS = {"float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53}

# (least, greatest), each possibly infinite
Bound = tuple[int, int]
EVERYTHING: Bound = (NEG_INF, POS_INF)


class ConstIntBound(Node, key="arith.ConstIntBound"):
    """The closed interval of values that an expression can have."""

    min_value: int
    max_value: int

    POS_INF: ClassVar[int] = POS_INF
    NEG_INF: ClassVar[int] = NEG_INF


def clamp(value: int) -> int:
    """The value, or the infinity that lies before it."""
    if value >= POS_INF:
        return POS_INF
    return NEG_INF if value <= NEG_INF else value


def range_of(dtype: DType) -> Bound:
    """What a value of the dtype can be."""
    if dtype.is_uint:
        return 0, clamp((1 << dtype.bits) - 1)
    if dtype.is_int and dtype.bits < 64:
        return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
    return EVERYTHING


def add_bounds(a: Bound, b: Bound) -> Bound:
    low = NEG_INF if a[0] == NEG_INF or b[0] == NEG_INF else clamp(a[0] + b[0])
    high = POS_INF if a[1] == POS_INF or b[1] == POS_INF else clamp(a[1] + b[1])
    return low, high


def negate(a: Bound) -> Bound:
    return -a[1], -a[0]


def _product(a: int, b: int) -> int:
    return clamp(a * b) if a and b else 0


def multiply_bounds(a: Bound, b: Bound) -> Bound:
    corners = (
        _product(a[0], b[0]), _product(a[0], b[1]), _product(a[1], b[0]), _product(a[1], b[1])
    )  # fmt: skip
    return min(corners), max(corners)


def scale_bound(a: Bound, factor: int) -> Bound:
    low, high = _product(a[0], factor), _product(a[1], factor)
    return (low, high) if factor >= 0 else (high, low)


def intersect_bounds(a: Bound, b: Bound) -> Bound:
    """The values in both; an empty intersection means unreachable code, where any bound is right."""
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else a


def _floordiv(a: int, b: int) -> int:
    if a in (POS_INF, NEG_INF):
        return a if b > 0 else -a
    return a // b


def _truncdiv(a: int, b: int) -> int:
    if a in (POS_INF, NEG_INF):
        return a if b > 0 else -a
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divide_bounds(a: Bound, b: Bound, divide: Callable[[int, int], int]) -> Bound:
    """Division is monotonic in each operand on either side of a zero divisor."""
    divisors = [end for end in (b[0], b[1]) if end != 0]
    if b[0] < 0 < b[1] or not divisors:
        if not divisors:
            return EVERYTHING
        divisors += [-1, 1]
    elif b[0] == 0:
        divisors.append(1)
    elif b[1] == 0:
        divisors.append(-1)
    values = [divide(end, divisor) for end in a for divisor in divisors]
    if b[0] <= 0 <= b[1]:
        values.append(0)  # what is divided by zero
    return min(values), max(values)


class ConstIntBoundAnalyzer:
    """Bounds of interned expressions, within what the analyzer knows."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.memo: dict[int, Bound] = {}

    def visit(self, expr: Any) -> Bound:
        found = self.memo.get(id(expr))
        if found is None:
            dtype = expr.dtype
            if dtype.is_float or dtype.is_handle:
                return EVERYTHING
            method = _METHODS.get(expr.__class__)
            found = range_of(dtype) if method is None else method(self, expr)
            if not dtype.is_int or dtype.bits < 32:
                # narrow and unsigned values wrap around
                limits = range_of(dtype)
                found = found if limits[0] <= found[0] and found[1] <= limits[1] else limits
            fact = self.analyzer.facts.bound_of(expr)
            if fact is not None:
                is_declared = self.analyzer.facts.is_declared(expr)
                found = fact if is_declared else intersect_bounds(found, fact)
            self.memo[id(expr)] = found
        return found

    def _floormod(self, expr: tir.FloorMod) -> Bound:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if b[0] > 0:
            if a[0] >= 0 and a[1] < b[0]:
                return a
            high = b[1] - 1 if b[1] != POS_INF else POS_INF
            if b[0] == b[1]:
                coefficient, base = self.analyzer.modular.visit(expr.a)
                step = _gcd(coefficient, b[0])
                if step > 1:
                    # the values are base, base + step, ...
                    return base % step, b[0] - step + base % step
            return 0, min(high, a[1]) if a[0] >= 0 else high
        if b[1] < 0:
            return (b[0] + 1 if b[0] != NEG_INF else NEG_INF), 0
        # the remainder has the divisor's sign
        low, high = clamp(b[0] + 1), clamp(b[1] - 1)
        return min(low, 0), max(min(high, a[1]) if a[0] >= 0 else high, 0)

    def _truncmod(self, expr: tir.Mod) -> Bound:
        a, b = self.visit(expr.a), self.visit(expr.b)
        widest = max(abs(b[0]), abs(b[1]))
        limit = widest - 1 if 0 < widest < POS_INF else POS_INF
        return (max(-limit, a[0]) if a[0] < 0 else 0), (min(limit, a[1]) if a[1] > 0 else 0)

    def _min(self, expr: tir.Min) -> Bound:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return min(a[0], b[0]), min(a[1], b[1])

    def _max(self, expr: tir.Max) -> Bound:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return max(a[0], b[0]), max(a[1], b[1])

    def _select(self, expr: tir.Select) -> Bound:
        a, b = self.visit(expr.true_value), self.visit(expr.false_value)
        return min(a[0], b[0]), max(a[1], b[1])

    def _cast(self, expr: tir.Cast) -> Bound:
        source = expr.value.dtype
        limits = range_of(expr.dtype)
        if not (source.is_int or source.is_uint):
            return self._through_float(expr.value, limits)
        inner = self.visit(expr.value)
        return inner if limits[0] <= inner[0] and inner[1] <= limits[1] else limits

    def _through_float(self, value: Any, limits: Bound) -> Bound:
        """The bound of an integer that was made a float and back, where floats have all integers."""
        if type(value) is not tir.Cast or not (
            value.value.dtype.is_int or value.value.dtype.is_uint
        ):
            return limits
        inner, exact = self.visit(value.value), _EXACT_INTEGERS.get(value.dtype.element, 0)
        low, high = max(limits[0], -exact), min(limits[1], exact)
        return inner if low <= inner[0] and inner[1] <= high else limits

    def _ramp(self, expr: tir.Ramp) -> Bound:
        base = self.visit(expr.base)
        last = add_bounds(base, scale_bound(self.visit(expr.stride), expr.lanes - 1))
        return min(base[0], last[0]), max(base[1], last[1])

    def _let(self, expr: tir.Let) -> Bound:
        return self.visit(self.analyzer.substitute(expr.body, {expr.var: expr.value}))

    def _call(self, expr: tir.Call) -> Bound:
        name = getattr(expr.op, "name", "")
        args: tuple[PrimExpr, ...] = expr.args
        if name == "tir.likely":
            return self.visit(args[0])
        if name == "tir.vscale":
            return 1, MOST_VSCALE
        if name == "tir.if_then_else":
            a, b = self.visit(args[1]), self.visit(args[2])
            return min(a[0], b[0]), max(a[1], b[1])
        if name == "tir.shift_right":
            shift = self.visit(args[1])
            if shift[0] >= 0 and shift[1] < 64:
                return _divide_bounds(
                    self.visit(args[0]), (1 << shift[0], 1 << shift[1]), _floordiv
                )
        if name == "tir.shift_left":
            shift, value = self.visit(args[1]), self.visit(args[0])
            if shift[0] >= 0 and shift[1] < 63:
                return multiply_bounds(value, (1 << shift[0], 1 << shift[1]))
        if name == "tir.bitwise_and":
            a, b = self.visit(args[0]), self.visit(args[1])
            highs = [bound[1] for bound in (a, b) if bound[0] >= 0]
            if highs:
                return 0, min(highs)
        if name in ("tir.popcount", "tir.clz"):
            return 0, expr.dtype.bits
        return range_of(expr.dtype)


# each takes expressions of its own kind
_METHODS: dict[type, Callable[[ConstIntBoundAnalyzer, Any], Bound]] = {
    tir.IntImm: lambda s, e: (e.value, e.value),
    tir.Var: lambda s, e: range_of(e.dtype),
    tir.SizeVar: lambda s, e: (0, range_of(e.dtype)[1]),
    tir.Add: lambda s, e: add_bounds(s.visit(e.a), s.visit(e.b)),
    tir.Sub: lambda s, e: add_bounds(s.visit(e.a), negate(s.visit(e.b))),
    tir.Mul: lambda s, e: multiply_bounds(s.visit(e.a), s.visit(e.b)),
    tir.FloorDiv: lambda s, e: _divide_bounds(s.visit(e.a), s.visit(e.b), _floordiv),
    tir.Div: lambda s, e: _divide_bounds(s.visit(e.a), s.visit(e.b), _truncdiv),
    tir.FloorMod: ConstIntBoundAnalyzer._floormod,
    tir.Mod: ConstIntBoundAnalyzer._truncmod,
    tir.Min: ConstIntBoundAnalyzer._min,
    tir.Max: ConstIntBoundAnalyzer._max,
    tir.Select: ConstIntBoundAnalyzer._select,
    tir.Cast: ConstIntBoundAnalyzer._cast,
    tir.Ramp: ConstIntBoundAnalyzer._ramp,
    tir.Broadcast: lambda s, e: s.visit(e.value),
    tir.Let: ConstIntBoundAnalyzer._let,
    tir.Call: ConstIntBoundAnalyzer._call,
}


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)
