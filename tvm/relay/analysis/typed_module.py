"""The types of a whole module, written down where programs left them out."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.type import FuncType
from tvm.relay.analysis.infer import TypeInferencer, known_type, set_type
from tvm.relay.expr import Let, Var
from tvm.relay.function import Function
from tvm.relay.traverse import post_order, rewrite_function


def infer_types(mod: IRModule) -> IRModule:
    """Type all relay functions of a module; the module itself if they were."""
    inferencer = TypeInferencer(mod)
    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            is_new = known_type(func) is None
            if is_new:
                inferencer.infer(func)
            func = with_written_types(func, is_new and _has_bare_variables(func))
            set_type(gvar, func.checked_type)
        functions[gvar] = func
    return mod.with_functions(functions)


def _has_bare_variables(func: Function) -> bool:
    """Whether the body binds variables without saying of what type they are."""
    return any(
        variable.type_annotation is None
        for node in post_order(func.body)
        for variable in (
            (node.var,)
            if isinstance(node, Let)
            else node.params
            if isinstance(node, Function)
            else ()
        )
    )


def with_written_types(func: Function, has_bare_variables: bool = False) -> Function:
    """The typed function with return types and variables' types written down."""
    is_annotated = func.ret_type is not None and not has_bare_variables
    if is_annotated and all(p.type_annotation is not None for p in func.params):
        return func
    return rewrite_function(func, _write_type)


def _write_type(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if isinstance(new, Var) and new.type_annotation is None:
        new = new.replace(type_annotation=known_type(old))
    if isinstance(new, Function) and new.ret_type is None:
        ty = known_type(old)
        assert isinstance(ty, FuncType)
        new = new.replace(ret_type=ty.ret_type)
    if new is not old and (known := known_type(old)) is not None:
        set_type(new, known)
    return new
