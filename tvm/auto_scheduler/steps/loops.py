"""Steps that change loops: split, fuse, reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..loops import Annotation, FuseRelation, Iterator, LoopKind, SplitRelation, split_extents
from ..state_object import StateObject
from .step import Replay, Step, StepError, step_kind

Lengths = tuple[int | None, ...]


@step_kind
@dataclass(frozen=True, slots=True)
class SplitStep(Step):
    """Replace a loop by nested ones of given lengths; the one that is left out is what remains."""

    record_prefix = "SP"
    stage_id: int
    iter_id: int
    extent: int | None
    lengths: Lengths
    inner_to_outer: bool = True

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, list[Iterator]]:
        return split_state(state, self.stage_id, self.iter_id, self.lengths, self.inner_to_outer)

    def apply_to_schedule(self, replay: Replay) -> str:
        return split_schedule(
            replay, self.stage_id, self.iter_id, self.lengths, self.inner_to_outer
        )

    def row(self) -> list[Any]:
        lengths = [0 if length is None else length for length in self.lengths]
        return [self.stage_id, self.iter_id, self.extent or 0, lengths, int(self.inner_to_outer)]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> SplitStep:
        stage_id, iter_id, extent, lengths, inner_to_outer = row
        known = tuple([length or None for length in lengths])
        return cls(stage_id, iter_id, extent or None, known, bool(inner_to_outer))

    def with_lengths(self, lengths: Lengths) -> SplitStep:
        """The same split into other lengths."""
        return SplitStep(self.stage_id, self.iter_id, self.extent, lengths, self.inner_to_outer)


def split_state(
    state: StateObject, stage_id: int, iter_id: int, lengths: Lengths, inner_to_outer: bool
) -> tuple[StateObject, list[Iterator]]:
    """Split a loop of a state; the new loops, outer ones first."""
    stage = state.stages[stage_id]
    loop, count, key = stage.iters[iter_id], len(lengths), stage.next_key
    new = [
        Iterator(f"{loop.name}.{i}", extent, loop.iter_kind, key=key + i)
        for i, extent in enumerate(split_extents(loop.extent, lengths, inner_to_outer))
    ]
    children = tuple(range(key, key + count + 1))
    relation = SplitRelation(loop.key, children, lengths, inner_to_outer)
    iters = (*stage.iters[:iter_id], *new, *stage.iters[iter_id + 1 :])
    result = state.with_stage(stage_id, stage.related(iters, relation, count + 1))
    # what was computed at the loop is computed at the innermost of the new ones
    result = result.move_loops(stage_id, lambda at: at + count if at >= iter_id else at)
    if None in lengths and result.concrete:
        result = result.with_steps(result.transform_steps, concrete=False)
    return result, new


def split_schedule(
    replay: Replay, stage_id: int, iter_id: int, lengths: Lengths, inner_to_outer: bool
) -> str:
    """Split a loop of a schedule, one length after the other."""
    stage, axes = replay.stages[stage_id], replay.axes[stage_id]
    loop = axes[iter_id]
    made: list[Any] = []
    lines = []
    for length in reversed(lengths) if inner_to_outer else lengths:
        if length is None:
            raise StepError(
                "a state requires lengths for all of its splits before it becomes a schedule, "
                f"got none for a loop of {stage.op.name}",
                hint="policy.sample_initial_population() fills in those of sketches",
            )
        parent = replay.axis_name(stage_id, loop)
        way = "factor" if inner_to_outer else "nparts"
        if inner_to_outer:
            outer, inner = stage.split(loop, factor=length)
        else:
            outer, inner = stage.split(loop, nparts=length)
        names = f"{replay.axis_name(stage_id, outer)}, {replay.axis_name(stage_id, inner)}"
        lines.append(f"{names} = s[{replay.name(stage_id)}].split({parent}, {way}={length})\n")
        done, loop = (inner, outer) if inner_to_outer else (outer, inner)
        made.append(done)
    made.append(loop)
    if inner_to_outer:
        made.reverse()
    axes[iter_id : iter_id + 1] = made
    return "".join(lines)


@step_kind
@dataclass(frozen=True, slots=True)
class FuseStep(Step):
    """Replace consecutive loops by one."""

    record_prefix = "FU"
    stage_id: int
    fused_ids: tuple[int, ...]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> FuseStep:
        return cls(row[0], tuple(row[1]))

    def row(self) -> list[Any]:
        return [self.stage_id, list(self.fused_ids)]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, Iterator]:
        stage = state.stages[self.stage_id]
        ids = self.fused_ids
        if not ids:
            new = Iterator("", 1, key=stage.next_key)
            added = stage.related((new, *stage.iters), FuseRelation((), new.key), 1)
            state = state.move_loops(self.stage_id, lambda at: at + 1)
            return state.with_stage(self.stage_id, added), new
        first, last = ids[0], ids[-1]
        self.require(ids == tuple(range(first, last + 1)), "consecutive loops")
        for target, loop in state.attached.values():
            self.require(
                target != self.stage_id or not first <= loop < last,
                "loops of which only the innermost has stages computed at it",
            )
        loops = stage.iters[first : last + 1]
        new = _fused(loops, stage.next_key)
        relation = FuseRelation(tuple([loop.key for loop in loops]), new.key)
        iters = (*stage.iters[:first], new, *stage.iters[last + 1 :])
        result = state.with_stage(self.stage_id, stage.related(iters, relation, 1))

        def moved(at: int) -> int:
            return at if at < first else first if at <= last else at - len(ids) + 1

        return result.move_loops(self.stage_id, moved), new

    def apply_to_schedule(self, replay: Replay) -> str:
        stage, axes = replay.stages[self.stage_id], replay.axes[self.stage_id]
        loops = [axes[i] for i in self.fused_ids]
        parents = ", ".join([replay.axis_name(self.stage_id, iv) for iv in loops])
        fused = stage.fuse(*loops)
        first = self.fused_ids[0] if loops else 0
        axes[first : first + len(loops)] = [fused]
        name = replay.axis_name(self.stage_id, fused)
        return f"{name} = s[{replay.name(self.stage_id)}].fuse({parents})\n"


def _fused(loops: Sequence[Iterator], key: int) -> Iterator:
    extent: int | None = 1
    originals: list[Iterator] = []
    kind = loops[0].iter_kind
    for loop in loops:
        if extent is not None:
            extent = None if loop.extent is None else extent * loop.extent
        kind = kind if kind == loop.iter_kind else LoopKind.MIXED
        originals.extend(loop.orig_iters or (loop,))
    name = "".join([f"{loop.name}@" for loop in loops])
    return Iterator(name, extent, kind, Annotation.NONE, tuple(originals), key)


@step_kind
@dataclass(frozen=True, slots=True)
class ReorderStep(Step):
    """Put all loops of a stage in another order."""

    record_prefix = "RE"
    stage_id: int
    after_ids: tuple[int, ...] = field(default=())

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> ReorderStep:
        return cls(row[0], tuple(row[1]))

    def row(self) -> list[Any]:
        return [self.stage_id, list(self.after_ids)]

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, None]:
        stage = state.stages[self.stage_id]
        self.require(
            sorted(self.after_ids) == list(range(len(stage.iters))),
            f"each of the {len(stage.iters)} loops of {stage.op.name} once",
        )
        iters = tuple([stage.iters[i] for i in self.after_ids])
        state = state.with_stage(self.stage_id, stage.with_iters(iters))
        return state.move_loops(self.stage_id, self.after_ids.index), None

    def apply_to_schedule(self, replay: Replay) -> str:
        axes = replay.axes[self.stage_id]
        new = [axes[i] for i in self.after_ids]
        if len(new) > 1:
            replay.stages[self.stage_id].reorder(*new)
        replay.axes[self.stage_id] = new
        names = ", ".join([replay.axis_name(self.stage_id, iv) for iv in new])
        return f"s[{replay.name(self.stage_id)}].reorder({names})\n"
