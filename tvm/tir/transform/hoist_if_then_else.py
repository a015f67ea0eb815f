"""Move conditions that a loop does not change out of it.

for i in range(8):           ->    if n > 4:
    if n > 4:                          for i in range(8):
        B[i] = A[i]                        B[i] = A[i]
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.pass_context import unsupported_option
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, For, ForKind, IfThenElse, Stmt
from tvm.tir.transform.common import prim_func_pass, variables_of


@dataclass(frozen=True)
class HoistIfThenElseConfig:
    """How far conditions move."""

    support_block_scope_hosting: bool = unsupported_option(
        False, "conditions stay inside thread-bound regions"
    )


class ConditionHoister(Rewriter):
    """Works from the inside out, so that a condition passes several loops."""

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        inner = loop.body
        if loop.kind is ForKind.THREAD_BINDING or not is_hoistable(inner):
            return loop
        assert isinstance(inner, IfThenElse)
        if loop.loop_var in variables_of(inner.condition):
            return loop
        return IfThenElse(inner.condition, loop.replace(body=inner.then_case))

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        inner = attr.body
        if not attr.attr_key.startswith("pragma_") or not is_hoistable(inner):
            return attr
        assert isinstance(inner, IfThenElse)
        return inner.replace(then_case=attr.replace(body=inner.then_case))


def is_hoistable(stmt: Stmt) -> bool:
    """Whether a statement is a condition that can be evaluated earlier, with nothing beside it."""
    return (
        isinstance(stmt, IfThenElse) and stmt.else_case is None and is_safe_anywhere(stmt.condition)
    )


@prim_func_pass("tir.HoistIfThenElse", HoistIfThenElseConfig)
def hoist_if_then_else(func: PrimFunc, config: HoistIfThenElseConfig) -> PrimFunc:
    """Hoist loop-invariant conditions."""
    return func.with_body(ConditionHoister().visit(func.body))


HoistIfThenElse = hoist_if_then_else.factory
