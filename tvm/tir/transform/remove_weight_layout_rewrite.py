"""Take functions' weights in the layout that a block in them would bring them to.

block("rewrite", layout_rewrite_preproc):  ->    W1: an argument
    W1[j, i] = W[i, j]                           C[i] = W1[...]
C[i] = W1[...]
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.transform import Pass
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import NO_OP, Block, BlockRealize, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import prim_func_pass

MARK = "meta_schedule.layout_rewrite_preproc"


class RewriteFinder(Visitor):
    """Finds what marked blocks read, and what they write instead."""

    def __init__(self) -> None:
        self.found: dict[Buffer, Buffer] = {}

    def visit_block(self, block: Block) -> None:
        if MARK not in block.annotations:
            self.visit_children(block)
            return
        if len(block.reads) != 1 or len(block.writes) != 1:
            raise LoweringError(
                "a block that rewrites a layout needs one source and one target", at=block
            )
        self.found[block.reads[0].buffer] = block.writes[0].buffer


class RewriteRemover(BufferRewriter):
    """Empties marked blocks, which stay as marks, and drops the allocations of their targets."""

    def __init__(self, targets: dict[Buffer, None]) -> None:
        super().__init__()
        self.targets = targets

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if MARK not in block.annotations:
            return self.rewrite_children(realize)
        return realize.replace(block=block.replace(reads=(), writes=(), body=NO_OP))

    def visit_block(self, block: Block) -> Stmt:
        new = self.rewrite_children(block)
        kept = tuple([b for b in block.alloc_buffers if b not in self.targets])
        return new if len(kept) == len(block.alloc_buffers) else new.replace(alloc_buffers=kept)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


def RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite: bool = False) -> Pass:
    """The pass.

    Parameters
    ----------
    skip_ndarray_rewrite : bool
        Accept weights that are no arguments, such as constants: their data has to be rewritten by the
        caller. By default they are rejected.
    """

    @prim_func_pass("tir.RemoveWeightLayoutRewriteBlock")
    def remove_weight_layout_rewrite(func: PrimFunc) -> PrimFunc:
        finder = RewriteFinder()
        finder.visit(func.body)
        if not finder.found:
            return func
        arguments = func.buffer_map.values()
        others = [source.name for source in finder.found if source not in arguments]
        if others and not skip_ndarray_rewrite:
            raise LoweringError(f"weights need to be arguments of the function, got {others}")
        remover = RewriteRemover(dict.fromkeys(finder.found.values()))
        body = remover.visit(func.body)
        buffers = {p: finder.found.get(b, b) for p, b in func.buffer_map.items()}
        return func.replace(body=body, buffer_map=buffers)

    return remove_weight_layout_rewrite.factory()
