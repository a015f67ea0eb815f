"""Conditions as conjunctions of disjunctions, in which clauses simplify each other.

a and b or c                      ->    (a or c) and (b or c)
(a or b) and (b or a)             ->    b or a
(a or k == 20) and (a or k > 3)   ->    a or k == 20
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from tvm.ir.expr import PrimExpr
from tvm.tir import expr as tir
from tvm.tir import op

if TYPE_CHECKING:
    from .analyzer import Analyzer

MOST_CLAUSES = 64
Clause = list[PrimExpr]  # of interned conditions, one of which holds


def and_of_ors(analyzer: Analyzer, condition: PrimExpr) -> PrimExpr:
    """A condition as a conjunction of disjunctions; unchanged if that has too many parts."""
    clauses = _clauses(condition)
    if clauses is None or not isinstance(condition, (tir.And, tir.Or)):
        return condition
    return _Conjunction(analyzer, clauses).simplified()


def _clauses(condition: PrimExpr) -> list[Clause] | None:
    if not isinstance(condition, (tir.And, tir.Or)):
        return [[condition]]
    left, right = _clauses(condition.a), _clauses(condition.b)
    if left is None or right is None:
        return None
    if isinstance(condition, tir.And):
        return [*left, *right]
    both = len(left) * len(right) <= MOST_CLAUSES
    return [[*a, *b] for a in left for b in right] if both else None


class _Conjunction:
    """Clauses all of which hold. What two parts say together stands where the second one was."""

    def __init__(self, analyzer: Analyzer, clauses: list[Clause]) -> None:
        self.analyzer = analyzer
        self.true, self.false = [self._part(tir.const(value, "bool")) for value in (True, False)]
        self.clauses = [[self._part(part) for part in clause] for clause in clauses]

    def simplified(self) -> PrimExpr:
        """The condition, when parts of one clause and then of two have been put together."""
        for clause in self.clauses:
            for i, j in combinations(range(len(clause)), 2):
                clause[i], clause[j] = self._joined(tir.Or, clause[i], clause[j])
        self._drop_decided()
        for left, right in self._pairs():
            self._join_clauses(left, right)
        self._drop_decided()
        return op.all(self.true, *[op.any(self.false, *clause) for clause in self.clauses])

    def _part(self, condition: PrimExpr) -> PrimExpr:
        interned: PrimExpr = self.analyzer.interner.intern(condition)
        return interned

    def _pairs(self) -> Iterator[tuple[Clause, Clause]]:
        return combinations(self.clauses, 2)

    def _joined(
        self, kind: type[tir.And | tir.Or], a: PrimExpr, b: PrimExpr
    ) -> tuple[PrimExpr, PrimExpr]:
        """Two parts, put together if there is something simpler than both."""
        both = self._part(kind(a, b))
        simple = self._part(self.analyzer.plainly_simplified(both))
        if simple is both:
            return a, b
        if isinstance(simple, kind):
            return self._part(simple.a), self._part(simple.b)
        return self.true if kind is tir.And else self.false, simple

    def _join_clauses(self, left: Clause, right: Clause) -> None:
        """Say with two clauses no more than is needed."""
        if len(left) == len(right) == 1:
            left[0], right[0] = self._joined(tir.And, left[0], right[0])
            return
        in_left, in_right = {id(part) for part in left}, {id(part) for part in right}
        if in_left <= in_right:
            right[:] = [self.true]
        elif in_right <= in_left:
            left[:] = [self.true]
        elif len(left) == len(right) == len(in_left & in_right) + 1:
            (i,) = [n for n, part in enumerate(left) if id(part) not in in_right]
            (j,) = [n for n, part in enumerate(right) if id(part) not in in_left]
            # what both clauses share may be taken to fail
            shared = op.any(self.false, *[part for part in left if id(part) in in_right])
            with self.analyzer.constraint_scope(op.logical_not(shared)):
                left[i], right[j] = self._joined(tir.And, left[i], right[j])

    def _drop_decided(self) -> None:
        """Leave out what always holds or never does, and what is said twice."""
        for clause in self.clauses:
            kept = {id(part): part for part in clause if part is not self.false}
            clause[:] = kept.values()
        found = {}
        for clause in self.clauses:
            if not any([part is self.true for part in clause]):
                found[tuple([id(part) for part in clause])] = clause
        self.clauses = list(found.values())
