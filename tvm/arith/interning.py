"""Hash-consing: one node for each distinct expression an analyzer has seen.

Equal expressions become the same object, so comparing them is `is`, repeated variables of a rule match by identity,
and everything known about an expression is kept under its `id`. The table keeps its nodes alive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, Role
from tvm.support.dtype import DType
from tvm.tir import expr as tir
from tvm.tir.intrinsics import effect_of

_BINARY = (
    tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max,
    tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or,
)  # fmt: skip


class Interner:
    """The table of distinct expressions."""

    def __init__(self) -> None:
        self._table: dict[Any, Any] = {}
        # id of any expression seen -> (it, its representative); the pair keeps the id in use
        self._known: dict[int, tuple[Any, Any]] = {}
        self._constants: dict[tuple[DType, int], tir.IntImm] = {}
        self._serials: dict[int, int] = {}

    def intern(self, expr: Any) -> Any:
        """The representative of all expressions equal to this one."""
        found = self._known.get(id(expr))
        if found is not None:
            return found[1]
        method = _METHODS.get(expr.__class__)
        result = self._generic(expr) if method is None else method(self, expr)
        self._known[id(expr)] = (expr, result)
        return result

    def has_seen(self, expr: PrimExpr) -> bool:
        return id(expr) in self._known

    def binary(self, cls: Any, a: Any, b: Any) -> Any:
        """The representative of `cls(a, b)` for operands that are representatives."""
        key = (cls, id(a), id(b))
        found = self._table.get(key)
        if found is None:
            found = self._keep(key, cls(a, b))
        return found

    def node(self, expr: Any) -> Any:
        """The representative of a node whose children are representatives."""
        key = _key(expr)
        found = self._table.get(key)
        return self._keep(key, expr) if found is None else found

    def constant(self, value: int, dtype: DType) -> Any:
        key = (dtype, value)
        found = self._constants.get(key)
        if found is None:
            if dtype.lanes > 1:
                element = self.constant(value, dtype.element)
                return self.node(tir.Broadcast(element, dtype.lanes))
            if dtype.is_float:
                return self.node(tir.FloatImm(dtype, value))
            found = self._keep(("int", dtype, value), tir.int_imm(dtype, value))
            self._constants[key] = found
        return found

    def serial(self, expr: PrimExpr) -> int:
        """A number that orders representatives by first use, the same in every run."""
        serials = self._serials
        found = serials.get(id(expr))
        if found is None:
            found = serials[id(expr)] = len(serials)
        return found

    def _keep(self, key: Any, expr: Any) -> Any:
        self._table[key] = expr
        self._known[id(expr)] = (expr, expr)
        return expr

    def _itself(self, expr: Any) -> Any:
        return expr

    def _int_imm(self, expr: tir.IntImm) -> Any:
        key = (expr.dtype, expr.value)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._keep(("int", *key), expr)
        return found

    def _binary(self, expr: Any) -> Any:
        a, b = self.intern(expr.a), self.intern(expr.b)
        key = (expr.__class__, id(a), id(b))
        found = self._table.get(key)
        if found is None:
            fresh = expr if a is expr.a and b is expr.b else expr.__class__(a, b)
            found = self._keep(key, fresh)
        return found

    def _generic(self, expr: Node) -> Any:
        return self.node(expr.map_children(self.intern))


# each takes expressions of its own kind; two unknown dimensions are not known to be equal
_METHODS: dict[type, Callable[[Interner, Any], Any]] = {
    **dict.fromkeys(_BINARY, Interner._binary),
    tir.IntImm: Interner._int_imm,
    **dict.fromkeys((tir.Var, tir.SizeVar, tir.Any), Interner._itself),
}


def _key(expr: Node) -> Any:
    """What makes a node different from others of interned children."""
    parts: list[Any] = [expr.__class__]
    for name, is_leaf in _distinguishing_fields(expr.__class__):
        value = getattr(expr, name)
        if is_leaf:
            parts.append(_leaf_key(value))
        elif isinstance(value, (tuple, list)):
            parts.append(tuple([id(item) for item in value]))
        else:
            parts.append(None if value is None else id(value))
    if isinstance(expr, tir.Call) and effect_of(expr.op) > tir.CallEffectKind.ReadState:
        # two calls of a random generator are two values
        parts.append(id(expr))
    return tuple(parts)


@cache
def _distinguishing_fields(cls: type[Node]) -> tuple[tuple[str, bool], ...]:
    """The fields that tell nodes of a class apart, and whether they are leaves."""
    fields = [f for f in cls.node_fields if f.role is not Role.IGNORED and f.expression is None]
    return tuple([(field.name, field.role is Role.LEAF) for field in fields])


def _leaf_key(value: Any) -> Any:
    # zeros of both signs are equal in Python, and a NaN is not equal to itself
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (str, int, bool)) or value is None:
        return value
    return id(value)
