"""Schedules that operators of several families have, and layouts, by the keys of targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.target import Target

from .registry import AlterLayout, Schedule


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


# as AlterLayout, for a target
AlterFor = Callable[[Any, Sequence[Any], Sequence[Any], Any, Target], RelayExpr | None]


def alterations(**by_key: AlterFor) -> AlterLayout[Any]:
    """Other layouts for a call, by the key of the target, as schedules are."""

    def alter(
        attrs: Attrs, inputs: Sequence[RelayExpr], arg_types: Sequence[Type], out_type: Type
    ) -> RelayExpr | None:
        target = Target.current()
        keys = () if target is None else target.keys
        chosen = next((by_key[key] for key in keys if key in by_key), None)
        if chosen is None or target is None:
            return None
        return chosen(attrs, inputs, arg_types, out_type, target)

    return alter


# of kernels whose loops are written out
EXTERN_SCHEDULES = for_all_targets(topi.generic.schedule_extern)
REDUCTION_SCHEDULES: Mapping[str, Schedule[Attrs]] = {
    "generic": lambda attrs, outs, target: topi.generic.schedule_reduce(outs),
    "cpu": lambda attrs, outs, target: topi.x86.schedule_reduce(outs),
}
