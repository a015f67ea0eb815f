"""Run virtual threads one after the other.

    virtual_thread vx = 2:       ->    for vx in unrolled(2):
        B[vx] = A[vx]                      B[vx] = A[vx]

Virtual threads are a way to tile; each has its own copy of what is allocated inside.
"""

from __future__ import annotations

from tvm.ir.visitor import Rewriter
from tvm.tir.expr import IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, For, ForKind, Stmt
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import as_int, prim_func_pass

# more threads than this stay a loop
MAX_UNROLLED = 16


class VirtualThreadInjector(Rewriter):
    """Turns virtual threads into loops, each with a variable of its own."""

    def __init__(self) -> None:
        self.taken: dict[Var, None] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        if attr.attr_key != "virtual_thread" or not isinstance(attr.node, IterVar):
            return attr
        count = as_int(attr.value)
        kind = ForKind.UNROLLED if count <= MAX_UNROLLED else ForKind.SERIAL
        var, body = attr.node.var, attr.body
        if var in self.taken:  # the parts of a loop around have the same threads
            var = Var(var.name, var.dtype)
            body = substitute(body, {attr.node.var: var})
        self.taken[var] = None
        return For(var, 0, attr.value, kind, body)


@prim_func_pass("tir.InjectVirtualThread")
def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """Lower virtual threads."""
    return func.with_body(VirtualThreadInjector().visit(func.body))


InjectVirtualThread = inject_virtual_thread.factory
