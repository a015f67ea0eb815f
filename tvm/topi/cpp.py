"""The operator library under its names in C++: computes as in `topi`, schedules that take a target first.

s = topi.cpp.cuda.schedule_injective(topi.cpp.TEST_create_target("opencl"), [C])
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from tvm import te
from tvm.target import Target

from . import devices, nn, utils, vision
from . import generic as any_device
from . import x86 as processors


class ScheduleLibrary(ModuleType):
    """The schedules of one kind of device, as functions of a target and the outputs."""

    def __init__(self, library: ModuleType) -> None:
        super().__init__(library.__name__.replace("topi.", "topi.cpp."), library.__doc__)
        self._library = library

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "schedule" not in name:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        schedule = getattr(self._library, name)
        if name == "schedule_injective_from_existing":  # the schedule that exists has a target
            return schedule

        @wraps(schedule)
        def schedule_for(
            target: Target | str, outs: te.Tensor | Sequence[te.Tensor], *args: Any
        ) -> te.Schedule:
            with Target(target):
                found: te.Schedule = schedule(outs, *args)
            return found

        return schedule_for


def TEST_create_target(name: str) -> Target:
    """The target of that name."""
    return Target(name)


def __getattr__(name: str) -> Any:
    found = None if name.startswith("_") else getattr(import_module("tvm.topi"), name, None)
    if not callable(found):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


cuda = ScheduleLibrary(devices.cuda)
rocm = ScheduleLibrary(devices.rocm)
x86 = ScheduleLibrary(processors)
generic = ScheduleLibrary(any_device)

__all__ = ["TEST_create_target", "cuda", "generic", "nn", "rocm", "utils", "vision", "x86"]
