"""Which values no clause of a match fits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tvm.error import TVMError
from tvm.ir.adt import TypeData
from tvm.ir.module import IRModule
from tvm.relay.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns of the values that `match` has no clause for; none if it is complete.

    Parameters
    ----------
    match : the expression.
    mod : the module with the data types.
    """
    missing: list[Pattern] = [PatternWildcard()]
    for clause in match.clauses:
        missing = [rest for case in missing for rest in _without(case, clause.lhs, mod)]
    return missing


def _without(case: Pattern, clause: Pattern, mod: IRModule | None) -> list[Pattern]:
    """The parts of the values of `case` that `clause` does not fit."""
    if isinstance(clause, (PatternWildcard, PatternVar)):
        return []
    if isinstance(clause, PatternTuple):
        wild = PatternTuple([PatternWildcard()] * len(clause.patterns))
        known = case if isinstance(case, PatternTuple) else wild
        parts = _parts_without(known.patterns, clause.patterns, mod)
        return [PatternTuple(fields) for fields in parts]
    assert isinstance(clause, PatternConstructor)
    if not isinstance(case, PatternConstructor):
        cases = [_any_value(c) for c in _definition(clause, mod).constructors]
        return [rest for each in cases for rest in _without(each, clause, mod)]
    if case.constructor is not clause.constructor:
        return [case]
    parts = _parts_without(case.patterns, clause.patterns, mod)
    return [PatternConstructor(case.constructor, fields) for fields in parts]


def _parts_without(
    case: Sequence[Pattern], clause: Sequence[Pattern], mod: IRModule | None
) -> list[list[Pattern]]:
    """Fields some of which do not fit: before the first one that does not, all fit."""
    found: list[list[Pattern]] = []
    for place, pattern in enumerate(clause):
        for rest in _without(case[place], pattern, mod):
            fitting = [_fitting(c, p) for c, p in zip(case[:place], clause[:place], strict=True)]
            for before in product(*fitting):
                found.append([*before, rest, *case[place + 1 :]])
    return found


def _fitting(case: Pattern, clause: Pattern) -> list[Pattern]:
    """The values of both patterns."""
    if isinstance(clause, (PatternWildcard, PatternVar)):
        return [case]
    return [clause if isinstance(case, (PatternWildcard, PatternVar)) else case]


def _any_value(constructor: Constructor) -> Pattern:
    return PatternConstructor(constructor, [PatternWildcard()] * len(constructor.inputs))


def _definition(pattern: PatternConstructor, mod: IRModule | None) -> TypeData:
    if mod is None:
        raise TVMError(
            f"unmatched_cases requires a module that defines "
            f"{pattern.constructor.belong_to.name_hint}"
        )
    data = mod[pattern.constructor.belong_to]
    assert isinstance(data, TypeData)
    return data
