"""Conditions under which a schedule is written, for strategies with several implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import ScheduleError
from tvm.runtime.object import Object
from tvm.support.scope import Scoped

_CURRENT: Scoped[SpecializedCondition] = Scoped("te.specialized_condition")


class SpecializedCondition(Object):
    """Clauses that hold inside a ``with`` block."""

    def __init__(self, conditions: Any) -> None:
        if not isinstance(conditions, (list, tuple)):
            conditions = [conditions]
        if not conditions:
            raise ScheduleError("SpecializedCondition requires at least one condition, got none")
        self.clauses: Sequence[Any] = tuple(conditions)

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The condition of the innermost block, if any."""
        return _CURRENT.current()

    def __enter__(self) -> SpecializedCondition:
        _CURRENT.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.pop()
