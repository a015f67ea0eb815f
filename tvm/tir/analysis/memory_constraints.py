"""In what memory the buffers of a function have to lie: its arguments, then its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt_functor import BufferRewriter


def get_prim_func_arg_and_result_memory_constraints(
    func: PrimFunc, relay_func_type: Any
) -> list[str]:
    """The storage scope of each argument and result of a function.

    Parameters
    ----------
    func : PrimFunc
    relay_func_type : FuncType
        The type of the function that it implements: parameters, then one result or a tuple.
    """
    scopes = [scope_of(func.buffer_map[param].data) for param in buffer_params(func)]
    check_count(len(scopes), relay_func_type)
    return scopes


def apply_prim_func_arg_and_result_memory_constraints(
    func: PrimFunc, relay_func_type: Any, arg_and_result_memory_scopes: Sequence[str]
) -> PrimFunc:
    """The function with its arguments and results in other memory; an empty text leaves one where it is."""
    params = buffer_params(func)
    check_count(len(params), relay_func_type)
    check_count(len(arg_and_result_memory_scopes), relay_func_type)
    mover = PointerMover()
    for param, scope in zip(params, arg_and_result_memory_scopes, strict=True):
        mover.move(func.buffer_map[param].data, str(scope))
    if not mover.moved:
        return func
    buffers = {param: mover.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return func.replace(buffer_map=buffers, body=mover.visit(func.body))


class PointerMover(BufferRewriter):
    """Gives pointers other storage scopes."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: dict[Var, Var] = {}

    def move(self, pointer: Var, scope: str) -> None:
        """Put what a pointer points to into the scope."""
        kind = pointer.type_annotation
        if scope in ("", scope_of(pointer)) or not isinstance(kind, PointerType):
            return
        self.moved[pointer] = Var(pointer.name, PointerType(kind.element_type, scope))

    def visit_var(self, var: Var) -> PrimExpr:
        return self.moved.get(var, var)


def buffer_params(func: PrimFunc) -> list[Var]:
    """The parameters that are buffers."""
    return [param for param in func.params if param in func.buffer_map]


def scope_of(pointer: Var) -> str:
    """Where a pointer points to."""
    return getattr(pointer.type_annotation, "storage_scope", "") or "global"


def check_count(count: int, func_type: Any) -> None:
    """A function has a buffer for each parameter and result of its type."""
    results = getattr(func_type.ret_type, "fields", None)
    expected = len(func_type.arg_types) + (1 if results is None else len(results))
    if count != expected:
        raise TVMError(
            f"memory scopes are needed for {expected} arguments and results, got {count}"
        )
