"""The block that a module is about."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.estimate_flops import estimate_tir_flops
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, For, Stmt


def find_anchor_block(mod: IRModule) -> Block | None:
    """The reduction with the most operations, or None if the module reduces nothing."""
    finder = ReductionFinder()
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            finder.visit(func.body)
    if not finder.found:
        return None
    return max(finder.found, key=lambda found: estimate_tir_flops(found[1]))[0]


class ReductionFinder(Visitor):
    """Collects blocks that begin with an initial value, with the outermost loop around them."""

    def __init__(self) -> None:
        self.found: list[tuple[Block, Stmt]] = []
        self.outermost: Stmt | None = None

    def visit_for(self, loop: For) -> None:
        outside, self.outermost = self.outermost, self.outermost or loop
        self.visit_children(loop)
        self.outermost = outside

    def visit_block_realize(self, realize: BlockRealize) -> None:
        block = realize.block
        if block.init is not None:
            self.found.append((block, self.outermost or realize))
        outside, self.outermost = self.outermost, None
        self.visit(block.body)
        self.outermost = outside
