"""Run parallel loops one iteration after the other.

for i in parallel(8):        ->    for i in range(8):
    B[i] = A[i]                        B[i] = A[i]
"""

from __future__ import annotations

from tvm.ir.visitor import Rewriter
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import For, ForKind, Stmt
from tvm.tir.transform.common import prim_func_pass


class LoopSerializer(Rewriter):
    """Changes the kind of parallel loops."""

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        return loop.replace(kind=ForKind.SERIAL) if loop.kind is ForKind.PARALLEL else loop


@prim_func_pass("tir.ConvertForLoopsToSerial")
def convert_for_loops_to_serial(func: PrimFunc) -> PrimFunc:
    """Make parallel loops serial."""
    return func.with_body(LoopSerializer().visit(func.body))


ConvertForLoopsToSerial = convert_for_loops_to_serial.factory
