"""Build nested lets and conditionals with `with` blocks.

sb = relay.ScopeBuilder()
with sb.if_scope(cond):
    sb.ret(sb.let("one", relay.const(1.0)))
with sb.else_scope():
    sb.ret(x)
result = sb.get()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import If, Let, Var


class _Scope:
    """The lets and the result gathered so far in one block."""

    def __init__(self) -> None:
        self.bindings: list[tuple[Var, RelayExpr]] = []
        self.result: RelayExpr | None = None
        self.condition: RelayExpr | None = None
        self.true_branch: RelayExpr | None = None


class ScopeBuilder:
    """Collects bindings; `get` returns the expression."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]

    def let(self, var: Var | str | tuple[str, Type], value: RelayExpr) -> Var:
        """Bind `value`; `var` may be a name, or a name and a type."""
        if isinstance(var, tuple):
            var = Var(*var)
        elif isinstance(var, str):
            var = Var(var)
        self._scopes[-1].bindings.append((var, value))
        return var

    @contextmanager
    def if_scope(self, cond: RelayExpr) -> Iterator[None]:
        """The branch taken if `cond` is true; an else_scope must follow."""
        outer = self._scopes[-1]
        outer.condition = cond
        with self._branch() as scope:
            yield
        outer.true_branch = _close(scope, "if_scope")

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch of the if_scope just before."""
        outer = self._scopes[-1]
        if outer.condition is None or outer.true_branch is None:
            raise RuntimeError("else_scope must follow if_scope")
        with self._branch() as scope:
            yield
        self.ret(If(outer.condition, outer.true_branch, _close(scope, "else_scope")))
        outer.condition = outer.true_branch = None

    @contextmanager
    def _branch(self) -> Iterator[_Scope]:
        scope = _Scope()
        self._scopes.append(scope)
        try:
            yield scope
        finally:
            self._scopes.pop()

    def type_of(self, expr: RelayExpr) -> Type:
        """The type of a variable or of a typed expression."""
        if isinstance(expr, Var) and expr.type_annotation is not None:
            return expr.type_annotation
        return expr.checked_type

    def ret(self, value: RelayExpr) -> None:
        """Set the value of the current block."""
        scope = self._scopes[-1]
        if scope.result is not None:
            raise RuntimeError("ret can only be called once in a scope")
        scope.result = value

    def get(self) -> RelayExpr:
        """The expression built."""
        return _close(self._scopes[-1], "the outermost scope")


def _close(scope: _Scope, name: str) -> RelayExpr:
    if scope.result is None:
        raise RuntimeError(f"no value was returned in {name}: call ret")
    body = scope.result
    for variable, value in reversed(scope.bindings):
        body = Let(variable, value, body)
    return body
