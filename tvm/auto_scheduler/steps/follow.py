"""Splits whose lengths are those of earlier splits, so that tiles of two stages stay equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..loops import Iterator
from ..state_object import StateObject
from .loops import Lengths, SplitStep, split_schedule, split_state
from .step import Replay, Step, StepError, step_kind


@step_kind
@dataclass(frozen=True, slots=True)
class FollowSplitStep(Step):
    """Split a loop as an earlier step did, into ``n_split + 1`` loops; the last has what is left."""

    record_prefix = "FSP"
    stage_id: int
    iter_id: int
    src_step_id: int
    n_split: int

    def row(self) -> list[Any]:
        return [self.stage_id, self.iter_id, self.src_step_id, self.n_split]

    def lengths(self, steps: Sequence[Step]) -> Lengths:
        """The lengths, from the steps before this one."""
        source = _split_at(steps, self.src_step_id, self).lengths
        self.require(1 <= self.n_split <= len(source) + 1, f"at most {len(source) + 1} lengths")
        last: int | None = 1
        for length in source[self.n_split - 1 :]:
            last = None if last is None or length is None else last * length
        return (*source[: self.n_split - 1], last)

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, list[Iterator]]:
        lengths = self.lengths(state.transform_steps)
        return split_state(state, self.stage_id, self.iter_id, lengths, inner_to_outer=True)

    def apply_to_schedule(self, replay: Replay) -> str:
        lengths = self.lengths(replay.steps)
        return split_schedule(replay, self.stage_id, self.iter_id, lengths, inner_to_outer=True)


@step_kind
@dataclass(frozen=True, slots=True)
class FollowFusedSplitStep(Step):
    """Split a fused loop by the product of the lengths that earlier splits have at one level."""

    record_prefix = "FFSP"
    stage_id: int
    iter_id: int
    src_step_ids: tuple[int, ...]
    level: int
    factor_or_nparts: bool

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> FollowFusedSplitStep:
        return cls(row[0], row[1], tuple(row[2]), row[3], bool(row[4]))

    def row(self) -> list[Any]:
        sources = list(self.src_step_ids)
        return [self.stage_id, self.iter_id, sources, self.level, int(self.factor_or_nparts)]

    def length(self, steps: Sequence[Step]) -> int | None:
        """The length, from the steps before this one."""
        product: int | None = 1
        for source in self.src_step_ids:
            lengths = _split_at(steps, source, self).lengths
            self.require(0 <= self.level < len(lengths), f"a level below {len(lengths)}")
            length = lengths[self.level]
            product = None if product is None or length is None else product * length
        return product

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, list[Iterator]]:
        lengths = (self.length(state.transform_steps),)
        return split_state(state, self.stage_id, self.iter_id, lengths, self.factor_or_nparts)

    def apply_to_schedule(self, replay: Replay) -> str:
        lengths = (self.length(replay.steps),)
        return split_schedule(replay, self.stage_id, self.iter_id, lengths, self.factor_or_nparts)


def _split_at(steps: Sequence[Step], position: int, follower: Step) -> SplitStep:
    source = steps[position] if 0 <= position < len(steps) else None
    if not isinstance(source, SplitStep):
        raise StepError(
            f"step {follower.record_prefix} requires a split at step {position}, got {source!r}"
        )
    return source
