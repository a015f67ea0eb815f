"""Steps that say where a stage is computed: at a loop of another one, inlined, on its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..loops import ComputeAt
from ..state_object import StateObject
from .step import Replay, Step, forget_extents, step_kind


@step_kind
@dataclass(frozen=True, slots=True)
class ComputeAtStep(Step):
    """Compute a stage inside a loop of another one. Its extents are then to be inferred."""

    record_prefix = "CA"
    stage_id: int
    target_stage_id: int
    target_iter_id: int

    def row(self) -> list[Any]:
        return [self.stage_id, self.target_stage_id, self.target_iter_id]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        target = state.stages[self.target_stage_id]
        self.require(0 <= self.target_iter_id < len(target.iters), f"a loop of {target.op.name}")
        stage = state.stages[self.stage_id]
        new = replace(stage, iters=forget_extents(stage), compute_at=ComputeAt.ITER)
        attached = {s: place for s, place in state.attached.items() if s != self.stage_id}
        attached[self.stage_id] = (self.target_stage_id, self.target_iter_id)
        return state.with_stage(self.stage_id, new).with_attached(attached), None

    def apply_to_schedule(self, replay: Replay) -> str:
        target = replay.stages[self.target_stage_id]
        axis = replay.axes[self.target_stage_id][self.target_iter_id]
        replay.stages[self.stage_id].compute_at(target, axis)
        name, place = replay.name(self.stage_id), replay.name(self.target_stage_id)
        loop = replay.axis_name(self.target_stage_id, axis)
        return f"s[{name}].compute_at(s[{place}], {loop})\n"


@step_kind
@dataclass(frozen=True, slots=True)
class ComputeInlineStep(Step):
    """Put the stage's expression wherever it is read."""

    record_prefix = "CI"
    stage_id: int

    def row(self) -> list[Any]:
        return [self.stage_id]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        self.require(
            all([target != self.stage_id for target, _ in state.attached.values()]),
            "a stage that no other one is computed at",
        )
        stage = replace(state.stages[self.stage_id], compute_at=ComputeAt.INLINED)
        attached = {s: place for s, place in state.attached.items() if s != self.stage_id}
        return state.with_stage(self.stage_id, stage).with_attached(attached), None

    def apply_to_schedule(self, replay: Replay) -> str:
        replay.stages[self.stage_id].compute_inline()
        return f"s[{replay.name(self.stage_id)}].compute_inline()\n"


@step_kind
@dataclass(frozen=True, slots=True)
class ComputeRootStep(Step):
    """Compute a stage on its own, before those that read it."""

    record_prefix = "CR"
    stage_id: int

    def row(self) -> list[Any]:
        return [self.stage_id]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        stage = state.stages[self.stage_id]
        new = replace(stage, iters=forget_extents(stage), compute_at=ComputeAt.ROOT)
        attached = {s: place for s, place in state.attached.items() if s != self.stage_id}
        return state.with_stage(self.stage_id, new).with_attached(attached), None

    def apply_to_schedule(self, replay: Replay) -> str:
        replay.stages[self.stage_id].compute_root()
        return f"s[{replay.name(self.stage_id)}].compute_root()\n"
