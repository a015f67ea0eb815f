"""Replace the iteration variables of blocks by their values.

block(vi = i + 1):           ->    block():
    B[vi] = A[vi]                      B[i + 1] = A[i + 1]
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.block_form import require_no_init
from tvm.tir.transform.common import comes_from_te, prim_func_pass


class BlockOpener(BufferRewriter):
    """Substitutes values on the way down."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Var, PrimExpr] = {}

    def visit_var(self, var: Var) -> PrimExpr:
        return self.values.get(var, var)

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        predicate = self.visit(realize.predicate)
        values = [self.visit(value) for value in realize.iter_values]
        block: Block = realize.block
        require_no_init(block, "ConvertBlocksToOpaque")
        for axis, value in zip(block.iter_vars, values, strict=True):
            self.values[axis.var] = value
        opened: Any = self.visit_block(block.replace(iter_vars=()) if block.iter_vars else block)
        if opened is block and predicate is realize.predicate:
            return realize
        return BlockRealize((), predicate, opened)


@prim_func_pass("tir.ConvertBlocksToOpaque")
def convert_blocks_to_opaque(func: PrimFunc) -> PrimFunc:
    """Make blocks independent of their iteration variables."""
    return func if comes_from_te(func) else func.with_body(BlockOpener().visit(func.body))


ConvertBlocksToOpaque = convert_blocks_to_opaque.factory
