"""How many arithmetic operations a program executes."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BinaryOpExpr, BufferLoad, Call, CmpExpr, IntImm, LogicalExpr, Select
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt, Stmt

IF_THEN_ELSE = INTRINSICS["if_then_else"]


def estimate_tir_flops(stmt_or_mod: Stmt | IRModule | PrimFunc) -> float:
    """The arithmetic on values, apart from intrinsics such as exp.

    Indices and conditions do not count, of two branches the larger one is taken, all loops run to
    their end; those whose extent is not known count once. The attribute ``estimated_flops`` of a
    function tells its number.
    """
    if isinstance(stmt_or_mod, IRModule):
        functions = [f for f in stmt_or_mod.functions.values() if isinstance(f, PrimFunc)]
        return float(sum([flops_of(func) for func in functions]))
    return flops_of(stmt_or_mod) if isinstance(stmt_or_mod, PrimFunc) else float(count(stmt_or_mod))


def flops_of(func: PrimFunc) -> float:
    """The operations of a function."""
    said = func.get_attr("estimated_flops")
    return float(count(func.body) if said is None else int(said))


def count(stmt: Stmt) -> int:
    """The operations of one statement."""
    result: int = FlopCounter().visit(stmt) or 0
    return result


class FlopCounter(Visitor):
    """Returns the number of operations of each node."""

    def visit_children(self, node: Any) -> int:  # type: ignore[override]
        return sum([self.visit(child) or 0 for child in node.children()])

    def visit_for(self, loop: For) -> int:
        body: int = self.visit(loop.body)
        return loop.extent.value * body if isinstance(loop.extent, IntImm) else body

    def visit_if_then_else(self, stmt: IfThenElse) -> int:
        then: int = self.visit(stmt.then_case)
        return then if stmt.else_case is None else max(then, self.visit(stmt.else_case))

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
        return int(max(self.visit(e.true_value), self.visit(e.false_value)))

    def visit_call(self, call: Call) -> int:
        if call.op is IF_THEN_ELSE:
            return int(max([self.visit(value) for value in call.args[1:]]))
        return self.visit_children(call)
