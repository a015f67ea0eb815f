"""Documents as Python text, with no more parentheses than Python needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm.runtime.object_path import ObjectPath
from tvm.support import deep

from . import doc as d
from .doc import OperationKind as Op
from .underline import Span, decorate

# how tightly expressions bind, from the loosest
LAMBDA, CHOICE, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT = range(12)
UNARY, POWER, ATOM = 12, 13, 14
UNARY_OPERATORS = {Op.USub: ("-", UNARY), Op.Invert: ("~", UNARY), Op.Not: ("not ", NOT)}
BINARY_OPERATORS = {
    Op.Add: (" + ", SUM), Op.Sub: (" - ", SUM),
    Op.Mult: (" * ", PRODUCT), Op.Div: (" / ", PRODUCT), Op.FloorDiv: (" // ", PRODUCT),
    Op.Mod: (" % ", PRODUCT), Op.Pow: (" ** ", POWER),
    Op.LShift: (" << ", SHIFT), Op.RShift: (" >> ", SHIFT),
    Op.BitAnd: (" & ", BIT_AND), Op.BitOr: (" | ", BIT_OR), Op.BitXor: (" ^ ", BIT_XOR),
    Op.Lt: (" < ", COMPARE), Op.LtE: (" <= ", COMPARE), Op.Eq: (" == ", COMPARE),
    Op.NotEq: (" != ", COMPARE), Op.Gt: (" > ", COMPARE), Op.GtE: (" >= ", COMPARE),
    Op.And: (" and ", AND), Op.Or: (" or ", OR),
}  # fmt: skip
_ESCAPES = {
    **{chr(code): f"\\x{code:02x}" for code in (*range(32), 127)},
    "\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r",
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v",
}  # fmt: skip


@deep
def to_python_script(
    doc: d.Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[ObjectPath] | None = None,
) -> str:
    """The text of a document.

    Parameters
    ----------
    doc : Doc
    indent_spaces : int
        How far bodies are indented.
    print_line_numbers : bool
        Whether each line starts with its number.
    num_context_lines : int, optional
        How many lines are shown around underlined ones; all of them by default.
    path_to_underline : sequence of ObjectPath, optional
        What to underline: the documents with the longest source paths that lead there.
    """
    printer = DocPrinter(indent_spaces, path_to_underline or ())
    printer.print(doc)
    text = "".join(printer.out)
    shown = decorate(text, printer.underlines(), print_line_numbers, num_context_lines)
    return shown.rstrip()


class DocPrinter:
    """Appends pieces of text to ``out``, and keeps the spans that are to be underlined."""

    def __init__(self, indent_spaces: int, paths: Sequence[ObjectPath]) -> None:
        self.out: list[str] = []
        self._indent_spaces = indent_spaces
        self._line = "\n"  # what starts a line
        self._length = 0  # of the pieces that are counted already
        self._counted = 0
        self._paths = paths
        self._depths = [0] * len(paths)  # of the longest source path so far that leads to each
        self._spans: list[list[Span]] = [[] for _ in paths]
        self._exempt: list[Span] = []

    def underlines(self) -> list[Span]:
        """What to underline: comments are not."""
        spans = [span for spans in self._spans for span in spans]
        return [part for span in spans for part in _without(span, self._exempt)]

    def print(self, doc: d.Doc) -> None:
        """Print a document, and mark it if it is to be underlined."""
        if not (self._paths and doc._source_paths):
            _METHODS[type(doc)](self, doc)
            return
        start = self._position()
        _METHODS[type(doc)](self, doc)
        for path in doc._source_paths:
            self._mark((start, self._position()), path)

    def _mark(self, span: Span, path: ObjectPath) -> None:
        for index, wanted in enumerate(self._paths):
            depth = len(path)
            if depth < self._depths[index] or not path.is_prefix_of(wanted):
                continue
            if depth > self._depths[index]:
                self._depths[index] = depth
                self._spans[index].clear()
            self._spans[index].append(span)

    def _position(self) -> int:
        self._length += sum([len(piece) for piece in self.out[self._counted :]])
        self._counted = len(self.out)
        return self._length

    # ---- lists and indentation

    def _join(self, docs: Sequence[d.Doc], separator: str = ", ") -> None:
        for index, doc in enumerate(docs):
            if index:
                self.out.append(separator)
            self.print(doc)

    def _enter(self) -> None:
        self._line += " " * self._indent_spaces

    def _leave(self) -> None:
        self._line = self._line[: len(self._line) - self._indent_spaces]

    def _suite(self, docs: Sequence[d.StmtDoc]) -> None:
        self._enter()
        for doc in docs:
            self.out.append(self._line)
            self.print(doc)
        if not docs:
            self.out += [self._line, "pass"]
        self._leave()

    # ---- comments

    def _comment_behind(self, doc: d.StmtDoc) -> None:
        if not doc.comment:
            return
        if "\n" in doc.comment:
            raise ValueError(
                f"a comment behind a statement cannot have newline characters, got {doc.comment!r}"
            )
        self._exempted(f"  # {doc.comment}")

    def _comment_above(self, doc: d.StmtDoc) -> None:
        if doc.comment:
            self._comment_lines(doc.comment)
            self.out.append(self._line)

    def _comment_lines(self, comment: str) -> None:
        for index, line in enumerate(comment.split("\n")):
            if index:
                self.out.append(self._line)
            self._exempted(f"# {line}")

    def _exempted(self, text: str) -> None:
        start = self._position()
        self.out.append(text)
        self._exempt.append((start, start + len(text)))

    def _docstring(self, comment: str | None) -> None:
        if not comment:
            return
        start = self._position()
        self.out += ['"""', *[self._at_line(line) for line in comment.split("\n")]]
        self.out += [self._line, '"""']
        self._exempt.append((start, self._position()))

    def _at_line(self, text: str) -> str:
        return self._line + text if text else "\n"

    # ---- expressions

    def _within(self, doc: d.Doc, least: int) -> None:
        """An operand, in parentheses if it binds less tightly than ``least``."""
        if binding(doc) >= least:
            self.print(doc)
            return
        self.out.append("(")
        self.print(doc)
        self.out.append(")")

    def literal(self, doc: d.LiteralDoc) -> None:
        self.out.append(literal_text(doc.value))

    def name(self, doc: d.IdDoc) -> None:
        self.out.append(doc.name)

    def attribute(self, doc: d.AttrAccessDoc) -> None:
        self._within(doc.value, ATOM)
        self.out.append(f".{doc.name}")

    def index(self, doc: d.IndexDoc) -> None:
        self._within(doc.value, ATOM)
        self.out.append("[")
        self._join(doc.indices)
        self.out.append("]" if doc.indices else "()]")

    def call(self, doc: d.CallDoc) -> None:
        self._within(doc.callee, ATOM)
        self.out.append("(")
        self._join(doc.args)
        separator = ", " if doc.args else ""
        for key, value in zip(doc.kwargs_keys, doc.kwargs_values, strict=True):
            self.out.append(f"{separator}{key}=")
            self.print(value)
            separator = ", "
        self.out.append(")")

    def operation(self, doc: d.OperationDoc) -> None:
        kind, operands = doc.kind, doc.operands
        if (unary := UNARY_OPERATORS.get(kind)) is not None:
            self.out.append(unary[0])
            self._within(operands[0], unary[1])
        elif kind == Op.IfThenElse:
            condition, if_true, if_false = operands
            self._within(if_true, CHOICE)
            self.out.append(" if ")
            self._within(condition, CHOICE + 1)
            self.out.append(" else ")
            self._within(if_false, CHOICE + 1)
        else:
            text, level = BINARY_OPERATORS[kind]
            # comparisons do not chain; powers nest to the right, and there take a sign
            apart = kind == Op.Pow or level == COMPARE
            self._within(operands[0], level + 1 if apart else level)
            self.out.append(text)
            self._within(operands[1], UNARY if kind == Op.Pow else level + 1)

    def function_value(self, doc: d.LambdaDoc) -> None:
        self.out.append("lambda ")
        self._join(doc.args)
        self.out.append(": ")
        self._within(doc.body, LAMBDA)

    def tuple(self, doc: d.TupleDoc) -> None:
        self.out.append("(")
        self._join(doc.elements)
        self.out.append(",)" if len(doc.elements) == 1 else ")")

    def list(self, doc: d.ListDoc) -> None:
        self.out.append("[")
        self._join(doc.elements)
        self.out.append("]")

    def dict(self, doc: d.DictDoc) -> None:
        separator = "{"
        for key, value in zip(doc.keys, doc.values, strict=True):
            self.out.append(separator)
            self.print(key)
            self.out.append(": ")
            self.print(value)
            separator = ", "
        self.out.append("}" if doc.keys else "{}")

    def slice(self, doc: d.SliceDoc) -> None:
        if doc.start is not None:
            self.print(doc.start)
        self.out.append(":")
        if doc.stop is not None:
            self.print(doc.stop)
        if doc.step is not None:
            self.out.append(":")
            self.print(doc.step)

    # ---- statements

    def block(self, doc: d.StmtBlockDoc) -> None:
        self._join(doc.stmts, self._line)

    def assign(self, doc: d.AssignDoc) -> None:
        lhs = doc.lhs
        if isinstance(lhs, d.TupleDoc) and lhs.elements:
            self._join(lhs.elements)
            if len(lhs.elements) == 1:
                self.out.append(",")
        else:
            self.print(lhs)
        if doc.annotation is not None:
            self.out.append(": ")
            self.print(doc.annotation)
        if doc.rhs is not None:
            self.out.append(" = ")
            self._bare_tuple(doc.rhs)
        self._comment_behind(doc)

    def _bare_tuple(self, doc: d.ExprDoc) -> None:
        if isinstance(doc, d.TupleDoc) and len(doc.elements) > 1:
            self._join(doc.elements)
        else:
            self.print(doc)

    def branch(self, doc: d.IfDoc) -> None:
        self._comment_above(doc)
        self.out.append("if ")
        self.print(doc.predicate)
        self.out.append(":")
        self._suite(doc.then_branch)
        if doc.else_branch:
            self.out += [self._line, "else:"]
            self._suite(doc.else_branch)

    def loop_while(self, doc: d.WhileDoc) -> None:
        self._comment_above(doc)
        self.out.append("while ")
        self.print(doc.predicate)
        self.out.append(":")
        self._suite(doc.body)

    def loop_for(self, doc: d.ForDoc) -> None:
        self._comment_above(doc)
        self.out.append("for ")
        if isinstance(doc.lhs, d.TupleDoc):
            self._join(doc.lhs.elements)
            if len(doc.lhs.elements) == 1:
                self.out.append(",")
        else:
            self.print(doc.lhs)
        self.out.append(" in ")
        self.print(doc.rhs)
        self.out.append(":")
        self._suite(doc.body)

    def scope(self, doc: d.ScopeDoc) -> None:
        self._comment_above(doc)
        self.out.append("with ")
        self.print(doc.rhs)
        if doc.lhs is not None:
            self.out.append(" as ")
            self.print(doc.lhs)
        self.out.append(":")
        self._suite(doc.body)

    def expression(self, doc: d.ExprStmtDoc) -> None:
        self.print(doc.expr)
        self._comment_behind(doc)

    def assertion(self, doc: d.AssertDoc) -> None:
        self.out.append("assert ")
        self.print(doc.test)
        if doc.msg is not None:
            self.out.append(", ")
            self.print(doc.msg)
        self._comment_behind(doc)

    def result(self, doc: d.ReturnDoc) -> None:
        self.out.append("return ")
        self.print(doc.value)
        self._comment_behind(doc)

    def _decorators(self, decorators: Sequence[d.ExprDoc]) -> None:
        for decorator in decorators:
            self.out.append("@")
            self.print(decorator)
            self.out.append(self._line)

    def _definition_body(self, doc: d.FunctionDoc | d.ClassDoc) -> None:
        if doc.comment:
            self._enter()
            self.out.append(self._line)
            self._docstring(doc.comment)
            self._leave()
        self._suite(doc.body)

    def function(self, doc: d.FunctionDoc) -> None:
        self._decorators(doc.decorators)
        self.out.append("def ")
        self.print(doc.name)
        self.out.append("(")
        self._join(doc.args)
        self.out.append(")")
        if doc.return_type is not None:
            self.out.append(" -> ")
            self.print(doc.return_type)
        self.out.append(":")
        self._definition_body(doc)
        self.out.append("\n")

    def class_(self, doc: d.ClassDoc) -> None:
        self._decorators(doc.decorators)
        self.out.append("class ")
        self.print(doc.name)
        self.out.append(":")
        self._definition_body(doc)

    def comment(self, doc: d.CommentDoc) -> None:
        if doc.comment:
            self._comment_lines(doc.comment)

    def docstring(self, doc: d.DocStringDoc) -> None:
        self._docstring(doc.comment)


def binding(doc: d.Doc) -> int:
    """How tightly an expression binds."""
    if isinstance(doc, d.OperationDoc):
        kind = doc.kind
        if kind == Op.IfThenElse:
            return CHOICE
        return (UNARY_OPERATORS.get(kind) or BINARY_OPERATORS[kind])[1]
    return LAMBDA if isinstance(doc, d.LambdaDoc) else ATOM


def literal_text(value: str | float | bool | int | None) -> str:
    """A literal as Python reads it; numbers with a fraction have 17 digits."""
    if isinstance(value, str):
        return '"' + "".join([_ESCAPES.get(char, char) for char in value]) + '"'
    if type(value) is not float:
        return str(value)
    if not math.isfinite(value):
        return f'"{value}"'
    if value == round(value):
        return f"{value:.1f}"
    return f"{value:.17g}"


def _without(span: Span, exempt: Sequence[Span]) -> list[Span]:
    """The parts of a span outside others."""
    start, end = span
    parts = []
    for low, high in exempt:
        if low < end and high > start:
            parts.append((start, low))
            start = high
    return [*parts, (start, end)]


_METHODS: dict[type, Callable[[DocPrinter, Any], None]] = {
    d.LiteralDoc: DocPrinter.literal,
    d.IdDoc: DocPrinter.name,
    d.AttrAccessDoc: DocPrinter.attribute,
    d.IndexDoc: DocPrinter.index,
    d.CallDoc: DocPrinter.call,
    d.OperationDoc: DocPrinter.operation,
    d.LambdaDoc: DocPrinter.function_value,
    d.TupleDoc: DocPrinter.tuple,
    d.ListDoc: DocPrinter.list,
    d.DictDoc: DocPrinter.dict,
    d.SliceDoc: DocPrinter.slice,
    d.StmtBlockDoc: DocPrinter.block,
    d.AssignDoc: DocPrinter.assign,
    d.IfDoc: DocPrinter.branch,
    d.WhileDoc: DocPrinter.loop_while,
    d.ForDoc: DocPrinter.loop_for,
    d.ScopeDoc: DocPrinter.scope,
    d.ExprStmtDoc: DocPrinter.expression,
    d.AssertDoc: DocPrinter.assertion,
    d.ReturnDoc: DocPrinter.result,
    d.FunctionDoc: DocPrinter.function,
    d.ClassDoc: DocPrinter.class_,
    d.CommentDoc: DocPrinter.comment,
    d.DocStringDoc: DocPrinter.docstring,
}

__all__ = ["to_python_script"]
