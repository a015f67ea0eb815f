"""Whether an expression may be evaluated where its guard does not hold."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.expr import (
    Add,
    BinaryOpExpr,
    BufferLoad,
    Call,
    CallEffectKind,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mod,
    Mul,
    ProducerLoad,
)
from tvm.tir.intrinsics import INTRINSICS, effect_of


def is_safe_anywhere(e: PrimExpr) -> bool:
    """Whether computing the value can do no harm: no memory access, no trap, no effect."""
    checker = SafetyChecker()
    checker.visit(e)
    return checker.safe


class SafetyChecker(Visitor):
    """Looks for what a guard may protect from. A value guarded by itself is safe."""

    def __init__(self) -> None:
        self.safe = True

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.safe = False

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.safe = False

    def visit_call(self, call: Call) -> None:
        if call.op is INTRINSICS["if_then_else"]:
            self.visit(call.args[0])
        elif call.op is INTRINSICS["address_of"]:
            return
        elif effect_of(call.op) > CallEffectKind.Pure:
            self.safe = False
        else:
            self.visit_children(call)

    def visit_div(self, e: Div) -> None:
        self._division(e)

    def visit_mod(self, e: Mod) -> None:
        self._division(e)

    def visit_floor_div(self, e: FloorDiv) -> None:
        self._division(e)

    def visit_floor_mod(self, e: FloorMod) -> None:
        self._division(e)

    def _division(self, e: BinaryOpExpr) -> None:
        divisor = e.b
        is_constant = type(divisor) is IntImm and divisor.value != 0
        if not e.dtype.is_float and not is_constant and not _is_positive(divisor):
            self.safe = False
        self.visit_children(e)


def _is_positive(e: PrimExpr) -> bool:
    """Whether an integer is known to be positive by the way in which it is written."""
    match e:
        case IntImm():
            return e.value > 0
        case Max():
            return _is_positive(e.a) or _is_positive(e.b)
        case Min() | Mul() | Add():
            return _is_positive(e.a) and _is_positive(e.b)
    return False
