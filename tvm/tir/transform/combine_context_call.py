"""Call a thread's context once for each scope that uses it.

f(tvm_thread_context(ctx())) ->    ctx_cache = ctx()
g(tvm_thread_context(ctx()))       f(ctx_cache)
                                   g(ctx_cache)
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import Call, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import For, ForKind, LetStmt, Stmt
from tvm.tir.transform.common import prim_func_pass

THREAD_CONTEXT = INTRINSICS["tvm_thread_context"]


class ContextCombiner(Rewriter):
    """Replaces context calls by variables, bound where a thread's work begins."""

    def __init__(self) -> None:
        self.contexts: list[tuple[PrimExpr, Var]] = []

    def combine(self, body: Stmt) -> Stmt:
        """One thread's work with its contexts bound in front."""
        outer, self.contexts = self.contexts, []
        body = self.visit(body)
        for context, var in reversed(self.contexts):
            body = LetStmt(var, context, body)
        self.contexts = outer
        return body

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op is not THREAD_CONTEXT:
            return self.rewrite_children(call)
        context = call.args[0]
        for known, var in self.contexts:
            if structural_equal(known, context):
                return var
        var = Var("ctx_cache", context.dtype)
        self.contexts.append((context, var))
        return var

    def visit_for(self, loop: For) -> Stmt:
        if loop.kind is not ForKind.PARALLEL:
            return self.rewrite_children(loop)
        body = self.combine(loop.body)
        return loop if body is loop.body else loop.replace(body=body)


@prim_func_pass("tir.CombineContextCall")
def combine_context_call(func: PrimFunc) -> PrimFunc:
    """Share the results of context calls within a thread, in functions of a known target."""
    if func.get_attr("target") is None:
        return func
    return func.with_body(ContextCombiner().combine(func.body))


CombineContextCall = combine_context_call.factory
