"""Types: `Tensor[(1, ?), float32]`, `(int32, bool)`, `fn (int32) -> bool`, `List[A]`."""

from __future__ import annotations

import re

from tvm.error import DiagnosticError, suggest
from tvm.ir.expr import BaseExpr
from tvm.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tvm.tir.expr import Any, IntImm
from tvm.tir.expr import Var as DimVar

from .lexer import Token
from .words import WordReader

_DTYPE = re.compile(r"(u?int|float|bfloat)\d+(x\d+)?|u?int|float|bool|float8_\w+|custom\[.*")


class TypeReader(WordReader):
    """Reads types; knows the type variables in scope."""

    type_vars: dict[str, TypeVar]
    global_types: dict[str, GlobalTypeVar]
    dim_vars: dict[str, DimVar]
    unknown_types: dict[str, Token]

    def type_params(self) -> list[TypeVar]:
        """`[A, B]`, if it is there; in scope from now on."""
        if not self.accept("["):
            return []
        params = self.list_until("]", lambda: TypeVar(self.expect_kind("name", "a type").text))
        self.type_vars.update({param.name_hint: param for param in params})
        return params

    def type_(self) -> Type | None:
        """A type; None stands for `_` and `?`, types to be inferred."""
        if self.accept("_") or self.accept("?"):
            return None
        if self.accept("("):
            fields, is_tuple = self.tuple_until(")", self.known_type)
            return TupleType(fields) if is_tuple else fields[0]
        if self.accept("fn"):
            return self._function()
        name = self.expect_kind("name", "a type")
        if name.text == "Tensor":
            return self._tensor()
        if name.text == "ref":
            self.expect("(")
            value = self.known_type()
            self.expect(")")
            return RelayRefType(value)
        return self._named(name)

    def known_type(self) -> Type:
        """A type within another one, where `?` and `_` stand for types to be found."""
        return self.type_() or IncompleteType()

    def _function(self) -> Type:
        outer = dict(self.type_vars)
        params = self.type_params()
        self.expect("(")
        args = self.list_until(")", self.known_type)
        self.expect("->")
        result = FuncType(args, self.known_type(), params)
        self.type_vars = outer
        return result

    def _tensor(self) -> Type:
        self.expect("[")
        self.expect("(")
        shape = self.list_until(")", self._dimension)
        self.expect(",")
        name = self.expect_kind("name", "a dtype")
        if not _DTYPE.fullmatch(name.text):
            raise self._unknown_dtype(name)
        self.expect("]")
        return self._of_dtype(tuple(shape), name)

    def _of_dtype(self, shape: tuple[BaseExpr, ...], name: Token) -> TensorType:
        try:
            return TensorType(shape, name.text)
        except ValueError:
            raise self._unknown_dtype(name) from None

    def _dimension(self) -> BaseExpr:
        if self.accept("?"):
            return Any()
        if self.token.kind == "name":
            name = self.take().text
            return self.dim_vars.setdefault(name, DimVar(name, "int64"))
        token = self.expect_kind("number", "a dimension")
        if not re.fullmatch(r"\d+(i64)?", token.text):
            raise self.source.error(f"requires an integer here, got `{token.text}`", token)
        value = int(token.text.removesuffix("i64"))
        return IntImm("int64" if value >= 2**31 else "int32", value)

    def _named(self, name: Token) -> Type:
        if (variable := self.type_vars.get(name.text)) is not None:
            return variable
        if _DTYPE.fullmatch(name.text):
            return self._of_dtype((), name)
        header = self.global_types.get(name.text)
        if header is None:
            header = self.global_types[name.text] = GlobalTypeVar(name.text)
            self.unknown_types[name.text] = name
        if not self.accept("["):
            return TypeCall(header, ())
        return TypeCall(header, self.list_until("]", self.known_type))

    def _unknown_dtype(self, name: Token) -> DiagnosticError:
        known = (
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "int8",
            "int32",
            "int64",
            "uint8",
            "bool",
        )
        return self.source.error(
            f"requires a dtype here, got `{name.text}`", name, hint=suggest(name.text, known)
        )
