"""How many arithmetic operations a program executes."""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BinaryOpExpr, BufferLoad, Call, CmpExpr, IntImm, LogicalExpr, Select
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import ELEMENTWISE, INTRINSICS
from tvm.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt, Stmt


def estimate_tir_flops(stmt_or_mod: Stmt | IRModule | PrimFunc) -> float:
    """The operations on values: indices do not count, all loops run to their end, of two branches the
    larger one is taken."""
    if isinstance(stmt_or_mod, IRModule):
        functions = [f for f in stmt_or_mod.functions.values() if isinstance(f, PrimFunc)]
        return float(sum([count(func.body) for func in functions]))
    return float(count(stmt_or_mod.body if isinstance(stmt_or_mod, PrimFunc) else stmt_or_mod))


def count(stmt: Stmt) -> int:
    """The operations of one statement."""
    result: int = FlopCounter().visit(stmt) or 0
    return result


class FlopCounter(Visitor):
    """Returns the number of operations of each node."""

    def visit_children(self, node: Any) -> int:  # type: ignore[override]
        return sum([self.visit(child) or 0 for child in node.children()])

    def visit_for(self, loop: For) -> int:
        if not isinstance(loop.extent, IntImm):
            raise TVMError(f"estimate_tir_flops needs constant extents, got {loop.extent}")
        return int(loop.extent.value * self.visit(loop.body))

    def visit_if_then_else(self, stmt: IfThenElse) -> int:
        branches = [self.visit(stmt.then_case)]
        if stmt.else_case is not None:
            branches.append(self.visit(stmt.else_case))
        return int(self.visit(stmt.condition) + max(branches))

    def visit_block_realize(self, realize: BlockRealize) -> int:
        return int(self.visit(realize.block.body))

    def visit_block(self, block: Block) -> int:
        return int(self.visit(block.body))

    def visit_buffer_store(self, store: BufferStore) -> int:
        return int(self.visit(store.value))

    def visit_let_stmt(self, let: LetStmt) -> int:
        return int(self.visit(let.value) + self.visit(let.body))

    def visit_buffer_load(self, load: BufferLoad) -> int:
        return 0

    def visit_prim_expr(self, e: PrimExpr) -> int:
        return self.visit_children(e)

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> int:
        return e.dtype.lanes + self.visit_children(e)

    def visit_cmp_expr(self, e: CmpExpr) -> int:
        return e.dtype.lanes + self.visit_children(e)

    def visit_logical_expr(self, e: LogicalExpr) -> int:
        return e.dtype.lanes + self.visit_children(e)

    def visit_select(self, e: Select) -> int:
        branches = max(self.visit(e.true_value), self.visit(e.false_value))
        return int(self.visit(e.condition) + branches)

    def visit_call(self, call: Call) -> int:
        own = call.dtype.lanes if any([call.op is op for op in COUNTED]) else 0
        return own + self.visit_children(call)


COUNTED = tuple([INTRINSICS[name] for names in ELEMENTWISE.values() for name in names.split()])
