"""Replace intrinsics and rounding divisions by what the target has.

    i // 4                       ->    shift_right(i, 2)
    i % 7                        ->    truncmod(i, 7)                     where i >= 0
    j // 7                       ->    select(j truncmod 7 >= 0, j truncdiv 7, j truncdiv 7 - 1)
    (j * n + k) // 7             ->    let dividend = j * n + k in ...    the same of dividend

How an intrinsic is lowered is a facet of its record, by target kind, with ``default`` for all others.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.op import Op
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.expr import (
    Broadcast,
    Call,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    Mod,
    Ramp,
    Range,
    Var,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, For, LetStmt, Stmt
from tvm.tir.transform.common import prim_func_pass

NO_BOUND = -(1 << 62)


class BoundedRewriter(Rewriter):
    """Knows the ranges of the variables around an expression; bounds are computed when asked for."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.unbound: list[tuple[Var, Range | PrimExpr]] = []

    def visit_for(self, loop: For) -> Stmt:
        self.unbound.append((loop.loop_var, Range.from_min_extent(loop.min, loop.extent)))
        return self.rewrite_children(loop)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(attr.node, IterVar):
            self.unbound.append((attr.node.var, Range(attr.value)))
        return self.rewrite_children(attr)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        if let.var.dtype.is_int:
            self.unbound.append((let.var, let.value))
        return self.rewrite_children(let)

    def lower_bound(self, e: PrimExpr) -> int:
        """A number that no lane of ``e`` is below."""
        if isinstance(e, Broadcast):
            return self.lower_bound(e.value)
        if isinstance(e, Ramp):
            last = e.base + e.stride * (e.lanes - 1)
            return min(self.lower_bound(e.base), self.lower_bound(last))
        if e.dtype.lanes > 1:
            return NO_BOUND
        for var, value in self.unbound:
            self.analyzer.bind(var, value, True)
        self.unbound.clear()
        return int(self.analyzer.const_int_bound(e).min_value)


class IntrinsicLowerer(BoundedRewriter):
    """Applies the facets of one target."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.kinds = kinds

    def visit_call(self, call: Call) -> PrimExpr:
        lowered = self._lowered(call)
        if lowered is None or lowered is call:
            return self.rewrite_children(call)
        if isinstance(lowered, Call) and lowered.op is call.op:
            return self.rewrite_children(lowered)
        result: PrimExpr = self.visit(lowered)
        return result

    def visit_let(self, let: Let) -> PrimExpr:
        return self.rewrite_children(let)

    def _lowered(self, call: Call) -> PrimExpr | None:
        if not isinstance(call.op, Op) or not call.op.lowerings:
            return None
        for kind in self.kinds:
            if (lowering := call.op.lowerings.get(kind)) is not None:
                found: PrimExpr | None = lowering(call)
                return found
        return None

    def visit_floor_div(self, e: FloorDiv) -> PrimExpr:
        a, b = self.visit(e.a), self.visit(e.b)
        if e.dtype.is_float:
            return self._floored(Div(a, b))
        if e.dtype.is_uint:
            return Div(a, b)
        divisor = constant_value(b)
        if divisor is not None and divisor > 0:
            return self._floor_div_constant(a, b, divisor, e.a)
        if self.lower_bound(e.a) >= 0 and self.lower_bound(e.b) >= 0:
            return Div(a, b)
        return named(a, "dividend", lambda a: named(b, "divisor", lambda b: floor_div(a, b)))

    def visit_floor_mod(self, e: FloorMod) -> PrimExpr:
        a, b = self.visit(e.a), self.visit(e.b)
        if e.dtype.is_float:
            use = self._rest_of_floats
            return named(a, "dividend", lambda a: named(b, "divisor", lambda b: use(a, b)))
        if e.dtype.is_uint:
            return Mod(a, b)
        divisor = constant_value(b)
        if divisor is not None and divisor > 0:
            return self._floor_mod_constant(a, b, divisor, e.a)
        if self.lower_bound(e.a) >= 0 and self.lower_bound(e.b) >= 0:
            return Mod(a, b)
        return named(b, "divisor", lambda b: named(Mod(a, b), "rest", lambda r: floor_mod(r, b)))

    def _floored(self, quotient: PrimExpr) -> PrimExpr:
        floored: PrimExpr = self.visit(op.floor(quotient))
        return floored

    def _rest_of_floats(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        return op.subtract(a, self._floored(Div(a, b)) * b)

    def _floor_div_constant(
        self, a: PrimExpr, b: PrimExpr, divisor: int, source: PrimExpr
    ) -> PrimExpr:
        """``a // b``; ``source`` is what ``a`` was before it was lowered, which says more of its range."""
        if is_power_of_two(divisor):
            return op.shift_right(a, divisor.bit_length() - 1)
        lowest = self.lower_bound(source)
        if lowest >= 0:
            return Div(a, b)
        if a.dtype.bits >= 32 and (shift := small_shift(lowest, divisor)) is not None:
            return Div(a + shift * divisor, b) - shift
        return named(a, "dividend", lambda a: op.select(Mod(a, b) >= 0, Div(a, b), Div(a, b) - 1))

    def _floor_mod_constant(
        self, a: PrimExpr, b: PrimExpr, divisor: int, source: PrimExpr
    ) -> PrimExpr:
        """``a % b``; ``source`` is what ``a`` was before it was lowered."""
        if is_power_of_two(divisor):
            return op.bitwise_and(a, divisor - 1)
        lowest = self.lower_bound(source)
        if lowest >= 0:
            return Mod(a, b)
        if a.dtype.bits >= 32 and (shift := small_shift(lowest, divisor)) is not None:
            return Mod(a + shift * divisor, b)
        return named(Mod(a, b), "rest", lambda rest: op.select(rest >= 0, rest, rest + divisor))


def named(value: PrimExpr, name: str, use: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """What ``use`` makes of a value that it writes several times: divisions in divisions would double."""
    if is_small(value):
        return use(value)
    var = Var(name, value.dtype)
    return Let(var, value, use(var))


def is_small(e: PrimExpr) -> bool:
    """Whether an expression is no more than one operation on variables and constants."""
    parts = e.children()
    return len(parts) <= 2 and all([not part.children() for part in parts])


def floor_div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Division downwards by division towards zero."""
    quotient = Div(a, b)
    return op.select(rounds_down(Mod(a, b), b), quotient, quotient - 1)


def floor_mod(rest: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The remainder of division downwards from that of division towards zero."""
    return op.select(rounds_down(rest, b), rest, rest + b)


def rounds_down(remainder: PrimExpr, divisor: PrimExpr) -> PrimExpr:
    """Whether division towards zero is division downwards: no remainder, or one of the divisor's sign."""
    positive = op.logical_and(divisor >= 0, remainder >= 0)
    return op.logical_or(positive, op.logical_and(divisor < 0, remainder <= 0))


def constant_value(e: PrimExpr) -> int | None:
    """The value of a constant or of all lanes of one."""
    if isinstance(e, Broadcast):
        return constant_value(e.value)
    return e.value if isinstance(e, IntImm) else None


def is_power_of_two(number: int) -> bool:
    """Whether a positive number has one bit set."""
    return number & (number - 1) == 0


def small_shift(lowest: int, divisor: int) -> int | None:
    """How many divisors make ``a`` non-negative, if that cannot overflow 32 bits noticeably."""
    shift = -(lowest // divisor)
    return shift if shift * divisor < 1 << 24 else None


@prim_func_pass("tir.LowerIntrin")
def lower_intrin(func: PrimFunc) -> PrimFunc:
    """Lower intrinsics for the function's target."""
    target = func.get_attr("target")
    kinds = ("default",) if target is None else (str(target.kind.name), "default")
    return func.with_body(IntrinsicLowerer(kinds).visit(func.body))


LowerIntrin = lower_intrin.factory
