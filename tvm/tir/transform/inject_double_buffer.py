"""Lower the mark that a buffer is to be double-buffered.

    attr(A, "double_buffer_scope")   ->    for i in range(4):
    for i in range(4):                         A[...] = ...
        A[...] = ...

On the targets there are the mark changes no result and gains nothing, so it is only removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.pass_context import unsupported_option
from tvm.ir.visitor import Rewriter
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, Stmt
from tvm.tir.transform.common import prim_func_pass


@dataclass(frozen=True)
class InjectDoubleBufferConfig:
    """How the loop around a double buffer is unrolled."""

    split_loop: int = unsupported_option(1, "split the loop in the schedule instead")


class DoubleBufferMarkRemover(Rewriter):
    """Drops the marks."""

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        return attr.body if attr.attr_key in MARKS else attr


MARKS = ("double_buffer_scope", "double_buffer_write")


@prim_func_pass("tir.InjectDoubleBuffer", InjectDoubleBufferConfig)
def inject_double_buffer(func: PrimFunc, config: InjectDoubleBufferConfig) -> PrimFunc:
    """Remove double-buffer marks."""
    return func.with_body(DoubleBufferMarkRemover().visit(func.body))


InjectDoubleBuffer = inject_double_buffer.factory
