"""Algebraic data types: constructors' patterns and `match`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tvm.ir.adt import Constructor, TypeData
from tvm.ir.expr import RelayExpr
from tvm.ir.node import Node, binder, child, leaf, reference
from tvm.ir.span import Span
from tvm.relay.expr import ExprWithOp, Var


def _tuple(values: Sequence[object] | None) -> tuple[object, ...]:
    return tuple(values or ())


class Pattern(Node, key="relay.Pattern"):
    """What a match clause compares a value with."""

    operand_kind: ClassVar[str] = "part"

    def bound_vars(self) -> list[Var]:
        """The variables that the pattern binds, from left to right."""
        return []


class PatternWildcard(Pattern, key="relay.PatternWildcard"):
    """_: anything"""


class PatternVar(Pattern, key="relay.PatternVar"):
    """Anything, bound to a variable."""

    var: Var = binder()

    def bound_vars(self) -> list[Var]:
        return [self.var]


class PatternConstructor(Pattern, key="relay.PatternConstructor"):
    """A value that the constructor built, its fields matched in turn."""

    constructor: Constructor = reference()
    patterns: tuple[Pattern, ...] = child(default=(), convert=_tuple)

    if TYPE_CHECKING:

        def __init__(
            self,
            constructor: Constructor,
            patterns: Sequence[Pattern] | None = None,
        ) -> None: ...

    def bound_vars(self) -> list[Var]:
        return [v for pattern in self.patterns for v in pattern.bound_vars()]


class PatternTuple(Pattern, key="relay.PatternTuple"):
    """A tuple, its fields matched in turn."""

    patterns: tuple[Pattern, ...] = child(default=(), convert=_tuple)

    if TYPE_CHECKING:

        def __init__(
            self,
            patterns: Sequence[Pattern] | None = None,
        ) -> None: ...

    def bound_vars(self) -> list[Var]:
        return [v for pattern in self.patterns for v in pattern.bound_vars()]


class Clause(Node, key="relay.Clause"):
    """One case of a match: pattern and result."""

    operand_kind: ClassVar[str] = "part"

    lhs: Pattern
    rhs: RelayExpr


class Match(ExprWithOp, key="relay.Match"):
    """Evaluate the first clause whose pattern fits."""

    data: RelayExpr
    clauses: tuple[Clause, ...] = child(convert=_tuple)
    complete: bool = leaf(default=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            data: RelayExpr,
            clauses: Sequence[Clause],
            complete: bool = True,
            span: Span | None = None,
        ) -> None: ...


__all__ = [
    "Clause",
    "Constructor",
    "Match",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TypeData",
]
