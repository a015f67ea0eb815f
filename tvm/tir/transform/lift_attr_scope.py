"""Put neighbours that have the same attribute under one.

attr(x, "k", 1): A[0] = 0    ->    attr(x, "k", 1):
attr(x, "k", 1): A[1] = 0              A[0] = 0
                                       A[1] = 0
"""

from __future__ import annotations

from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)
from tvm.tir.transform.common import prim_func_pass, variables_of


class AttrLifter(Rewriter):
    """Lifts one attribute out of what has it throughout."""

    def __init__(self, key: str) -> None:
        self.key = key

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        stmts = [self.visit(stmt) for stmt in block.seq]
        groups: list[list[Stmt]] = []
        for stmt in stmts:
            if groups and self._same(groups[-1][0], stmt):
                groups[-1].append(stmt)
            else:
                groups.append([stmt])
        if len(groups) == len(stmts):
            unchanged = all([a is b for a, b in zip(stmts, block.seq, strict=True)])
            return block if unchanged else SeqStmt(tuple(stmts))
        return seq([self._joined(group) for group in groups])

    def visit_for(self, loop: For) -> Stmt:
        return self._lifted(self.rewrite_children(loop))

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        return self._lifted(self.rewrite_children(alloc))

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        return self._lifted(self.rewrite_children(decl))

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return self._lifted(self.rewrite_children(let))

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        return attr if attr.attr_key == self.key else self._lifted(attr)

    def visit_if_then_else(self, stmt: IfThenElse) -> Stmt:
        stmt = self.rewrite_children(stmt)
        yes, no = stmt.then_case, stmt.else_case
        if not self._has_key(yes) or (no is not None and not self._same(yes, no)):
            return stmt
        assert isinstance(yes, AttrStmt)
        otherwise = no.body if isinstance(no, AttrStmt) else None
        return yes.replace(body=IfThenElse(stmt.condition, yes.body, otherwise))

    def _lifted(self, stmt: Allocate | AttrStmt | DeclBuffer | For | LetStmt) -> Stmt:
        inner = stmt.body
        if not isinstance(inner, AttrStmt) or not self._has_key(inner):
            return stmt
        bound = stmt.loop_var if isinstance(stmt, For) else getattr(stmt, "var", None)
        if bound is not None and bound in variables_of(inner.value):
            return stmt
        return inner.replace(body=stmt.replace(body=inner.body))

    def _has_key(self, stmt: Stmt) -> bool:
        return isinstance(stmt, AttrStmt) and stmt.attr_key == self.key

    def _same(self, a: Stmt, b: Stmt) -> bool:
        return (
            isinstance(a, AttrStmt)
            and isinstance(b, AttrStmt)
            and self._has_key(a)
            and self._has_key(b)
            and (a.node is b.node or structural_equal(a.node, b.node))
            and structural_equal(a.value, b.value)
        )

    def _joined(self, group: list[Stmt]) -> Stmt:
        first = group[0]
        if len(group) == 1 or not isinstance(first, AttrStmt):
            return first
        return first.replace(body=seq([item.body for item in group if isinstance(item, AttrStmt)]))


def LiftAttrScope(attr_key: str) -> Pass:
    """The pass for one attribute."""

    @prim_func_pass("tir.LiftAttrScope")
    def lift_attr_scope(func: PrimFunc) -> PrimFunc:
        return func.with_body(AttrLifter(attr_key).visit(func.body))

    return lift_attr_scope.factory()
