"""Replace calls of global functions marked `Inline` by their bodies.

def @f(%x, Inline=1) { exp(%x) }
def @main(%y) { @f(%y) }             ->    def @main(%y) { exp(%y) }

A kernel, or a function for another compiler, goes as a whole to where it is called.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.analysis.call_graph import CallGraph
from tvm.relay.analysis.specialize import specialized
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_external_function, is_opaque, relay_functions
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import applied, on_calls, rewrite_calls, rewrite_post_order


def inline_functions(mod: IRModule, is_inlined: Callable[[Function], bool]) -> IRModule:
    """Inline, then drop the marked functions that `is_inlined` names; recursive ones stay."""
    graph = CallGraph(mod)
    marked = {
        gvar.name_hint: func
        for gvar, func in relay_functions(mod).items()
        if func.attrs.get("Inline")
        and is_inlined(func)
        and gvar.name_hint not in _below(graph, gvar)
    }
    if not marked:
        return mod

    def inline(old: Call, new: Call) -> RelayExpr:
        callee = marked.get(new.op.name_hint) if type(new.op) is GlobalVar else None
        if callee is None:
            return new
        if is_opaque(callee):
            return new.replace(op=callee)  # one kernel, or what another compiler takes
        body = rewrite_post_order(callee.body, on_calls(inline))
        return applied(specialized(callee.replace(body=body), old), new.args)

    others = {g: func for g, func in mod.functions.items() if g.name_hint not in marked}
    rest = mod.with_functions(others)
    return infer_types(map_relay_functions(rest, lambda func: rewrite_calls(func, inline)))


def _below(graph: CallGraph, gvar: GlobalVar) -> list[str]:
    callees = graph.callees(gvar)
    return graph.reachable(*callees) if callees else []


def Inline() -> Pass:
    """The pass."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return inline_functions(mod, lambda func: True)

    return ModulePass(run, PassInfo(0, "InlineGlobals"))


def InlineOwnFunctions() -> Pass:
    """The pass that leaves functions for other compilers, which are compiled under their names."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return inline_functions(mod, lambda func: not is_external_function(func))

    return ModulePass(run, PassInfo(0, "InlineGlobals"))


def remove_unused_functions(mod: IRModule, entries: list[str]) -> IRModule:
    """Keep what the entry functions reach."""
    known = [e for e in entries if e in mod]
    used = set(CallGraph(mod).reachable(*known))
    functions = {g: f for g, f in mod.functions.items() if g.name_hint in used}
    return mod.with_functions(functions)


def RemoveUnusedFunctions(entry_functions: list[str] | None = None) -> Pass:
    """The pass that keeps what the entries (`main` by default) reach."""
    entries = entry_functions or ["main"]

    def run(mod: IRModule, _: PassContext) -> IRModule:
        return remove_unused_functions(mod, entries)

    return ModulePass(run, PassInfo(1, "RemoveUnusedFunctions"))
