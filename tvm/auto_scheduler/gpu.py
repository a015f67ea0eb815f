"""Rules for GPUs: tiles in shared memory, and threads that share a reduction."""

from __future__ import annotations

from typing import Any

from .loop_state import State
from .loops import Annotation, Iterator, LoopKind
from .sketch import stage_analysis as analysis
from .sketch.rules import (
    AddCacheWrite,
    AlwaysInline,
    Condition,
    Derived,
    MultiLevelTiling,
    MultiLevelTilingWithFusion,
    SimplifyConstTensor,
    SketchRule,
    SkipStage,
    changed,
    fuse_reduction,
)
from .sketch_params import SIMPLIFY_CONST_TENSOR
from .state_object import StateObject
from .steps import SplitStep


class AddCacheRead(SketchRule):
    """Let a tiled stage read its input from a copy in shared memory."""

    name = "Add Cache Read Stage"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        readers = analysis.consumers(state, stage_id)
        if not readers or state.stages[stage_id].op.name.endswith(".shared"):
            return Condition.SKIP
        if any([self._wants_copy(state, reader) for reader in readers]):
            is_plain = not analysis.wants_tiles(state, stage_id)
            return Condition.APPLY_AND_SKIP_REST if is_plain else Condition.SKIP
        return Condition.SKIP

    def _wants_copy(self, state: StateObject, reader: int) -> bool:
        stage = state.stages[reader]
        return (
            analysis.wants_tiles(state, reader)
            and analysis.is_tiled(stage)
            and any([loop.iter_kind == LoopKind.REDUCTION for loop in stage.iters])
            and not analysis.has_cross_thread_reduction(state, reader)
        )

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        readers = [r for r in analysis.consumers(state, stage_id) if self._wants_copy(state, r)]
        if len(readers) != 1:
            return [(state, stage_id - 1)]
        new = changed(policy, state)
        new.cache_read(stage_id, "shared", [readers[0]])
        target = readers[0] + 1
        place = _last_outer_reduction(new, target)
        if place is not None:
            new.compute_at(stage_id + 1, target, place)
        return [(new.state_object, stage_id - 1)]


def _last_outer_reduction(state: State, stage_id: int) -> Iterator | None:
    """The innermost loop of the outer group of reduction loops."""
    found: Iterator | None = None
    for loop in state.stages[stage_id].iters:
        if loop.iter_kind == LoopKind.REDUCTION:
            found = loop
        elif found is not None:
            break
    return found


class SpecialComputeLocation(SketchRule):
    """Compute the transformation of tiles of Winograd's algorithm inside of its reader."""

    name = "Special Compute Location"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        if not analysis.is_compute(state.stages[stage_id]) or analysis.is_output(state, stage_id):
            return Condition.SKIP
        readers = analysis.consumers(state, stage_id)
        has_small = len(readers) == 1 and (
            SIMPLIFY_CONST_TENSOR in state.stages[readers[0]].op.attrs
        )
        is_plain = not analysis.has_reduction(state.stages[stage_id])
        return Condition.APPLY_AND_SKIP_REST if has_small and is_plain else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        (target,) = analysis.consumers(state, stage_id)
        new = changed(policy, state)
        loops = new.stages[target].iters
        outer = [loop for loop in loops if loop.annotation != Annotation.UNROLL]
        if outer:
            new.compute_at(stage_id, target, outer[-1])
        return [(new.state_object, stage_id - 1)]


class CrossThreadReduction(SketchRule):
    """Let the threads of a block share a long reduction."""

    name = "Cross Thread Reduction"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        wanted = analysis.wants_cross_thread_reduction(
            policy.search_task, state, stage_id
        ) and not analysis.has_cache_write(state, stage_id)
        return Condition.APPLY if wanted else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        new = changed(policy, state)
        fused, _ = fuse_reduction(new, stage_id)
        warp_size = policy.search_task.hardware_params.warp_size
        target, common = _reader_around(state, stage_id)
        if target is None:
            _, inner = new.split(stage_id, fused, [warp_size])
            new.bind(stage_id, inner, "threadIdx.x")
            return [(new.state_object, stage_id - 1)]
        source = _split_of(new.state_object, target)
        if source is None:
            _, inner = new.split(target, new.stages[target].iters[-1], [warp_size])
            source = len(new.transform_steps) - 1
            new.bind(target, inner, "threadIdx.x")
        _, inner = new.follow_split(stage_id, fused, source, 1)
        new.bind(stage_id, inner, "threadIdx.x")
        new.compute_at(stage_id, target, new.stages[target].iters[common - 1])
        return [(new.state_object, stage_id - 1)]


def _reader_around(state: StateObject, stage_id: int) -> tuple[int | None, int]:
    """The only reader, if it may compute the stage in its loops, and how many outer loops they share."""
    readers = analysis.consumers(state, stage_id)
    if len(readers) != 1:
        return None, 0
    (target,) = readers
    common = analysis.common_outer_loops(state, stage_id, target)
    stage = state.stages[target]
    is_plain = not analysis.wants_tiles(state, target) and not analysis.has_reduction(stage)
    return (target, common) if common and is_plain else (None, 0)


def _split_of(state: StateObject, stage_id: int) -> int | None:
    """The position of the step that split a stage's loop for threads."""
    for position in range(len(state.transform_steps) - 1, -1, -1):
        step = state.transform_steps[position]
        if step.changes_stages:
            stage_id -= stage_id > step.stage_id
        elif isinstance(step, SplitStep) and step.stage_id == stage_id:
            return position
    return None


GPU_RULES: tuple[SketchRule, ...] = (
    AddCacheRead(), SpecialComputeLocation(), AlwaysInline(), SimplifyConstTensor(),
    CrossThreadReduction(), AddCacheWrite(), MultiLevelTilingWithFusion(), MultiLevelTiling(),
    SkipStage(),
)  # fmt: skip
