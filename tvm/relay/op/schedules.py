"""Schedules that operators of several families have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs

from .registry import Schedule


def for_all_targets(
    schedule: Callable[[Sequence[te.Tensor]], te.Schedule],
) -> Mapping[str, Schedule[Attrs]]:
    """One schedule, whatever the target."""

    def of_call(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
        return schedule(outs)

    return {"generic": of_call, "cpu": of_call}


def default_schedules(
    cpu: Callable[[Sequence[te.Tensor]], te.Schedule] | None = None, inline: bool = True
) -> dict[str, Schedule[Any]]:
    """The default schedule, which may inline element-wise stages; on processors another one."""

    def generic(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
        return topi.generic.default_schedule(outs, inline)

    if cpu is None:
        return {"generic": generic}
    return {"generic": generic, "cpu": lambda attrs, outs, target: cpu(outs)}


# of kernels whose loops are written out
EXTERN_SCHEDULES = for_all_targets(topi.generic.schedule_extern)
REDUCTION_SCHEDULES: Mapping[str, Schedule[Attrs]] = {
    "generic": lambda attrs, outs, target: topi.generic.schedule_reduce(outs),
    "cpu": lambda attrs, outs, target: topi.x86.schedule_reduce(outs),
}
