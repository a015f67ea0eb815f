"""Replacing operations of a schedule, and the readers of what they produced."""

from __future__ import annotations

from collections.abc import Mapping
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


def replace_dataflow(
    schedule: Schedule,
    replacements: dict[Tensor, Tensor],
    of_readers: Mapping[Operation, Mapping[Tensor, Tensor]] | None = None,
) -> None:
    """Let all stages read the new tensors in place of the old ones, and so on downstream.

    Parameters
    ----------
    replacements : dict of Tensor to Tensor
        What everybody reads anew.
    of_readers : dict of Operation to dict, optional
        What one operation reads anew.
    """
    for stage in schedule.stages:
        own = of_readers.get(stage.op) if of_readers else None
        new = stage.op.replace_inputs({**replacements, **own} if own else replacements)
        if new is not stage.op:
            replacements.update(replace_operation(schedule, stage, new))
