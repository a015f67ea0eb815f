"""What evaluating an expression may do beside giving its value."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BufferLoad, Call, CallEffectKind, ProducerLoad
from tvm.tir.intrinsics import effect_of


def side_effect(expr: PrimExpr) -> CallEffectKind:
    """The strongest effect of the calls and loads in an expression."""
    collector = EffectCollector()
    collector.visit(expr)
    return collector.effect


def is_pure(expr: PrimExpr) -> bool:
    """Whether evaluating an expression or leaving it out makes no difference, apart from its value."""
    return side_effect(expr) <= CallEffectKind.ReadState


class EffectCollector(Visitor):
    """Keeps the strongest effect met."""

    def __init__(self) -> None:
        self.effect = CallEffectKind.Pure

    def visit_call(self, call: Call) -> None:
        self.effect = max(self.effect, effect_of(call.op))
        self.visit_children(call)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.effect = max(self.effect, CallEffectKind.ReadState)
        self.visit_children(load)

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.effect = max(self.effect, CallEffectKind.ReadState)
        self.visit_children(load)
