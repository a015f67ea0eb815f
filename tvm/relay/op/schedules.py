"""Schedules that operators of several families have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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


# of kernels whose loops are written out
EXTERN_SCHEDULES = for_all_targets(topi.generic.schedule_extern)
REDUCTION_SCHEDULES: Mapping[str, Schedule[Attrs]] = {
    "generic": lambda attrs, outs, target: topi.generic.schedule_reduce(outs),
    "cpu": lambda attrs, outs, target: topi.x86.schedule_reduce(outs),
}
