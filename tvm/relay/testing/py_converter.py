"""Relay programs as Python programs, to look at what they do or to compare results.

    fn (%x: int32) { if (less(%x, 1)) { 0 } else { add(%x, 1) } }
->
    def function_0(x):
        less_1 = operator('less', None, x, value_2)
        if less_1.numpy(): ...

Functions become Python functions, references cells, tuples `ADT`, values of data types
`ConstructorValue`.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Sequence
from typing import Any

import tvm.relay.expr as nodes
from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.serialize import load_json, save_json
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.backend.interpreter import Interpreter, as_lists, as_tuples, needed_first
from tvm.relay.function import Function
from tvm.relay.transform import InferType
from tvm.runtime.device import cpu
from tvm.support import deep
from tvm.target import Target

OUTPUT_VAR_NAME = "_py_out"
_HEADER = """
import numpy
from numpy import inf, nan
import tvm
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.testing.py_converter import Operators
from tvm.runtime.container import tuple_object
"""


class Operators:
    """What the program calls for operators: `operator(name, attributes as JSON, *arguments)`."""

    def __init__(self, target: Target | str) -> None:
        self._interpreter = Interpreter(IRModule(), cpu(), Target(target))

    def __call__(self, name: str, attrs: str | None, *args: Any) -> Any:
        parameters = [nodes.Var("p") for _ in args]
        call = nodes.Call(Op.get(name), parameters, attrs if attrs is None else load_json(attrs))
        return as_tuples(self._interpreter.apply_operator(call, [as_lists(a) for a in args]))


class _Scope:
    """A block of Python: its lines, and the names of the expressions known in it."""

    def __init__(self, outer: _Scope | None = None) -> None:
        self.outer = outer
        self.lines: list[str] = []
        self.names: dict[int, str] = {}

    def find(self, expr: RelayExpr) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if id(expr) in scope.names:
                return scope.names[id(expr)]
            scope = scope.outer
        return None

    def block(self, head: str, inner: Sequence[str]) -> None:
        self.lines += [head, *["    " + line for line in inner or ["pass"]]]


class PythonConverter:
    """Writes one expression, and the functions of a module that it calls, in Python."""

    def __init__(self, mod: IRModule, target: Target) -> None:
        self.mod = mod
        self.target = str(target)
        self._count = 0
        self._globals: dict[str, str] = {}
        self._top = _Scope()

    @deep
    def convert(self, prog: RelayExpr) -> ast.Module:
        """The program whose variable `_py_out` is the value of `prog`."""
        self._top = _Scope()
        last = _Scope(self._top)
        name = self._value(prog, last)
        header = f"operator = Operators({self.target!r})"
        lines = [*_HEADER.splitlines(), header, *self._top.lines, *last.lines]
        return ast.parse("\n".join([*lines, f"{OUTPUT_VAR_NAME} = {name}"]))

    def sanitize(self, name: str) -> str:
        """A name that Python allows."""
        text = re.sub(r"\W", "_", name)
        return f"_{text}" if not text or text[0].isdigit() or keyword.iskeyword(text) else text

    def generate_var_name(self, name_hint: str) -> str:
        """A name like that which nothing else has."""
        self._count += 1
        return f"{self.sanitize(name_hint)}_{self._count - 1}"

    # -- expressions

    def _value(self, root: RelayExpr, scope: _Scope) -> str:
        """What stands for the expression, once the lines of the scope have run."""
        stack = [(root, False)]
        while stack:
            node, is_ready = stack.pop()
            if scope.find(node) is not None:
                continue
            below = () if isinstance(node, nodes.Let) else needed_first(node)
            below = tuple([o for o in below if not isinstance(o, Op)])
            if below and not is_ready:
                stack += [(node, True), *[(o, False) for o in reversed(below)]]
            else:
                scope.names[id(node)] = self._written(node, scope)
        found = scope.find(root)
        assert found is not None
        return found

    def _written(self, node: RelayExpr, scope: _Scope) -> str:
        if isinstance(node, nodes.Let):
            return self._let(node, scope)
        if isinstance(node, nodes.If):
            cond = f"{scope.find(node.cond)}.numpy()"
            return self._branches(
                [(cond, [], node.true_branch), ("True", [], node.false_branch)], scope
            )
        if isinstance(node, Match):
            data = str(scope.find(node.data))
            cases = [(*_matched(c.lhs, data), c.rhs) for c in node.clauses]
            return self._branches(cases, scope)
        if isinstance(node, Function):
            return self._function(node, self.generate_var_name("function"), scope)
        if isinstance(node, GlobalVar):
            return self._global(node)
        if isinstance(node, Constructor):
            return f"(lambda *fields: ConstructorValue({node.tag}, list(fields), None))"
        if isinstance(node, nodes.Var):
            raise TVMError(f"to_python requires a value for the variable %{node.name_hint}")
        hint = node.op.name if isinstance(node, nodes.Call) and isinstance(node.op, Op) else "value"
        name = self.generate_var_name(hint)
        scope.lines.append(f"{name} = {self._text(node, scope)}")
        return name

    def _text(self, node: RelayExpr, scope: _Scope) -> str:
        """One Python expression for a node whose operands have names."""
        if isinstance(node, nodes.Constant):
            array = node.data.numpy()
            text = f"numpy.array({array.tolist()!r}, {str(node.data.dtype)!r})"
            return f"tvm.nd.array({text}.reshape({array.shape}))"
        if isinstance(node, nodes.Call):
            args = ", ".join([str(scope.find(a)) for a in node.args])
            if isinstance(node.op, Op):
                attrs = None if node.attrs is None else save_json(node.attrs)
                return f"operator({node.op.name!r}, {attrs!r}, {args})"
            return f"{scope.find(node.op)}({args})"
        if isinstance(node, nodes.Tuple):
            return f"tuple_object([{', '.join([str(scope.find(f)) for f in node.fields])}])"
        if isinstance(node, nodes.TupleGetItem):
            return f"{scope.find(node.tuple_value)}[{node.index}]"
        if isinstance(node, nodes.RefCreate):
            return f"RefValue({scope.find(node.value)})"
        if isinstance(node, nodes.RefRead):
            return f"{scope.find(node.ref)}.value"
        if isinstance(node, nodes.RefWrite):
            ref, value = scope.find(node.ref), scope.find(node.value)
            return f"setattr({ref}, 'value', {value}) or tuple_object([])"
        raise TVMError(f"to_python cannot write a {type(node).__name__}", at=node)

    # -- blocks

    def _let(self, node: RelayExpr, scope: _Scope) -> str:
        while isinstance(node, nodes.Let):
            if isinstance(node.value, Function):
                name = scope.names[id(node.var)] = self.generate_var_name(node.var.name_hint)
                self._function(node.value, name, scope)
            else:
                scope.names[id(node.var)] = self._value(node.value, scope)
            node = node.body
        return self._value(node, scope)

    def _branches(
        self, cases: Sequence[tuple[str, list[tuple[nodes.Var, str]], RelayExpr]], scope: _Scope
    ) -> str:
        """The value of the first case whose condition holds; each binds variables."""
        result = self.generate_var_name("result")
        for i, (cond, bound, value) in enumerate(cases):
            inner = _Scope(scope)
            for variable, text in bound:
                name = inner.names[id(variable)] = self.generate_var_name(variable.name_hint)
                inner.lines.append(f"{name} = {text}")
            inner.lines.append(f"{result} = {self._value(value, inner)}")
            scope.block(f"{'elif' if i else 'if'} {cond}:", inner.lines)
        if not any([cond == "True" for cond, _, _ in cases]):
            scope.block("else:", ["raise tvm.TVMError('no clause of a match fits')"])
        return result

    def _function(self, func: Function, name: str, scope: _Scope) -> str:
        inner = _Scope(scope)
        for param in func.params:
            inner.names[id(param)] = self.generate_var_name(param.name_hint)
        params = ", ".join([inner.names[id(p)] for p in func.params])
        inner.lines.append(f"return {self._value(func.body, inner)}")
        scope.block(f"def {name}({params}):", inner.lines)
        return name

    def _global(self, var: GlobalVar) -> str:
        if var.name_hint not in self._globals:
            name = self._globals[var.name_hint] = self.generate_var_name(var.name_hint)
            func = self.mod[var]
            if not isinstance(func, Function):
                raise TVMError(f"to_python cannot write @{var.name_hint}, a {type(func).__name__}")
            self._function(func, name, self._top)
        return self._globals[var.name_hint]


def _matched(pattern: Pattern, data: str) -> tuple[str, list[tuple[nodes.Var, str]]]:
    """The condition under which a value fits a pattern, and what the variables are then."""
    if isinstance(pattern, PatternVar):
        return "True", [(pattern.var, data)]
    checks, bound = [], []
    if isinstance(pattern, PatternConstructor):
        checks.append(f"{data}.tag == {pattern.constructor.tag}")
        data = f"{data}.fields"
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        for i, part in enumerate(pattern.patterns):
            check, variables = _matched(part, f"{data}[{i}]")
            checks.append(check)
            bound += variables
    return " and ".join([c for c in checks if c != "True"]) or "True", bound


def to_python(
    expr: RelayExpr | nodes.TupleWrapper,
    mod: IRModule | None = None,
    target: Target | str = "llvm",
) -> ast.Module:
    """The syntax tree of a Python program that computes `expr`.

    Parameters
    ----------
    expr : relay.Expr
        Without free variables.
    mod : IRModule, optional
        Where its global functions are.
    target : Target
        What operators are compiled for.
    """
    mod = InferType()(mod.clone() if mod is not None else IRModule())
    prog = expr.astuple() if isinstance(expr, nodes.TupleWrapper) else expr
    return PythonConverter(mod, Target(target)).convert(prog)


def run_as_python(
    expr: RelayExpr | nodes.TupleWrapper,
    mod: IRModule | None = None,
    target: Target | str = "llvm",
) -> Any:
    """The value of `expr`, computed by a Python program; a function gives a Python function."""
    code = compile(to_python(expr, mod, target), "<relay program>", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    return names[OUTPUT_VAR_NAME]
