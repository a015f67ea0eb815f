"""Steps that add a stage: caches, and partial results of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..loops import Stage
from ..state_object import StateObject
from .step import Replay, Step, shift_stages, step_kind


class NewStageStep(Step):
    """A step behind which the operations of the graph are others."""

    __slots__ = ()

    changes_stages = True

    def insert_stage(self, state: StateObject, position: int) -> StateObject:
        """The state with a stage for the new operation, and the operations behind the step."""
        graph = state.graph.after(state.after(self).transform_steps)
        stages = list(state.stages)
        stages.insert(position, Stage.of(graph.ops[position]))
        moved = shift_stages(state, position, 1)
        new = [stage.with_op(op) for stage, op in zip(stages, graph.ops, strict=True)]
        return StateObject(tuple(new), moved.transform_steps, moved.attached, graph, moved.concrete)


@step_kind
@dataclass(frozen=True, slots=True)
class CacheReadStep(NewStageStep):
    """Let some readers of a stage read a copy, which is a stage behind it."""

    record_prefix = "CHR"
    stage_id: int
    scope_name: str
    reader_stage_ids: tuple[int, ...]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> CacheReadStep:
        return cls(row[0], row[1], tuple(row[2]))

    def row(self) -> list[Any]:
        return [self.stage_id, self.scope_name, list(self.reader_stage_ids)]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, int]:
        return self.insert_stage(state, self.stage_id + 1), self.stage_id + 1

    def apply_to_schedule(self, replay: Replay) -> str:
        readers = [replay.stages[i].op for i in self.reader_stage_ids]
        tensor = replay.stages[self.stage_id].origin_op.output(0)
        cache = replay.schedule.cache_read(tensor, self.scope_name, readers)
        names = ", ".join([replay.name(i) for i in self.reader_stage_ids])
        source = replay.name(self.stage_id)
        replay.insert(self.stage_id + 1, cache.op)
        name = replay.name(self.stage_id + 1)
        return (
            f'{name} = s.cache_read({source}, "{self.scope_name}", [{names}])\n'
            f"{replay.axes_line(self.stage_id + 1)}"
        )


@step_kind
@dataclass(frozen=True, slots=True)
class CacheWriteStep(NewStageStep):
    """Compute a stage in a storage scope, in a stage before it that it copies."""

    record_prefix = "CHW"
    stage_id: int
    scope_name: str

    def row(self) -> list[Any]:
        return [self.stage_id, self.scope_name]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, int]:
        new = self.insert_stage(state, self.stage_id)
        # the copy has no reduction, and its loops begin anew
        position = self.stage_id + 1
        return new.with_stage(position, Stage.of(new.graph.ops[position])), self.stage_id

    def apply_to_schedule(self, replay: Replay) -> str:
        source = replay.stages[self.stage_id]
        tensors = list(source.origin_op.outputs)
        caches = replay.schedule.cache_write(tensors, self.scope_name)
        replay.reset_axes(self.stage_id)
        replay.insert(self.stage_id, caches[0].op)
        name, copied = replay.name(self.stage_id), replay.name(self.stage_id + 1)
        outputs = [f"{copied}.op.output({i})" for i in range(len(tensors))]
        given = copied if len(tensors) == 1 else ", ".join(outputs)
        others = "".join([f"{name}_v{i}, " for i in range(1, len(tensors))])
        return (
            f'{name}, {others}= s.cache_write([{given}], "{self.scope_name}")\n'.replace(
                ",  =", ", ="
            )
            + replay.axes_line(self.stage_id)
            + replay.axes_line(self.stage_id + 1)
        )


@step_kind
@dataclass(frozen=True, slots=True)
class RfactorStep(NewStageStep):
    """Compute partial results of a reduction, one an iteration of a loop, in a stage before it."""

    record_prefix = "RF"
    stage_id: int
    iter_id: int
    factor_iter_id: int

    def row(self) -> list[Any]:
        return [self.stage_id, self.iter_id, self.factor_iter_id]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, int]:
        place = state.stages[self.stage_id].compute_at
        new = self.insert_stage(state, self.stage_id)
        position = self.stage_id + 1
        # loops of the reduction before are those of the partial results
        combined = Stage.of(new.graph.ops[position], place)
        return new.with_stage(position, combined), self.stage_id

    def apply_to_schedule(self, replay: Replay) -> str:
        stage, axis = replay.stages[self.stage_id], replay.axes[self.stage_id][self.iter_id]
        loop = replay.axis_name(self.stage_id, axis)
        source = replay.name(self.stage_id)
        tensor = stage.origin_op.output(0)
        made = replay.schedule.rfactor(tensor, axis, self.factor_iter_id)
        partial = made[0] if isinstance(made, (list, tuple)) else made
        replay.reset_axes(self.stage_id)
        replay.insert(self.stage_id, partial.op)
        name = replay.name(self.stage_id)
        return (
            f"{name} = s.rfactor({source}, {loop}, {self.factor_iter_id})\n"
            f"{replay.axes_line(self.stage_id)}{replay.axes_line(self.stage_id + 1)}"
        )
