"""Statements of modules."""

from __future__ import annotations

import ast
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.support.dtype import DType
from tvm.tir.builtin import VOID, as_argument
from tvm.tir.expr import Call

from ...ir_builder import IRBuilder
from ...ir_builder.ir.frame import IRModuleFrame
from ...ir_builder.ir.ir import decl_function
from ..core import dispatch
from ..core.parser import Parser


class FunctionRef:
    """A function of the module that is being read: calling it builds a call."""

    def __init__(self, var: GlobalVar, result: DType) -> None:
        self.var = var
        self.result = result

    def asobject(self) -> GlobalVar:
        """The variable of the function."""
        return self.var

    def __call__(self, *args: Any) -> Any:
        if any([isinstance(arg, RelayExpr) for arg in args]):
            return self.var(*args)
        return Call(self.result, self.var, [as_argument(arg) for arg in args])


class ModuleWithGlobalVars:
    """``cls``, or the class's own name: gives access to the module's functions."""

    def __init__(self) -> None:
        self._functions: dict[str, Any] = {}

    def _declare(self, name: str, reference: Any) -> None:
        """Make a function known."""
        self._functions[name] = reference

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__["_functions"].get(name)
        if found is None:
            raise AttributeError(
                f"the module has no function {name!r}, there are {list(self._functions)}"
            )
        return found


@dispatch.register(token="ir", type_name="ClassDef")
def visit_class_def(self: Parser, node: ast.ClassDef) -> None:
    """Functions may call each other whatever their order: they are declared first."""
    with self.var_table.with_frame(), IRModuleFrame():
        module = ModuleWithGlobalVars()
        self.var_table.add("cls", module, True)
        self.var_table.add(node.name, module, True)
        functions = [stmt for stmt in node.body if isinstance(stmt, ast.FunctionDef)]
        with self.with_dispatch_token("ir"):
            for stmt in node.body:
                if not isinstance(stmt, ast.FunctionDef):
                    self.visit(stmt)
            for stmt in functions:
                result = self.visit_tvm_declare_function(stmt)
                var = decl_function(stmt.name)
                if isinstance(result, BaseFunc):
                    var.struct_info_ = result.struct_info_
                    module._declare(stmt.name, var)
                    continue
                kind = result if isinstance(result, DType) else VOID
                reference = FunctionRef(var, kind) if result is None or kind is result else result
                module._declare(stmt.name, reference)
            with self.var_table.with_frame():
                self.visit_body(functions)


@dispatch.register(token="ir", type_name="Assign")
def visit_assign(self: Parser, node: ast.Assign) -> None:
    """A value that the functions use."""
    value = self.eval_expr(node.value)
    for target in node.targets:
        self.eval_assign(target, value, lambda parser, at, name, item: item)


@dispatch.register(token="ir", type_name="Expr")
def visit_expr(self: Parser, node: ast.Expr) -> None:
    """``I.module_attrs(...)``, or a docstring."""
    if not isinstance(node.value, ast.Constant):
        self.eval_expr(node.value)


@dispatch.register(token="ir", type_name="tvm_annotation")
def visit_tvm_annotation(self: Parser, node: ast.expr) -> Any:
    """The value of an annotation."""
    return self.eval_expr(node)


@dispatch.register(token="ir", type_name="AnnAssign")
@dispatch.register(token="ir", type_name="For")
@dispatch.register(token="ir", type_name="If")
@dispatch.register(token="ir", type_name="Return")
@dispatch.register(token="ir", type_name="With")
def visit_other(self: Parser, node: ast.stmt) -> None:
    """A module has no statements of its own."""
    self.report_error(node, "a module requires functions")


__all__ = ["IRBuilder", "ModuleWithGlobalVars"]
