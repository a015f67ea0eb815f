"""Code as it is written down: one let after the other, then the value."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Let, Var


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
