"""Natural numbers of the library's `nat.rly`, from Python and back."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.backend.interpreter import ConstructorValue
from tvm.relay.prelude import Prelude


def get_type(prelude: Prelude, name: str) -> tuple[Any, ...]:
    """A type's global variable and its constructors; the numbers are imported if need be."""
    if "nat_add" not in prelude.mod:
        prelude.mod.import_from_std("nat.rly")
    return prelude.mod.get_type(name)


def count(prelude: Prelude, n: RelayExpr | ConstructorValue) -> int:
    """The number that a value, or an expression of constructors, stands for."""
    _, zero, successor = get_type(prelude, "nat")
    number = 0
    while True:
        constructor, fields = _parts(n)
        if constructor.name_hint == zero.name_hint:
            return number
        if constructor.name_hint != successor.name_hint:
            raise TypeError(f"count requires a natural number, got {constructor.name_hint}")
        number, n = number + 1, fields[0]


def _parts(n: Any) -> tuple[Any, Any]:
    if isinstance(n, ConstructorValue):
        return n.constructor, n.fields
    return n.op, n.args


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The number as a value."""
    _, zero, successor = get_type(prelude, "nat")
    value = ConstructorValue(zero.tag, [], zero)
    for _ in range(n):
        value = ConstructorValue(successor.tag, [value], successor)
    return value


def make_nat_expr(prelude: Prelude, n: int) -> RelayExpr:
    """The number as an expression."""
    if n < 0:
        raise ValueError(f"make_nat_expr requires a number from 0 on, got {n}")
    _, zero, successor = get_type(prelude, "nat")
    expr: RelayExpr = zero()
    for _ in range(n):
        expr = successor(expr)
    return expr
