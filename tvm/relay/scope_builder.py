"""Build nested lets and conditionals with `with` blocks.

sb = relay.ScopeBuilder()
with sb.if_scope(cond):
    sb.ret(sb.let("one", relay.const(1.0)))
with sb.else_scope():
    sb.ret(x)
result = sb.get()
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import If, Let, Var
from tvm.support.scope import WithScope


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

    def if_scope(self, cond: RelayExpr) -> WithScope:
        """The branch taken if `cond` is true; an else_scope must follow."""
        outer = self._scopes[-1]
        outer.condition = cond

        def close(branch: RelayExpr) -> None:
            outer.true_branch = branch

        return self._branch("if_scope", close)

    def else_scope(self) -> WithScope:
        """The other branch of the if_scope just before."""
        outer = self._scopes[-1]
        condition, then = outer.condition, outer.true_branch
        if condition is None or then is None:
            raise RuntimeError("else_scope must follow if_scope")

        def close(branch: RelayExpr) -> None:
            self.ret(If(condition, then, branch))
            outer.condition = outer.true_branch = None

        return self._branch("else_scope", close)

    def _branch(self, name: str, close: Callable[[RelayExpr], None]) -> WithScope:
        scope = _Scope()
        self._scopes.append(scope)

        def leave() -> None:
            self._scopes.pop()
            close(_close(scope, name))

        return WithScope(None, leave)

    def type_of(self, expr: RelayExpr) -> Type:
        """The type of a variable or of a typed expression."""
        if isinstance(expr, Var) and expr.type_annotation is not None:
            return expr.type_annotation
        ty: Type = expr.checked_type
        return ty

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
