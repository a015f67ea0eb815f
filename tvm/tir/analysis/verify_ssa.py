"""Whether each variable of a function is defined once."""

from __future__ import annotations

from typing import Any

from tvm.ir.visitor import Visitor
from tvm.tir.expr import Let, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AllocateConst, For, LetStmt


def verify_ssa(func: PrimFunc) -> bool:
    """Whether no variable is defined a second time, even in a scope of its own."""
    finder = RepetitionFinder(func.params)
    finder.visit(func.body)
    return not finder.repeated


class RepetitionFinder(Visitor):
    """Collects variables that are defined again."""

    def __init__(self, defined: tuple[Var, ...]) -> None:
        self.defined: dict[Var, None] = dict.fromkeys(defined)
        self.repeated: dict[Var, None] = {}

    def visit_for(self, loop: For) -> None:
        self._define(loop.loop_var, loop)

    def visit_let(self, let: Let) -> None:
        self._define(let.var, let)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self._define(let.var, let)

    def visit_allocate(self, alloc: Allocate) -> None:
        self._define(alloc.buffer_var, alloc)

    def visit_allocate_const(self, alloc: AllocateConst) -> None:
        self._define(alloc.buffer_var, alloc)

    def _define(self, var: Var, node: Any) -> None:
        if var in self.defined:
            self.repeated[var] = None
        self.defined[var] = None
        self.visit_children(node)
