"""Statements of relax: each adds a binding, or opens a frame of the builder."""

from __future__ import annotations

import ast
import numbers
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.global_info import GlobalInfo
from tvm.relax import expr as rx
from tvm.relax.base import StructInfo
from tvm.relax.struct_info import FuncStructInfo, ObjectStructInfo
from tvm.tir.expr import Var as TirVar

from ...ir_builder import IRBuilder
from ...ir_builder.relax import frame as f
from ...ir_builder.relax import ir as R
from ..core import dispatch
from ..core.parser import Parser
from ..ir.parser import ModuleWithGlobalVars
from ..tir.parser import find_decorator_annotation
from .struct_infos import MatchCastPair, StructInfoProxy, as_template, complete

# ---- struct info


def struct_info_template(self: Parser, node: ast.expr, known: Any = None) -> Any:
    """Struct info that an annotation says, or a template of it."""
    value = known
    if value is None or isinstance(value, str):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        value = (
            None if isinstance(node, ast.Constant) and node.value is None else self.eval_expr(node)
        )
    return as_template(value)


def eval_struct_info(self: Parser, node: ast.expr, known: Any = None) -> StructInfo:
    """Struct info that an annotation says; dimensions by name are those of the function."""
    return complete(struct_info_template(self, node, known), self.var_table.get())


# ---- what names stand for


def bind_assign_value(
    self: Parser, node: ast.expr, var_name: str, value: Any, annotation: StructInfo | None = None
) -> Any:
    """What ``x = ...`` binds."""
    if isinstance(value, TirVar):
        return _bind_symbol(self, node, var_name, value)
    if isinstance(value, (ModuleWithGlobalVars, GlobalInfo)):
        return value
    if isinstance(value, MatchCastPair):
        info = complete(value.struct_info, self.var_table.get())
        if annotation is not None and annotation != info:
            self.report_error(
                node,
                f"Cannot specify inconsistent annotation for match_cast: {annotation} and {info}",
            )
        var = R.emit_match_cast(value.value, info)
    elif isinstance(value, (tuple, list, rx.Expr, PrimExpr, numbers.Number)):
        expr = rx.const(value) if isinstance(value, numbers.Number) else rx.as_expr(value)
        var = R.emit(expr, annotation)
    elif hasattr(value, "asobject"):
        var = R.emit(rx.as_expr(value), annotation)
    else:
        self.report_error(node, f"Unsupported type in assignment: {type(value)}")
    IRBuilder.name(var_name, var)
    return var


def _bind_symbol(self: Parser, node: ast.expr, name: str, value: TirVar) -> Any:
    """A symbolic variable; the function's own of that name, if it has one."""
    if value.name and name != value.name:
        self.report_error(
            node,
            "Cannot define TIR variables with different names. The LHS of binding should "
            "has the same name provided in RHS.",
        )
    known = self.var_table.get().get(name)
    if isinstance(known, TirVar) and any([name in frame for frame in self.var_table.frames]):
        if known.dtype != value.dtype:
            self.report_error(
                node, f"Expected the same dtype for {name}, got {known.dtype} and {value.dtype}"
            )
        return known
    if not value.name:
        IRBuilder.name(name, value)
    return value


# ---- functions


def _collect_symbols(self: Parser, node: ast.FunctionDef, known: dict[str, Any]) -> dict[str, Any]:
    """Define symbolic variables that parameters name; the templates of the parameters."""
    templates = {}
    for arg in node.args.args:
        if arg.annotation is None:
            self.report_error(arg, "Type annotation is required for function parameters.")
        assert arg.annotation is not None
        template = struct_info_template(self, arg.annotation, known.get(arg.arg))
        templates[arg.arg] = template
        if isinstance(template, StructInfoProxy):
            for name in sorted(template.get_symbolic_vars()):
                if not _is_own(self, name):
                    self.var_table.add(name, TirVar(name, "int64"), True)
    return templates


def _is_own(self: Parser, name: str) -> bool:
    return name in self.var_table.frames[-1]


def _annotations(self: Parser, node: ast.FunctionDef) -> dict[str, Any]:
    return dict(self.function_annotations.get(node.name, {}))


@dispatch.register(token="relax", type_name="FunctionDef")
def visit_function_def(self: Parser, node: ast.FunctionDef) -> None:
    """``def f(x: R.Tensor(("n",), "float32")) -> R.Tensor:``"""
    if self.dispatch_tokens[-1] != "relax":
        _read_function(self, node)
        return
    pre_visit_local_function(self, node)
    try:
        _read_function(self, node)
    except BaseException:
        _LOCAL[id(self)].pop().__exit__(None, None, None)
        raise
    post_visit_local_function(self, node)


def _read_function(self: Parser, node: ast.FunctionDef) -> None:
    known = _annotations(self, node)
    outer, self.function_annotations = self.function_annotations, {}
    is_pure = find_decorator_annotation(node, "pure")
    is_private = find_decorator_annotation(node, "private", default=False)
    speaks = self.with_dispatch_token("relax")
    with self.var_table.with_frame(), speaks, R.function(is_pure, is_private):
        R.func_name(node.name)
        templates = _collect_symbols(self, node, known)
        for arg in node.args.args:
            info = complete(templates[arg.arg], self.var_table.get())
            self.var_table.add(arg.arg, R.arg(arg.arg, info))
        if node.returns is not None:
            R.func_ret_struct_info(eval_struct_info(self, node.returns, known.get("return")))
        self.visit_body(node.body)
    self.function_annotations = outer


@dispatch.register(token="relax", type_name="tvm_declare_function")
def visit_tvm_declare_function(self: Parser, node: ast.FunctionDef) -> Any:
    """A function of the same signature, without a body."""
    known = _annotations(self, node)
    with self.var_table.with_frame():
        templates = _collect_symbols(self, node, known)
        names = self.var_table.get()
        params = [rx.Var(a.arg, complete(templates[a.arg], names)) for a in node.args.args]
        for param in params:
            self.var_table.add(param.name_hint, param, True)
        ret: StructInfo = ObjectStructInfo()
        if node.returns is not None:
            ret = eval_struct_info(self, node.returns, known.get("return"))
        is_pure = find_decorator_annotation(node, "pure")
        return rx.Function.create_empty(params, ret, is_pure)


def pre_visit_local_function(self: Parser, node: ast.FunctionDef) -> None:
    """A function inside another is built on its own."""
    if _names_itself(node):
        signature = visit_tvm_declare_function(self, node)
        info: FuncStructInfo = signature.struct_info
        self.var_table.add(node.name, rx.Var(node.name, info), True)
    builder = IRBuilder()
    builder.__enter__()
    _LOCAL.setdefault(id(self), []).append(builder)


# builders of local functions that are being read, by parser
_LOCAL: dict[int, list[IRBuilder]] = {}


def _names_itself(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(part, ast.Name) and part.id == node.name
        for stmt in node.body
        for part in ast.walk(stmt)
    )


def post_visit_local_function(self: Parser, node: ast.FunctionDef) -> None:
    """Bind the function that was read."""
    builder = _LOCAL[id(self)].pop()
    if not _LOCAL[id(self)]:
        del _LOCAL[id(self)]
    builder.__exit__(None, None, None)
    func = builder.get()
    if "global_symbol" in func.attrs:
        func = func.without_attr("global_symbol")
    known = self.var_table.get().get(node.name)
    if isinstance(known, rx.Var) and _names_itself(node):
        R.emit_var_binding(rx.VarBinding(known, func))
        return
    var = R.emit(func)
    IRBuilder.name(node.name, var)
    self.var_table.add(node.name, var, True)


# ---- statements


@dispatch.register(token="relax", type_name="tvm_annotation")
def visit_tvm_annotation(self: Parser, node: ast.expr) -> Any:
    """The value of an annotation."""
    return eval_struct_info(self, node)


@dispatch.register(token="relax", type_name="With")
def visit_with(self: Parser, node: ast.With) -> None:
    """``with R.dataflow():``"""
    if len(node.items) > 1:
        self.report_error(node, "Only one item is allowed.")
    item = node.items[0]
    if item.optional_vars is not None:
        self.report_error(item.context_expr, "a dataflow block has no value")
    frame = self.eval_expr(item.context_expr)
    if not isinstance(frame, f.BlockFrame):
        self.report_error(item.context_expr, "with requires R.dataflow() in a relax function")
    with self.var_table.with_frame():
        with frame:
            self.visit_body(node.body)
        outputs = list(frame.output_vars)
        symbols = {n: v for n, v in self.var_table.get().items() if isinstance(v, TirVar)}
    for var in outputs:
        self.var_table.add(var.name_hint, var, True)
    # dimensions that a match_cast of the block names
    for name, symbol in symbols.items():
        self.var_table.add(name, symbol, True)


@dispatch.register(token="relax", type_name="Assign")
def visit_assign(self: Parser, node: ast.Assign) -> None:
    """``x = ...``, ``n = T.int64()``"""
    if len(node.targets) != 1:
        self.report_error(node, "Consequential assignments like 'a = b = c' are not supported.")
    value = self.eval_expr(node.value)
    self.eval_assign(node.targets[0], value, bind_assign_value, True)


@dispatch.register(token="relax", type_name="AnnAssign")
def visit_ann_assign(self: Parser, node: ast.AnnAssign) -> None:
    """``x: R.Tensor((4,)) = ...``"""
    if node.value is None:
        self.report_error(node, "an annotated assignment requires a value")
    assert node.value is not None
    value = self.eval_expr(node.value)
    annotation = eval_struct_info(self, node.annotation)

    def bind(parser: Parser, at: ast.expr, name: str, item: Any) -> Any:
        return bind_assign_value(parser, at, name, item, annotation)

    self.eval_assign(node.target, value, bind, True)


@dispatch.register(token="relax", type_name="Return")
def visit_return(self: Parser, node: ast.Return) -> None:
    """``return x``"""
    if node.value is None:
        self.report_error(node, "return requires a value in a relax function")
    assert node.value is not None
    value = self.eval_expr(node.value)
    if isinstance(value, numbers.Number):
        value = rx.const(value)
    R.func_ret_value(rx.as_expr(value))


@dispatch.register(token="relax", type_name="If")
def visit_if(self: Parser, node: ast.If) -> None:
    """``if cond:``; both branches end with a binding of the same variable."""
    if not node.orelse:
        self.report_error(node, "Else statements are required for relax dialect.")
    for branch in (node.body, node.orelse):
        for stmt in branch:
            if isinstance(stmt, ast.Return):
                self.report_error(stmt, "a branch ends with a binding, not with return")
    with R.If(self.eval_expr(node.test)) as frame:
        for build, body in ((R.Then, node.body), (R.Else, node.orelse)):
            with self.var_table.with_frame(), build():
                self.visit_body(body)
    self.var_table.add(frame.var_name, frame.var, True)


@dispatch.register(token="relax", type_name="Pass")
def visit_pass(self: Parser, node: ast.Pass) -> None:
    """Nothing."""


@dispatch.register(token="relax", type_name="Expr")
def visit_expr_stmt(self: Parser, node: ast.Expr) -> None:
    """A call for its effect."""
    value = self.eval_expr(node.value)
    if isinstance(value, MatchCastPair):
        info = complete(value.struct_info, self.var_table.get())
        IRBuilder.name("_", R.emit_match_cast(value.value, info))
    elif isinstance(value, rx.Expr):
        IRBuilder.name("_", R.emit(value))
    elif value is not None and not isinstance(value, str):
        self.report_error(node, f"Unsupported Expr stmt type {type(value)}")


__all__ = ["bind_assign_value", "eval_struct_info"]
