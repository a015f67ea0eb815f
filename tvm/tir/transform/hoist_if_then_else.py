"""Move conditions that a loop does not change out of it.

for i in range(8):           ->    if n > 4:
    if n > 4:                          for i in range(8):
        B[i] = A[i]                        B[i] = A[i]
    else:                          else:
        B[i] = 0                       for i in range(8):
                                           B[i] = 0
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.error import TVMError
from tvm.ir.transform import Pass, Sequential
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, For, ForKind, IfThenElse, Stmt
from tvm.tir.transform.common import prim_func_pass, variables_of
from tvm.tir.transform.convert_ssa import separate_definitions


@dataclass(frozen=True)
class HoistIfThenElseConfig:
    """How far conditions move."""

    support_block_scope_hosting: bool = False  # also out of regions that bind threads
    nested: bool = True  # also those within a condition that has moved


class ConditionHoister(Rewriter):
    """Works from the inside out, so that a condition passes several loops."""

    def __init__(self, config: HoistIfThenElseConfig) -> None:
        self.config = config
        self.copied = False
        self.thread_vars: dict[Var, None] = {}

    def visit_for(self, loop: For) -> Stmt:
        return self._hoisted_from(self.rewrite_children(loop))

    def _hoisted_from(self, loop: For) -> Stmt:
        if loop.kind is ForKind.THREAD_BINDING:
            return loop
        inner = hoistable(loop.body)
        if inner is None or loop.loop_var in variables_of(inner.condition):
            return loop
        if self._differs_between_threads(inner):
            return loop
        moved = self._outside(inner, loop)
        if not self.config.nested or not isinstance(moved.then_case, For):
            return moved
        then = self._hoisted_from(moved.then_case)
        no = moved.else_case
        return moved.replace(
            then_case=then, else_case=self._hoisted_from(no) if isinstance(no, For) else no
        )

    def _differs_between_threads(self, inner: IfThenElse) -> bool:
        """Whether a condition is one of threads, which stay together unless the options say otherwise."""
        if self.config.support_block_scope_hosting:
            return False
        return any([var in self.thread_vars for var in variables_of(inner.condition)])

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            self.thread_vars[attr.node.var] = None
        attr = self.rewrite_children(attr)
        inner = hoistable(attr.body)
        if inner is None or not self._is_passed(attr, inner):
            return attr
        return self._outside(inner, attr)

    def _is_passed(self, attr: AttrStmt, inner: IfThenElse) -> bool:
        if attr.attr_key.startswith("pragma_"):
            return True
        if not self.config.support_block_scope_hosting or not isinstance(attr.node, IterVar):
            return False
        return attr.node.var not in variables_of(inner.condition)

    def _outside(self, inner: IfThenElse, outer: For | AttrStmt) -> IfThenElse:
        no = inner.else_case
        if no is not None:
            self.copied = True
            no = outer.replace(body=no)
        return IfThenElse(inner.condition, outer.replace(body=inner.then_case), no)


def hoistable(stmt: Stmt) -> IfThenElse | None:
    """A statement that is a condition which can be evaluated earlier, with nothing beside it."""
    if isinstance(stmt, IfThenElse) and is_safe_anywhere(stmt.condition):
        return stmt
    return None


@prim_func_pass("tir.HoistIfThenElse", HoistIfThenElseConfig)
def hoist_if_then_else(func: PrimFunc, config: HoistIfThenElseConfig) -> PrimFunc:
    """Hoist loop-invariant conditions."""
    hoister = ConditionHoister(config)
    body = hoister.visit(func.body)
    return func.with_body(separate_definitions(body, func) if hoister.copied else body)


def HoistIfThenElse(variant: str | None = None) -> Pass:
    """The pass.

    Parameters
    ----------
    variant : str, optional
        ``"basic"``: conditions stay in regions that bind threads, whatever the options say.
    """
    if variant == "basic":
        return hoist_if_then_else.factory(support_block_scope_hosting=False)
    if variant is not None:
        raise TVMError(f'HoistIfThenElse takes the variant "basic" or None, got {variant!r}')
    return Sequential([hoist_if_then_else.factory()], name="tir.HoistIfThenElse")
