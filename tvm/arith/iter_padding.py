"""Iterators that are made longer, so that divisions come out even.

i in [0, 10)    (i + 3) // 4, (i + 3) % 4    ->    splits of i + 3 in [0, 16)
                                                   padding: (i + 3) // 4 == 0 and (i + 3) % 4 < 3
                                                            or (i + 3) // 4 == 3 and 1 <= (i + 3) % 4
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import expr as tir
from tvm.tir import op

from .analyzer import Analyzer
from .iter_map import IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr


class NotAffineError(Exception):
    """An index that is no sum of splits; the text says why."""


@dataclass(slots=True)
class _Padding:
    """What an iterator is padded to multiples of, behind how much; and whether it must be."""

    factor: PrimExpr
    left: PrimExpr
    needed: bool = False


class Paddings:
    """Which splits are padded to what.

    A division may come after others of the same iterator, so indices are read until nothing new is noted.
    """

    def __init__(self, analyzer: Analyzer, allowed: bool) -> None:
        self.analyzer = analyzer
        self.allowed = allowed
        self.changed = False
        self._noted: dict[Any, _Padding] = {}
        self._marks: dict[Any, tuple[IterMark, PrimExpr]] = {}
        self._used: dict[Any, PrimExpr] = {}

    def start(self) -> None:
        """Indices are read anew."""
        self.changed = False
        self._used.clear()

    def is_settled(self) -> bool:
        """Whether another reading finds nothing else; where nothing is padded, the first one is the last."""
        return not (self.changed and any([noted.needed for noted in self._noted.values()]))

    def note(
        self, key: Any, step: PrimExpr, offset: PrimExpr, needed: bool, expr: PrimExpr
    ) -> bool:
        """Note a division of a split and an offset by ``step``; whether the split is padded."""
        if needed and not self.allowed:
            raise NotAffineError(f"{expr} needs an iterator of full steps of {step}")
        left = self.analyzer.simplify(op.floormod(offset, step))
        known = self._noted.get(key)
        if known is None:
            known = self._noted[key] = _Padding(step, left)
            self.changed = True
        both = self._both(known, step, left)
        if both is None:
            if needed or known.needed:
                raise NotAffineError(f"{expr} needs a padding that another division cannot have")
            return False
        if both[0] is not known.factor or (needed and not known.needed):
            known.factor, known.left = both
            known.needed, self.changed = known.needed or needed, True
        return known.needed

    def _both(
        self, known: _Padding, step: PrimExpr, left: PrimExpr
    ) -> tuple[PrimExpr, PrimExpr] | None:
        """A padding that serves a division by ``step`` too, behind ``left`` modulo it."""
        numbers = [known.factor, known.left, step, left]
        values = [number.value for number in numbers if isinstance(number, tir.IntImm)]
        if len(values) == 4:
            factor, first, count, wanted = values
            least = math.lcm(factor, count)
            fitting = [place for place in range(first, least, factor) if place % count == wanted]
            if not fitting or least == factor:
                return (known.factor, known.left) if fitting else None
            return tir.const(least, step.dtype), tir.const(fitting[0], step.dtype)
        equal = self.analyzer.can_prove_equal
        if not equal(known.left, left):
            return None
        if equal(op.floormod(known.factor, step), 0):
            return known.factor, known.left
        return (step, left) if equal(op.floormod(step, known.factor), 0) else None

    def padded(
        self, key: Any, split: IterSplitExpr, offset: PrimExpr
    ) -> tuple[IterSplitExpr, PrimExpr]:
        """All of a padded iterator with the value ``split + offset - base``, and that base."""
        simple, factor = self.analyzer.simplify, self._noted[key].factor
        left = self._noted[key].left
        end = simple(op.add(split.extent, left))
        extent = simple(op.multiply(op.floordiv(op.add(end, factor - 1), factor), factor))
        one = tir.const(1, split.dtype)
        place = (key, str(left), str(extent))
        if place not in self._marks:
            mark = IterMark(IterSumExpr((split.replace(scale=one),), left), extent)
            value = normalize_iter_map_to_expr(mark.source)
            self._marks[place] = mark, _outside(value, factor, left, end)
        mark, self._used[place] = self._marks[place]
        return IterSplitExpr(mark, one, extent, one), simple(op.subtract(offset, left))

    def predicate(self) -> PrimExpr:
        """Where the iterators stand on what was added to them."""
        return op.any(tir.const(False, "bool"), *self._used.values())


def _outside(value: PrimExpr, factor: PrimExpr, left: PrimExpr, end: PrimExpr) -> PrimExpr:
    """Where a padded iterator is below ``left`` or not below ``end``.

    What is below is in the first ``factor`` values, what is not below ``end`` in the last: where
    quotient and remainder are indices of their own, the condition has one comparison for each.
    """
    quotient, remainder = op.floordiv(value, factor), op.floormod(value, factor)
    before = op.all(op.not_equal(left, 0), op.equal(quotient, 0), op.less(remainder, left))
    behind = op.all(
        op.not_equal(op.floormod(end, factor), 0),
        op.equal(quotient, op.floordiv(end, factor)),
        op.greater_equal(remainder, op.floormod(end, factor)),
    )
    return op.any(before, behind)
