"""Functions: parameters, a body, and what the compiler noted about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from tvm.ir.attrs import DictAttrs, as_dict_attrs
from tvm.ir.expr import BaseExpr, GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.node import binder, child, leaf
from tvm.ir.span import Span
from tvm.ir.type import FuncType, Type, TypeVar
from tvm.relay.expr import Call, ExprWithOp, TupleWrapper, Var
from tvm.relay.with_fields import FunctionWithFields


def _body(body: RelayExpr | TupleWrapper) -> RelayExpr:
    return body.astuple() if isinstance(body, TupleWrapper) else body


def _tuple(values: Sequence[object] | None) -> tuple[object, ...]:
    return tuple(values or ())


class Function(BaseFunc, ExprWithOp, key="relay.Function"):
    """fn (params) -> ret_type { body }"""

    params: tuple[Var, ...] = binder("body", convert=_tuple)  # type: ignore[misc]
    body: RelayExpr = child(convert=_body)  # type: ignore[misc]
    ret_type: Type | None = None
    type_params: tuple[TypeVar, ...] = binder("params", "ret_type", default=(), convert=_tuple)
    attrs: DictAttrs = leaf(default=None, convert=as_dict_attrs)

    if TYPE_CHECKING:

        def __init__(
            self,
            params: Sequence[Var],
            body: RelayExpr | TupleWrapper,
            ret_type: Type | None = None,
            type_params: Sequence[TypeVar] | None = None,
            attrs: Mapping[str, Any] | DictAttrs | None = None,
            span: Span | None = None,
        ) -> None: ...

    def __call__(self, *args: RelayExpr) -> Call:
        """Call the function."""
        return Call(self, args)

    def func_type_annotation(self) -> FuncType | None:
        """The type that the annotations state, or None if one of them is missing."""
        arg_types = [p.type_annotation for p in self.params if p.type_annotation is not None]
        if self.ret_type is None or len(arg_types) < len(self.params):
            return None
        return FuncType(arg_types, self.ret_type, self.type_params)


def is_primitive(func: BaseExpr) -> TypeGuard[Function]:
    """Whether `func` is a function that fusion made, to become one kernel."""
    return isinstance(func, Function) and bool(func.attrs.get("Primitive", 0))


def is_external_function(expr: BaseExpr) -> TypeGuard[Function]:
    """Whether `expr` is a function that an external compiler takes."""
    return isinstance(expr, Function) and bool(expr.attrs.get("Compiler"))


def is_opaque(expr: BaseExpr) -> TypeGuard[Function]:
    """Whether `expr` is one kernel, or external: a function whose body is not code of the program."""
    return is_primitive(expr) or is_external_function(expr)


def is_closed(expr: BaseExpr) -> bool:
    """Whether `expr` is a function that is one kernel, or what an external compiler takes as it is."""
    return isinstance(expr, Function) and not _CLOSED.isdisjoint(expr.attrs)


def relay_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """The functions of a module that are relay's; loop programs are left out."""
    return {gvar: f for gvar, f in mod.functions.items() if isinstance(f, Function)}


# the attribute of kernels in which casts of the program to a narrow float round
KEEP_ROUNDING = "relay.keep_rounding"
_CLOSED = {"Primitive", "Composite", "Compiler"}

# of main: what the imported model calls the tensors that it returns, tuples flattened
OUTPUT_NAMES = "output_tensor_names"


def output_names(func: Function, count: int) -> list[str]:
    """The names of a model's outputs, which are so many.

    None are left if the function does not say, or had other outputs when it was imported.
    """
    names = [str(name) for name in func.attrs.get(OUTPUT_NAMES) or ()]
    return names if len(names) == count else []


__all__ = [
    "OUTPUT_NAMES",
    "Function",
    "FunctionWithFields",
    "is_closed",
    "is_external_function",
    "is_opaque",
    "is_primitive",
    "output_names",
    "relay_functions",
]
