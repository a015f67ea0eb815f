"""Move conditions and bindings that a loop does not change out of it, wherever they are in its body.

for i in range(8):           ->    if n > 4:
    A[i] = 1                           for i in range(8):
    if n > 4:                              A[i] = 1
        B[i] = A[i]                        B[i] = A[i]
                                   else:
                                       for i in range(8):
                                           A[i] = 1
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.expr import (
    And,
    Call,
    IntImm,
    IterVar,
    Let,
    Or,
    Select,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    NO_OP,
    Allocate,
    AttrStmt,
    Block,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    is_no_op,
)
from tvm.tir.transform.common import IF_THEN_ELSE, LIKELY, prim_func_pass, variables_of
from tvm.tir.transform.convert_ssa import separate_definitions
from tvm.tir.transform.remove_no_op import NoOpRemover
from tvm.tir.transform.simplify import truth_of


class HoistedConditionals(enum.Flag):
    """Which conditions move."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(enum.Flag):
    """Which bindings move."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = RequiredByConditional | LetStmt | LetExpr


@dataclass(frozen=True)
class HoistExpressionConfig:
    """Sums of the flags' values."""

    hoisted_conditionals: int = 7  # IfElseStmt, IfElseExpr, BooleanExpression
    hoisted_let_bindings: int = 7  # All


class ConditionFinder(Visitor):
    """Collects the conditions of the wanted kinds, and what is defined beside them."""

    def __init__(self, kinds: HoistedConditionals) -> None:
        self.kinds = kinds
        self.found: list[PrimExpr] = []
        self.defined: dict[Var, PrimExpr | None] = {}

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self._condition(stmt.condition, HoistedConditionals.IfElseStmt)
        self.visit_children(stmt)

    def visit_call(self, call: Call) -> None:
        if call.op is IF_THEN_ELSE:
            self._condition(call.args[0], HoistedConditionals.IfElseExpr)
        self.visit_children(call)

    def visit_select(self, e: Select) -> None:
        self._condition(e.condition, HoistedConditionals.IfElseExpr)
        self.visit_children(e)

    def visit_and(self, e: And) -> None:
        self._operands(e)

    def visit_or(self, e: Or) -> None:
        self._operands(e)

    def _operands(self, e: And | Or) -> None:
        for operand in (e.a, e.b):
            self._condition(operand, HoistedConditionals.BooleanExpression)
        self.visit_children(e)

    def visit_for(self, loop: For) -> None:
        self.defined[loop.loop_var] = None
        self.visit_children(loop)

    def visit_block(self, block: Block) -> None:
        self.defined |= {axis.var: None for axis in block.iter_vars}
        self.visit_children(block)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.defined[let.var] = let.value
        self.visit_children(let)

    def visit_let(self, let: Let) -> None:
        self.defined[let.var] = let.value
        self.visit_children(let)

    def visit_allocate(self, alloc: Allocate) -> None:
        self.defined[alloc.buffer_var] = None
        self.visit_children(alloc)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar):
            self.defined[attr.node.var] = None
        self.visit(attr.body)

    def _condition(self, condition: PrimExpr, kind: HoistedConditionals) -> None:
        if kind & self.kinds and condition.dtype.lanes == 1 and not isinstance(condition, IntImm):
            if isinstance(condition, Call) and condition.op is LIKELY:
                condition = condition.args[0]
            self.found.append(condition)


class ConditionSetter(Rewriter):
    """Replaces a condition by what it is known to be, and takes the branch."""

    def __init__(self, condition: PrimExpr, value: bool) -> None:
        self.condition = condition
        self.value = const(value, "bool")
        self.analyzer = Analyzer()
        self.known = condition if value else op.logical_not(condition)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        if e.dtype is self.condition.dtype and structural_equal(e, self.condition):
            return self.value
        return self.rewrite_children(e)

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        if call.op is not IF_THEN_ELSE or (known := truth_of(call.args[0])) is None:
            return call
        return call.args[1 if known else 2]

    def visit_and(self, e: And) -> PrimExpr:
        if structural_equal(e, self.condition):
            return self.value
        a, b = self.visit(e.a), self.visit(e.b)
        return e if a is e.a and b is e.b else op.all(a, b)

    def visit_or(self, e: Or) -> PrimExpr:
        if structural_equal(e, self.condition):
            return self.value
        a, b = self.visit(e.a), self.visit(e.b)
        return e if a is e.a and b is e.b else op.any(a, b)

    def visit_select(self, e: Select) -> PrimExpr:
        e = self.rewrite_children(e)
        known = truth_of(e.condition)
        if known is None:
            return e
        return e.true_value if known else e.false_value

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        stmt = self.rewrite_children(stmt)
        known = truth_of(self.analyzer.simplify(stmt.condition))
        if known is None:
            return stmt
        return stmt.then_case if known else stmt.else_case or NO_OP


class BindingRemover(Rewriter):
    """Takes bindings that do not depend on a loop out of its body."""

    def __init__(self, kinds: HoistedLetBindings, loop_var: Var, required: dict[Var, None]) -> None:
        self.kinds = kinds
        self.required = required
        self.inner: dict[Var, None] = {loop_var: None}
        self.hoisted: list[tuple[Var, PrimExpr]] = []

    def visit_for(self, loop: For) -> Stmt:
        self.inner[loop.loop_var] = None
        return self.rewrite_children(loop)

    def visit_block(self, block: Block) -> Stmt:
        self.inner |= {axis.var: None for axis in block.iter_vars}
        return self.rewrite_children(block)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        stmt: Stmt = self._binding(let, HoistedLetBindings.LetStmt)
        return stmt

    def visit_let(self, let: Let) -> PrimExpr:
        expr: PrimExpr = self._binding(let, HoistedLetBindings.LetExpr)
        return expr

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if isinstance(attr.node, IterVar):
            self.inner[attr.node.var] = None
        return self.rewrite_children(attr)

    def _binding(self, let: LetStmt | Let, kind: HoistedLetBindings) -> Any:
        wanted = bool(kind & self.kinds) or let.var in self.required
        free = not any([var in self.inner for var in variables_of(let.value)])
        if wanted and free and is_safe_anywhere(let.value):
            self.hoisted.append((let.var, let.value))
            return self.visit(let.body)
        self.inner[let.var] = None
        return self.rewrite_children(let)


class ExpressionHoister(Rewriter):
    """Works from the inside out."""

    def __init__(self, config: HoistExpressionConfig) -> None:
        self.conditionals = HoistedConditionals(config.hoisted_conditionals)
        self.bindings = HoistedLetBindings(config.hoisted_let_bindings)
        self.block_vars: dict[Var, None] = {}
        self.changed = False

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        axis = attr.node
        if isinstance(axis, IterVar) and axis.thread_tag.startswith("blockIdx"):
            self.block_vars[axis.var] = None
        attr = self.rewrite_children(attr)
        if attr.attr_key != "thread_extent" or not self._leaves_threads:
            return attr
        stmt = self._conditional(attr)
        self.changed |= stmt is not attr
        return stmt

    @property
    def _leaves_threads(self) -> bool:
        return bool(self.conditionals & HoistedConditionals.UsingBlockVar)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        remover = BindingRemover(self.bindings, loop.loop_var, self._required(loop))
        stmt = self._conditional(loop.replace(body=remover.visit(loop.body)))
        if not remover.hoisted and isinstance(stmt, For):
            return loop
        self.changed = True
        for var, value in reversed(remover.hoisted):
            stmt = LetStmt(var, value, stmt)
        return stmt

    def _required(self, loop: For) -> dict[Var, None]:
        """The bound variables that conditions need, by way of others too."""
        if not self.bindings & HoistedLetBindings.RequiredByConditional:
            return {}
        finder = ConditionFinder(self.conditionals)
        finder.visit(loop.body)
        required: dict[Var, None] = {}
        pending: list[PrimExpr] = list(finder.found)
        while pending:
            for var in variables_of(pending.pop()):
                value = finder.defined.get(var)
                if value is not None and var not in required:
                    required[var] = None
                    pending.append(value)
        return required

    def _conditional(self, loop: For | AttrStmt) -> Stmt:
        condition = self._invariant(loop)
        if condition is None:
            return loop
        yes, no = [
            self._conditional(loop.replace(body=cleaned(ConditionSetter(condition, value), loop)))
            for value in (True, False)
        ]
        return IfThenElse(condition, yes, None if is_empty(no) else no)

    def _invariant(self, loop: For | AttrStmt) -> PrimExpr | None:
        """The first condition that the loop does not change."""
        finder = ConditionFinder(self.conditionals)
        finder.visit(loop.body)
        own = loop.loop_var if isinstance(loop, For) else loop.node.var
        inner = {own: None, **finder.defined}
        if not self.conditionals & HoistedConditionals.UsingBlockVar:
            inner.update(self.block_vars)
        for condition in finder.found:
            free = not any([var in inner for var in variables_of(condition)])
            if free and is_safe_anywhere(condition):
                return condition
        return None


def is_empty(stmt: Stmt) -> bool:
    """Whether nothing is left of a loop."""
    return isinstance(stmt, (For, AttrStmt)) and is_no_op(stmt.body)


def cleaned(setter: ConditionSetter, loop: For | AttrStmt) -> Stmt:
    """The loop's body where a condition is known, without what has become empty."""
    with setter.analyzer.constraint_scope(setter.known):
        body: Stmt = NoOpRemover().visit(setter.visit(loop.body))
    return body


@prim_func_pass("tir.HoistExpression", HoistExpressionConfig)
def hoist_expression(func: PrimFunc, config: HoistExpressionConfig) -> PrimFunc:
    """Hoist loop-invariant conditions and bindings."""
    hoister = ExpressionHoister(config)
    body = hoister.visit(func.body)
    return func.with_body(separate_definitions(body, func)) if hoister.changed else func


HoistExpression = hoist_expression.factory
