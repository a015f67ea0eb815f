"""The pieces of an iteration map: iterators, their splits, sums of splits.

IterMark(i, 128)                         the iterator i in [0, 128)
IterSplitExpr(mark, 4, 8, 16)            (i // 4) % 8 * 16
IterSumExpr((split, ...), base)          split + ... + base
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from tvm.error import RuntimeValueError, suggest
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, child, derived
from tvm.support.dtype import DType
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.expr import as_expr

from .analyzer import Analyzer


class IterMapExpr(PrimExpr, key="arith.IterMapExpr"):
    """An expression over iterators."""


class IterMark(Node, key="arith.IterMark"):
    """An iterator: what it stands for, and its extent."""

    source: PrimExpr
    extent: PrimExpr = child(convert=as_expr)


class IterSplitExpr(IterMapExpr, key="arith.IterSplitExpr"):
    """`(source // lower_factor) % extent * scale`"""

    source: IterMark
    lower_factor: PrimExpr = child(convert=as_expr)
    extent: PrimExpr = child(convert=as_expr)
    scale: PrimExpr = child(convert=as_expr)
    dtype: DType = derived("source.source.dtype")


class IterSumExpr(IterMapExpr, key="arith.IterSumExpr"):
    """The sum of splits and a base that no iterator is in."""

    args: tuple[IterSplitExpr, ...]
    base: PrimExpr
    dtype: DType = derived("base.dtype")

    def __init__(self, args: Iterable[IterSplitExpr], base: Any) -> None:
        self._init(tuple(args), as_expr(base), None)


class IterMapResult(Node, key="arith.IterMapResult"):
    """What `detect_iter_map` found: a sum for each index, or the reasons why not."""

    indices: tuple[IterSumExpr, ...]
    errors: tuple[str, ...]
    padding_predicate: PrimExpr


class IterMapLevel(IntEnum):
    """What a map must be."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str) -> IterMapLevel:
        """The level of a name, upper or lower case."""
        levels: dict[str, IterMapLevel] = {level.name.lower(): level for level in IterMapLevel}
        if (found := levels.get(name.lower())) is None:
            hint = suggest(name.lower(), levels)
            raise RuntimeValueError(
                f"IterMapLevel requires one of {[*levels]}, got {name!r}; hint: {hint}"
            )
        return found


def as_level(value: Any) -> IterMapLevel:
    return IterMapLevel.from_str(value) if isinstance(value, str) else IterMapLevel(value)


def normalize_iter_map_to_expr(expr: PrimExpr) -> PrimExpr:
    """The ordinary expression that an iteration map stands for."""
    if isinstance(expr, IterSumExpr):
        total: PrimExpr = tir.const(0, expr.dtype)
        for split in expr.args:
            total = op.add(total, normalize_iter_map_to_expr(split))
        return op.add(total, expr.base)
    if not isinstance(expr, IterSplitExpr):
        return expr
    source = expr.source.source
    value = normalize_iter_map_to_expr(source) if isinstance(source, IterMapExpr) else source
    top = Analyzer().can_prove_equal(
        op.multiply(expr.lower_factor, expr.extent), expr.source.extent
    )
    if not top:
        value = op.floormod(value, op.multiply(expr.lower_factor, expr.extent))
    value = op.floordiv(value, expr.lower_factor)
    return op.multiply(value, expr.scale)
