"""Groups: stages that are placed together, and the stages of a scan's step.

g = s.create_group(outputs=D, inputs=A)       # everything between A and D
g.compute_at(s[E], E.op.axis[0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm.error import ScheduleError

from ..tensor import Operation, ScanOp, Tensor
from .graph import sub_graph
from .scan import scan_get_body
from .stage import Stage
from .stage_data import AttachType

if TYPE_CHECKING:
    from .schedule import Schedule


class GroupOp(Operation, key="te.schedule.GroupOp"):
    """The operation of the stage that stands for a group: it computes nothing itself."""

    @property
    def num_outputs(self) -> int:
        return 0


def create_group(
    schedule: Schedule, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool
) -> Stage:
    """Put all stages between ``inputs`` and ``outputs`` into a new group."""
    members = _members(schedule, outputs, inputs, include_inputs)
    if not members:
        raise ScheduleError(
            f"create_group requires stages between inputs and outputs, got none that leads from "
            f"{', '.join([t.name for t in inputs]) or 'no input'} to "
            f"{', '.join([t.name for t in outputs]) or 'no output'}"
        )
    parent = members[0].group
    for stage in members:
        parent = common_group(parent, stage.group)
    nested_groups = _nested_groups(schedule, members, parent)
    for stage in members:
        if stage.attach_type is AttachType.Scope and stage.attach_stage not in members:
            raise ScheduleError(
                f"create_group requires stages that are not computed outside the group, got "
                f"{stage.op.name} at {stage.attach_stage.op.name}",
                hint="create the group first, then call compute_at",
            ).add_context(f"stage {stage.op.name}")
    group = Stage(GroupOp("group", "", {}))
    group.group = parent
    for nested in nested_groups:
        nested.group = group
    for stage in members:
        if stage.group is parent:
            stage.group = group
    schedule.groups.append(group)
    return group


def _members(
    schedule: Schedule, outputs: Sequence[Tensor], inputs: Sequence[Tensor], include_inputs: bool
) -> list[Stage]:
    """The stages between tensors, of which primitives may have replaced the operations."""
    last, first = [
        [schedule[t].op.output(t.value_index) for t in side] for side in (outputs, inputs)
    ]
    return [schedule.stage_map[op] for op in sub_graph(last, first, include_inputs)]


def _nested_groups(
    schedule: Schedule, members: Sequence[Stage], parent: Stage | None
) -> list[Stage]:
    """The groups right inside the parent that the new group takes up: wholly, or not at all."""
    touched = {}
    for stage in members:
        inner, outer = None, stage.group
        while outer is not parent:
            inner, outer = outer, outer.group
        if inner is not None:
            touched[id(inner)] = inner
    taken = {id(stage) for stage in members}
    for group in touched.values():
        for stage in schedule.stages:
            if in_group(stage, group) and id(stage) not in taken:
                raise ScheduleError(
                    "create_group requires groups that do not overlap, got stage "
                    f"{stage.op.name} in another group and not in this one",
                    hint="choose inputs and outputs that enclose the other group",
                )
    return list(touched.values())


def common_group(a: Stage | None, b: Stage | None) -> Stage | None:
    """The innermost group that holds both groups; None stands for all stages."""
    around = []
    while a is not None:
        around.append(a)
        a = a.group
    while b is not None and not any(b is other for other in around):
        b = b.group
    return b


def in_group(stage: Stage, group: Stage) -> bool:
    """Whether a stage belongs to a group, or to one inside it."""
    outer = stage.group
    while outer is not None and outer is not group:
        outer = outer.group
    return outer is group


def group_scan_bodies(schedule: Schedule) -> None:
    """Let what a scan's step computes run inside the scan's loop."""
    for stage in list(schedule.stages):
        op = stage.op
        if not isinstance(op, ScanOp):
            continue
        body = dict.fromkeys(scan_get_body(op))
        for tensor in (*op.init, *op.update):
            schedule.stage_map[tensor.op].is_state = True
        for update, state in zip(op.update, op.state_placeholder, strict=True):
            if update.op not in body:
                raise ScheduleError(
                    f"scan {op.name} requires an update that reads a state, got {update.name}, "
                    f"which does not depend on {state.name}",
                    hint="te.compute does what needs no steps before",
                )
        group = create_group(schedule, op.update, (*op.state_placeholder, *op.inputs), False)
        group.attach_type = AttachType.ScanUpdate
        group.attach_stage = stage
