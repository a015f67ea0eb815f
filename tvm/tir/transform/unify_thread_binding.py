"""Give all uses of a thread axis in a kernel one variable.

thread_extent tx "threadIdx.x" = 8:      ->    thread_extent tx "threadIdx.x" = 8:
    ...                                            ...
    thread_extent tx2 "threadIdx.x" = 8:           ... tx in the place of tx2
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.tir.expr import IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.op import cast
from tvm.tir.stmt import AttrStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import comes_from_te, prim_func_pass


class ThreadUnifier(BufferRewriter):
    """Opens a thread axis once, at the outermost place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[str, AttrStmt] = {}
        self.names: dict[Var, PrimExpr] = {}

    def visit_var(self, var: Var) -> PrimExpr:
        return self.names.get(var, var)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        axis = attr.node
        if attr.attr_key != "thread_extent" or not isinstance(axis, IterVar):
            return self.rewrite_children(attr)
        outer = self.open.get(axis.thread_tag)
        if outer is None:
            self.open[axis.thread_tag] = attr
            new = self.rewrite_children(attr)
            del self.open[axis.thread_tag]
            return new
        if not structural_equal(outer.value, attr.value):
            raise LoweringError(
                f"{axis.thread_tag} needs one extent in a kernel, got {outer.value} and {attr.value}"
            )
        if axis.var is not outer.node.var:
            self.names[axis.var] = cast(outer.node.var, axis.var.dtype)
        body: Stmt = self.visit(attr.body)
        return body


@prim_func_pass("tir.UnifyThreadBinding")
def unify_thread_binding(func: PrimFunc) -> PrimFunc:
    """Open each thread axis once."""
    return func if comes_from_te(func) else func.with_body(ThreadUnifier().visit(func.body))


UnifyThreadBinding = unify_thread_binding.factory
