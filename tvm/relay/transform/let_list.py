"""Code as it is written down: one let after the other, then the value."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.adt import Clause, Match
from tvm.relay.expr import If, Let, Var
from tvm.relay.function import Function, is_primitive


class LetList:
    """The bindings of one block."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, RelayExpr]] = []

    def push(self, value: RelayExpr, ty: Type | None = None, name: str = "x") -> Var:
        """A new variable for the value."""
        variable = Var(name, ty)
        self.bindings.append((variable, value))
        return variable

    def bind(self, variable: Var, value: RelayExpr) -> Var:
        """The value by a variable that exists already."""
        self.bindings.append((variable, value))
        return variable

    def get(self, body: RelayExpr) -> RelayExpr:
        """The block with its value."""
        for variable, value in reversed(self.bindings):
            body = Let(variable, value, body)
        return body


def with_inner_blocks(value: RelayExpr, rewrite: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
    """What a let binds, with the blocks in it rewritten: branches, clauses, a function's body."""
    if isinstance(value, If):
        then, other = rewrite(value.true_branch), rewrite(value.false_branch)
        return value.replace(true_branch=then, false_branch=other)
    if isinstance(value, Match):
        clauses = [Clause(c.lhs, rewrite(c.rhs)) for c in value.clauses]
        return value.replace(clauses=tuple(clauses))
    if isinstance(value, Function) and not is_primitive(value):
        return value.replace(body=rewrite(value.body))
    return value
