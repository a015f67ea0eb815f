"""Steps that say how loops run and how memory lies: annotations, pragmas, alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te

from ..loops import ANNOTATION_NAMES, THREADS, Annotation, Iterator
from ..state_object import StateObject
from .step import Replay, Step, replace_loops, step_kind

_AUTO_UNROLL = "auto_unroll_max_step"
_PRIMITIVES = {
    Annotation.UNROLL: "unroll",
    Annotation.VECTORIZE: "vectorize",
    Annotation.PARALLEL: "parallel",
}


@step_kind
@dataclass(frozen=True, slots=True)
class AnnotationStep(Step):
    """Say how a loop runs: in vectors, in threads, unrolled."""

    record_prefix = "AN"
    stage_id: int
    iter_id: int
    annotation: Annotation

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> AnnotationStep:
        return cls(row[0], row[1], Annotation(row[2]))

    def row(self) -> list[Any]:
        return [self.stage_id, self.iter_id, int(self.annotation)]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, Iterator]:
        loop = state.stages[self.stage_id].iters[self.iter_id]
        self.require(
            loop.annotation == Annotation.NONE,
            f"a loop without an annotation, and {loop.name} is {ANNOTATION_NAMES[loop.annotation]}",
        )
        new = loop.with_annotation(self.annotation)
        return replace_loops(state, self.stage_id, self.iter_id, 1, [new]), new

    def apply_to_schedule(self, replay: Replay) -> str:
        stage, axis = replay.stages[self.stage_id], replay.axes[self.stage_id][self.iter_id]
        code = f"s[{replay.name(self.stage_id)}]"
        name = replay.axis_name(self.stage_id, axis)
        if self.annotation in THREADS:
            thread = ANNOTATION_NAMES[self.annotation]
            stage.bind(axis, te.thread_axis(thread))
            return f'{code}.bind({name}, te.thread_axis("{thread}"))\n'
        primitive = _PRIMITIVES.get(self.annotation)
        self.require(primitive is not None, "an annotation that te has")
        getattr(stage, str(primitive))(axis)
        return f"{code}.{primitive}({name})\n"


@step_kind
@dataclass(frozen=True, slots=True)
class PragmaStep(Step):
    """Put a pragma on a loop: ``auto_unroll_max_step$16``, or one that te has."""

    record_prefix = "PR"
    stage_id: int
    iter_id: int
    pragma_type: str

    def row(self) -> list[Any]:
        return [self.stage_id, self.iter_id, self.pragma_type]

    @property
    def max_step(self) -> int | None:
        """How far to unroll, for that pragma."""
        kind, _, value = self.pragma_type.partition("$")
        return int(value) if kind == _AUTO_UNROLL and value else None

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        if self.pragma_type == "debug_skip_region":
            # the stage is not computed, and so it is nowhere
            attached = {s: place for s, place in state.attached.items() if s != self.stage_id}
            return state.with_attached(attached), None
        self.require(self.max_step is not None, f"the pragma {_AUTO_UNROLL}$<number>")
        stage = state.stages[self.stage_id].with_attrs(auto_unroll_max_step=self.max_step)
        return state.with_stage(self.stage_id, stage), None

    def apply_to_schedule(self, replay: Replay) -> str:
        stage, axis = replay.stages[self.stage_id], replay.axes[self.stage_id][self.iter_id]
        code = f"s[{replay.name(self.stage_id)}]"
        name = replay.axis_name(self.stage_id, axis)
        if self.max_step is None:
            stage.pragma(axis, self.pragma_type)
            return f'{code}.pragma({name}, "{self.pragma_type}")\n'
        stage.pragma(axis, _AUTO_UNROLL, self.max_step)
        stage.pragma(axis, "unroll_explicit", True)
        return (
            f'{code}.pragma({name}, "{_AUTO_UNROLL}", {self.max_step})\n'
            f'{code}.pragma({name}, "unroll_explicit", True)\n'
        )


@step_kind
@dataclass(frozen=True, slots=True)
class StorageAlignStep(Step):
    """Make the stride of an axis congruent to ``offset`` modulo ``factor``."""

    record_prefix = "SA"
    stage_id: int
    iter_id: int
    factor: int
    offset: int

    def row(self) -> list[Any]:
        return [self.stage_id, self.iter_id, self.factor, self.offset]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        stage = state.stages[self.stage_id].with_attrs(storage_offset=self.offset)
        return state.with_stage(self.stage_id, stage), None

    def apply_to_schedule(self, replay: Replay) -> str:
        axis = replay.axes[self.stage_id][self.iter_id]
        replay.stages[self.stage_id].storage_align(axis, self.factor, self.offset)
        name = replay.axis_name(self.stage_id, axis)
        code = f"s[{replay.name(self.stage_id)}]"
        return f"{code}.storage_align({name}, {self.factor}, {self.offset})\n"
