"""How the axes of a stage come from one another, and what that says of ranges and values.

    Split(i -> i.outer, i.inner)      i = i.outer*factor + i.inner + min(i)
    Fuse(i, j -> i.j.fused)           i = fused // extent(j),  j = fused % extent(j)
    Rebase(i -> i')                   i = i' + min(i)
    Singleton(-> s)                   s = 0

Each relation passes four messages: the range of its parents *down* to its children, and *up* to its
parents the values of its children, their intervals, and whether the parents need a bound check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object
from tvm.tir import op
from tvm.tir.constants import is_one, is_zero
from tvm.tir.expr import IntImm, IterVar, Range, Sub, const

from .intervals import Interval, compare, from_range, in_dtype, interval_of, point, simple

Values = dict[IterVar, PrimExpr]
Sets = dict[IterVar, Interval]
Unchecked = dict[IterVar, None]


class Ranges(dict[IterVar, Range]):
    """The range of each axis, found once and then only confirmed."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.keeps_trivial_loops = False  # loops of one iteration stay loops
        self.are_reductions_initialized = True

    @classmethod
    def of(cls, ranges: Mapping[IterVar, Range]) -> Ranges:
        """The ranges of a mapping, with an analyzer that knows them."""
        known = cls(Analyzer())
        for iv, domain in ranges.items():
            known.learn(iv, domain.min, domain.extent)
        return known

    def learn(self, iv: IterVar, low: PrimExpr | int, extent: PrimExpr) -> None:
        """Set the range of an axis, or check it against what is known."""
        dtype = iv.var.dtype
        extent = in_dtype(extent, dtype)
        known = self.get(iv)
        if known is None:
            low = const(low, dtype) if isinstance(low, int) else in_dtype(low, dtype)
            domain = self[iv] = Range.from_min_extent(low, extent)
            self.analyzer.bind(iv.var, domain, True)
        elif not is_zero(known.min) or compare(known.extent, extent, self.analyzer) != 0:
            raise ScheduleError(
                f"{iv.var.name} requires one extent everywhere, "
                f"got {known.extent} and {self.analyzer.simplify(extent)}",
                hint="split the axis by the thread's extent before binding it",
            ).add_context(f"axis {iv.var.name}")


class Relation(Object):
    """What axes made by one primitive have to do with those they replaced."""

    __slots__ = ()
    # whether a loop over more than the parents may lead below the beginning of one
    may_fall_below: ClassVar[bool] = False

    @property
    def parents(self) -> tuple[IterVar, ...]:
        """The axes that were replaced."""
        return ()

    @property
    def children(self) -> tuple[IterVar, ...]:
        """The axes that replaced them."""
        return ()

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        """Find the ranges of the children from those of the parents."""

    def pass_up_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        """Find the values of the parents from those of the children."""

    def pass_up_sets(self, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer) -> None:
        """Find the intervals of the parents from those of the children."""

    def pass_up_checks(
        self, ranges: Mapping[IterVar, Range], unchecked: Unchecked, analyzer: Analyzer
    ) -> None:
        """Move ``unchecked`` (axes whose values may lie beyond their ranges) up to the parents.

        An axis whose own check says more than its parents' can stays in ``unchecked``.
        """

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        """Find the values of the children from those of the parents."""


class Split(Relation):
    """``parent = outer*factor + inner``"""

    __slots__ = ("disable_predication", "factor", "inner", "nparts", "outer", "parent")

    def __init__(
        self,
        parent: IterVar,
        outer: IterVar,
        inner: IterVar,
        factor: PrimExpr | None,
        nparts: PrimExpr | None,
        disable_predication: bool = False,
    ) -> None:
        self.parent = parent
        self.outer = outer
        self.inner = inner
        self.factor = factor
        self.nparts = nparts
        self.disable_predication = disable_predication

    def __repr__(self) -> str:
        amount = f"nparts={self.nparts}" if self.factor is None else f"factor={self.factor}"
        return f"split(parent={self.parent.var}, outer={self.outer.var}, inner={self.inner.var}, {amount})"

    @property
    def parents(self) -> tuple[IterVar, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[IterVar, ...]:
        return (self.outer, self.inner)

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        domain = ranges[self.parent]
        amount = self.nparts if self.factor is None else self.factor
        assert amount is not None
        amount = in_dtype(amount, domain.extent.dtype)
        if not threaded.get(self.parent) and _is_less(domain.extent, amount, ranges.analyzer):
            # no need for a loop longer than what it covers; threads keep the extent they were given
            amount = op.maximum(domain.extent, 1)
        rest = simple(ceil_div(domain.extent, amount), ranges.analyzer)
        near, far = (self.outer, self.inner) if self.factor is None else (self.inner, self.outer)
        ranges.learn(near, 0, amount)
        ranges.learn(far, 0, rest)

    def pass_up_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if self.outer not in values or self.inner not in values:
            return
        domain, inner = ranges[self.parent], ranges[self.inner]
        outer = in_dtype(values[self.outer], domain.min.dtype)
        value = op.add(op.multiply(outer, inner.extent), values[self.inner])
        values[self.parent] = _shift(value, domain.min)

    def pass_up_sets(self, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer) -> None:
        domain, outer, inner = ranges[self.parent], sets.get(self.outer), sets.get(self.inner)
        if outer is None or inner is None:
            sets[self.parent] = from_range(domain)
            return
        if _is_whole(outer, ranges[self.outer]) and _is_whole(inner, ranges[self.inner]):
            sets[self.parent] = from_range(domain)
            return
        factor = ranges[self.inner].extent
        value = op.add(op.multiply(self.outer.var, factor), self.inner.var)
        domains = {self.outer.var: outer, self.inner.var: inner}
        sets[self.parent] = interval_of(_shift(value, domain.min), domains, analyzer)

    def pass_up_checks(
        self, ranges: Mapping[IterVar, Range], unchecked: Unchecked, analyzer: Analyzer
    ) -> None:
        # a parent in range has its outer part in range; an inner part out of range is one that
        # the next outer step repeats
        if self.outer in unchecked:
            del unchecked[self.outer]
            unchecked[self.parent] = None
        elif not self.disable_predication:
            covered = op.multiply(ranges[self.outer].extent, ranges[self.inner].extent)
            if compare(covered, ranges[self.parent].extent, analyzer) != 0:
                unchecked[self.parent] = None

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if self.parent in values:
            domain, factor = ranges[self.parent], ranges[self.inner].extent
            value = _unshift(values[self.parent], domain.min)
            values[self.outer] = op.floordiv(value, factor)
            values[self.inner] = op.floormod(value, factor)


class Fuse(Relation):
    """``fused = outer*extent(inner) + inner``"""

    __slots__ = ("fused", "inner", "outer")

    def __init__(self, outer: IterVar, inner: IterVar, fused: IterVar) -> None:
        self.outer = outer
        self.inner = inner
        self.fused = fused

    def __repr__(self) -> str:
        return f"fuse(outer={self.outer.var}, inner={self.inner.var}, fused={self.fused.var})"

    @property
    def parents(self) -> tuple[IterVar, ...]:
        return (self.outer, self.inner)

    @property
    def children(self) -> tuple[IterVar, ...]:
        return (self.fused,)

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        dtype = self.fused.var.dtype
        outer = in_dtype(ranges[self.outer].extent, dtype)
        ranges.learn(self.fused, 0, op.multiply(outer, ranges[self.inner].extent))

    def pass_up_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if (value := values.get(self.fused)) is None:
            return
        outer, inner = ranges[self.outer], ranges[self.inner]
        first, second = value, value
        if is_one(inner.extent) or is_zero(inner.extent):
            second = const(0, value.dtype)
        elif is_one(outer.extent):
            first = const(0, value.dtype)
        else:
            first = op.floordiv(value, inner.extent)
            second = op.floormod(value, inner.extent)
        values[self.outer] = _shift(in_dtype(first, outer.min.dtype), outer.min)
        values[self.inner] = _shift(in_dtype(second, inner.min.dtype), inner.min)

    def pass_up_sets(self, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer) -> None:
        outer, inner = ranges[self.outer], ranges[self.inner]
        whole_inner = from_range(inner)
        fused = sets.get(self.fused)
        if fused is None or not fused.is_bounded or _is_whole(fused, ranges[self.fused]):
            sets[self.outer], sets[self.inner] = from_range(outer), whole_inner
            return
        if fused.is_point and fused.low is not None:
            values: Values = {self.fused: fused.low}
            self.pass_up_values(ranges, values)
            sets[self.outer], sets[self.inner] = (
                point(values[self.outer]),
                point(values[self.inner]),
            )
            return
        domains = {self.fused.var: fused}
        variable: Values = {self.fused: self.fused.var}
        self.pass_up_values(ranges, variable)
        sets[self.outer] = interval_of(variable[self.outer], domains, analyzer)
        sets[self.inner] = interval_of(variable[self.inner], domains, analyzer)

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if self.outer in values and self.inner in values:
            outer, inner = ranges[self.outer], ranges[self.inner]
            first = _unshift(values[self.outer], outer.min)
            second = _unshift(values[self.inner], inner.min)
            values[self.fused] = op.add(op.multiply(first, inner.extent), second)


class Rebase(Relation):
    """``parent = rebased + min(parent)``: every loop starts from 0."""

    __slots__ = ("parent", "rebased")

    def __init__(self, parent: IterVar, rebased: IterVar) -> None:
        self.parent = parent
        self.rebased = rebased

    def __repr__(self) -> str:
        return f"rebase(parent={self.parent.var}, rebased={self.rebased.var})"

    @property
    def parents(self) -> tuple[IterVar, ...]:
        return (self.parent,)

    @property
    def children(self) -> tuple[IterVar, ...]:
        return (self.rebased,)

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        ranges.learn(self.rebased, 0, ranges[self.parent].extent)

    def pass_up_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if (value := values.get(self.rebased)) is not None:
            values[self.parent] = _shift(value, ranges[self.parent].min)

    def pass_up_sets(self, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer) -> None:
        domain, rebased = ranges[self.parent], sets.get(self.rebased)
        if rebased is None or _is_whole(rebased, ranges[self.rebased]):
            sets[self.parent] = from_range(domain)
            return
        value = _shift(self.rebased.var, domain.min)
        sets[self.parent] = interval_of(value, {self.rebased.var: rebased}, analyzer)

    def pass_up_checks(
        self, ranges: Mapping[IterVar, Range], unchecked: Unchecked, analyzer: Analyzer
    ) -> None:
        if self.rebased in unchecked:
            del unchecked[self.rebased]
            unchecked[self.parent] = None

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if self.parent in values:
            values[self.rebased] = _unshift(values[self.parent], ranges[self.parent].min)


class Singleton(Relation):
    """A loop of extent 1 that stands for nothing."""

    __slots__ = ("iter",)

    def __init__(self, iter: IterVar) -> None:
        self.iter = iter

    def __repr__(self) -> str:
        return f"singleton({self.iter.var})"

    @property
    def children(self) -> tuple[IterVar, ...]:
        return (self.iter,)

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        ranges.learn(self.iter, 0, const(1, self.iter.var.dtype))

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        values[self.iter] = const(0, self.iter.var.dtype)


def ceil_div(extent: PrimExpr, by: PrimExpr) -> PrimExpr:
    """The number of parts of size ``by``."""
    if type(extent) is IntImm and type(by) is IntImm:
        return const(-(-extent.value // by.value), extent.dtype)
    return op.floordiv(op.add(extent, op.subtract(by, 1)), by)


def _is_less(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> bool:
    if type(a) is IntImm and type(b) is IntImm:
        return a.value < b.value
    return bool(analyzer.can_prove(op.less(a, b)))


def _is_whole(interval: Interval, domain: Range) -> bool:
    """Whether the interval is plainly the whole range."""
    low, high = interval.low, interval.high
    if low is domain.min and is_one(domain.extent):
        return low is high
    if not (type(low) is IntImm and type(domain.min) is IntImm and low.value == domain.min.value):
        return False
    if type(high) is IntImm:
        return type(domain.extent) is IntImm and high.value - low.value + 1 == domain.extent.value
    last = from_range(domain).high
    return high is last or _same_difference(high, last)


def _same_difference(a: PrimExpr | None, b: PrimExpr | None) -> bool:
    """Whether both are ``x - 1`` of the same x: how the last value of a range is written."""
    kind = Sub
    return (
        type(a) is kind
        and type(b) is kind
        and a.a is b.a
        and type(a.b) is IntImm
        and type(b.b) is IntImm
        and a.b.value == b.b.value
    )


def _shift(value: PrimExpr, low: PrimExpr) -> PrimExpr:
    return value if is_zero(low) else op.add(value, low)


def _unshift(value: PrimExpr, low: PrimExpr) -> PrimExpr:
    return value if is_zero(low) else op.subtract(value, low)
