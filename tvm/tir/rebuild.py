"""The functions that build each class of operators: they convert, unify data types and fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import PrimExpr

from . import expr as e
from . import op

BINARY: dict[type, Callable[[Any, Any], PrimExpr]] = {
    e.Add: op.add,
    e.Sub: op.subtract,
    e.Mul: op.multiply,
    e.Div: op.div,
    e.Mod: op.truncmod,
    e.FloorDiv: op.floordiv,
    e.FloorMod: op.floormod,
    e.Min: op.minimum,
    e.Max: op.maximum,
    e.EQ: op.equal,
    e.NE: op.not_equal,
    e.LT: op.less,
    e.LE: op.less_equal,
    e.GT: op.greater,
    e.GE: op.greater_equal,
    e.And: op.logical_and,
    e.Or: op.logical_or,
}

__all__ = ["BINARY"]
