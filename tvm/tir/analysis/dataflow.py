"""What is known of memory: the values that cells have, and the cells that are written before anybody reads them.

for i in range(16):           A[x] == x   where 0 <= x < 16
    A[i] = i

Both are facts about regions, conditions over the axes of a buffer. Statements add facts and take cells out of
others; at the end of a loop its variable is eliminated. A region is never larger than what is sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm.arith import Analyzer, IntervalSet, neg_inf, pos_inf
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.analysis.side_effect import is_pure, side_effect
from tvm.tir.buffer import Buffer
from tvm.tir.constants import is_one
from tvm.tir.expr import (
    EQ,
    LE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    CallEffectKind,
    IntImm,
    Not,
    Or,
    Ramp,
    Range,
    Sub,
    Var,
    const,
)
from tvm.tir.stmt import BufferStore, For, ForKind, Stmt
from tvm.tir.stmt_functor import substitute


@dataclass(frozen=True)
class Fact:
    """The cells of a buffer for which a condition over its axes holds, and what is in them."""

    buffer: Buffer
    where: PrimExpr
    value: PrimExpr | None  # over the axes as well; None for cells that nobody reads
    depth: int  # the number of loops around the statement that it comes from


@dataclass(frozen=True)
class Access:
    """Cells that the body of a loop accesses, and the loops between."""

    buffer: Buffer
    indices: tuple[PrimExpr, ...]
    loops: tuple[For, ...]


class MemoryFacts:
    """The facts that hold at one place of a program, carried along by whoever walks it."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.facts: tuple[Fact, ...] = ()
        self.depth = 0
        self._axes: dict[Buffer, tuple[Var, ...]] = {}

    # ---- questions

    def value_of(self, load: BufferLoad) -> PrimExpr | None:
        """The value in a cell, if it is known."""
        if load.predicate is not None or load.dtype.lanes != load.buffer.dtype.lanes:
            return None
        for fact in self.facts:
            if fact.buffer is load.buffer and fact.value is not None:
                place = dict(zip(self.axes(load.buffer), load.indices, strict=True))
                if self.proves(substitute(fact.where, place)):
                    found: PrimExpr = substitute(fact.value, place)
                    return found
        return None

    def covers(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> bool:
        """Whether facts hold of all cells at the indices."""
        region = self._region(buffer, indices)
        wheres = [fact.where for fact in self.facts if fact.buffer is buffer]
        if region is None or not wheres:
            return False
        if any([index.dtype.lanes > 1 for index in indices]):
            return any([self._includes(where, buffer, indices) for where in wheres])
        place = dict(zip(self.axes(buffer), indices, strict=True))
        conditions = [substitute(where, place) for where in wheres]
        return any(map(self.proves, [*conditions, any_of(conditions)]))

    def proves(self, condition: PrimExpr) -> bool:
        """Whether a condition made of regions always holds."""
        if isinstance(condition, And):
            return self.proves(condition.a) and self.proves(condition.b)
        if isinstance(condition, Or):
            if self.proves(condition.a) or self.proves(condition.b):
                return True
        elif isinstance(condition, Not):
            inner = condition.a
            if isinstance(inner, And):
                return self.proves(Or(Not(inner.a), Not(inner.b)))
            if isinstance(inner, Or):
                return self.proves(Not(inner.a)) and self.proves(Not(inner.b))
            if isinstance(inner, Not):
                return self.proves(inner.a)
        return self.analyzer.can_prove(condition)

    def _includes(self, where: PrimExpr, buffer: Buffer, indices: Sequence[PrimExpr]) -> bool:
        """Whether a region has all lanes of an access."""
        place: dict[Var, PrimExpr] = {}
        for axis, index in zip(self.axes(buffer), indices, strict=True):
            if isinstance(index, Ramp) and isinstance(index.lanes, int):
                lane = Var("lane", index.base.dtype)
                self.analyzer.bind(lane, Range(0, index.lanes))
                place[axis] = index.base + lane * index.stride
            elif index.dtype.lanes == 1:
                place[axis] = index
            else:
                return False
        return self.proves(substitute(where, place))

    def with_values(self, e: PrimExpr) -> PrimExpr:
        """An expression with known values in the place of loads."""
        return self.analyzer.simplify(_ValueReader(self).visit(e))

    # ---- statements

    def add(self, buffer: Buffer, indices: Sequence[PrimExpr], value: PrimExpr | None) -> None:
        """Note a fact of the cells at the indices; the value is of the lane with the cell."""
        region = self._region(buffer, indices)
        if region is not None and (value is None or not _reads_memory(value)):
            self.facts = (*self.facts, Fact(buffer, region, value, self.depth))

    def remove(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
        """Forget what was known of the cells at the indices, and of other views of the memory."""
        region = self._region(buffer, indices)
        kept = []
        for fact in self.facts:
            if fact.buffer.data is not buffer.data:
                kept.append(fact)
            elif fact.buffer is buffer and region is not None:
                kept.append(replace(fact, where=And(fact.where, Not(region))))
        self.facts = tuple(kept)

    def store(self, store: BufferStore, value: PrimExpr) -> None:
        """Note a store; the value has known values in the place of loads."""
        self.remove(store.buffer, store.indices)
        lane = self._lane_value(store, value)
        if lane is not None and store.predicate is None:
            self.add(store.buffer, store.indices, lane)

    def assume(self, condition: PrimExpr) -> None:
        """Note what a condition says of cells: ``A[i] == v``, or ``p or A[i] == v``."""
        if isinstance(condition, And):
            self.assume(condition.a)
            self.assume(condition.b)
            return
        cases = alternatives(condition)
        others = [case for case in cases if _reads_memory(case)]
        if len(others) != 1 or not isinstance(others[0], EQ):
            return
        load, value = others[0].a, others[0].b
        if not isinstance(load, BufferLoad):
            load, value = value, load
        if not isinstance(load, BufferLoad) or any(map(_reads_memory, [value, *load.indices])):
            return
        count = len(self.facts)
        self.add(load.buffer, load.indices, value)
        for case in cases:
            if case is not others[0] and len(self.facts) > count:
                last = self.facts[-1]
                self.facts = (*self.facts[:-1], replace(last, where=And(last.where, Not(case))))

    def merge(self, condition: PrimExpr, other: tuple[Fact, ...]) -> None:
        """Behind a branch: these facts hold where the condition does, the others where it does not."""
        common = [fact for fact in self.facts if any(fact is known for known in other)]
        if _reads_memory(condition):
            self.facts = tuple(common)
            return
        sides = ((self.facts, condition), (other, Not(condition)))
        rest = [
            replace(fact, where=And(fact.where, side))
            for facts, side in sides
            for fact in facts
            if not any(fact is known for known in common)
        ]
        self.facts = (*common, *rest)

    def forget(self) -> None:
        """Anything may have happened to memory."""
        self.facts = ()

    def leave(self, var: Var) -> None:
        """Forget what is said in terms of a variable whose scope ends."""
        self.facts = tuple([
            fact
            for fact in self.facts
            if not _uses(fact.where, var) and (fact.value is None or not _uses(fact.value, var))
        ])  # fmt: skip

    # ---- loops

    def at_iteration(self, loop: For, accesses: Sequence[Access], earlier: bool) -> None:
        """From around a loop to its iteration: other iterations have accessed memory before, or will after."""
        first, last = _ends(loop)
        if loop.kind is ForKind.SERIAL or loop.kind is ForKind.UNROLLED:
            if earlier:
                last = loop.loop_var - 1
            else:
                first = loop.loop_var + 1
        self._remove_all(loop, accesses, IntervalSet(first, last))
        self.depth += 1

    def after_loop(
        self, loop: For, accesses: Sequence[Access], outer: tuple[Fact, ...], forward: bool
    ) -> None:
        """From an iteration to behind the loop (or, going backwards, to before it): the variable is eliminated."""
        self.depth -= 1
        first, last = _ends(loop)
        others = IntervalSet(loop.loop_var + 1, last) if forward else None
        others = others or IntervalSet(first, loop.loop_var - 1)
        self.facts = tuple([fact for fact in self.facts if fact.depth > self.depth])
        self._remove_all(loop, accesses, others)
        inner = [self._without(loop, fact) for fact in self.facts]
        self.facts = outer
        self._remove_all(loop, accesses, IntervalSet(first, last))
        self.facts = (*self.facts, *[fact for fact in inner if fact is not None])

    def _remove_all(self, loop: For, accesses: Sequence[Access], values: IntervalSet) -> None:
        """Take out what iterations access while the loop's variable runs over the values."""
        for access in accesses:
            hull = self._hull(access, {loop.loop_var: values})
            kept = []
            for fact in self.facts:
                if fact.buffer.data is not access.buffer.data:
                    kept.append(fact)
                elif fact.buffer is access.buffer and hull is not None:
                    kept.append(replace(fact, where=And(fact.where, Not(hull))))
            self.facts = tuple(kept)

    def _hull(self, access: Access, values: Mapping[Var, IntervalSet]) -> PrimExpr | None:
        """A box around the cells; None if it has no ends."""
        domains = dict(values)
        for loop in access.loops:
            domains[loop.loop_var] = IntervalSet(*_ends(loop))
        sides = []
        for axis, index in zip(self.axes(access.buffer), access.indices, strict=True):
            found = self.analyzer.int_set(index, domains)
            low, high = found.min_value, found.max_value
            if low is neg_inf() or high is pos_inf():
                return None
            inner = [loop.loop_var for loop in access.loops]
            if any([_uses(end, var) for end in (low, high) for var in inner]):
                return None
            if _reads_memory(low) or _reads_memory(high):
                return None
            sides.append(And(low <= axis, axis <= high))
        return all_of(sides)

    def _without(self, loop: For, fact: Fact) -> Fact | None:
        """A fact that holds for each value of the loop's variable, without the variable."""
        var = loop.loop_var
        depth = min(fact.depth, self.depth)
        if any(map(_reads_memory, _ends(loop))):
            return None
        if not _uses(fact.where, var) and (fact.value is None or not _uses(fact.value, var)):
            runs = self.analyzer.can_prove(loop.extent > 0)
            return replace(fact, depth=depth) if runs else None
        conditions, axes = conjuncts(fact.where), self.axes(fact.buffer)
        solution = _solution(conditions, axes, var)
        if solution is None:
            solution = self._quotient(conditions, axes, var)
        if solution is None:
            return None
        first, last = _ends(loop)
        where = And(And(first <= var, var <= last), fact.where)
        where = substitute(where, {var: solution})
        value = None if fact.value is None else substitute(fact.value, {var: solution})
        return Fact(fact.buffer, where, value, depth)

    def _quotient(
        self, conditions: Sequence[PrimExpr], axes: Sequence[Var], var: Var
    ) -> PrimExpr | None:
        """``0 <= x - i * 4`` and ``x - i * 4 <= 3`` give ``x // 4``."""
        bounds = [e for e in conditions if isinstance(e, LE) and _uses(e, var)]
        lower = [(e.b, e.a.value) for e in bounds if isinstance(e.a, IntImm)]
        upper = [(e.a, e.b.value) for e in bounds if isinstance(e.b, IntImm)]
        for rest, low in lower:
            for other, high in upper:
                count = high - low + 1
                for axis in axes if structural_equal(rest, other) and count > 0 else ():
                    if self.analyzer.can_prove_equal(axis - var * count, rest):
                        return op.floordiv(axis - low, count)
        return None

    # ---- regions

    def axes(self, buffer: Buffer) -> tuple[Var, ...]:
        """The variables that stand for a buffer's indices in its facts."""
        found = self._axes.get(buffer)
        if found is None:
            names = enumerate(buffer.shape)
            found = tuple([Var(f"axis{i}", extent.dtype) for i, extent in names])
            self._axes[buffer] = found
        return found

    def _region(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> PrimExpr | None:
        """The cells at the indices; None if they have no simple form."""
        sides = []
        if any(map(_reads_memory, indices)):
            return None
        for axis, index in zip(self.axes(buffer), indices, strict=True):
            if isinstance(index, Ramp) and is_one(index.stride):
                sides.append(And(index.base <= axis, axis < index.base + index.lanes))
            elif index.dtype.lanes == 1:
                sides.append(op.equal(axis, index))
            else:
                return None
        return all_of(sides)

    def _lane_value(self, store: BufferStore, value: PrimExpr) -> PrimExpr | None:
        """What is stored in one cell, in terms of its axes."""
        if value.dtype.lanes == store.buffer.dtype.lanes:
            return value
        if isinstance(value, Broadcast):
            return value.value
        last = store.indices[-1]
        if isinstance(value, Ramp) and isinstance(last, Ramp):
            return value.base + (self.axes(store.buffer)[-1] - last.base) * value.stride
        return None


class _ValueReader(Rewriter):
    """Replaces loads by known values."""

    def __init__(self, memory: MemoryFacts) -> None:
        self.memory = memory

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        found = self.memory.value_of(load)
        return load if found is None else found


class AccessCollector(Visitor):
    """Lists the cells that a statement stores, or loads, with the loops around each."""

    def __init__(self, loads: bool) -> None:
        self.loads = loads
        self.found: list[Access] = []
        self.is_opaque = False  # memory is accessed in other ways
        self._loops: tuple[For, ...] = ()

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        outer, self._loops = self._loops, (*self._loops, loop)
        self.visit(loop.body)
        self._loops = outer

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if self.loads:
            self.found.append(Access(load.buffer, load.indices, self._loops))
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if not self.loads:
            self.found.append(Access(store.buffer, store.indices, self._loops))
        self.visit_children(store)

    def visit_stmt(self, stmt: Stmt) -> None:
        value = getattr(stmt, "value", None)
        if isinstance(value, PrimExpr) and not is_pure(value) and not is_assumption(value):
            self.is_opaque = True
        self.visit_children(stmt)


def accesses_of(stmt: Stmt, loads: bool) -> list[Access] | None:
    """The cells that a statement loads or stores; None if they are not all known."""
    collector = AccessCollector(loads)
    collector.visit(stmt)
    return None if collector.is_opaque else collector.found


def is_assumption(value: PrimExpr) -> bool:
    """Whether a value is a call of ``tir.assume``."""
    return getattr(getattr(value, "op", None), "name", "") == "tir.assume"


def _ends(loop: For) -> tuple[PrimExpr, PrimExpr]:
    return loop.min, loop.min + loop.extent - 1


def conjuncts(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions that hold together."""
    if isinstance(condition, And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def alternatives(condition: PrimExpr) -> list[PrimExpr]:
    """The conditions of which one holds."""
    if isinstance(condition, Or):
        return [*alternatives(condition.a), *alternatives(condition.b)]
    return [condition]


def _combined(
    join: Callable[[PrimExpr, PrimExpr], PrimExpr], conditions: Iterable[PrimExpr], unit: bool
) -> PrimExpr:
    result: PrimExpr | None = None
    for condition in conditions:
        result = condition if result is None else join(result, condition)
    return const(unit, "bool") if result is None else result


def all_of(conditions: Iterable[PrimExpr]) -> PrimExpr:
    """The conditions together."""
    return _combined(And, conditions, True)


def any_of(conditions: Iterable[PrimExpr]) -> PrimExpr:
    """That one of the conditions holds."""
    return _combined(Or, conditions, False)


def _solution(conditions: Sequence[PrimExpr], axes: Sequence[Var], var: Var) -> PrimExpr | None:
    """The value of a variable that conditions give in terms of axes: ``x == i + 2`` gives ``x - 2``."""
    for condition in conditions:
        if isinstance(condition, EQ) and any(condition.a is axis for axis in axes):
            found = _solved(condition.a, condition.b, var)
            if found is not None:
                return found
    return None


def _solved(left: PrimExpr, right: PrimExpr, var: Var) -> PrimExpr | None:
    """``var`` from ``left == right``, where it occurs once on the right."""
    while right is not var:
        if isinstance(right, Add) and _uses(right.a, var) and not _uses(right.b, var):
            left, right = left - right.b, right.a
        elif isinstance(right, Add) and _uses(right.b, var) and not _uses(right.a, var):
            left, right = left - right.a, right.b
        elif isinstance(right, Sub) and _uses(right.a, var) and not _uses(right.b, var):
            left, right = left + right.b, right.a
        elif isinstance(right, Sub) and _uses(right.b, var) and not _uses(right.a, var):
            left, right = right.a - left, right.b
        else:
            return None
    return left


def _uses(e: Node, var: Var) -> bool:
    return e is var or any([_uses(below, var) for below in e.children()])


def _reads_memory(e: PrimExpr) -> bool:
    return side_effect(e) > CallEffectKind.Pure
