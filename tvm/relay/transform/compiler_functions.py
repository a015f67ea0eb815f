"""What becomes of functions for external compilers: global, external, or one with the rest again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tvm.ir.attrs import as_dict_attrs
from tvm.ir.expr import BaseExpr, GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Let
from tvm.relay.function import Function
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import applied, free_vars, post_order, rewrite_calls, rewrite_function


def _is_for(func: BaseExpr, compiler_filter: str) -> TypeGuard[Function]:
    if not isinstance(func, Function) or not (name := func.attrs.get("Compiler")):
        return False
    return not compiler_filter or str(name) == compiler_filter


def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Make local functions for a compiler, which have a `global_symbol`, global ones.

    fn (%p, Compiler="c", global_symbol="f") { .. }(%x)    ->    @f(%x)
    """

    def run(mod: IRModule, _: PassContext) -> IRModule:
        made: dict[str, tuple[GlobalVar, Function]] = {}
        let_bound = {
            id(node.var): node.value
            for func in mod.functions.values()
            if isinstance(func, Function)
            for node in post_order(func)
            if isinstance(node, Let) and _is_for(node.value, compiler_filter)
        }

        def outline(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if isinstance(new, Let) and id(new.var) in let_bound:
                is_used = any(v is new.var for v in free_vars(new.body))
                return new if is_used else new.body
            if not isinstance(new, Call):
                return new
            callee = let_bound.get(id(new.op), new.op)
            if not _is_for(callee, compiler_filter):
                return new
            name = callee.attrs.get("global_symbol")
            if name is None:
                return new
            known = made.get(str(name))
            if known is None:
                gvar = mod.get_global_var(name) if name in mod else GlobalVar(str(name))
                known = made[str(name)] = (gvar, callee)
            return new.replace(op=known[0])

        outlined = map_relay_functions(mod, lambda func: rewrite_function(func, outline))
        return infer_types(mod.with_functions({**outlined.functions, **dict(made.values())}))

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
            if not isinstance(new.op, GlobalVar):
                return new
            func = bodies.get(new.op.name_hint)
            return new if func is None else applied(func, new.args)

        others = {g: func for g, func in mod.functions.items() if g.name_hint not in bodies}
        rest = mod.with_functions(others)
        return infer_types(map_relay_functions(rest, lambda func: rewrite_calls(func, inline)))

    return ModulePass(run, PassInfo(0, "InlineCompilerFunctionsBoundTo"))


def _without_composite(_: Call, new: Call) -> RelayExpr:
    if not isinstance(new.op, Function):
        return new
    return applied(new.op, new.args) if "Composite" in new.op.attrs else new
