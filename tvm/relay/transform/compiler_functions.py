"""What becomes of functions for external compilers: global, external, or one with the rest again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tvm.ir.attrs import as_dict_attrs
from tvm.ir.expr import BaseExpr, GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Let
from tvm.relay.function import Function, is_external_function, relay_functions
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import PostOrderRewriter, applied, free_vars, post_order, rewrite_calls


def _is_for(func: BaseExpr, compiler_filter: str) -> TypeGuard[Function]:
    if not is_external_function(func):
        return False
    return not compiler_filter or str(func.attrs["Compiler"]) == compiler_filter


class _Outliner(PostOrderRewriter):
    """Calls local functions for a compiler by their global symbols."""

    def __init__(self, mod: IRModule, compiler_filter: str) -> None:
        self.mod = mod
        self.compiler_filter = compiler_filter
        self.made: dict[str, tuple[GlobalVar, Function]] = {}
        self.let_bound = {
            id(node.var): node.value
            for func in relay_functions(mod).values()
            for node in post_order(func)
            if type(node) is Let and _is_for(node.value, compiler_filter)
        }

    def visit_let(self, new: Let, old: Let) -> RelayExpr:
        is_used = id(new.var) not in self.let_bound or any(
            v is new.var for v in free_vars(new.body)
        )
        return new if is_used else new.body

    def visit_call(self, new: Call, old: Call) -> RelayExpr:
        callee = self.let_bound.get(id(new.op), new.op)
        if not _is_for(callee, self.compiler_filter):
            return new
        name = callee.attrs.get("global_symbol")
        return new if name is None else new.replace(op=self._global(str(name), callee))

    def _global(self, name: str, func: Function) -> GlobalVar:
        if name not in self.made:
            is_known = name in self.mod
            gvar = self.mod.get_global_var(name) if is_known else GlobalVar(name)
            self.made[name] = (gvar, func)
        return self.made[name][0]


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Make local functions for a compiler, which have a `global_symbol`, global ones.

    fn (%p, Compiler="c", global_symbol="f") { .. }(%x)    ->    @f(%x)
    """

    def run(mod: IRModule, _: PassContext) -> IRModule:
        outliner = _Outliner(mod, compiler_filter)
        outlined = map_relay_functions(mod, outliner.run)
        return infer_types(
            mod.with_functions({**outlined.functions, **dict(outliner.made.values())})
        )

    return ModulePass(run, PassInfo(0, "OutlineCompilerFunctionsWithExistingGlobalSymbols"))


def MarkCompilerFunctionsAsExtern(compiler_filter: str = "") -> Pass:
    """Leave of global functions for a compiler their types alone, marked as `Extern`."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(mod)
        functions = {
            gvar: _as_extern(func) if _is_for(func, compiler_filter) else func
            for gvar, func in mod.functions.items()
        }
        return infer_types(mod.with_functions(functions))

    return ModulePass(run, PassInfo(0, "MarkCompilerFunctionsAsExtern"))


def _as_extern(func: Function) -> Function:
    return func.replace(attrs=as_dict_attrs({"Extern": 1}))


def InlineCompilerFunctionsBoundTo(global_vars: Sequence[GlobalVar]) -> Pass:
    """Put the bodies of these global functions for compilers back where they are called.

    The composite functions inside, which only the compilers know, become operators again.
    """
    names = [gvar.name_hint for gvar in global_vars]

    def run(mod: IRModule, _: PassContext) -> IRModule:
        bodies = {name: rewrite_calls(mod[name], _without_composite) for name in names}

        def inline(old: Call, new: Call) -> RelayExpr:
            func = bodies.get(new.op.name_hint) if type(new.op) is GlobalVar else None
            return new if func is None else applied(func, new.args)

        others = {g: func for g, func in mod.functions.items() if g.name_hint not in bodies}
        rest = mod.with_functions(others)
        return infer_types(map_relay_functions(rest, lambda func: rewrite_calls(func, inline)))

    return ModulePass(run, PassInfo(0, "InlineCompilerFunctionsBoundTo"))


def _without_composite(_: Call, new: Call) -> RelayExpr:
    if type(new.op) is Function and "Composite" in new.op.attrs:
        return applied(new.op, new.args)
    return new
