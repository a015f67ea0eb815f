"""Reject programs that access elements outside of their buffers."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer, ConstIntBound
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Ramp, Range
from tvm.tir.function import PrimFunc
from tvm.tir.op import logical_not
from tvm.tir.stmt import AttrStmt, Block, BlockRealize, BufferStore, For, IfThenElse, LetStmt


class AccessChecker(Visitor):
    """Asks for each index whether its range is within the extent; unknown ranges are taken to be."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.found: list[str] = []

    def visit_for(self, loop: For) -> None:
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.analyzer.bind(loop.loop_var, bounds, True)
        self.visit_children(loop)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar) and attr.attr_key == "thread_extent":
            self.analyzer.bind(attr.node.var, Range(attr.value), True)
        self.visit_children(attr)

    def visit_let_stmt(self, let: LetStmt) -> None:
        if let.var.dtype.is_int:
            self.analyzer.bind(let.var, let.value, True)
        self.visit_children(let)

    def visit_if_then_else(self, stmt: IfThenElse) -> None:
        self.visit(stmt.condition)
        with self.analyzer.constraint_scope(stmt.condition):
            self.visit(stmt.then_case)
        if stmt.else_case is not None:
            with self.analyzer.constraint_scope(logical_not(stmt.condition)):
                self.visit(stmt.else_case)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            self.analyzer.bind(axis.var, value, True)
        with self.analyzer.constraint_scope(realize.predicate):
            self.visit(realize.block)

    def visit_block(self, block: Block) -> None:
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._check(load.buffer, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._check(store.buffer, store.indices)
        self.visit_children(store)

    def _check(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        for axis, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            first = index.base if isinstance(index, Ramp) else index
            if first.dtype.lanes != 1:
                continue
            if self._leaves(first, extent):
                self.found.append(
                    f"{buffer.name}[{', '.join([str(i) for i in indices])}]: index {index} of axis "
                    f"{axis} is not within the extent {extent}"
                )

    def _leaves(self, index: PrimExpr, extent: PrimExpr) -> bool:
        """Whether the range of the index is known, and reaches beyond an end of the axis."""
        bound = self.analyzer.const_int_bound(self.analyzer.simplify(index))
        if bound.min_value < 0 and bound.min_value != ConstIntBound.NEG_INF:
            return not self.analyzer.can_prove(index >= 0)
        if not isinstance(extent, IntImm):
            return bool(self.analyzer.can_prove(index >= extent))
        if bound.max_value < extent.value or bound.max_value == ConstIntBound.POS_INF:
            return False
        return not self.analyzer.can_prove(index < extent)


def check_bounds(mod: IRModule, _: PassContext) -> IRModule:
    """The module; an error if some iteration accesses an element outside of its buffer."""
    checker = AccessChecker()
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            checker.visit(func.body)
    if checker.found:
        raise LoweringError("accesses are out of bounds: " + "; ".join(checker.found))
    return mod


def OOBChecker() -> ModulePass:
    """A pass that rejects accesses out of bounds."""
    return ModulePass(check_bounds, PassInfo(0, "tir.analysis.OOBChecker"))
