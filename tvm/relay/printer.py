"""The text form of relay programs.

    def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(4, 3), float32]) -> Tensor[(1, 4), float32] {
      %0 = nn.dense(%x, %w, units=4) /* ty=Tensor[(1, 4), float32] */;
      nn.relu(%0) /* ty=Tensor[(1, 4), float32] */
    }

Shared nodes get a number; tensors are shown as `meta[relay.Constant][i]` and listed at the end.
Printing takes time linear in the size of the graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm.ir.adt import Constructor, TypeData
from tvm.ir.attrs import Attrs, DictAttrs
from tvm.ir.expr import BaseExpr, GlobalVar, PrimExpr, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.ir.op import Op
from tvm.ir.serialize import save_json
from tvm.ir.span import SequentialSpan, Span
from tvm.ir.type import (
    FuncType,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)
from tvm.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function
from tvm.relay.rounding import is_free_rounding
from tvm.relay.traverse import free_vars, operands, post_order, post_order_by
from tvm.support import UniqueNames, deep
from tvm.target.virtual_device import VirtualDevice

_SUFFIX = {"float32": "f", "float64": "f64", "float16": "f16", "int64": "i64", "int32": ""}
Annotate = Callable[[RelayExpr], str]
MARK = "\0"  # stands around the text of the node sought


def type_text(ty: Type | None) -> str:
    """A type as programs show it: `Tensor[(1, 3), float32]`."""
    if ty is None:
        return "?"
    if isinstance(ty, TensorType):
        if not ty.shape:
            return str(ty.dtype)
        dims = ", ".join([_dim_text(dim) for dim in ty.shape])
        comma = "," if len(ty.shape) == 1 else ""
        return f"Tensor[({dims}{comma}), {ty.dtype}]"
    if isinstance(ty, TupleType):
        fields = ", ".join([type_text(f) for f in ty.fields])
        return f"({fields},)" if len(ty.fields) == 1 else f"({fields})"
    if isinstance(ty, FuncType):
        params = f"[{', '.join([p.name_hint for p in ty.type_params])}]" if ty.type_params else ""
        args = ", ".join([type_text(a) for a in ty.arg_types])
        return f"fn {params}({args}) -> {type_text(ty.ret_type)}"
    if isinstance(ty, RelayRefType):
        return f"ref({type_text(ty.value)})"
    if isinstance(ty, TypeCall):
        args = f"[{', '.join([type_text(a) for a in ty.args])}]" if ty.args else ""
        return type_text(ty.func) + args
    if isinstance(ty, IncompleteType):
        return "?"
    return getattr(ty, "name_hint", None) or type(ty).__name__


def _dim_text(dim: BaseExpr) -> str:
    if type(dim).__name__ == "Any":
        return "?"
    return str(getattr(dim, "value", dim))


class Printer:
    """Turns expressions into lines; keeps the names given so far."""

    def __init__(
        self, annotate: Annotate | None = None, show_types: bool = True, has_metadata: bool = True
    ) -> None:
        self.annotate = annotate
        self.show_types = show_types
        self.has_metadata = has_metadata
        self.metadata: dict[str, list[Node]] = {}
        self._entries: dict[int, int] = {}  # the indices of nodes in their list, by identity
        self._names = UniqueNames()
        self._text_of: dict[int, str] = {}
        self._numbered = 0
        self._shared: set[int] = set()  # nodes that several others use
        self.sought: RelayExpr | None = None  # marked with MARK in the text

    def function(self, name: str, func: Function) -> list[str]:
        """A global definition, a scope of its own: what it shares with others, it shows again."""
        self._names, self._text_of = UniqueNames(), {}
        self._shared = _shared_nodes(func)
        return self._function_lines(f"def @{name}", func)

    def expression(self, expr: RelayExpr) -> list[str]:
        """An expression outside of functions."""
        self._shared = _shared_nodes(expr)
        if isinstance(expr, Function):
            return self._function_lines("fn ", expr)
        return self._scope(expr)

    def _function_lines(self, head: str, func: Function) -> list[str]:
        type_params = ""
        if func.type_params:
            type_params = f"[{', '.join([p.name_hint for p in func.type_params])}]"
        params = [self._param(p) for p in func.params]
        params += [f"{_key(k)}={_value(self, v)}" for k, v in func.attrs.items()]
        if func.virtual_device_ is not None:
            params.append(f"virtual_device={_value(self, func.virtual_device_)}")
        result = f" -> {type_text(func.ret_type)}" if func.ret_type is not None else ""
        first = f"{head}{type_params}({', '.join(params)}){result} {{"
        return [first, *_indented(self._scope(func.body)), "}"]

    def _param(self, param: Var) -> str:
        text = self._atom(param)
        if param.virtual_device_ is not None:
            text += f" {{virtual_device={_value(self, param.virtual_device_)}}}"
        if param.type_annotation is None:
            return text
        return f"{text}: {type_text(param.type_annotation)}"

    def _scope(self, body: RelayExpr, opened: RelayExpr | None = None) -> list[str]:
        """The statements of a block; the last line is its value."""
        lines: list[str] = []
        while type(body) is Let and (body is opened or id(body) not in self._shared):
            self._emit_below(body.value, lines)
            self._emit_shared(body.value, lines)
            ann = body.var.type_annotation
            typed = f": {type_text(ann)}" if ann is not None else ""
            _append(lines, f"let {self._atom(body.var)}{typed} = ", self._value_lines(body.value))
            lines[-1] += ";"
            body = body.body
        self._emit_below(body, lines)
        self._emit_shared(body, lines)
        lines += self._value_lines(body)
        return lines

    def _emit_shared(self, node: RelayExpr, lines: list[str]) -> None:
        """Give a number to a block's value that is used in other places as well."""
        if id(node) in self._shared and id(node) not in self._text_of and not _is_atomic(node):
            self._emit(node, lines)

    def _emit_below(self, root: RelayExpr, lines: list[str]) -> None:
        """Give a number to every node below `root` in this block."""
        for node in self._block_order(root):
            if node is root or id(node) in self._text_of or _is_atomic(node):
                continue
            self._emit(node, lines)

    def _emit(self, node: RelayExpr, lines: list[str]) -> None:
        rhs = self._value_lines(node)
        name = f"%{self._numbered}"
        self._numbered += 1
        self._text_of[id(node)] = name
        _append(lines, f"{name} = ", rhs)
        lines[-1] += ";"

    def _block_order(self, root: RelayExpr) -> list[RelayExpr]:
        """Post-order of the nodes evaluated in the block of `root`."""
        known = self._text_of
        order = post_order_by(
            [root], lambda node: () if id(node) in known else _same_block_operands(node)
        )
        return [node for node in order if id(node) not in known]

    def _value_lines(self, node: RelayExpr) -> list[str]:
        """The right-hand side that computes `node`."""
        if id(node) in self._text_of or _is_atomic(node):
            return [self._atom(node)]
        lines = self._compound(node)
        if node is self.sought:
            lines[0] = MARK + lines[0] + MARK
        if comment := self._comment(node):
            lines[-1] += f" /* {comment} */"
        return lines

    def _compound(self, node: RelayExpr) -> list[str]:
        atom = self._atom
        if type(node) is Call and isinstance(node.op, Constructor) and not node.op.inputs:
            return [node.op.name_hint]
        if type(node) is Call:
            args = [atom(a) for a in node.args] + _attr_strings(self, node.attrs)
            return [f"{atom(node.op)}({', '.join(args)})"]
        if type(node) is Tuple:
            fields = ", ".join([atom(f) for f in node.fields])
            return [f"({fields},)" if len(node.fields) == 1 else f"({fields})"]
        if type(node) is TupleGetItem:
            return [f"{atom(node.tuple_value)}.{node.index}"]
        if isinstance(node, Function):
            return self._function_lines("fn ", node)
        if type(node) is If:
            head = f"if ({atom(node.cond)}) {{"
            then, other = self._scope(node.true_branch), self._scope(node.false_branch)
            return [head, *_indented(then), "} else {", *_indented(other), "}"]
        if type(node) is RefCreate:
            return [f"ref({atom(node.value)})"]
        if type(node) is RefRead:
            return [f"ref_read({atom(node.ref)})"]
        if type(node) is RefWrite:
            return [f"ref_write({atom(node.ref)}, {atom(node.value)})"]
        if type(node) is Match:
            return self._match(node)
        if type(node) is Let:
            return ["(", *_indented(self._scope(node, opened=node)), ")"]
        return [_generic(node)]

    def _match(self, node: Match) -> list[str]:
        word = "match" if node.complete else "match?"
        lines = [f"{word} ({self._atom(node.data)}) {{"]
        for clause in node.clauses:
            body = self._scope(clause.rhs)
            lines.append(f"  {self._pattern(clause.lhs)} => {{")
            lines += [*_indented(_indented(body)), "  },"]
        return [*lines, "}"]

    def _pattern(self, pattern: Pattern) -> str:
        if isinstance(pattern, PatternVar):
            return self._param(pattern.var)
        if isinstance(pattern, PatternConstructor):
            inner = ", ".join([self._pattern(p) for p in pattern.patterns])
            return (
                f"{self._atom(pattern.constructor)}({inner})"
                if inner
                else self._atom(pattern.constructor)
            )
        if isinstance(pattern, PatternTuple):
            return f"({', '.join([self._pattern(p) for p in pattern.patterns])})"
        return "_"

    def _atom(self, node: RelayExpr) -> str:
        if (text := self._text_of.get(id(node))) is not None:
            return text
        if isinstance(node, Var):
            text = "%" + self._names.fresh(_identifier(node.name_hint))
        elif isinstance(node, Constant):
            text = self._constant(node)
        elif isinstance(node, GlobalVar):
            return f"@{node.name_hint}"
        elif isinstance(node, Op):
            return node.name
        else:
            return getattr(node, "name_hint", None) or _generic(node)
        self._text_of[id(node)] = text
        return text

    def entry(self, kind: str, node: Node) -> str:
        """The text that stands for a node of the metadata."""
        entries = self.metadata.setdefault(kind, [])
        index = self._entries.setdefault(id(node), len(entries))
        if index == len(entries):
            entries.append(node)
        return f"meta[{kind}][{index}]"

    def _constant(self, node: Constant) -> str:
        literal = _literal(node)
        if literal is None:
            literal = self.entry("relay.Constant", node)
        comment = self._comment(node)
        return f"{literal} /* {comment} */" if comment else literal

    def _comment(self, node: RelayExpr) -> str:
        if self.annotate is not None:
            return self.annotate(node)
        if not self.show_types:
            return ""
        ty = getattr(node, "_checked_type_", None)
        origin = "" if is_free_rounding(node) else _origin(node.span)
        notes = [f"ty={type_text(ty)}"] if ty is not None else []
        return " ".join([*notes, f"span={origin}"] if origin else notes)


def _origin(span: Any) -> str:
    """The layers of another program that a node comes from; positions in a text are none."""
    if isinstance(span, SequentialSpan):
        return ",".join([origin for part in span.spans if (origin := _origin(part))])
    if not isinstance(span, Span) or span.line > 0:
        return ""
    name = span.source_name.name.replace("*/", "* /").replace("\n", " ")
    return f"{name}:{span.line}:{span.column}" if name else ""


def _shared_nodes(root: RelayExpr) -> set[int]:
    used: set[int] = set()
    shared: set[int] = set()
    for node in post_order(root):
        for operand in operands(node):
            (shared if id(operand) in used else used).add(id(operand))
    return shared


def _is_atomic(node: RelayExpr) -> bool:
    return isinstance(node, (Var, Constant, GlobalVar, Op)) or (
        not operands(node) and (not isinstance(node, (Tuple, Function)))
    )


def _same_block_operands(node: RelayExpr) -> tuple[RelayExpr, ...]:
    if isinstance(node, (Function, Let)):
        return ()
    if type(node) is If:
        return (node.cond,)
    if type(node) is Match:
        return (node.data,)
    if type(node) is Call:
        return (*node.args, node.op)
    return operands(node)


def _literal(node: Constant) -> str | None:
    """A scalar in the text form, or None if it must go to the metadata."""
    if len(node.data.shape) != 0:
        return None
    dtype = str(node.data.dtype)
    if dtype == "bool":
        return str(bool(node.data.numpy()))
    if dtype not in _SUFFIX:
        return None
    value = node.data.numpy().item()
    if not np.isfinite(value):
        return None
    text = f"{value:g}" if dtype.startswith("float") else str(value)
    if dtype.startswith("float") and float(text) != value:
        text = repr(value) if dtype == "float64" else str(node.data.numpy()[()])
    return text + _SUFFIX[dtype]


def _attr_strings(printer: Printer, attrs: Attrs | None) -> list[str]:
    """`name=value` for every attribute that differs from its default."""
    if attrs is None:
        return []
    if isinstance(attrs, DictAttrs):
        return [f"{_key(k)}={_value(printer, v)}" for k, v in attrs.items()]
    defaults = {f.name: f.default for f in type(attrs).node_fields}
    return [
        f"{name}={_value(printer, value)}"
        for name in attrs.keys()  # noqa: SIM118 - Attrs is no mapping
        if not _is_default(value := attrs[name], defaults.get(name, ...))
    ]


def _is_default(value: object, default: object) -> bool:
    if value is default:
        return True
    if isinstance(value, Node) or isinstance(default, Node):
        return False
    if isinstance(value, tuple) and isinstance(default, tuple):
        return value == default
    return type(value) is type(default) and value == default


def _value(printer: Printer, value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([_value(printer, v) for v in value])}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join([f"{_key(k)}={_value(printer, v)}" for k, v in value.items()]) + "}"
    if isinstance(value, float):
        text = f"{value:g}"
        return (text if float(text) == value else repr(value)) + "f"
    if isinstance(value, Type):
        return type_text(value)
    is_listed = printer.has_metadata or isinstance(value, VirtualDevice)
    if isinstance(value, Node) and not isinstance(value, PrimExpr) and is_listed:
        return printer.entry(type(value).type_key, value)
    return str(value)


def _key(name: object) -> str:
    """The name of an attribute, quoted if it is no identifier."""
    text = str(name)
    return text if all([p.isidentifier() for p in text.split(".")]) else json.dumps(text)


def _identifier(name: str) -> str:
    text = "".join([c if c.isalnum() or c == "_" else "_" for c in name])
    return f"v{text}" if not text or text[0].isdigit() else text


def _generic(node: Node) -> str:
    return f"<{type(node).__name__}>"


def _append(lines: list[str], head: str, value: list[str]) -> None:
    lines.append(head + value[0])
    lines.extend(value[1:])


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


@deep
def astext(
    obj: Node, show_meta_data: bool = True, annotate: Annotate | None = None, header: bool = True
) -> str:
    """The text of a module, a function or an expression, tensors listed at the end.

    Parameters
    ----------
    obj : IRModule, relay.Function or relay.Expr
        What to print.
    show_meta_data : bool
        Print the contents of constants and attributes that have no short form.
    annotate : callable, optional
        ``annotate(expr)`` gives a comment for the line of an expression, or an empty text.
    header : bool
        Begin with the version of the text form.
    """
    printer = Printer(annotate, has_metadata=show_meta_data)
    lines = ['#[version = "0.0.5"]', *_free_variables(printer, obj)] if header else []
    lines += _lines(printer, obj)
    if show_meta_data and printer.metadata:
        lines += ["", "#[metadata]", save_json(printer.metadata)]
    return "\n".join(lines) + ("\n" if isinstance(obj, IRModule) else "")


def pretty_print(obj: Node) -> str:
    """The text without version line and tensors: what `print` shows."""
    return astext(obj, show_meta_data=False, header=False)


class Excerpt:
    """The lines around one expression in the text of a function, underlined, with notes."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(self.lines)


@deep
def excerpt(root: RelayExpr, node: RelayExpr, notes: list[str], before: int = 2) -> Excerpt:
    """The place of `node` in the text of `root`."""
    printer = Printer(annotate=lambda _: "")
    printer.sought = node
    lines = _lines(printer, root)
    row = next((i for i, line in enumerate(lines) if MARK in line), None)
    if row is None:  # a variable, a constant: no line of its own
        return Excerpt([printer._atom(node) if _is_atomic(node) else lines[0], *notes])
    head, text, tail = lines[row].split(MARK)
    underline = " " * len(head) + "^" * len(text)
    shown = [*lines[max(0, row - before) : row], head + text + tail, underline]
    return Excerpt([*shown, *["  " + note for note in notes]])


def _lines(printer: Printer, node: Node) -> list[str]:
    if isinstance(node, IRModule):
        lines: list[str] = []
        for header, data in node.type_definitions.items():
            lines += [*_type_definition(header.name_hint, data), ""]
        for gvar, func in node.functions_items():
            if isinstance(func, Function):
                lines += [*printer.function(gvar.name_hint, func), ""]
            else:
                lines += [f"def @{gvar.name_hint} = {_other_function(printer, func)}", ""]
        return lines[:-1]
    if isinstance(node, Type):
        return [type_text(node)]
    assert isinstance(node, RelayExpr)
    return printer.expression(node)


def _other_function(printer: Printer, func: BaseFunc) -> str:
    """A function of another language: in the metadata, or its script where that is not shown."""
    return printer.entry(type(func).type_key, func) if printer.has_metadata else str(func)


def _type_definition(name: str, data: TypeData) -> list[str]:
    params = f"[{', '.join([v.name_hint for v in data.type_vars])}]" if data.type_vars else ""
    lines = [f"type {name}{params} {{"]
    for constructor in data.constructors:
        inputs = ", ".join([type_text(ty) for ty in constructor.inputs])
        lines.append(f"  {constructor.name_hint}{f'({inputs})' if inputs else ''},")
    return [*lines, "}"]


def _free_variables(printer: Printer, node: Node) -> list[str]:
    """`free_var %x: type;` for what an expression does not bind itself."""
    if not isinstance(node, RelayExpr) or isinstance(node, (Var, GlobalVar, Op)):
        return []
    return [f"free_var {printer._param(v)};" for v in free_vars(node)]
