"""Relay's text form under its classic names, and the hooks that the kernel calls back."""

from __future__ import annotations

from typing import Any

from tvm.ir import extension
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.ir.op import Op
from tvm.ir.span import SequentialSpan, SourceName, Span
from tvm.ir.type import Type
from tvm.relay.expr import Call, ExprWithOp, TupleWrapper
from tvm.relay.function import Function
from tvm.relay.printer import Annotate, astext, pretty_print, type_text
from tvm.relay.traverse import free_vars

RelayNode = Node
Id = object


def _from_expr(expr: RelayExpr | TupleWrapper, functions: Any, type_defs: Any) -> IRModule:
    """`main` is the function, or one over the expression's free variables."""
    mod = IRModule(functions, type_defs)
    if isinstance(expr, TupleWrapper):
        expr = expr.astuple()
    if not isinstance(expr, Function):
        expr = Function(free_vars(expr), expr)
    name = expr.attrs.get("global_symbol", "main")
    mod[str(name)] = expr
    return mod


def _has_relay(mod: IRModule) -> bool:
    """Functions of the graph level, or nothing but types."""
    functions = mod.functions.values()
    if not functions:
        return bool(mod.type_definitions)
    return any(isinstance(f, Function) for f in functions)


def _module_text(mod: IRModule, show_meta_data: bool, annotate: Annotate | None) -> str:
    return astext(mod, show_meta_data, annotate) if _has_relay(mod) else str(mod)


class _ModulePrinter:
    """Prints modules with relay functions as relay, others as the printer before did."""

    def __init__(self) -> None:
        self.other = extension.printer.find(IRModule)

    def __call__(self, mod: IRModule) -> str:
        if self.other is None or _has_relay(mod):
            return pretty_print(mod)
        return self.other(mod)


extension.module_of.provide(ExprWithOp, _from_expr)
extension.module_of.provide(TupleWrapper, _from_expr)
extension.global_call.provide(Call)
extension.module_text.provide(_module_text)
extension.expression_text.provide(astext)
extension.printer.provide(ExprWithOp, pretty_print)
extension.printer.provide(Op, lambda op: str(op.name))
extension.printer.provide(Type, type_text)
extension.printer.provide(IRModule, _ModulePrinter())

__all__ = [
    "Id",
    "RelayNode",
    "SequentialSpan",
    "SourceName",
    "Span",
    "astext",
    "pretty_print",
]
