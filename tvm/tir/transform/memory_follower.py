"""Walks of programs that know facts about memory, in the order of execution or against it.

Loops and threads are the same for both: in an iteration holds what all others leave, and what other threads
do is not known.
"""

from __future__ import annotations

from tvm.arith import Analyzer
from tvm.ir.visitor import Rewriter
from tvm.tir.analysis.dataflow import MemoryFacts, accesses_of
from tvm.tir.expr import IterVar, Range
from tvm.tir.stmt import AttrStmt, Block, For, Stmt, While


class MemoryFollower(Rewriter):
    """Has the facts about memory that hold where it is; a subclass says what statements add."""

    backwards: bool  # against the order of execution, so that facts end at loads and not at stores

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.memory = MemoryFacts(self.analyzer)

    def iterated(self, loop: For) -> Stmt:
        """A loop's body, with the facts that hold in each iteration; afterwards those outside hold."""
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        accesses = accesses_of(loop.body, loads=self.backwards)
        if accesses is None:
            self.memory.forget()
        outer = self.memory.facts
        self.memory.at_iteration(loop, accesses or [], earlier=not self.backwards)
        body: Stmt = self.visit(loop.body)
        if accesses is None:
            self.memory.forget()
        self.memory.after_loop(loop, accesses or [], outer, forward=not self.backwards)
        return body

    def visit_while(self, loop: While) -> Stmt:
        return self._without_facts(loop)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        axis = attr.node
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(axis, IterVar):
            self.analyzer.bind(axis.var, Range(attr.value), True)
            return self._without_facts(attr)  # other threads read and write as well
        return self.rewrite_children(attr)

    def visit_block(self, block: Block) -> Stmt:
        block = self.rewrite_children(block)
        for axis in block.iter_vars:
            self.memory.leave(axis.var)
        return block

    def _without_facts(self, stmt: Stmt) -> Stmt:
        self.memory.forget()
        new: Stmt = self.rewrite_children(stmt)
        self.memory.forget()
        return new
