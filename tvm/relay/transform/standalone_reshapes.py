"""Remove kernels that only give a tensor another shape, after lowering.

let %a = on_device(call_lowered(@f, (%x,)));           let %a = on_device(call_lowered(@f, (%x,)));
let %b = on_device(call_lowered(@reshape, (%a,)));  ->  let %b = on_device(call_lowered(@f, (%x,)));
g(%b)                                                  g(%b)

Both lets name the one call, which runs once: a tensor's memory says nothing of its shape. A reshape
of an input stays, since nobody else writes its result.
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import register_func
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Let, Tuple, Var
from tvm.relay.function import Function, relay_functions
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order, rewrite_function

_RESHAPE_ONLY = "relay.reshape_only"  # the attribute of functions that fusion marks


def _run(mod: IRModule, _: PassContext) -> IRModule:
    gone: set[str] = set()
    new = map_relay_functions(mod, lambda func: _without_reshapes(func, gone))
    used = {
        node.name_hint
        for func in relay_functions(new).values()
        for node in post_order(func)
        if type(node) is GlobalVar
    }
    kept = {
        gvar: func
        for gvar, func in new.functions.items()
        if gvar.name_hint in used or gvar.name_hint not in gone
    }
    return mod.with_functions(kept) if gone else mod


def _without_reshapes(func: Function, gone: set[str]) -> Function:
    values = {id(n.var): n.value for n in post_order(func) if isinstance(n, Let)}
    producers: dict[int, RelayExpr] = {}  # what stands for a reshape, by its id

    def producer(expr: RelayExpr) -> RelayExpr | None:
        """The call that writes the tensor, looked for through places, lets and reshapes."""
        while True:
            if calls(expr, ops.on_device):
                expr = expr.args[0]
            elif isinstance(expr, Var) and id(expr) in values:
                expr = values[id(expr)]
            elif isinstance(expr, Call) and _is_reshape(expr):
                given: Any = expr.args[1]
                expr = given.fields[0]
            else:
                return expr if calls(expr, ops.call_lowered) else None

    for node in post_order(func):
        if not isinstance(node, Call) or not _is_reshape(node):
            continue
        if (found := producer(node)) is not None:
            producers[id(node)] = found
            callee: Any = node.args[0]
            gone.add(callee.name_hint)
    # a producer stands before what it replaces, and is rewritten by then
    made: dict[int, RelayExpr] = {}

    def replaced(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        standing = producers.get(id(old))
        made[id(old)] = new if standing is None else made[id(standing)]
        return made[id(old)]

    return rewrite_function(func, replaced)


def _is_reshape(call: Call) -> bool:
    if not calls(call, ops.call_lowered) or call.attrs is None:
        return False
    attrs = call.attrs.metadata.get("relay_attrs")
    given = call.args[1]
    return (
        attrs is not None
        and bool(attrs.get(_RESHAPE_ONLY, 0))
        and isinstance(given, Tuple)
        and len(given.fields) == 1
    )


@register_func("relay._transform.RemoveStandaloneReshapes")
def RemoveStandaloneReshapes() -> Pass:
    """The pass; it comes after lowering, and types are not inferred after it."""
    return ModulePass(_run, PassInfo(0, "RemoveStandaloneReshapes"))
