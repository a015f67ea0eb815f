"""Replacing operations of a schedule, and the readers of what they produced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tensor import Operation, Tensor

if TYPE_CHECKING:
    from .schedule import Schedule
    from .stage import Stage


def replace_operation(schedule: Schedule, stage: Stage, new: Operation) -> dict[Tensor, Tensor]:
    """Let a stage compute ``new``; say which tensors that replaces.

    The old operation still finds the stage in ``stage_map``.
    """
    old = stage.op
    stage.op = new
    schedule.stage_map[new] = stage
    schedule.outputs = [new if op is old else op for op in schedule.outputs]
    return dict(zip(old.outputs, new.outputs, strict=True))


def replace_dataflow(schedule: Schedule, replacements: dict[Tensor, Tensor]) -> None:
    """Let all stages read the new tensors in place of the old ones, and so on downstream."""
    for stage in schedule.stages:
        new = stage.op.replace_inputs(replacements)
        if new is not stage.op:
            replacements.update(replace_operation(schedule, stage, new))
