"""What the pattern languages of relay and relax share: matches that are taken back, and attributes.

A match notes what each pattern stands for, in order; what an alternative that fails has noted is
taken back. A pattern that occurs twice stands for one expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from tvm.ir.expr import BaseExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal

P = TypeVar("P")


class Backtracking(Generic[P]):
    """One comparison: `found` lists what the patterns stand for after `match` was true."""

    def __init__(self) -> None:
        self.found: list[tuple[P, RelayExpr]] = []
        self._bound: dict[P, RelayExpr] = {}

    def _methods(self) -> Mapping[type, Callable[..., bool]]:
        """The method that compares each kind of pattern with an expression."""
        raise NotImplementedError

    def match(self, pattern: P, expr: RelayExpr) -> bool:
        """Whether `expr` looks like `pattern`; notes nothing if not."""
        if (bound := self._bound.get(pattern)) is not None:
            return bound is expr
        mark = len(self.found)
        if not self._methods()[type(pattern)](self, pattern, expr):
            self._take_back(mark)
            return False
        self._bound[pattern] = expr
        self.found.append((pattern, expr))
        return True

    def _take_back(self, mark: int, keep: bool = False) -> None:
        """Forget what was noted since `mark`, or only let the patterns free again."""
        for pattern, _ in self.found[mark:]:
            self._bound.pop(pattern, None)
        if not keep:
            del self.found[mark:]

    def _all(self, patterns: Sequence[P], exprs: Sequence[RelayExpr]) -> bool:
        if len(patterns) != len(exprs):
            return False
        mark = len(self.found)
        for pattern, expr in zip(patterns, exprs, strict=True):
            if not self.match(pattern, expr):
                self._take_back(mark)
                return False
        return True


def has_attributes(expr: RelayExpr, wanted: Mapping[str, Any]) -> bool:
    """Whether an operator, a call or a function has attributes of these values."""
    if isinstance(expr, Op):
        return all(
            [expr.has_attr(k) and is_same_value(expr.get_attr(k), v) for k, v in wanted.items()]
        )
    attrs = getattr(expr, "attrs", None)
    if attrs is None:
        return not wanted
    return all([k in attrs and is_same_value(attrs[k], v) for k, v in wanted.items()])


def is_same_value(a: Any, b: Any) -> bool:
    """Whether two attribute values are equal, immediates and lists taken as Python's."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all([is_same_value(x, y) for x, y in zip(a, b, strict=True)])
    a, b = _plain(a), _plain(b)
    if isinstance(a, BaseExpr) or isinstance(b, BaseExpr):
        return type(a) is type(b) and structural_equal(a, b)
    return bool(a == b)


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)
