"""The types of a whole module, written down where programs left them out."""

from __future__ import annotations

from collections.abc import Callable

from tvm.error import TypeCheckError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import FuncType, IncompleteType, Type
from tvm.relay.analysis.infer import TypeInferencer, known_type, set_type
from tvm.relay.analysis.solve import with_solved_types
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
                func = _inferred(func, mod, inferencer)
            func = with_written_types(func, is_new and _has_bare_variables(func))
            set_type(gvar, func.checked_type)
        functions[gvar] = func
    return mod.with_functions(functions)


def _inferred(func: Function, mod: IRModule, inferencer: TypeInferencer) -> Function:
    """The function with its types; those that no place of it tells come from all of it."""
    try:
        inferencer.infer(func)
        return func
    except TypeCheckError:
        if not _leaves_out_parameters(func):
            raise
        solved = with_solved_types(_copied(func), mod, _declared(func, mod))
        if solved is None:
            raise
    TypeInferencer(mod.with_functions({**mod.functions, **_named(func, solved, mod)})).infer(solved)
    return solved


def _declared(func: Function, mod: IRModule) -> Callable[[GlobalVar], Type]:
    """How the types of global functions are found; one's own is as its annotations say."""

    def declared(gvar: GlobalVar) -> Type:
        found = mod[gvar]
        if found is func and found.func_type_annotation() is None:
            params = [p.type_annotation or IncompleteType() for p in func.params]
            return FuncType(params, func.ret_type or IncompleteType())
        return TypeInferencer(mod).infer(gvar)

    return declared


def _named(func: Function, solved: Function, mod: IRModule) -> dict[GlobalVar, Function]:
    return {gvar: solved for gvar, known in mod.functions.items() if known is func}


def _copied(func: Function) -> Function:
    """The function in nodes of its own, which have no types yet."""

    def copy(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        is_shared = new is not old or isinstance(new, (Op, Constructor, GlobalVar))
        return new if is_shared else new.replace()

    return rewrite_function(func, copy)


def _leaves_out_parameters(func: Function) -> bool:
    """Whether a function inside leaves out the type of a parameter."""
    return any(
        p.type_annotation is None
        for node in post_order(func)
        if isinstance(node, Function)
        for p in node.params
    )


def _has_bare_variables(func: Function) -> bool:
    """Whether the body binds variables without saying of what type they are."""
    return any(
        variable.type_annotation is None
        for node in post_order(func.body)
        if type(node) is Let or type(node) is Function
        for variable in ((node.var,) if isinstance(node, Let) else node.params)
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
