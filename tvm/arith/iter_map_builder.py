"""Indices as sums of splits of iterators, piece by piece.

i*16 + j    ->    one fused iterator          (i*16 + j) // 4    ->    a split of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import expr as tir
from tvm.tir import op
from tvm.tir.constants import is_const

from .analyzer import Analyzer
from .iter_map import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr
from .iter_padding import NotAffineError, Paddings
from .pattern import conjuncts, uses


@dataclass(frozen=True, slots=True)
class Limit:
    """What a predicate says: splits that sum up to ``first`` and the values of an iterator."""

    key: tuple[Any, ...]
    mark: IterMark
    first: PrimExpr


class IterMapBuilder:
    """Rewrites indices to sums of splits of iterators."""

    def __init__(
        self,
        input_iters: Mapping[tir.Var, tir.Range],
        analyzer: Analyzer,
        pads: bool = False,
        simplify_trivial: bool = True,
        pads_short: bool = False,
    ) -> None:
        self.analyzer = analyzer
        self.paddings = Paddings(analyzer, pads)
        # whether an iterator is padded that is shorter than what divides it
        self._pads_short = pads_short
        self.variables = list(input_iters)
        self._sums: dict[int, IterSumExpr] = {}
        self._fused: dict[Any, IterMark] = {}
        self._limits: list[Limit] = []
        # the expressions that were read, by their identities, and their sums; None before limits are known
        self._read: dict[int, tuple[Any, IterSumExpr]] | None = None
        # quotients and remainders of sums, which most often are both in an index
        self._quotients: dict[Any, tuple[IterSumExpr, IterSumExpr, IterSumExpr]] = {}
        self.marks: list[IterMark] = []
        for var, domain in input_iters.items():
            analyzer.bind(var, domain, True)
            offset = analyzer.simplify(domain.min)
            source: PrimExpr = var if is_const(offset, 0) else op.subtract(var, offset)
            mark = IterMark(source, analyzer.simplify(domain.extent))
            self.marks.append(mark)
            is_trivial = simplify_trivial and is_const(mark.extent, 1)
            parts = () if is_trivial else (self._whole(mark),)
            self._sums[id(var)] = IterSumExpr(parts, offset)

    # ---- from expressions to sums

    def start_reading(self) -> None:
        """Indices are read anew: all limits are known, and the paddings that earlier readings found."""
        self.paddings.start()
        self._read = {}
        self._quotients = {}

    def visit(self, expr: Any) -> IterSumExpr:
        """The expression as a sum of splits."""
        if isinstance(expr, tir.Var) and id(expr) in self._sums:
            return self._sums[id(expr)]
        if self._read is None:
            return self._visit(expr)
        # x // c * c + x % c names x twice, and so on inwards
        found = self._read.get(id(expr))
        if found is None:
            found = self._read[id(expr)] = expr, self._visit(expr)
        return found[1]

    def _visit(self, expr: Any) -> IterSumExpr:
        if not uses(expr, self.variables):
            return IterSumExpr((), expr)
        if isinstance(expr, tir.Add):
            return self.add(self.visit(expr.a), self.visit(expr.b), 1)
        if isinstance(expr, tir.Sub):
            return self.add(self.visit(expr.a), self.visit(expr.b), -1)
        if isinstance(expr, tir.Mul):
            return self._multiply(expr)
        if isinstance(expr, (tir.FloorDiv, tir.FloorMod)):
            return self._divide(expr)
        raise NotAffineError(f"{expr} is no sum, product with a constant, or division")

    def _whole(self, mark: IterMark) -> IterSplitExpr:
        one = tir.const(1, mark.source.dtype)
        return IterSplitExpr(mark, one, mark.extent, one)

    def add(self, a: IterSumExpr, b: IterSumExpr, sign: int) -> IterSumExpr:
        """Splits that are the same but for their scale are added up."""
        parts = {self._split_key(split): split for split in a.args}
        for split in b.args:
            key = self._split_key(split)
            scale = split.scale if sign > 0 else op.negative(split.scale)
            if key in parts:
                scale = op.add(parts[key].scale, scale)
            parts[key] = split.replace(scale=self._simple(scale))
        args = [split for split in parts.values() if not is_const(split.scale, 0)]
        base = op.add(a.base, b.base) if sign > 0 else op.subtract(a.base, b.base)
        return IterSumExpr(args, self._simple(base))

    def _multiply(self, expr: tir.Mul) -> IterSumExpr:
        value, factor = (expr.a, expr.b) if uses(expr.a, self.variables) else (expr.b, expr.a)
        if uses(factor, self.variables):
            raise NotAffineError(f"{expr} multiplies iterators")
        return self.scaled(self.visit(value), factor)

    def scaled(self, total: IterSumExpr, factor: PrimExpr) -> IterSumExpr:
        args = [s.replace(scale=self._simple(op.multiply(s.scale, factor))) for s in total.args]
        return IterSumExpr(args, self._simple(op.multiply(total.base, factor)))

    def _divide(self, expr: Any) -> IterSumExpr:
        if uses(expr.b, self.variables):
            raise NotAffineError(f"{expr} divides by an iterator")
        total = self.visit(expr.a)
        if isinstance(expr.b, tir.IntImm):
            return self._divided(total, expr)
        # what indices are divided by is the extent of a part: where it is zero, nothing iterates
        with self.analyzer.constraint_scope(op.greater(expr.b, 0)):
            return self._divided(total, expr)

    def _divided(self, total: IterSumExpr, expr: Any) -> IterSumExpr:
        key = id(total), self._key(expr.b)
        found = self._quotients.get(key) if self._read is not None else None
        if found is None:
            found = self._quotients[key] = total, *self._quotient_and_remainder(total, expr)
        return found[1] if isinstance(expr, tir.FloorDiv) else found[2]

    def _quotient_and_remainder(
        self, total: IterSumExpr, expr: Any
    ) -> tuple[IterSumExpr, IterSumExpr]:
        divisor = expr.b
        fused = self.fuse(IterSumExpr(total.args, zero_of(total)))
        base = self._simple(op.add(total.base, fused.base))
        if fused.args and not self._divides(divisor, fused.args[0].scale):
            quotient, remainder = self._divide_split(fused.args[0], base, divisor, expr)
        else:
            # (d*s*x + b) // d = s*x + b // d;   (d*s*x + b) % d = b % d
            parts = self.scaled_down(fused.args, divisor)
            quotient = IterSumExpr(parts, self._simple(op.floordiv(base, divisor)))
            remainder = IterSumExpr((), self._simple(op.floormod(base, divisor)))
        return quotient, remainder

    def scaled_down(
        self, splits: Sequence[IterSplitExpr], divisor: PrimExpr
    ) -> list[IterSplitExpr]:
        return [s.replace(scale=self._simple(op.floordiv(s.scale, divisor))) for s in splits]

    def _divide_split(
        self, split: IterSplitExpr, base: PrimExpr, divisor: PrimExpr, expr: PrimExpr
    ) -> tuple[IterSumExpr, IterSumExpr]:
        """Quotient and remainder of a split and an offset."""
        scale = split.scale
        if not self._divides(scale, divisor):
            raise NotAffineError(f"{expr} divides steps of {scale}")
        # (s*x + s*b + r) // (s*c) = (x + b) // c;   (s*x + s*b + r) % (s*c) = s*((x + b) % c) + r
        step = self._simple(op.floordiv(divisor, scale))
        offset = self._simple(op.floordiv(base, scale))
        rest = self._simple(op.floormod(base, scale))
        fits = self._divides(step, offset)
        is_short = (
            fits
            and not self._pads_short
            and self.analyzer.can_prove(op.less_equal(split.extent, step))
        )
        needed = not is_short and not (fits and self._divides(step, split.extent))
        key = self._split_key(split)
        if self.paddings.note(key, step, offset, needed, expr):
            split, offset = self.paddings.padded(key, split, offset)
        elif is_short:
            quotient = self._simple(op.floordiv(offset, step))
            return IterSumExpr((), quotient), IterSumExpr((split,), rest)
        one = tir.const(1, split.dtype)
        high = IterSplitExpr(
            split.source,
            self._simple(op.multiply(split.lower_factor, step)),
            self._simple(op.floordiv(split.extent, step)),
            one,
        )
        low = split.replace(extent=step, scale=scale)
        quotient = self._simple(op.floordiv(offset, step))
        return IterSumExpr((high,), quotient), IterSumExpr((low,), rest)

    # ---- fusion

    def fuse(self, total: IterSumExpr) -> IterSumExpr:
        """The sum as one split and an offset: scales must step by the extents below them, or by less.

        Values that several iterators make are reached more than once then, which no bijective map may do.
        """
        total = self._limited(total)
        args = self.sorted_args(total)
        if len(args) <= 1:
            return total
        unit = args[-1].scale
        self._check_compact(args, total)
        reduced = self.scaled_down(args, unit)
        key = self._sum_key(reduced)
        mark = self._fused.get(key)
        if mark is None:
            extent: PrimExpr = tir.const(1, total.dtype)
            for split in reduced:
                # what sums reach, also where they overlap
                reach = op.multiply(op.subtract(split.extent, 1), split.scale)
                extent = op.add(extent, reach)
            extent = self._simple(extent)
            mark = self._fused[key] = IterMark(IterSumExpr(reduced, zero_of(total)), extent)
        return IterSumExpr((self._whole(mark).replace(scale=unit),), total.base)

    def _limited(self, total: IterSumExpr) -> IterSumExpr:
        """The sum with one iterator in the place of those that a predicate limits together."""
        for limit in self._limits:
            args = self.sorted_args(total)
            count = len(limit.key)
            for start in range(len(args) - count + 1):
                part = args[start : start + count]
                unit = part[-1].scale
                if self._sum_key(self.scaled_down(part, unit)) == limit.key:
                    split = self._whole(limit.mark).replace(scale=unit)
                    base = self._simple(op.add(total.base, op.multiply(limit.first, unit)))
                    total = IterSumExpr([*args[:start], split, *args[start + count :]], base)
                    break
        return total

    def _sum_key(self, splits: Sequence[IterSplitExpr]) -> tuple[Any, ...]:
        return tuple([self._split_key(s) + (self._key(s.scale),) for s in splits])

    def sorted_args(self, total: IterSumExpr) -> list[IterSplitExpr]:
        """The splits, largest scale first."""
        left = list(total.args)
        done: list[IterSplitExpr] = []
        while left:
            smallest = left[0]
            for split in left[1:]:
                if self._is_smaller(split, smallest):
                    smallest = split
            left.remove(smallest)
            done.append(smallest)
        return done[::-1]

    def _is_smaller(self, a: IterSplitExpr, b: IterSplitExpr) -> bool:
        if isinstance(a.scale, tir.IntImm) and isinstance(b.scale, tir.IntImm):
            if a.scale.value != b.scale.value:
                return a.scale.value < b.scale.value
            # of equal scales, an iterator of one step comes last
            return is_const(a.extent, 1)
        return not isinstance(b.scale, tir.IntImm) and self._divides(a.scale, b.scale)

    def _check_compact(self, args: Sequence[IterSplitExpr], total: IterSumExpr) -> None:
        if any([isinstance(s.scale, tir.IntImm) and s.scale.value <= 0 for s in args]):
            raise NotAffineError(f"{total} has an iterator that runs backwards")
        for high, low in pairwise(args):
            reached = op.multiply(low.scale, low.extent)
            overlaps = self.paddings.allowed and self._divides(low.scale, high.scale)
            if overlaps and self.analyzer.can_prove(op.less(high.scale, reached)):
                continue
            if not self._equal(high.scale, reached):
                raise NotAffineError(
                    f"an iterator steps by {high.scale} over one of {low.extent} steps of {low.scale}"
                )

    def limit(self, predicate: PrimExpr) -> None:
        """Take what a predicate says of iterators, and then of their sums, as their extents."""
        conditions = conjuncts(self._simple(predicate))
        alone = [sum([uses(c, [var]) for var in self.variables]) <= 1 for c in conditions]
        for wanted in (True, False):
            chosen = [
                c for c, is_alone in zip(conditions, alone, strict=True) if is_alone is wanted
            ]
            self._limit_sums(chosen)

    def _limit_sums(self, conditions: Sequence[PrimExpr]) -> None:
        sides: dict[Any, tuple[IterSumExpr, list[PrimExpr], list[PrimExpr]]] = {}
        for condition in conditions:
            if (found := self._bound_of(condition)) is not None:
                total, is_upper, end = found
                _, lows, highs = sides.setdefault(self._sum_key(total.args), (total, [], []))
                (highs if is_upper else lows).append(end)
        for total, lows, highs in sorted(sides.values(), key=lambda side: len(side[0].args)):
            self._limit_sum(total, lows, highs)

    def _bound_of(self, condition: PrimExpr) -> tuple[IterSumExpr, bool, PrimExpr] | None:
        """The sum that a condition bounds, whether from above, and its greatest or least value."""
        if isinstance(condition, tir.IntImm):
            if not condition.value:
                raise NotAffineError("the predicate never holds")
            return None
        if not isinstance(condition, (tir.LT, tir.LE, tir.GT, tir.GE)):
            raise NotAffineError(f"the predicate {condition} is no bound of a sum")
        total = self.add(self.visit(condition.a), self.visit(condition.b), -1)
        is_upper = isinstance(condition, (tir.LT, tir.LE))
        if isinstance(condition, (tir.LT, tir.GT)):
            total = total.replace(base=op.add(total.base, 1 if is_upper else -1))
        if any([isinstance(s.scale, tir.IntImm) and s.scale.value < 0 for s in total.args]):
            total, is_upper = self.scaled(total, tir.const(-1, total.dtype)), not is_upper
        end = self._simple(op.negative(total.base))
        return IterSumExpr(self.sorted_args(total), zero_of(total)), is_upper, end

    def _limit_sum(self, total: IterSumExpr, lows: list[PrimExpr], highs: list[PrimExpr]) -> None:
        shorter = self._limited(total)
        fused = self.fuse(shorter)
        if not fused.args or not is_const(fused.args[0].scale, 1):
            raise NotAffineError(f"the predicate bounds {total}, which is no fused iterator")
        (split,), base = fused.args, fused.base
        first, last = base, op.add(base, op.subtract(split.extent, 1))
        for low in lows:
            first = op.max(first, low)
        for high in highs:
            last = op.min(last, high)
        first = self._simple(op.subtract(first, base))
        extent = self._simple(op.add(op.subtract(op.subtract(last, base), first), 1))
        known = [mark is split.source for mark in self.marks]
        if True in known and self._equal(split.extent, split.source.extent):
            self._shorten(known.index(True), first, extent)
            return
        source = IterSumExpr(self.sorted_args(shorter), self._simple(op.negative(first)))
        self._limits.append(Limit(self._sum_key(source.args), IterMark(source, extent), first))

    def _shorten(self, place: int, first: PrimExpr, extent: PrimExpr) -> None:
        """Let an iterator have fewer values."""
        old, var = self.marks[place], self.variables[place]
        source = self._simple(op.subtract(old.source, first))
        mark = self.marks[place] = IterMark(source, extent)
        base = self._simple(op.add(self._sums[id(var)].base, first))
        self._sums[id(var)] = IterSumExpr((self._whole(mark),), base)

    # ---- checks

    def check(self, sums: Sequence[IterSumExpr], level: IterMapLevel) -> None:
        """Raise unless splits are disjoint, and together use up every iterator if they must."""
        used: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
        waiting = [split for total in sums for split in total.args]
        for split in waiting:
            mark = split.source
            if id(mark) not in used and isinstance(mark.source, IterSumExpr):
                waiting += mark.source.args
            used.setdefault(id(mark), (mark, []))[1].append(split)
        for mark, splits in used.values():
            self._check_splits(mark, splits, level)
        self._check_limits(used)
        if level is IterMapLevel.Bijective:
            for mark in self.marks:
                if id(mark) not in used and not is_const(mark.extent, 1):
                    raise NotAffineError(f"no index uses {mark.source}")

    def _check_limits(self, used: Mapping[int, Any]) -> None:
        for limit in self._limits:
            parts = [identity in used for identity, *_ in limit.key]
            if id(limit.mark) not in used and any(parts):
                raise NotAffineError("a predicate limits iterators that no index fuses as it does")

    def _check_splits(
        self, mark: IterMark, splits: list[IterSplitExpr], level: IterMapLevel
    ) -> None:
        expected: PrimExpr = tir.const(1, mark.source.dtype)
        left = list(splits)
        while left:
            found = [s for s in left if self._equal(s.lower_factor, expected)]
            if not found:
                if level is IterMapLevel.Bijective:
                    raise NotAffineError(f"some part of {mark.source} is not used")
                found = [s for s in left if self._divides(expected, s.lower_factor)]
                found = [
                    s
                    for s in found
                    if all([self._divides(s.lower_factor, o.lower_factor) for o in left])
                ]
            if not found:
                raise NotAffineError(f"the splits of {mark.source} overlap")
            # one of them: the same split in two indices is an overlap
            del left[[s is found[0] for s in left].index(True)]
            expected = self._simple(op.multiply(found[0].lower_factor, found[0].extent))
        if level is IterMapLevel.Bijective and not self._equal(expected, mark.extent):
            raise NotAffineError(f"some part of {mark.source} is not used")

    # ---- small questions

    def _simple(self, expr: PrimExpr) -> PrimExpr:
        return expr if type(expr) is tir.IntImm else self.analyzer.simplify(expr)

    def _equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        return self.analyzer.can_prove_equal(a, b)

    def _divides(self, divisor: PrimExpr, value: PrimExpr) -> bool:
        if isinstance(divisor, tir.IntImm) and divisor.value == 0:
            return False
        return is_const(self._simple(op.floormod(value, divisor)), 0)

    def _key(self, expr: PrimExpr) -> Any:
        if isinstance(expr, tir.IntImm):
            return expr.value
        return id(self.analyzer.interner.intern(self._simple(expr)))

    def _split_key(self, split: IterSplitExpr) -> tuple[Any, ...]:
        return id(split.source), self._key(split.lower_factor), self._key(split.extent)


def zero_of(expr: PrimExpr) -> PrimExpr:
    """Zero of the expression's dtype."""
    return tir.const(0, expr.dtype)
