"""A syntax tree of Python text, from which scripts are printed.

    doc = AssignDoc(IdDoc("x"), IdDoc("f").call(LiteralDoc(1)))
    to_python_script(doc)        ->    x = f(1)

A document may say which parts of a program it came from: its source paths are what is underlined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum, auto, unique
from typing import NoReturn

from tvm.runtime.object import Object
from tvm.runtime.object_path import ObjectPath


class Doc(Object):
    """The base of all documents."""

    _source_paths: tuple[ObjectPath, ...] = ()

    @property
    def source_paths(self) -> tuple[ObjectPath, ...]:
        """Where in the program this text comes from."""
        return self._source_paths

    @source_paths.setter
    def source_paths(self, value: Iterable[ObjectPath]) -> None:
        self._source_paths = tuple(value)

    def __repr__(self) -> str:
        fields = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return f"{type(self).__name__}({', '.join([f'{k}={v!r}' for k, v in fields.items()])})"


class ExprDoc(Doc):
    """An expression."""

    def attr(self, name: str) -> AttrAccessDoc:
        """``self.name``"""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """``self(*args, **kwargs)``"""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices: ExprDoc | SliceDoc | tuple[ExprDoc | SliceDoc, ...]) -> IndexDoc:
        """``self[indices]``"""
        return IndexDoc(self, indices if isinstance(indices, tuple) else (indices,))

    def __iter__(self) -> NoReturn:
        """Indexing never ends, so that a document must not be taken for a sequence."""
        raise RuntimeError(f"{type(self).__name__} is no sequence")


class StmtDoc(Doc):
    """A statement, with a comment behind or above it."""

    _comment: str | None = None

    @property
    def comment(self) -> str | None:
        """The comment, of several lines for statements that have a body."""
        return self._comment

    @comment.setter
    def comment(self, value: str | None) -> None:
        self._comment = value


class StmtBlockDoc(Doc):
    """Statements one after the other."""

    def __init__(self, stmts: Sequence[StmtDoc]) -> None:
        self.stmts = tuple(stmts)


# ---- expressions


class LiteralDoc(ExprDoc):
    """None, a text or a number."""

    def __init__(
        self, value: str | float | bool | int | None, path: ObjectPath | None = None
    ) -> None:
        if not isinstance(value, (str, float, int, type(None))):
            raise TypeError(
                f"LiteralDoc requires a str, number or None, got {type(value).__name__}"
            )
        self.value = value
        if path is not None:
            self._source_paths = (path,)


class IdDoc(ExprDoc):
    """A name."""

    def __init__(self, name: str) -> None:
        self.name = name


class AttrAccessDoc(ExprDoc):
    """``value.name``"""

    def __init__(self, value: ExprDoc, name: str) -> None:
        self.value = value
        self.name = name


class IndexDoc(ExprDoc):
    """``value[indices]``"""

    def __init__(self, value: ExprDoc, indices: Sequence[ExprDoc | SliceDoc]) -> None:
        self.value = value
        self.indices = tuple(indices)


class CallDoc(ExprDoc):
    """``callee(*args, **kwargs)``"""

    def __init__(self, callee: ExprDoc, *args: ExprDoc, **kwargs: ExprDoc) -> None:
        self.callee = callee
        self.args = args
        self.kwargs_keys = tuple(kwargs)
        self.kwargs_values = tuple(kwargs.values())


@unique
class OperationKind(IntEnum):
    """The operators of Python."""

    _UnaryStart = 0
    USub = auto()
    Invert = auto()
    Not = auto()
    _UnaryEnd = auto()

    _BinaryStart = auto()
    Add = auto()
    Sub = auto()
    Mult = auto()
    Div = auto()
    FloorDiv = auto()
    Mod = auto()
    Pow = auto()
    LShift = auto()
    RShift = auto()
    BitAnd = auto()
    BitOr = auto()
    BitXor = auto()
    Lt = auto()
    LtE = auto()
    Eq = auto()
    NotEq = auto()
    Gt = auto()
    GtE = auto()
    And = auto()
    Or = auto()
    _BinaryEnd = auto()

    _SpecialStart = auto()
    IfThenElse = auto()
    _SpecialEnd = auto()


class OperationDoc(ExprDoc):
    """An operator with its operands; of IfThenElse the condition comes first."""

    def __init__(self, kind: OperationKind, operands: Sequence[ExprDoc]) -> None:
        self.kind = kind
        self.operands = tuple(operands)


class LambdaDoc(ExprDoc):
    """``lambda args: body``"""

    def __init__(self, args: Sequence[IdDoc], body: ExprDoc) -> None:
        self.args = tuple(args)
        self.body = body


class TupleDoc(ExprDoc):
    """``(a, b)``"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        self.elements = tuple(elements)


class ListDoc(ExprDoc):
    """``[a, b]``"""

    def __init__(self, elements: Sequence[ExprDoc]) -> None:
        self.elements = tuple(elements)


class DictDoc(ExprDoc):
    """``{key: value}``"""

    def __init__(self, content: Mapping[ExprDoc, ExprDoc]) -> None:
        self.keys = tuple(content)
        self.values = tuple(content.values())


class SliceDoc(ExprDoc):
    """``start:stop:step``, inside an index alone."""

    def __init__(
        self,
        start: ExprDoc | None = None,
        stop: ExprDoc | None = None,
        step: ExprDoc | None = None,
    ) -> None:
        self.start = start
        self.stop = stop
        self.step = step


# ---- statements


class AssignDoc(StmtDoc):
    """``lhs: annotation = rhs``"""

    def __init__(
        self, lhs: ExprDoc, rhs: ExprDoc | None, annotation: ExprDoc | None = None
    ) -> None:
        if rhs is None and annotation is None:
            raise ValueError("AssignDoc requires a right side or an annotation, got neither")
        if annotation is not None and isinstance(lhs, TupleDoc):
            raise ValueError("AssignDoc requires a single target for an annotation, got a tuple")
        self.lhs = lhs
        self.rhs = rhs
        self.annotation = annotation


class IfDoc(StmtDoc):
    """``if predicate: ... else: ...``"""

    def __init__(
        self,
        predicate: ExprDoc,
        then_branch: Sequence[StmtDoc],
        else_branch: Sequence[StmtDoc],
    ) -> None:
        if not then_branch and not else_branch:
            raise ValueError("IfDoc requires statements in a branch, got two empty ones")
        self.predicate = predicate
        self.then_branch = tuple(then_branch)
        self.else_branch = tuple(else_branch)


class WhileDoc(StmtDoc):
    """``while predicate: ...``"""

    def __init__(self, predicate: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.predicate = predicate
        self.body = tuple(body)


class ForDoc(StmtDoc):
    """``for lhs in rhs: ...``"""

    def __init__(self, lhs: ExprDoc, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.body = tuple(body)


class ScopeDoc(StmtDoc):
    """``with rhs as lhs: ...``"""

    def __init__(self, lhs: ExprDoc | None, rhs: ExprDoc, body: Sequence[StmtDoc]) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.body = tuple(body)


class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    def __init__(self, expr: ExprDoc) -> None:
        self.expr = expr


class AssertDoc(StmtDoc):
    """``assert test, msg``"""

    def __init__(self, test: ExprDoc, msg: ExprDoc | None = None) -> None:
        self.test = test
        self.msg = msg


class ReturnDoc(StmtDoc):
    """``return value``"""

    def __init__(self, value: ExprDoc) -> None:
        self.value = value


class FunctionDoc(StmtDoc):
    """A function; its comment is the docstring."""

    def __init__(
        self,
        name: IdDoc,
        args: Sequence[AssignDoc],
        decorators: Sequence[ExprDoc],
        return_type: ExprDoc | None,
        body: Sequence[StmtDoc],
    ) -> None:
        self.name = name
        self.args = tuple(args)
        self.decorators = tuple(decorators)
        self.return_type = return_type
        self.body = tuple(body)


class ClassDoc(StmtDoc):
    """A class; its comment is the docstring."""

    def __init__(self, name: IdDoc, decorators: Sequence[ExprDoc], body: Sequence[StmtDoc]) -> None:
        self.name = name
        self.decorators = tuple(decorators)
        self.body = tuple(body)


class CommentDoc(StmtDoc):
    """``# comment``; an empty one is an empty line."""

    def __init__(self, comment: str) -> None:
        self._comment = comment


class DocStringDoc(StmtDoc):
    """A text in triple quotes."""

    def __init__(self, docs: str) -> None:
        self._comment = docs
