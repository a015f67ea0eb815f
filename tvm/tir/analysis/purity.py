"""Whether calling a function has an effect beside its result."""

from __future__ import annotations

from tvm.error import ImpureFunctionError
from tvm.ir.visitor import Visitor
from tvm.tir.expr import Call, CallEffectKind, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS, effect_of
from tvm.tir.stmt import Allocate, BufferStore


def is_pure_function(func: PrimFunc) -> bool:
    """Whether a function neither writes memory that it was given nor calls what may have effects."""
    return effect_found(func) is None


def assert_pure_function(func: PrimFunc) -> bool:
    """Raise an error that shows the effect if a function has one."""
    found = effect_found(func)
    if found is not None:
        name = func.get_attr("global_symbol", "a function")
        raise ImpureFunctionError(f"{name} is not pure: it {found}")
    return True


def effect_found(func: PrimFunc) -> str | None:
    """What a function does that a caller could notice, if anything."""
    finder = EffectFinder()
    finder.visit(func.body)
    return finder.found


class EffectFinder(Visitor):
    """Looks for writes to memory that is not the function's own, and for calls with effects."""

    def __init__(self) -> None:
        self.own: dict[Var, None] = {}
        self.found: str | None = None

    def visit_allocate(self, alloc: Allocate) -> None:
        self.own[alloc.buffer_var] = None
        self.visit_children(alloc)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if store.buffer.data not in self.own:
            self.found = self.found or f"writes buffer {store.buffer.name}"
        self.visit_children(store)

    def visit_call(self, call: Call) -> None:
        if call.op is not INTRINSICS["ret"] and effect_of(call.op) > CallEffectKind.ReadState:
            self.found = self.found or f"calls {call.op}"
        self.visit_children(call)
