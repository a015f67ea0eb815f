"""Matching several patterns, and the constraints between them, with the bindings of a block.

Each pattern stands for another variable of the block, or for one that comes from outside. Patterns
that are next to one that is known are tried first, so that few variables come into question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.relax.analysis.variables import used_vars
from tvm.relax.expr import Binding, Call, ExternFunc, Tuple, TupleGetItem, Var
from tvm.relax.struct_info import TensorStructInfo

from .constraints import Constraints, PairConstraint
from .matcher import Matcher, Values, are_same
from .pattern import AndPattern, DFPattern, OrPattern, SameShapeConstraint


def _leaves(value: RelayExpr) -> list[RelayExpr]:
    """What a value is computed from, argument by argument; those of tuples one by one."""
    if isinstance(value, Call):
        return [
            leaf
            for arg in value.args
            if not isinstance(arg, (GlobalVar, ExternFunc))
            for leaf in (arg.fields if isinstance(arg, Tuple) else (arg,))
        ]
    if isinstance(value, Tuple):
        return list(value.fields)
    if isinstance(value, TupleGetItem):
        return [value.tuple_value]
    return list(used_vars(value))


class GraphMatcher:
    """One search.

    Parameters
    ----------
    constraints : those of the context.
    bindings : the block's.
    values : of the block's variables.
    """

    def __init__(
        self, constraints: Constraints, bindings: Sequence[Binding], values: Values
    ) -> None:
        self.constraints = constraints
        self.values = values
        self.users: dict[Var, dict[Var, None]] = {}
        self.variables: dict[Var, None] = {}
        self.leaves = {b.var: _leaves(b.value) for b in bindings}
        for binding in bindings:
            for used in used_vars(binding.value):
                self.variables[used] = None
                self.users.setdefault(used, {})[binding.var] = None
            self.variables[binding.var] = None
        self.patterns: dict[DFPattern, None] = dict.fromkeys(constraints.patterns())
        self.used_of: dict[DFPattern, list[DFPattern]] = {}
        for used, users in constraints.edges.items():
            for user in users:
                self.used_of.setdefault(user, []).append(used)
        self.matcher = Matcher(values)

    def search(self) -> dict[DFPattern, RelayExpr] | None:
        """What the patterns stand for; None if there is no way."""
        return self._solve({}) if self.patterns else None

    def _solve(self, chosen: dict[DFPattern, RelayExpr]) -> dict[DFPattern, RelayExpr] | None:
        pattern = self._next(chosen)
        if pattern is None:
            return {**dict(self.matcher.found), **chosen}
        for var in self._candidates(pattern, chosen):
            mark = len(self.matcher.found)
            if self.matcher.match(pattern, var):
                # parts of the pattern may be patterns of the context too
                parts = {p: e for p, e in self.matcher.found[mark:] if p in self.patterns}
                now = {**chosen, **parts, pattern: var}
                if self._is_consistent(now) and (found := self._solve(now)) is not None:
                    return found
                self.matcher._take_back(mark)
        return None

    def _next(self, chosen: dict[DFPattern, RelayExpr]) -> DFPattern | None:
        """A pattern that is not known yet, beside one that is if possible; parts come with wholes."""
        waiting = [p for p in self.patterns if p not in chosen and not self._is_part(p, chosen)]
        for pattern in waiting:
            beside = (*self.used_of.get(pattern, ()), *self.constraints.edges.get(pattern, ()))
            if any([p in chosen for p in beside]):
                return pattern
        return waiting[0] if waiting else None

    def _is_part(self, pattern: DFPattern, chosen: dict[DFPattern, RelayExpr]) -> bool:
        users = self.constraints.edges.get(pattern, {})
        return any([pair.is_part and u not in chosen for u, ps in users.items() for pair in ps])

    def _candidates(
        self, pattern: DFPattern, chosen: dict[DFPattern, RelayExpr]
    ) -> list[RelayExpr]:
        for used in self.used_of.get(pattern, ()):
            if used in chosen and isinstance(var := chosen[used], Var):
                return list(self.users.get(var, ()))
        for user in self.constraints.edges.get(pattern, ()):
            if user in chosen and isinstance(var := chosen[user], Var):
                return list(self.leaves.get(var, ()))
        return list(self.variables)

    def _is_consistent(self, chosen: dict[DFPattern, RelayExpr]) -> bool:
        """Whether constraints hold between the patterns that are known so far."""
        return (
            self._are_different(chosen)
            and all(
                [
                    self._holds(chosen[used], chosen[user], pair)
                    for used, users in self.constraints.edges.items()
                    for user, pairs in users.items()
                    if used in chosen and user in chosen
                    for pair in pairs
                ]
            )
            and all([self._is_valid(c, chosen) for c in self.constraints.validations])
        )

    @staticmethod
    def _are_different(chosen: dict[DFPattern, RelayExpr]) -> bool:
        """Whether patterns stand for different variables, but for those that contain each other."""
        known: dict[RelayExpr, list[DFPattern]] = {}
        for pattern, expr in chosen.items():
            if isinstance(expr, Var):
                known.setdefault(expr, []).append(pattern)
        return all(
            [
                _refines(a, b) or _refines(b, a)
                for group in known.values()
                for i, a in enumerate(group)
                for b in group[:i]
            ]
        )

    def _holds(self, used: RelayExpr, user: RelayExpr, pair: PairConstraint) -> bool:
        if not isinstance(user, Var) or (leaves := self.leaves.get(user)) is None:
            return False
        users = self.users.get(used, {}) if isinstance(used, Var) else {user: None}
        if pair.index == -1:
            is_used = user in users if isinstance(used, Var) else _contains(leaves, used)
        else:
            is_used = pair.index < len(leaves) and leaves[pair.index] is used
        return is_used and (not pair.is_only_use or len(users) == 1)

    @staticmethod
    def _is_valid(constraint: Any, chosen: dict[DFPattern, RelayExpr]) -> bool:
        if not isinstance(constraint, SameShapeConstraint):
            raise TVMError(f"unknown constraint between patterns: {type(constraint).__name__}")
        infos = [chosen[arg].struct_info_ for arg in constraint.args if arg in chosen]
        shapes = [i.dimensions if isinstance(i, TensorStructInfo) else None for i in infos]
        return all([are_same(shapes[0], shape) for shape in shapes])


def _contains(leaves: Sequence[RelayExpr], expr: RelayExpr) -> bool:
    return isinstance(expr, Tuple) or any([leaf is expr for leaf in leaves])


def _refines(outer: DFPattern, inner: DFPattern) -> bool:
    """Whether a pattern says more of what another one stands for."""
    pending = [outer]
    while pending:
        pattern = pending.pop()
        if pattern is inner:
            return True
        if isinstance(pattern, (AndPattern, OrPattern)):
            pending += [pattern.left, pattern.right]
        elif (part := getattr(pattern, "pattern", None)) is not None:
            pending.append(part)
    return False
