"""Statements of the loop level: each opens frames of the builder, or adds to the one that is open."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PrimType, Type
from tvm.runtime.object_generic import ObjectGeneric
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import ret
from tvm.tir.expr import ExprOp, IterVar, Var, as_expr
from tvm.tir.stmt import BufferStore, Stmt

from ...ir_builder import IRBuilder
from ...ir_builder.base import IRBuilderFrame as Frame
from ...ir_builder.ir.frame import IRModuleFrame
from ...ir_builder.tir import functions, loops, scopes
from ...ir_builder.tir.buffers import buffer_store
from ...ir_builder.tir.frame import ForFrame, PrimFuncFrame, add_to_parent
from ...ir_builder.tir.naming import is_new
from ...ir_builder.tir.values import DTypeCall, meta_var
from ..core import dispatch
from ..core.evaluator import BINARY
from ..core.parser import Parser

# ---- what names stand for


def named(value: Any, name: str) -> Any:
    """The value; one that was made without a name has this one from now on."""
    return IRBuilder.name(name, value) if is_new(value) else value


def bind_with_value(self: Parser, node: ast.expr, var_name: str, value: Any) -> Any:
    """What ``with ... as x`` binds."""
    if isinstance(value, (list, tuple)):
        return [named(item, f"{var_name}_{i}") for i, item in enumerate(value)]
    if value is None:
        self.report_error(node, "the construct gives nothing that could be named")
    return named(value, var_name)


def bind_for_value(self: Parser, node: ast.expr, var_name: str, value: Any) -> Any:
    """What ``for x in ...`` binds."""
    if isinstance(value, (list, tuple)):
        return tuple([named(item, f"{var_name}_{i}") for i, item in enumerate(value)])
    return named(value, var_name)


def bind_assign_value(self: Parser, node: ast.expr, var_name: str, value: Any) -> Any:
    """What ``x = ...`` binds: a frame lasts to the end of the suite, a number is a variable."""
    if isinstance(value, meta_var):
        return value.value
    if isinstance(value, Frame):
        return bind_with_value(self, node, var_name, value.open_to_end())
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            named(item, f"{var_name}_{index}")
        return value
    if is_computed(self, value):
        value = scopes.LetStmt(value).open_to_end()
    return named(value, var_name)


def is_computed(self: Parser, value: Any) -> bool:
    """Whether an assignment makes a variable of the program, not a name of the script.

    A variable that the script has no name for yet, such as ``te.var("n")``, gets one.
    """
    if isinstance(value, (Buffer, IterVar, type)):
        return False
    if isinstance(value, Var):
        return not is_new(value) and self.var_table.exist(value)
    return isinstance(value, (PrimExpr, int, float, ExprOp, ObjectGeneric))


# ---- functions


def find_decorator_annotation(node: ast.FunctionDef, annotation: str, default: bool = True) -> bool:
    """A flag among the decorator's arguments."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg == annotation:
                    return bool(getattr(keyword.value, "value", default))
    return default


@dispatch.register(token="tir", type_name="FunctionDef")
def visit_function_def(self: Parser, node: ast.FunctionDef) -> None:
    """``def f(A: T.Buffer((16,), "float32"), n: T.int32) -> T.int32:``"""
    known = self.function_annotations.get(node.name, {})
    outer, self.function_annotations = self.function_annotations, {}
    frame = PrimFuncFrame(find_decorator_annotation(node, "private", default=False))
    with self.var_table.with_frame(), frame:
        self.var_table.add("range", loops.serial, True)
        functions.func_name(node.name)
        if not _is_none(node.returns):
            functions.func_ret(_annotation(self, node.returns, known.get("return")))
        with self.with_dispatch_token("tir"):
            for arg in node.args.args:
                _visit_parameter(self, arg, known.get(arg.arg))
            with self.var_table.with_frame():
                self.visit_body(node.body)
    self.function_annotations = outer


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _annotation(self: Parser, node: Any, known: Any) -> Any:
    """An annotation: as Python evaluated it, or else as the script's expression."""
    if known is not None and not isinstance(known, str):
        return known
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    return self.visit_tvm_annotation(node)


def _visit_parameter(self: Parser, arg: ast.arg, known: Any) -> None:
    if arg.annotation is None:
        self.report_error(arg, f"parameter {arg.arg} requires a type such as T.int32 or T.Buffer")
    kind = _annotation(self, arg.annotation, known)
    if isinstance(kind, (FunctionType, DTypeCall)):  # T.handle without parentheses
        kind = kind()
    if isinstance(kind, Type):
        kind = Var("", kind.dtype if isinstance(kind, PrimType) else kind)
    if not isinstance(kind, (Buffer, Var)):
        self.report_error(arg, f"parameter {arg.arg} requires a type such as T.int32 or T.Buffer")
    # Python evaluates an annotation once, which several parameters may share
    self.var_table.add(arg.arg, functions.arg(arg.arg, kind if is_new(kind) else _renewed(kind)))


def _renewed(kind: Buffer | Var) -> Buffer | Var:
    if isinstance(kind, Var):
        return kind.replace(name="")
    return kind.replace(name="", data=kind.data.replace(name=""))


@dispatch.register(token="tir", type_name="tvm_annotation")
def visit_tvm_annotation(self: Parser, node: ast.expr) -> Any:
    """The value of an annotation."""
    return self.eval_expr(node)


@dispatch.register(token="tir", type_name="tvm_declare_function")
def visit_tvm_declare_function(self: Parser, node: ast.FunctionDef) -> Any:
    """The type that calls of the function have, for calls before its definition."""
    if node.returns is None or _is_none(node.returns):
        return None
    kind = self.eval_expr(node.returns)
    if isinstance(kind, DTypeCall):
        return kind.dtype
    return kind.dtype if isinstance(kind, PrimType) else None


# ---- loops and branches


@dispatch.register(token="tir", type_name="For")
def visit_for(self: Parser, node: ast.For) -> None:
    """``for i in range(16):``"""
    frame = self.eval_expr(node.iter)
    if not isinstance(frame, ForFrame):
        self.report_error(
            node.iter,
            "a loop requires range, T.serial, T.parallel, T.vectorized, T.unroll, "
            "T.thread_binding or T.grid",
        )
    if node.orelse:
        self.report_error(node.orelse[0], "a loop has no else")
    with self.var_table.with_frame(), frame:
        self.eval_assign(node.target, _loop_variables(self, node.target, frame), bind_for_value)
        self.visit_body(node.body)


def _loop_variables(self: Parser, target: ast.expr, frame: ForFrame) -> Any:
    """The variables of a nest: one for each name, or all of them for a single name."""
    if not isinstance(target, ast.Tuple):
        return frame.value()
    count = len(target.elts)
    has_rest = any(isinstance(part, ast.Starred) for part in target.elts)
    if count != len(frame.vars) and not has_rest:
        text = f"the loop requires {len(frame.vars)} variables, got {count}"
        self.report_error(target, text)
    return frame.vars


@dispatch.register(token="tir", type_name="While")
def visit_while(self: Parser, node: ast.While) -> None:
    """``while A[0] < 10:``"""
    with self.var_table.with_frame(), loops.While(_condition(self, node.test)):
        self.visit_body(node.body)


@dispatch.register(token="tir", type_name="If")
def visit_if(self: Parser, node: ast.If) -> None:
    """A choice; a condition that Python knows is decided while reading."""
    value = self.eval_expr(node.test)
    if isinstance(value, bool):
        with self.var_table.with_frame():
            self.visit_body(node.body if value else node.orelse)
        return
    with loops.If(_condition(self, node.test, value)):
        with self.var_table.with_frame(), loops.Then():
            self.visit_body(node.body)
        if node.orelse:
            with self.var_table.with_frame(), loops.Else():
                self.visit_body(node.orelse)


def _condition(self: Parser, node: ast.expr, value: Any = None) -> PrimExpr:
    result = as_expr(self.eval_expr(node) if value is None else value)
    if result.dtype.is_int and not result.dtype.is_bool:
        result = op.not_equal(result, 0)
    if not result.dtype.is_bool:
        self.report_error(node, f"a condition requires a bool, got {result.dtype}")
    return result


# ---- scopes


@dispatch.register(token="tir", type_name="With")
def visit_with(self: Parser, node: ast.With) -> None:
    """``with T.block("C"):``"""
    with self.var_table.with_frame():
        opened: list[Frame] = []
        for item in node.items:
            frame = self.eval_expr(item.context_expr)
            if not isinstance(frame, Frame):
                kind = type(frame).__name__
                self.report_error(item.context_expr, f"with requires a construct of T, got {kind}")
            value = frame.__enter__()
            opened.append(frame)
            if item.optional_vars is not None:
                self.eval_assign(item.optional_vars, value, bind_with_value)
        self.visit_body(node.body)
        for frame in reversed(opened):
            frame.close()


@dispatch.register(token="tir", type_name="Assert")
def visit_assert(self: Parser, node: ast.Assert) -> None:
    """``assert n < 4, "n is too large"``"""
    message = "" if node.msg is None else self.eval_expr(node.msg)
    scopes.Assert(self.eval_expr(node.test), message).open_to_end()


# ---- plain statements


@dispatch.register(token="tir", type_name="Pass")
def visit_pass(self: Parser, node: ast.Pass) -> None:
    """Nothing."""


@dispatch.register(token="tir", type_name="Expr")
def visit_expr_stmt(self: Parser, node: ast.Expr) -> None:
    """A call, or a construct that holds for the rest of the suite."""
    value = self.eval_expr(node.value)
    if isinstance(value, Frame):
        value.open_to_end()
    elif isinstance(value, BufferStore):
        buffer_store(value.buffer, value.value, value.indices, value.predicate)
    elif isinstance(value, Stmt):
        add_to_parent(value)
    elif isinstance(value, (PrimExpr, int)):
        scopes.evaluate(value)
    elif value is not None and not isinstance(value, (str, Buffer)):
        kind = type(value).__name__
        self.report_error(node, f"a statement requires an effect, got a value of {kind}")


@dispatch.register(token="tir", type_name="Return")
def visit_return(self: Parser, node: ast.Return) -> None:
    """``return x``, the same as ``T.ret(x)``."""
    if node.value is None:
        self.report_error(node, "return requires a value in a script")
    assert node.value is not None
    scopes.evaluate(ret(self.eval_expr(node.value)))


@dispatch.register(token="tir", type_name="Assign")
def visit_assign(self: Parser, node: ast.Assign) -> None:
    """``A[i] = x``, ``x = ...`` and ``x, y = ...``."""
    value = self.eval_expr(node.value)
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            buffer, key = self.eval_expr(target.value), self.eval_expr(target.slice)
            _store_at(self, node, buffer, key, value)
        else:
            self.eval_assign(target, value, bind_assign_value)


@dispatch.register(token="tir", type_name="AnnAssign")
def visit_ann_assign(self: Parser, node: ast.AnnAssign) -> None:
    """``x: T.int64 = n``"""
    if not isinstance(node.target, ast.Name) or node.value is None:
        self.report_error(node, "an annotated assignment requires a name and a value")
    assert node.value is not None
    kind = self.visit_tvm_annotation(node.annotation)
    # T.handle may stand without parentheses
    variable = kind() if isinstance(kind, (DTypeCall, FunctionType)) else kind
    if isinstance(variable, Type):
        variable = Var("", variable.dtype if isinstance(variable, PrimType) else variable)
    value = self.eval_expr(node.value)
    if isinstance(variable, Buffer) or isinstance(value, (Frame, Buffer)):
        self.eval_assign(node.target, value, bind_assign_value)
        return
    if not isinstance(variable, Var):
        self.report_error(node.annotation, "an annotation requires a type such as T.int32")
    bound = scopes.LetStmt(value, variable).open_to_end()
    self.eval_assign(node.target, bound, bind_with_value)


@dispatch.register(token="tir", type_name="AugAssign")
def visit_aug_assign(self: Parser, node: ast.AugAssign) -> None:
    """``A[i] += x``"""
    combine = BINARY[type(node.op)]
    target, right = node.target, self.eval_expr(node.value)
    if isinstance(target, ast.Subscript):
        buffer, key = self.eval_expr(target.value), self.eval_expr(target.slice)
        _store_at(self, node, buffer, key, combine(buffer[key], right))
    elif isinstance(target, ast.Name):
        left = self.eval_expr(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        self.eval_assign(target, combine(left, right), bind_assign_value, True)
    else:
        self.report_error(target, "an assignment requires a name or an element of a buffer")


def _store_at(self: Parser, node: ast.AST, buffer: Any, key: Any, value: Any) -> None:
    if not isinstance(buffer, Buffer):
        self.report_error(node, f"a store requires a buffer, got {type(buffer).__name__}")
    indices = tuple(key) if isinstance(key, (tuple, list)) else (key,)
    if len(indices) != len(buffer.shape):
        self.report_error(
            node, f"buffer {buffer.name} requires {len(buffer.shape)} indices, got {len(indices)}"
        )
    buffer_store(buffer, value, indices)


__all__ = ["IRModuleFrame", "bind_assign_value", "bind_for_value", "bind_with_value"]
