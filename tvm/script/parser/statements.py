"""Read the statements of a function body and build it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.type import Type
from tvm.support import Scoped
from tvm.tir import op
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import ret
from tvm.tir.expr import ExprOp, IterVar, Var, as_expr

from .builder import Builder, Frame, LoopFrame
from .constructs import LetStmt, store
from .evaluator import BINARY, HELPERS, SCRIPT_FAULTS, Evaluator
from .source import ScriptError, Source
from .values import DTypeCall, meta_var

_MISSING = object()


class StatementReader:
    """Goes through a function's statements; names are visible to the end of their suite."""

    helpers = tuple(HELPERS)

    def __init__(self, source: Source, builder: Builder, variables: dict[str, Any]) -> None:
        self.source = source
        self.builder = builder
        self.variables = variables
        # the value of an expression
        self.value = Evaluator(source, variables).value
        self._scopes: list[list[tuple[str, Any]]] = [[]]

    # ---- names and values

    def bind(self, name: str, value: Any) -> None:
        """Give a name a value until the current scope ends."""
        self._scopes[-1].append((name, self.variables.get(name, _MISSING)))
        self.variables[name] = value

    def enter(self) -> None:
        """Open a scope of names."""
        self._scopes.append([])

    def leave(self) -> None:
        """Close a scope of names."""
        for name, value in reversed(self._scopes.pop()):
            if value is _MISSING:
                self.variables.pop(name, None)
            else:
                self.variables[name] = value

    def _guarded(self, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function; its errors show the place of ``node``."""
        try:
            return function(*args)
        except ScriptError:
            raise
        except SCRIPT_FAULTS as error:
            raise self.source.error(str(error), node) from error

    def error(self, text: str, node: ast.AST) -> ScriptError:
        return self.source.error(text, node)

    # ---- suites

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        """Read statements in a scope of names, into the current suite."""
        self.enter()
        with _CURRENT.scope(self):
            for node in nodes:
                self.statement(node)
        self.leave()

    def suite(self, statements: Sequence[ast.stmt]) -> s.Stmt:
        """The statement that a suite is."""
        self.builder.begin()
        self.enter()
        for statement in statements:
            self.statement(statement)
        self.leave()
        return self.builder.end()

    def statement(self, node: ast.stmt) -> None:
        """Read one statement."""
        method = _METHODS.get(type(node))
        if method is None:
            raise self.error(f"a {type(node).__name__} statement is not part of the language", node)
        method(self, node)

    # ---- plain statements

    def read_expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        result = self.value(node.value)
        if isinstance(result, Frame):
            self._guarded(node, self.builder.open, result)
        elif isinstance(result, s.Stmt):
            self.builder.emit(result)
        elif isinstance(result, (PrimExpr, int)) and not isinstance(result, bool):
            self.builder.emit(s.Evaluate(as_expr(result)))
        elif result is not None and not isinstance(result, Buffer):
            kind = type(result).__name__
            raise self.error(f"a statement requires an effect, got a value of {kind}", node)

    def read_pass(self, node: ast.Pass) -> None:
        pass

    def read_return(self, node: ast.Return) -> None:
        if node.value is None:
            raise self.error("return requires a value in a script", node)
        self.builder.emit(s.Evaluate(self._guarded(node, ret, self.value(node.value))))

    def read_assert(self, node: ast.Assert) -> None:
        message = as_expr("" if node.msg is None else self.value(node.msg))
        condition = self.value(node.test)
        frame = Frame(lambda body: s.AssertStmt(condition, message, body))
        self._guarded(node, self.builder.open, frame)

    # ---- assignments

    def read_assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value, node)

    def _assign(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        if isinstance(target, ast.Subscript):
            self._store(target, value, node)
        elif isinstance(target, ast.Name):
            self._assign_name(target.id, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = self._guarded(node, list, value)
            if len(values) != len(target.elts):
                raise self.error(
                    f"an assignment requires {len(target.elts)} values, got {len(values)}", node
                )
            for part, item in zip(target.elts, values, strict=True):
                self._assign(part, item, node)
        else:
            raise self.error("an assignment requires a name or an element of a buffer", target)

    def _assign_name(self, name: str, value: Any, node: ast.stmt) -> None:
        if isinstance(value, meta_var):
            self.bind(name, value.value)
            return
        if isinstance(value, Frame):
            value = self._guarded(node, self.builder.open, value)
        elif self._is_computed(value):
            frame = self._guarded(node, LetStmt, value)
            value = self._guarded(node, self.builder.open, frame)
        self.bind(name, named(value, name))

    def _is_computed(self, value: Any) -> bool:
        """Whether an assignment makes a variable of the program, not a name of the script."""
        if isinstance(value, (Buffer, IterVar)):
            return False
        if isinstance(value, Var):
            # a variable that T.int32() made has no name yet
            return bool(value.name)
        return isinstance(value, (PrimExpr, int, float, ExprOp)) and not isinstance(value, type)

    def read_ann_assign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self.error("an annotated assignment requires a name and a value", node)
        kind = self.value(node.annotation)
        # T.handle may stand without parentheses
        variable = kind() if isinstance(kind, (DTypeCall, FunctionType)) else kind
        if isinstance(variable, Type):
            variable = Var("", variable)
        value = self.value(node.value)
        if isinstance(variable, Buffer) or isinstance(value, (Frame, Buffer)):
            self._assign_name(node.target.id, value, node)
            return
        if not isinstance(variable, Var):
            raise self.error("an annotation requires a type such as T.int32", node.annotation)
        frame = self._guarded(node, LetStmt, value, variable)
        self.bind(node.target.id, named(self.builder.open(frame), node.target.id))

    def read_aug_assign(self, node: ast.AugAssign) -> None:
        combine = BINARY.get(type(node.op))
        if combine is None:
            raise self.error(f"{type(node.op).__name__} has no assigning form", node)
        target = node.target
        right = self.value(node.value)
        if isinstance(target, ast.Subscript):
            buffer, key = self.value(target.value), self.value(target.slice)
            result = self._guarded(node, lambda: combine(buffer[key], right))
            self._store_at(buffer, key, result, node)
        elif isinstance(target, ast.Name):
            left = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            self._assign_name(target.id, self._guarded(node, combine, left, right), node)
        else:
            raise self.error("an assignment requires a name or an element of a buffer", target)

    def _store(self, target: ast.Subscript, value: Any, node: ast.stmt) -> None:
        self._store_at(self.value(target.value), self.value(target.slice), value, node)

    def _store_at(self, buffer: Any, key: Any, value: Any, node: ast.stmt) -> None:
        if not isinstance(buffer, Buffer):
            raise self.error(f"a store requires a buffer, got {type(buffer).__name__}", node)
        indices = key if isinstance(key, tuple) else (key,)
        if len(indices) != len(buffer.shape):
            raise self.error(
                f"buffer {buffer.name} requires {len(buffer.shape)} indices, got {len(indices)}",
                node,
            )
        self.builder.emit(self._guarded(node, store, buffer, value, indices))

    # ---- loops and branches

    def read_for(self, node: ast.For) -> None:
        frame = self.value(node.iter)
        if not isinstance(frame, LoopFrame):
            raise self.error(
                "a loop requires range, T.serial, T.parallel, T.vectorized, T.unroll, "
                "T.thread_binding or T.grid",
                node.iter,
            )
        if node.orelse:
            raise self.error("a loop has no else", node.orelse[0])
        self.enter()
        self._bind_loops(node.target, frame)
        body = self.suite(node.body)
        self.leave()
        self.builder.emit(self._guarded(node.iter, frame.close, body))

    def _bind_loops(self, target: ast.expr, frame: LoopFrame) -> None:
        """Name the variables of a nest: one name for each loop, or one for all of them."""
        variables = frame.enter(self.builder)
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if isinstance(target, ast.Name) and len(variables) > 1:
            self.bind(
                target.id,
                tuple(named(v, f"{target.id}_{i}") for i, v in enumerate(variables)),
            )
            return
        if len(targets) != len(variables):
            raise self.error(
                f"the loop requires {len(variables)} variables, got {len(targets)}", target
            )
        for name, variable in zip(targets, variables, strict=True):
            if not isinstance(name, ast.Name):
                raise self.error("a loop requires names as its variables", name)
            self.bind(name.id, named(variable, name.id))

    def read_while(self, node: ast.While) -> None:
        condition = self._condition(node.test)
        self.builder.emit(s.While(condition, self.suite(node.body)))

    def read_if(self, node: ast.If) -> None:
        condition = self.value(node.test)
        if isinstance(condition, bool):
            chosen = node.body if condition else node.orelse
            for statement in chosen:
                self.statement(statement)
            return
        condition = self._condition(node.test, condition)
        then_case = self.suite(node.body)
        else_case = self.suite(node.orelse) if node.orelse else None
        self.builder.emit(s.IfThenElse(condition, then_case, else_case))

    def _condition(self, node: ast.expr, value: Any = None) -> PrimExpr:
        given = self.value(node) if value is None else value
        result: PrimExpr = self._guarded(node, as_expr, given)
        if result.dtype.is_int and not result.dtype.is_bool:
            result = op.not_equal(result, 0)
        if not result.dtype.is_bool:
            raise self.error(f"a condition requires a bool, got {result.dtype}", node)
        return result

    # ---- with

    def read_with(self, node: ast.With) -> None:
        self._with(node, node.items)

    def _with(self, node: ast.With, items: Sequence[ast.withitem]) -> None:
        if not items:
            for statement in node.body:
                self.statement(statement)
            return
        item = items[0]
        frame = self.value(item.context_expr)
        if not isinstance(frame, Frame):
            kind = type(frame).__name__
            raise self.error(f"with requires a construct of T, got {kind}", item.context_expr)
        self.enter()
        value = self._guarded(item.context_expr, frame.enter, self.builder)
        if item.optional_vars is not None:
            self._bind_targets(item.optional_vars, value)
        self.builder.begin()
        self.enter()
        self._with(node, items[1:])
        self.leave()
        body = self.builder.end()
        frame.leave(self.builder)
        result = self._guarded(item.context_expr, frame.close, body)
        self.leave()
        if result is not None:
            self.builder.emit(result)

    def _bind_targets(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, named(value, target.id))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, item in zip(target.elts, value, strict=True):
                self._bind_targets(part, item)
        else:
            raise self.error("with ... as requires names", target)


_CURRENT: Scoped[StatementReader] = Scoped("tvm_script_reader")


def current_reader(what: str) -> StatementReader:
    """The reader of the script in which ``what`` is used."""
    reader = _CURRENT.current()
    if reader is None:
        raise RuntimeError(f"{what} requires a function that is being parsed")
    return reader


def named(value: Any, name: str) -> Any:
    """The value, with the name if it has none: a variable, a buffer and its pointer, an axis."""
    if isinstance(value, Var):
        _set_name(value, name)
    elif isinstance(value, Buffer):
        _set_name(value, name)
        _set_name(value.data, name)
        for expr in (*value.strides, value.elem_offset):
            if isinstance(expr, Var):
                _set_name(expr, f"{name}_elem_offset")
    elif isinstance(value, IterVar):
        _set_name(value.var, name)
    return value


def _set_name(node: Any, name: str) -> None:
    if not node.name:
        # names are no part of a node's identity, and this one was made for the script
        object.__setattr__(node, "name", name)


_METHODS: dict[type, Callable[[StatementReader, Any], None]] = {
    ast.Expr: StatementReader.read_expr,
    ast.Pass: StatementReader.read_pass,
    ast.Return: StatementReader.read_return,
    ast.Assert: StatementReader.read_assert,
    ast.Assign: StatementReader.read_assign,
    ast.AnnAssign: StatementReader.read_ann_assign,
    ast.AugAssign: StatementReader.read_aug_assign,
    ast.For: StatementReader.read_for,
    ast.While: StatementReader.read_while,
    ast.If: StatementReader.read_if,
    ast.With: StatementReader.read_with,
}
