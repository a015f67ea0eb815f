"""Copies of a schedule after each of its primitives, for those who show how it came about.

with tvm.transform.PassContext(config={"te.keep_schedule_record": True}):
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=32)
s.primitive_record          # ["vanilla", "split"], and s.schedule_record has as many schedules
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tvm.ir.pass_context import PassContext, register_pass_config

if TYPE_CHECKING:
    from .schedule import Schedule

KEEP_RECORD = "te.keep_schedule_record"
register_pass_config(KEEP_RECORD, bool)  # schedules keep copies of themselves

P = ParamSpec("P")
R = TypeVar("R")


class ScheduleRecord:
    """What a schedule was like at first and after each primitive."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.copies: list[Schedule] = []
        self.primitives: list[str] = []
        self.add("vanilla")

    def add(self, primitive: str) -> None:
        """Keep a copy of the schedule as it is after a primitive."""
        # primitives make stages too
        for stage in (*self.schedule.stages, *self.schedule.groups):
            stage.record = self
        self.copies.append(self.schedule.copy())
        self.primitives.append(primitive)


def record_of(schedule: Schedule) -> ScheduleRecord | None:
    """The record of a new schedule, if the current context wants one."""
    return ScheduleRecord(schedule) if PassContext.current().get(KEEP_RECORD, False) else None


def primitive(function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let a method of a schedule, or of its stages, show in the schedule's record."""

    @wraps(function)
    def recorded(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result = function(self, *args, **kwargs)
        if self.record is not None:
            self.record.add(function.__name__)
        return result

    return recorded
