"""Detection of maps from iterators to indices that are made of splits and fusions.

i in [0, 8), j in [0, 16)      [i*16 + j]              ->    one fused iterator of extent 128
k in [0, 128)                  [k // 16, k % 16]       ->    two splits of k
k in [0, 128)                  [k // 16, k // 8]       ->    no: the splits overlap
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support import deep
from tvm.tir import expr as tir
from tvm.tir import op

from .analyzer import Analyzer
from .iter_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    as_level,
)
from .pattern import conjuncts, uses


class NotAffineError(Exception):
    """An index that is no sum of splits; the text says why."""


class IterMapBuilder:
    """Rewrites indices to sums of splits of iterators."""

    def __init__(self, input_iters: Mapping[tir.Var, tir.Range], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.variables = list(input_iters)
        self._sums: dict[int, IterSumExpr] = {}
        self._fused: dict[Any, IterMark] = {}
        self._limited: dict[Any, IterMark] = {}
        self.marks: list[IterMark] = []
        for var, domain in input_iters.items():
            analyzer.bind(var, domain, True)
            offset = analyzer.simplify(domain.min)
            source: PrimExpr = var if _is_const(offset, 0) else op.subtract(var, offset)
            mark = IterMark(source, analyzer.simplify(domain.extent))
            self.marks.append(mark)
            self._sums[id(var)] = IterSumExpr((self._whole(mark),), offset)

    # ---- from expressions to sums

    def visit(self, expr: Any) -> IterSumExpr:
        """The expression as a sum of splits."""
        if isinstance(expr, tir.Var) and id(expr) in self._sums:
            return self._sums[id(expr)]
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
        args = [split for split in parts.values() if not _is_const(split.scale, 0)]
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
        total, divisor = self.visit(expr.a), expr.b
        if not self._divides(divisor, total.base):
            raise NotAffineError(f"{expr} divides a sum with the offset {total.base}")
        base = self._simple(op.floordiv(total.base, divisor))
        split = self.fuse(IterSumExpr(total.args, tir.const(0, total.dtype)))
        is_quotient = isinstance(expr, tir.FloorDiv)
        if split is None:
            return IterSumExpr((), base if is_quotient else tir.const(0, expr.dtype))
        parts = self._divide_split(split, divisor, expr)
        return IterSumExpr(parts[0], base) if is_quotient else IterSumExpr(parts[1], _zero(expr))

    def _divide_split(
        self, split: IterSplitExpr, divisor: PrimExpr, expr: PrimExpr
    ) -> tuple[list[IterSplitExpr], list[IterSplitExpr]]:
        """Quotient and remainder of a split."""
        scale, one = split.scale, tir.const(1, split.dtype)
        if self._divides(divisor, scale):
            quotient = split.replace(scale=self._simple(op.floordiv(scale, divisor)))
            return [quotient], []
        if not self._divides(scale, divisor):
            raise NotAffineError(f"{expr} divides steps of {scale}")
        # (s*x) // (s*c) = x // c;   (s*x) % (s*c) = s*(x % c)
        step = self._simple(op.floordiv(divisor, scale))
        extent = split.extent
        if self.analyzer.can_prove(op.less_equal(extent, step)):
            return [], [split]
        if not self._divides(step, extent):
            raise NotAffineError(f"{expr} needs an extent that {step} divides, got {extent}")
        high = IterSplitExpr(
            split.source,
            self._simple(op.multiply(split.lower_factor, step)),
            self._simple(op.floordiv(extent, step)),
            one,
        )
        return [high], [split.replace(extent=step)]

    # ---- fusion

    def fuse(self, total: IterSumExpr) -> IterSplitExpr | None:
        """One split with the sum's value: scales must step by the extents below them."""
        args = self.sorted_args(total)
        if not args:
            return None
        if len(args) == 1:
            return args[0]
        key = tuple([self._split_key(s) + (self._key(s.scale),) for s in args])
        if key in self._limited:
            return self._whole(self._limited[key])
        unit = args[-1].scale
        self._check_compact(args, total)
        reduced = [s.replace(scale=self._simple(op.floordiv(s.scale, unit))) for s in args]
        key = tuple([self._split_key(s) + (self._key(s.scale),) for s in reduced])
        mark = self._limited.get(key) or self._fused.get(key)
        if mark is None:
            extent = self._simple(op.multiply(reduced[0].scale, reduced[0].extent))
            mark = self._fused[key] = IterMark(IterSumExpr(reduced, _zero(total)), extent)
        return self._whole(mark).replace(scale=unit)

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
            return _is_const(a.extent, 1)
        return not isinstance(b.scale, tir.IntImm) and self._divides(a.scale, b.scale)

    def _check_compact(self, args: Sequence[IterSplitExpr], total: IterSumExpr) -> None:
        if any([isinstance(s.scale, tir.IntImm) and s.scale.value <= 0 for s in args]):
            raise NotAffineError(f"{total} has an iterator that runs backwards")
        for high, low in pairwise(args):
            if not self._equal(high.scale, op.multiply(low.scale, low.extent)):
                raise NotAffineError(
                    f"an iterator steps by {high.scale} over one of {low.extent} steps of {low.scale}"
                )

    def limit(self, condition: PrimExpr) -> None:
        """Take a predicate `sum < extent` as the extent of the fused iterator."""
        simple = self.analyzer.simplify(condition)
        if isinstance(simple, tir.IntImm):
            if not simple.value:
                raise NotAffineError("the predicate never holds")
            return
        if not isinstance(simple, tir.LT) or uses(simple.b, self.variables):
            raise NotAffineError(f"the predicate {condition} is no upper bound of a sum")
        total = self.visit(simple.a)
        split = self.fuse(IterSumExpr(total.args, _zero(total)))
        if split is None or not _is_const(split.scale, 1) or len(total.args) < 2:
            raise NotAffineError(f"the predicate {condition} bounds no fused iterator")
        extent = self._simple(op.subtract(simple.b, total.base))
        args = self.sorted_args(total)
        key = tuple([self._split_key(s) + (self._key(s.scale),) for s in args])
        self._limited[key] = IterMark(split.source.source, extent)

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
        if level is IterMapLevel.Bijective:
            for mark in self.marks:
                if id(mark) not in used and not _is_const(mark.extent, 1):
                    raise NotAffineError(f"no index uses {mark.source}")

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
        return self.analyzer.simplify(expr)

    def _equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        return self.analyzer.can_prove_equal(a, b)

    def _divides(self, divisor: PrimExpr, value: PrimExpr) -> bool:
        if isinstance(divisor, tir.IntImm) and divisor.value == 0:
            return False
        return _is_const(self._simple(op.floormod(value, divisor)), 0)

    def _key(self, expr: PrimExpr) -> Any:
        if isinstance(expr, tir.IntImm):
            return expr.value
        return id(self.analyzer.interner.intern(self._simple(expr)))

    def _split_key(self, split: IterSplitExpr) -> tuple[Any, ...]:
        return id(split.source), self._key(split.lower_factor), self._key(split.extent)


def _zero(expr: PrimExpr) -> PrimExpr:
    return tir.const(0, expr.dtype)


def _is_const(expr: Any, value: int) -> bool:
    return isinstance(expr, tir.IntImm) and expr.value == value


# ---- public functions


@deep
def detect_iter_map(
    indices: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Each index as a sum of splits and fusions of the iterators.

    Returns
    -------
    IterMapResult
        With no `indices`, and the reason in `errors`, if there is no such form or the map is not what
        `check_level` asks for.
    """
    analyzer = Analyzer()
    level = as_level(check_level)
    yes = tir.const(False, "bool")
    try:
        builder = IterMapBuilder(input_iters, analyzer)
        for condition in conjuncts(tir.as_expr(predicate)):
            builder.limit(condition)
        sums = [_index_sum(builder, index, simplify_trivial_iterators) for index in indices]
        if level is not IterMapLevel.NoCheck:
            builder.check(sums, level)
    except NotAffineError as reason:
        return IterMapResult((), (str(reason),), yes)
    return IterMapResult(tuple(sums), (), yes)


def _index_sum(builder: IterMapBuilder, index: Any, simplify_trivial: bool) -> IterSumExpr:
    expr = tir.as_expr(index)
    total = builder.visit(builder.analyzer.simplify(expr) if simplify_trivial else expr)
    split = builder.fuse(IterSumExpr(total.args, _zero(total)))
    return IterSumExpr((), total.base) if split is None else IterSumExpr((split,), total.base)


@deep
def normalize_to_iter_sum(index: Any, input_iters: Mapping[tir.Var, tir.Range]) -> IterSumExpr:
    """The index as a sum of splits, largest scale first; what is no split stays in the base."""
    analyzer = Analyzer()
    builder = IterMapBuilder(input_iters, analyzer)
    total = IterSumExpr((), _zero(tir.as_expr(index)))
    for term in _terms(analyzer.simplify(tir.as_expr(index))):
        try:
            part = builder.visit(term)
        except NotAffineError:
            part = IterSumExpr((), term)
        total = builder.add(total, part, 1)
    return IterSumExpr(builder.sorted_args(total), total.base)


def _terms(expr: Any) -> list[PrimExpr]:
    if isinstance(expr, tir.Add):
        return [*_terms(expr.a), *_terms(expr.b)]
    if isinstance(expr, tir.Sub):
        return [*_terms(expr.a), *[op.negative(term) for term in _terms(expr.b)]]
    return [expr]


@deep
def iter_map_simplify(
    indices: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> tuple[PrimExpr, ...]:
    """The indices in the form that their iteration map gives; unchanged if they have none."""
    found = detect_iter_map(
        indices, input_iters, predicate, check_level, simplify_trivial_iterators
    )
    analyzer = Analyzer()
    for var, domain in input_iters.items():
        analyzer.bind(var, domain, True)
    if not found.indices:
        return tuple([analyzer.simplify(tir.as_expr(index)) for index in indices])
    return tuple([analyzer.simplify(normalize_iter_map_to_expr(total)) for total in found.indices])


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
    value = op.floordiv(value, expr.lower_factor)
    if not top:
        value = op.floormod(value, expr.extent)
    return op.multiply(value, expr.scale)


@deep
def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[PrimExpr]
) -> dict[tir.Var, PrimExpr]:
    """The iterators as expressions of the outputs of a bijective map."""
    values: dict[int, PrimExpr] = {}
    marks: dict[int, IterMark] = {}
    for total, output in zip(iter_map, outputs, strict=True):
        _push_back(total, op.subtract(output, total.base), values, marks)
    found: dict[tir.Var, PrimExpr] = {}
    analyzer = Analyzer()
    while marks:
        # a mark's value is complete when all marks that are fused from it have been taken apart
        mark = max(marks.values(), key=_depth)
        value = analyzer.simplify(values[id(mark)])
        del marks[id(mark)]
        if isinstance(mark.source, IterSumExpr):
            _push_back(mark.source, value, values, marks)
        elif isinstance(mark.source, tir.Var):
            found[mark.source] = value
        elif isinstance(mark.source, tir.Sub) and isinstance(mark.source.a, tir.Var):
            found[mark.source.a] = analyzer.simplify(op.add(value, mark.source.b))
    return found


def _depth(mark: IterMark) -> int:
    """How many fusions are inside one another."""
    if not isinstance(mark.source, IterSumExpr):
        return 0
    return 1 + max([_depth(split.source) for split in mark.source.args])


def _push_back(
    total: IterSumExpr, output: PrimExpr, values: dict[int, PrimExpr], marks: dict[int, IterMark]
) -> None:
    """Give every split of a compact sum its part of the sum's value."""
    for position, split in enumerate(total.args):
        part = op.floordiv(output, split.scale)
        if position > 0:
            part = op.floormod(part, split.extent)
        part = op.multiply(part, split.lower_factor)
        key = id(split.source)
        if key in marks:
            part = op.add(values[key], part)
        marks[key] = split.source
        values[key] = part


@deep
def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[tir.Var, tir.Range],
    sub_iters: Sequence[tir.Var],
    predicate: Any = True,
    check_level: Any = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[Any]]:
    """Each binding as `outer * extent of inner + inner`, with inner made of the sub-iterators alone.

    Returns
    -------
    list
        A pair `[outer, inner]` of sums for each binding and a pair of predicates; empty if some
        binding cannot be divided.
    """
    found = detect_iter_map(
        bindings, input_iters, predicate, check_level, simplify_trivial_iterators
    )
    if len(found.indices) != len(bindings) or not _is_const(tir.as_expr(predicate), 1):
        return []
    pairs: list[list[Any]] = []
    for total in found.indices:
        pair = _divide_sum(total, sub_iters)
        if pair is None:
            return []
        pairs.append(pair)
    yes = tir.const(True, "bool")
    return [*pairs, [yes, yes]]


def _divide_sum(total: IterSumExpr, sub_iters: Sequence[tir.Var]) -> list[IterSumExpr] | None:
    parts = list(total.args)
    unit: PrimExpr = tir.const(1, total.dtype)
    if len(parts) == 1 and isinstance(source := parts[0].source.source, IterSumExpr):
        whole = Analyzer().can_prove_equal(parts[0].extent, parts[0].source.extent)
        if whole:
            unit, parts = parts[0].scale, list(source.args)
    inner: list[IterSplitExpr] = []
    while parts and uses(normalize_iter_map_to_expr(parts[-1]), sub_iters):
        inner.insert(0, parts.pop())
    if any([uses(normalize_iter_map_to_expr(part), sub_iters) for part in parts]):
        return None
    analyzer = Analyzer()
    size: PrimExpr = tir.const(1, total.dtype)
    if inner:
        size = analyzer.simplify(op.multiply(inner[0].scale, inner[0].extent))
    outer = [
        part.replace(scale=analyzer.simplify(op.floordiv(op.multiply(part.scale, unit), size)))
        for part in parts
    ]
    return [IterSumExpr(outer, total.base), IterSumExpr(inner, _zero(total))]
