"""Put the bodies of private functions where they are called.

    def main(A): f(A.data, 16)   ->    def main(A):
    def f(p, n): ...                       ... p is A.data, n is 16

A function that is not private, has buffers as parameters, calls itself, or is called for its value stays.
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.expr import Call
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Evaluate, Stmt
from tvm.tir.stmt_functor import renew_defs, substitute


class CallFinder(Visitor):
    """Collects the functions of the module that are called as statements, and those called otherwise."""

    def __init__(self) -> None:
        self.statements: dict[GlobalVar, None] = {}
        self.values: dict[GlobalVar, None] = {}

    def visit_evaluate(self, stmt: Evaluate) -> None:
        call = stmt.value
        if isinstance(call, Call) and isinstance(call.op, GlobalVar):
            self.statements[call.op] = None
            self.visit_children(call)
        else:
            self.visit(call)

    def visit_call(self, call: Call) -> None:
        if isinstance(call.op, GlobalVar):
            self.values[call.op] = None
        self.visit_children(call)


class CallInliner(Rewriter):
    """Replaces calls by bodies."""

    def __init__(self, functions: dict[GlobalVar, PrimFunc]) -> None:
        self.functions = functions

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return stmt
        callee = self.functions.get(call.op)
        if callee is None or len(callee.params) != len(call.args):
            return stmt
        own = renew_defs(callee)
        body: Stmt = substitute(own.body, dict(zip(own.params, call.args, strict=True)))
        inlined: Stmt = self.visit(body)
        return inlined

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


def inline_private_functions(mod: IRModule, _: PassContext) -> IRModule:
    """Inline what can be inlined, and remove it from the module."""
    functions = {g: f for g, f in mod.functions.items() if isinstance(f, PrimFunc)}
    found = CallFinder()
    for func in functions.values():
        found.visit(func.body)
    chosen = {
        gvar: func
        for gvar, func in functions.items()
        if gvar in found.statements and gvar not in found.values and is_private(func)
        if not is_recursive(gvar, functions) and has_target_of_callers(gvar, functions)
    }
    if not chosen:
        return mod
    inliner = CallInliner(chosen)
    return mod.with_functions({
        gvar: func.with_body(inliner.visit(func.body)) if isinstance(func, PrimFunc) else func
        for gvar, func in mod.functions.items()
        if gvar not in chosen
    })  # fmt: skip


def is_private(func: PrimFunc) -> bool:
    """Whether a function is unknown outside its module, and its parameters are plain values."""
    return func.get_attr("global_symbol") is None and not func.buffer_map


def has_target_of_callers(gvar: GlobalVar, functions: dict[GlobalVar, PrimFunc]) -> bool:
    """Whether all that call a function run where it does."""
    target = functions[gvar].get_attr("target")
    for func in functions.values():
        finder = CallFinder()
        finder.visit(func.body)
        if gvar in finder.statements and str(func.get_attr("target")) != str(target):
            return False
    return True


def is_recursive(start: GlobalVar, functions: dict[GlobalVar, PrimFunc]) -> bool:
    """Whether a function calls itself, at once or by way of others."""
    seen: dict[GlobalVar, None] = {}
    pending = [start]
    while pending:
        func = functions.get(pending.pop())
        finder = CallFinder()
        if func is not None:
            finder.visit(func.body)
        for called in (*finder.statements, *finder.values):
            if called is start:
                return True
            if called not in seen:
                seen[called] = None
                pending.append(called)
    return False


_INLINE_PRIVATE_FUNCTIONS = PassInfo(0, "tir.InlinePrivateFunctions")


def InlinePrivateFunctions() -> ModulePass:
    """The pass."""
    return ModulePass(inline_private_functions, _INLINE_PRIVATE_FUNCTIONS)
