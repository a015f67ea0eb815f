"""From text to programs: `relay.parse(text)` gives the module that `mod.astext()` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.adt import Constructor, TypeData
from tvm.ir.diagnostics import reported
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.serialize import load_json
from tvm.ir.span import SourceName
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import GlobalTypeVar, Type, TypeKind
from tvm.relay.analysis.typed_module import infer_types
from tvm.relay.expr import Call
from tvm.relay.function import Function, relay_functions
from tvm.relay.traverse import post_order
from tvm.support import deep

from .expressions import ExprReader, MetaTable
from .lexer import Source, Token

_METADATA = "#[metadata]"
_VERSION = "0.0.5"
Table = Mapping[str, Sequence[Any]]


class ModuleReader(ExprReader):
    """Reads definitions of functions and types into a module."""

    def __init__(self, source: Source, meta: MetaTable, mod: IRModule | None) -> None:
        super().__init__(source, meta)
        self.mod = IRModule() if mod is None else mod.clone()
        self.globals.update({g.name_hint: g for g in self.mod.functions})
        for header, data in self.mod.type_definitions.items():
            self.global_types[header.name_hint] = header
            self.constructors.update({c.name_hint: c for c in data.constructors})

    def version(self) -> None:
        """The header, if it is there."""
        if self.token.kind == "version":
            token = self.take()
            if f'"{_VERSION}"' not in token.text:
                raise self.source.error(f'requires the version "{_VERSION}"', token)

    def module(self) -> IRModule:
        """All definitions, or one expression, which becomes `main`."""
        self.version()
        while True:
            if self.at("def"):
                self._definition()
            elif self.at("type"):
                self._type_definition()
            elif self.at("extern"):
                self.take()
                self._type_definition()
            else:
                break
        if self.token.kind != "end":
            self._main(self.full_expression())
        self._check_names()
        return self.mod

    def full_expression(self) -> RelayExpr:
        """One expression, after which the text ends."""
        self.version()
        result = self.body()
        if self.token.kind != "end":
            raise self.expected("the end of the text")
        return result

    def _main(self, expr: RelayExpr) -> None:
        if not isinstance(expr, Function):
            expr = Function(self.free, expr)
        name = Token("glob", "@main", self.token.start)
        self.mod[self.global_var(name)] = expr

    def _definition(self) -> None:
        self.expect("def")
        token = self.expect_kind("glob", "the name of a function")
        gvar = self.global_var(token)
        if gvar in self.mod.functions:
            raise self.source.error(f"found a second definition of `{token.text}`", token)
        self.values.clear()
        self.dim_vars.clear()
        if self.accept("="):
            self.mod[gvar] = self._atom()
        else:
            self.mod[gvar] = self.function()

    def _type_definition(self) -> None:
        self.expect("type")
        token = self.expect_kind("name", "the name of a type")
        header = self._header(token)
        outer = dict(self.type_vars)
        params = self.type_params()
        constructors: list[Constructor] = []
        if self.accept("{"):
            self.list_until("}", lambda: self._constructor(header, constructors))
        self.type_vars = outer
        self.mod[header] = TypeData(header, params, constructors)
        self.constructors.update({c.name_hint: c for c in constructors})

    def _header(self, token: Token) -> GlobalTypeVar:
        self.unknown_types.pop(token.text, None)
        header = self.global_types.get(token.text)
        if header is not None and header in self.mod.type_definitions:
            raise self.source.error(f"found a second definition of `{token.text}`", token)
        if header is None:
            header = GlobalTypeVar(token.text, TypeKind.AdtHandle)
            self.global_types[token.text] = header
        return header

    def _constructor(self, header: GlobalTypeVar, known: list[Constructor]) -> None:
        token = self.expect_kind("name", "a constructor")
        name = token.text
        if name in self.constructors or any(name == known_one.name_hint for known_one in known):
            raise self.source.error(f"found a second constructor `{name}`", token)
        inputs: list[Type] = self.list_until(")", self.known_type) if self.accept("(") else []
        known.append(Constructor(name, tuple(inputs), header))

    def _check_names(self) -> None:
        for name, token in self.first_use.items():
            if name not in self.mod:
                names = ["@" + g.name_hint for g in self.mod.functions]
                hint = suggest("@" + name, names)
                raise self.source.error(f"knows no function `@{name}`", token, hint)
        for name, token in self.unknown_types.items():
            hint = suggest(
                name, [*self.global_types, "float32", "int32", "int64", "bool", "Tensor"]
            )
            raise self.source.error(f"knows no type `{name}`", token, hint)


def _reader(
    source: str, source_name: str, mod: IRModule | None, table: Table | None
) -> ModuleReader:
    if not isinstance(source, str):
        raise TypeError(f"relay.parse requires a text, got {type(source).__name__}")
    text, found, metadata = source.partition(_METADATA)
    meta: MetaTable = {key: list(values) for key, values in (table or {}).items()}
    if found and metadata.strip():
        loaded = load_json(metadata)
        if not isinstance(loaded, dict):
            raise TVMError("relay.parse requires a mapping of kinds to nodes as metadata")
        meta.update({key: list(values) for key, values in loaded.items()})
    return ModuleReader(Source(text, SourceName(source_name)), meta, mod)


@deep
def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Table | None = None,
) -> IRModule:
    """The typed module that a text describes.

    Parameters
    ----------
    source : definitions, or one expression, which becomes `main`.
    source_name : the name of the text in errors and spans.
    init_module : functions and types that the text may use; they are part of the result.
    init_meta_table : what `meta[kind][i]` stands for, unless the text has a metadata section.
    """
    reader = _reader(source, source_name, init_module, init_meta_table)
    reader.mod.source_map.add(source_name, source)
    with reported(reader.mod):
        return infer_types(reader.module())


@deep
def parse_expr(source: str) -> RelayExpr:
    """The expression that a text describes."""
    return _reader(source, "from_string", None, None).full_expression()


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The typed module that a text describes.

    Parameters
    ----------
    source : str
        The text; a line with the version of the form may stand first.
    source_name : str
        The file that messages name.
    """
    return parse(str(source), str(source_name))


def _check_spans(mod: IRModule, _: PassContext) -> IRModule:
    for gvar, func in relay_functions(mod).items():
        for node in post_order(func):
            if isinstance(node, Call) and node.span is None:
                raise TVMError(f"SpanCheck found a call without span in @{gvar.name_hint}", at=node)
    return mod


def SpanCheck() -> Pass:
    """A pass that rejects calls without a place in a source text."""
    return ModulePass(_check_spans, PassInfo(0, "SpanCheck"))
