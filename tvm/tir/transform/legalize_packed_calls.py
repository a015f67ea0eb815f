"""Give packed functions of C their arguments as arrays.

call_cpacked("f", A.data)    ->    call_cpacked("f", tvm_stack_make_array(A.data, shape(8), ...))
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import described
from tvm.tir.expr import Call, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import DeclBuffer, Stmt
from tvm.tir.transform.common import prim_func_pass

CPACKED = INTRINSICS["tvm_call_cpacked"]


class PackedCallLegalizer(Rewriter):
    """Describes the pointers of buffers where they are passed."""

    def __init__(self, func: PrimFunc) -> None:
        self.buffers: dict[Var, Buffer] = {b.data: b for b in func.buffer_map.values()}

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        self.buffers.setdefault(decl.buffer.data, decl.buffer)
        return self.rewrite_children(decl)

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        if call.op is not CPACKED:
            return call
        args = tuple([self._array(arg) for arg in call.args])
        same = all([new is old for new, old in zip(args, call.args, strict=True)])
        return call if same else call.replace(args=args)

    def _array(self, arg: PrimExpr) -> PrimExpr:
        buffer = self.buffers.get(arg) if isinstance(arg, Var) else None
        return arg if buffer is None else described(buffer)


@prim_func_pass("tir.LegalizePackedCalls")
def legalize_packed_calls(func: PrimFunc) -> PrimFunc:
    """Pass buffers to packed functions of C as arrays."""
    return func.with_body(PackedCallLegalizer(func).visit(func.body))


LegalizePackedCalls = legalize_packed_calls.factory
