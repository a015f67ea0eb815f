"""Read functions and modules."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.type import PrimType, TupleType, Type
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import VOID, as_argument
from tvm.tir.expr import Call, Var
from tvm.tir.function import PrimFunc

from .builder import Builder, building
from .complete import with_root_block
from .constructs import serial
from .evaluator import HELPERS
from .source import Source
from .statements import StatementReader, named
from .values import DTypeCall


class FunctionRef:
    """A function of the module that is being read: calling it builds a call."""

    def __init__(self, var: GlobalVar) -> None:
        self.var = var
        self.result = VOID

    def __call__(self, *args: Any) -> Call:
        return Call(self.result, self.var, [as_argument(arg) for arg in args])


class ModuleRef:
    """``cls``, or the class's own name: gives access to the module's functions."""

    def __init__(self, functions: Mapping[str, FunctionRef]) -> None:
        self._functions = dict(functions)

    def __getattr__(self, name: str) -> FunctionRef:
        found = self._functions.get(name)
        if found is None:
            raise AttributeError(
                f"the module has no function {name!r}, there are {list(self._functions)}"
            )
        return found


def read_function(
    source: Source,
    node: ast.FunctionDef,
    variables: Mapping[str, Any],
    annotations: Mapping[str, Any] | None = None,
    private: bool = False,
) -> PrimFunc:
    """The function that a definition describes."""
    builder = Builder()
    scope = {**variables, **HELPERS, "range": serial, "__builtins__": vars(builtins)}
    reader = StatementReader(source, builder, scope)
    with building(builder):
        state = builder.function
        for arg in node.args.args:
            _read_parameter(reader, builder, arg, (annotations or {}).get(arg.arg))
        result = _read_result(reader, node, (annotations or {}).get("return"))
        builder.begin()
        reader.statements(node.body)
        body = with_root_block(state, builder.end())
    attrs = dict(state.attrs)
    if not private and "global_symbol" not in attrs:
        attrs = {"global_symbol": node.name, **attrs}
    return PrimFunc(state.params, body, result, state.buffer_map, attrs)


def _read_parameter(
    reader: StatementReader, builder: Builder, arg: ast.arg, evaluated: Any
) -> None:
    if arg.annotation is None:
        raise reader.error(f"parameter {arg.arg} requires a type such as T.int32 or T.Buffer", arg)
    kind = evaluated
    if kind is None or isinstance(kind, str):
        kind = reader.value(_unquoted(arg.annotation))
    state = builder.function
    if isinstance(kind, Buffer):
        buffer = kind if not kind.name else _renewed(kind)
        param = Var(arg.arg, "handle")
        state.params.append(param)
        state.buffer_map[param] = named(buffer, arg.arg)
        reader.bind(arg.arg, buffer)
        return
    scalar = _variable(kind, arg.arg)
    if scalar is None:
        raise reader.error(f"parameter {arg.arg} requires a type such as T.int32 or T.Buffer", arg)
    state.params.append(scalar)
    reader.bind(arg.arg, scalar)


def _renewed(buffer: Buffer) -> Buffer:
    """A copy of a buffer that is some other parameter's."""
    data = buffer.data.replace(name="")
    return buffer.replace(name="", data=data)


def _variable(kind: Any, name: str) -> Var | None:
    if isinstance(kind, (FunctionType, DTypeCall)):  # T.handle without parentheses
        kind = kind()
    if isinstance(kind, Type):
        return Var(name, kind)
    if isinstance(kind, Var):
        return named(kind, name) if not kind.name else kind.replace(name=name)
    return None


def _unquoted(node: ast.expr) -> ast.expr:
    """An annotation given as a string is read as an expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.parse(node.value, mode="eval").body
    return node


def _read_result(reader: StatementReader, node: ast.FunctionDef, evaluated: Any) -> Type | None:
    if node.returns is None or (
        isinstance(node.returns, ast.Constant) and node.returns.value is None
    ):
        return TupleType(())
    kind = evaluated
    if kind is None or isinstance(kind, str):
        kind = reader.value(_unquoted(node.returns))
    if isinstance(kind, Type):
        return kind
    variable = _variable(kind, "")
    if variable is None:
        raise reader.error("the result requires a type such as T.int32", node.returns)
    return (
        PrimType(variable.dtype) if variable.type_annotation is None else variable.type_annotation
    )


def read_module(
    source: Source,
    node: ast.ClassDef,
    variables: Mapping[str, Any],
    annotations: Mapping[str, Mapping[str, Any]] | None = None,
) -> IRModule:
    """The module that a class describes."""
    definitions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    references = {item.name: FunctionRef(GlobalVar(item.name)) for item in definitions}
    module_ref = ModuleRef(references)
    scope = {**variables, "cls": module_ref, node.name: module_ref}
    reader = StatementReader(source, Builder(), {**scope, "__builtins__": vars(builtins)})
    attrs: dict[str, Any] = {}
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            _declare(reader, item, references[item.name])
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            given = reader.value(item.value)
            if isinstance(given, ModuleAttrs):
                attrs.update(given.attrs)
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            scope[item.targets[0].id] = reader.value(item.value)
        elif not isinstance(item, ast.Pass) and not _is_docstring(item):
            raise reader.error("a module requires functions", item)
    functions: dict[GlobalVar, Any] = {}
    for item in definitions:
        known = (annotations or {}).get(item.name)
        functions[references[item.name].var] = read_function(
            source, item, scope, known, is_private(reader, item)
        )
    return IRModule(functions, attrs=attrs)


class ModuleAttrs:
    """What ``I.module_attrs`` gives."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self.attrs = dict(attrs)


def module_attrs(attrs: Mapping[str, Any]) -> ModuleAttrs:
    """Attributes of the module."""
    return ModuleAttrs(attrs)


def _is_docstring(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _declare(reader: StatementReader, node: ast.FunctionDef, reference: FunctionRef) -> None:
    result = _read_result(reader, node, None)
    if isinstance(result, PrimType):
        reference.result = result.dtype


def is_private(reader: StatementReader, node: ast.FunctionDef) -> bool:
    """Whether the decorator says ``private=True``."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for keyword in decorator.keywords:
                if keyword.arg == "private":
                    return bool(reader.value(keyword.value))
    return False
