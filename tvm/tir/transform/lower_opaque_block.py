"""Replace blocks by their bodies, and what loops and blocks are annotated with by attributes.

block():                     ->    if i < n:
    where(i < n)                       A = allocate([16])
    A = alloc_buffer([16])             A[0] = ...
    A[0] = ...
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext
from tvm.tir.buffer import allocation_shape
from tvm.tir.expr import IterVar, Range, StringImm, Var, as_expr
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    BlockRealize,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Stmt,
)
from tvm.tir.stmt_functor import Substituter
from tvm.tir.transform.block_form import require_no_init, require_no_match, require_opaque
from tvm.tir.transform.common import (
    LOOP_PARTITION_HINT,
    TRUE,
    comes_from_te,
    is_const,
    prim_func_pass,
)
from tvm.tir.transform.dim_align import AlignFinder, Aligns, annotations_of
from tvm.tir.transform.simplify import KEEP_LOOPS


class OpaqueBlockLowerer(Substituter):
    """Opens blocks; loops of one iteration are replaced by their body."""

    def __init__(self, aligns: Aligns) -> None:
        self.values: dict[Var, PrimExpr] = {}
        self.aligns = aligns
        self.keeps_loops = PassContext.current().get(KEEP_LOOPS, False)
        super().__init__(self.values)

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        for require in (require_opaque, require_no_init, require_no_match):
            require(block, "LowerOpaqueBlock")
        body = self.visit(block.body)
        for buffer in reversed(block.alloc_buffers):
            placed = self.buffer(buffer)
            body = DeclBuffer(placed, body)
            body = Allocate(
                placed.data, placed.dtype, allocation_shape(placed), TRUE, body,
                annotations_of(buffer, self.aligns),
            )  # fmt: skip
        body = self._annotated(block.annotations, body)
        predicate = self.visit(realize.predicate)
        return body if is_const(predicate, 1) else IfThenElse(predicate, body)

    def visit_for(self, loop: For) -> Stmt:
        start, extent = self.visit(loop.min), self.visit(loop.extent)
        opens = loop.kind is not ForKind.THREAD_BINDING and not self.keeps_loops
        if is_const(extent, 1) and opens and not loop.annotations:
            self.values[loop.loop_var] = start
            body: Stmt = self.visit(loop.body)
            return body
        body = self.visit(loop.body)
        kept = {k: v for k, v in loop.annotations.items() if not is_pragma(k)}
        if loop.kind is ForKind.THREAD_BINDING:
            body = thread_attribute(loop, start, extent, body)
        elif start is not loop.min or extent is not loop.extent or body is not loop.body:
            body = loop.replace(min=start, extent=extent, body=body, annotations=kept)
        else:
            body = loop if len(kept) == len(loop.annotations) else loop.replace(annotations=kept)
        return self._annotated(loop.annotations, body)

    def _annotated(self, annotations: dict[str, Any], body: Stmt) -> Stmt:
        for key, value in reversed(list(annotations.items())):
            if is_pragma(key):
                body = AttrStmt(StringImm(""), key, as_expr(value), body)
        return body


def is_pragma(key: str) -> bool:
    """Whether an annotation becomes an attribute, which has no place for the loop's variable."""
    return key.startswith("pragma_") and key != LOOP_PARTITION_HINT


def thread_attribute(loop: For, start: PrimExpr, extent: PrimExpr, body: Stmt) -> Stmt:
    """A loop bound to threads, as the attribute the passes behind this one know."""
    assert loop.thread_binding is not None
    tag = loop.thread_binding.thread_tag
    domain = Range.from_min_extent(start, extent)
    axis = IterVar(domain, loop.loop_var, IterVar.ThreadIndex, tag)
    key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
    return AttrStmt(axis, key, extent, body)


@prim_func_pass("tir.LowerOpaqueBlock")
def lower_opaque_block(func: PrimFunc) -> PrimFunc:
    """Remove blocks."""
    if comes_from_te(func):
        return func
    finder = AlignFinder()
    finder.visit(func.body)
    return func.with_body(OpaqueBlockLowerer(finder.found).visit(func.body))


LowerOpaqueBlock = lower_opaque_block.factory
