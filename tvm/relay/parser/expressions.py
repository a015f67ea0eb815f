"""Expressions: calls, blocks, functions, conditionals, matches, literals.

A block gives names to values, `%0 = ...;`, and binds variables, `let %x = ...;`; its last
expression is its value. Names of values hold in the whole definition, those of variables in
what binds them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import tvm.relay.expr as nodes
from tvm.error import TVMError, suggest
from tvm.ir.adt import Constructor
from tvm.ir.attrs import DictAttrs
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op, has_op
from tvm.relay.adt import (
    Clause,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from tvm.relay.function import Function
from tvm.relay.with_fields import set_virtual_device

from .lexer import Source, Token
from .types import TypeReader

# infix operators by how tightly they bind
_INFIX: tuple[dict[str, str], ...] = (
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    {"+": "add", "-": "subtract"},
    {"*": "multiply", "/": "divide"},
)
_SUFFIX = {"f": "float32", "i": "int32", "u": "uint32", "": "int32"}
_NUMBER = re.compile(r"(?P<digits>[\d.]+(?:[eE][+-]?\d+)?)(?P<suffix>[fiu]\d*)?")
MetaTable = dict[str, list[Any]]


class ExprReader(TypeReader):
    """Reads expressions."""

    def __init__(self, source: Source, meta: MetaTable) -> None:
        super().__init__(source)
        self.meta = meta
        self.type_vars = {}
        self.global_types = {}
        self.dim_vars = {}
        self.unknown_types = {}
        self.values: dict[str, RelayExpr] = {}  # of local names
        self.globals: dict[str, GlobalVar] = {}
        self.first_use: dict[str, Token] = {}
        self.constructors: dict[str, Constructor] = {}
        self.free: list[nodes.Var] = []

    # -- blocks and functions

    def block(self) -> RelayExpr:
        """What stands between `{` and `}`."""
        self.expect("{")
        body = self.body()
        self.expect("}")
        return body

    def body(self) -> RelayExpr:
        """Bindings, then the value."""
        bound: list[tuple[nodes.Var, RelayExpr, RelayExpr | None]] = []
        while True:
            if self.accept("let"):
                variable, before = self._variable()
                self.expect("=")
                if self.at("fn"):  # a recursive function sees its name
                    self.values[variable.name_hint] = variable
                value = self.expression()
                self.values[variable.name_hint] = variable
                bound.append((variable, value, before))
            elif self.accept("free_var"):
                variable, _ = self._variable()
                self.values[variable.name_hint] = variable
                self.free.append(variable)
            elif self.token.kind == "local" and self.ahead(1) == "=":
                name = self.take().text[1:]
                self.expect("=")
                self.values[name] = self.expression()
            else:
                result = self.expression()
                if not self.at(";"):
                    break
                # for what it does alone
                bound.append((nodes.Var("_", None, result.span), result, self.values.get("_")))
                if self.ahead(1) == ";":
                    self.expect(";")
            self.expect(";")
        for variable, value, before in reversed(bound):
            result = nodes.Let(variable, value, result)
            self._restore(variable.name_hint, before)
        return result

    def _variable(self) -> tuple[nodes.Var, RelayExpr | None]:
        """A variable with its type, and what its name meant before."""
        token = self.expect_kind("local", "a variable")
        attrs = dict(self.list_until("}", self._attribute)) if self.accept("{") else {}
        annotation = self.type_() if self.accept(":") else None
        name = token.text[1:]
        variable = nodes.Var(name, annotation, self._span(token))
        set_virtual_device(variable, attrs.get("virtual_device"))
        return variable, self.values.get(name)

    def _restore(self, name: str, before: RelayExpr | None) -> None:
        if before is None:
            self.values.pop(name, None)
        else:
            self.values[name] = before

    def function(self) -> Function:
        """Parameters, result type and body, after the name or `fn`."""
        start, outer = self.token, dict(self.type_vars)
        type_params = self.type_params()
        params: list[nodes.Var] = []
        shadowed: list[tuple[str, RelayExpr | None]] = []
        attrs: dict[str, Any] = {}
        self.expect("(")
        while not self.accept(")"):
            if self.token.kind == "local":
                variable, before = self._variable()
                self.values[variable.name_hint] = variable
                params.append(variable)
                shadowed.append((variable.name_hint, before))
            else:
                key, value = self._attribute()
                attrs[key] = value
            if not self.accept(","):
                self.expect(")")
                break
        result = self.type_() if self.accept("->") else None
        body = self.block()
        for name, before in reversed(shadowed):
            self._restore(name, before)
        self.type_vars = outer
        place = attrs.pop("virtual_device", None)
        func = Function(params, body, result, type_params, attrs, self._span(start))
        set_virtual_device(func, place)
        return func

    # -- expressions

    def expression(self, level: int = 0) -> RelayExpr:
        """An expression with infix operators of at least some tightness."""
        if level == len(_INFIX):
            return self._postfix()
        left = self.expression(level + 1)
        while self.token.kind == "sign" and self.token.text in _INFIX[level]:
            sign = self.take()
            right = self.expression(level + 1)
            left = nodes.Call(
                Op.get(_INFIX[level][sign.text]), (left, right), span=self._span(sign)
            )
        return left

    def _postfix(self) -> RelayExpr:
        start = self.token
        expr = self._atom()
        while True:
            if self.at("("):
                self.take()
                expr = self._call(expr, start)
            elif isinstance(expr, Constructor) and not expr.inputs:
                expr = nodes.Call(expr, (), span=self._span(start))
            elif self.token.kind == "item":
                expr = nodes.TupleGetItem(expr, int(self.take().text[1:]), self._span(start))
            else:
                return expr

    def _call(self, callee: RelayExpr, start: Token) -> RelayExpr:
        args: list[RelayExpr] = []
        attrs: dict[str, Any] = {}
        while not self.accept(")"):
            if self.token.kind in ("name", "text") and self.ahead(1) == "=":
                key, value = self._attribute()
                attrs[key] = value
            else:
                args.append(self.expression())
            if not self.accept(","):
                self.expect(")")
                break
        span = self._span(start)
        if not isinstance(callee, Op):
            return nodes.Call(callee, args, DictAttrs(attrs) if attrs else None, (), span)
        return nodes.Call(callee, args, self._op_attrs(callee, attrs, start), (), span)

    def _op_attrs(self, op: Op, attrs: dict[str, Any], start: Token) -> Any:
        kind: Any = op.attrs_type
        if not isinstance(kind, type):
            if attrs:
                raise self.source.error(
                    f"knows no attributes of {op.name}, got {list(attrs)}", start
                )
            return None
        names = [field.name for field in kind.node_fields]  # type: ignore[attr-defined]
        for key in attrs:
            if key not in names and op.attrs_type is not DictAttrs:
                hint = suggest(key, names)
                raise self.source.error(f"knows no attribute {key!r} of {op.name}", start, hint)
        if op.attrs_type is DictAttrs:
            return DictAttrs(attrs)
        try:
            return op.attrs_type(**attrs)
        except (TypeError, ValueError, TVMError) as error:
            raise self.source.error(
                f"cannot read attributes of {op.name}: {error}", start
            ) from error

    def _atom(self) -> RelayExpr:
        token = self.token
        if token.kind == "local":
            return self._local(self.take())
        if token.kind == "glob":
            return self.global_var(self.take())
        if token.kind == "number":
            return self._number(self.take(), 1)
        if token.kind == "name":
            return self._word()
        if self.accept("("):
            fields, is_tuple = self.tuple_until(")", self._in_parentheses)
            return nodes.Tuple(fields, self._span(token)) if is_tuple else fields[0]
        if self.at("{"):
            return self.block()
        if self.accept("-"):
            if self.token.kind == "number":
                return self._number(self.take(), -1)
            return nodes.Call(Op.get("negative"), (self._postfix(),), span=self._span(token))
        raise self.expected("an expression")

    def _in_parentheses(self) -> RelayExpr:
        binds = self.at("let") or (self.token.kind == "local" and self.ahead(1) == "=")
        return self.body() if binds else self.expression()

    def _local(self, token: Token) -> RelayExpr:
        name = token.text[1:]
        if (value := self.values.get(name)) is None:
            hint = suggest(token.text, ["%" + known for known in self.values])
            raise self.source.error(f"knows no variable `{token.text}`", token, hint)
        return value

    def global_var(self, token: Token) -> GlobalVar:
        """The global variable of a name, made at its first use."""
        name = token.text[1:]
        if name not in self.globals:
            self.globals[name] = GlobalVar(name)
            self.first_use[name] = token
        return self.globals[name]

    def _word(self) -> RelayExpr:
        token = self.take()
        if (read := _KEYWORDS.get(token.text)) is not None:
            return read(self, token)
        if (constructor := self.constructors.get(token.text)) is not None:
            return constructor
        if has_op(token.text):
            return Op.get(token.text)
        known = [*Op.list_op_names(), *self.constructors]
        raise self.source.error(
            f"knows no operator `{token.text}`", token, hint=suggest(token.text, known)
        )

    # -- one method a keyword

    def _fn(self, _: Token) -> RelayExpr:
        return self.function()

    def _if(self, start: Token) -> RelayExpr:
        self.expect("(")
        cond = self.expression()
        self.expect(")")
        then = self.block()
        self.expect("else")
        other = self._if(self.take()) if self.at("if") else self.block()
        return nodes.If(cond, then, other, self._span(start))

    def _ref(self, start: Token) -> RelayExpr:
        args = self._arguments(1)
        return nodes.RefCreate(args[0], self._span(start))

    def _ref_read(self, start: Token) -> RelayExpr:
        args = self._arguments(1)
        return nodes.RefRead(args[0], self._span(start))

    def _ref_write(self, start: Token) -> RelayExpr:
        args = self._arguments(2)
        return nodes.RefWrite(args[0], args[1], self._span(start))

    def _arguments(self, count: int) -> list[RelayExpr]:
        start = self.expect("(")
        args = self.list_until(")", self.expression)
        if len(args) != count:
            raise self.source.error(f"requires {count} arguments here, got {len(args)}", start)
        return args

    def _true(self, _: Token) -> RelayExpr:
        return nodes.const(True)

    def _false(self, _: Token) -> RelayExpr:
        return nodes.const(False)

    def _meta(self, start: Token) -> Any:
        self.expect("[")
        key = self.expect_kind("name", "a kind of node").text
        self.expect("]")
        self.expect("[")
        index = int(self.expect_kind("number", "an index").text)
        self.expect("]")
        entries = self.meta.get(key, [])
        if index >= len(entries):
            raise self.source.error(
                f"requires meta[{key}][{index}], the metadata has {len(entries)} of them",
                start,
                hint="print with show_meta_data=True, or pass init_meta_table",
            )
        return entries[index]

    def _match(self, start: Token) -> RelayExpr:
        is_complete = not self.accept("?")
        opening = self.expect("(")
        fields, is_tuple = self.tuple_until(")", self.expression)
        data = nodes.Tuple(fields, self._span(opening)) if is_tuple else fields[0]
        self.expect("{")
        clauses = self.list_until("}", self._clause)
        return Match(data, clauses, is_complete, self._span(start))

    def _clause(self) -> Clause:
        pattern = self._pattern()
        shadowed = [(v.name_hint, self.values.get(v.name_hint)) for v in pattern.bound_vars()]
        self.values.update({v.name_hint: v for v in pattern.bound_vars()})
        self.expect("=>")
        rhs = self.block() if self.at("{") else self.expression()
        for name, before in reversed(shadowed):
            self._restore(name, before)
        return Clause(pattern, rhs)

    def _pattern(self) -> Pattern:
        if self.accept("_"):
            return PatternWildcard()
        if self.token.kind == "local":
            return PatternVar(self._variable()[0])
        if self.accept("("):
            return PatternTuple(self.list_until(")", self._pattern))
        name = self.expect_kind("name", "a pattern")
        if name.text not in self.constructors:
            hint = suggest(name.text, self.constructors)
            raise self.source.error(f"knows no constructor `{name.text}`", name, hint)
        inner = self.list_until(")", self._pattern) if self.accept("(") else []
        return PatternConstructor(self.constructors[name.text], inner)

    # -- literals and attributes

    def _number(self, token: Token, sign: int) -> RelayExpr:
        value, dtype = self._literal(token)
        return nodes.const(
            np.asarray(sign * value, dtype="float64" if dtype[0] in "fb" else "int64"), dtype
        )

    def _literal(self, token: Token) -> tuple[int | float, str]:
        found = _NUMBER.fullmatch(token.text)
        assert found is not None
        digits, suffix = found["digits"], found["suffix"] or ""
        kind, bits = suffix[:1], suffix[1:]
        is_whole = digits.isdigit() and kind != "f"
        if is_whole:
            name = {"i": "int", "u": "uint"}.get(kind, "int")
            return int(digits), f"{name}{bits}" if bits else _SUFFIX[kind]
        if kind in ("i", "u"):
            raise self.source.error(f"requires an integer here, got `{token.text}`", token)
        return float(digits), f"float{bits}" if bits else "float32"

    def _attribute(self) -> tuple[str, Any]:
        token = self.take()
        if token.kind not in ("name", "text"):
            self._next -= 1
            raise self.expected("a parameter or the name of an attribute")
        key = json.loads(token.text) if token.kind == "text" else token.text
        self.expect("=")
        return str(key), self.attribute_value()

    def attribute_value(self) -> Any:
        """A Python value: number, text, list, mapping, None."""
        token = self.token
        if token.kind == "text":
            return json.loads(self.take().text)
        if self.accept("-"):
            if self.accept("inff"):
                return -_WORDS["inff"]
            return -self._literal(self.expect_kind("number", "a number"))[0]
        if token.kind == "number":
            return self._literal(self.take())[0]
        if self.accept("["):
            return tuple(self.list_until("]", self.attribute_value))
        if self.accept("("):
            return tuple(self.list_until(")", self.attribute_value))
        if self.accept("{"):
            return dict(self.list_until("}", self._attribute))
        if token.kind == "name" and token.text in _WORDS:
            return _WORDS[self.take().text]
        if self.accept("meta"):
            return self._meta(token)
        raise self.expected("the value of an attribute")

    def _span(self, start: Token) -> Any:
        last = self._tokens[max(self._next - 1, 0)]
        return self.source.span(start.start, last.start + len(last.text))


_WORDS: dict[str, Any] = {
    "None": None, "True": True, "False": False,
    "inff": float("inf"), "nanf": float("nan"),
}  # fmt: skip
_KEYWORDS: dict[str, Callable[[ExprReader, Token], RelayExpr]] = {
    "fn": ExprReader._fn,
    "if": ExprReader._if,
    "ref": ExprReader._ref,
    "ref_read": ExprReader._ref_read,
    "ref_write": ExprReader._ref_write,
    "True": ExprReader._true,
    "False": ExprReader._false,
    "meta": ExprReader._meta,
    "match": ExprReader._match,
}
