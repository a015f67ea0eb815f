"""Rules for GPUs: tiles in shared memory, threads that share a reduction, loops bound to threads.

The programs are those of the classic release; a back end that generates code for them is not here.
"""

from __future__ import annotations

from typing import Any

from .bounds import infer_bounds
from .loop_state import State
from .loops import Annotation, ComputeAt, Iterator, LoopKind
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
        target = analysis.single_elementwise_consumer(state, stage_id)
        if target is not None and new.stages[target].compute_at == ComputeAt.ROOT:
            space = [
                loop for loop in new.stages[target].iters if loop.iter_kind == LoopKind.SPATIAL
            ]
            if space and not any([loop.annotation for loop in new.stages[target].iters]):
                fused = space[0] if len(space) == 1 else new.fuse(target, space)
                new.compute_at(stage_id, target, fused)
        fused, _ = fuse_reduction(new, stage_id)
        _, inner = new.split(stage_id, fused, [policy.search_task.hardware_params.warp_size])
        new.bind(stage_id, inner, "threadIdx.x")
        return [(new.state_object, stage_id - 1)]


GPU_RULES: tuple[SketchRule, ...] = (
    AddCacheRead(), SpecialComputeLocation(), AlwaysInline(), SimplifyConstTensor(),
    CrossThreadReduction(), AddCacheWrite(), MultiLevelTilingWithFusion(), MultiLevelTiling(),
    SkipStage(),
)  # fmt: skip


def bind_threads(policy: Any, state: StateObject) -> StateObject:
    """Bind the outer loops of each stage on its own to blocks and threads."""
    new = State(state, policy.search_task.compute_dag)
    for stage_id in range(len(state.stages) - 1, -1, -1):
        stage = new.stages[stage_id]
        if not analysis.is_compute(stage) or stage.compute_at == ComputeAt.INLINED:
            continue
        if stage.compute_at == ComputeAt.ITER:
            if stage.op.name.endswith(".shared"):
                _bind_copy(policy, new, stage_id)
            continue
        _bind_stage(policy, new, stage_id)
    return infer_bounds(new.state_object).with_extents()


def _bind_stage(policy: Any, state: State, stage_id: int) -> None:
    hardware = policy.search_task.hardware_params
    if analysis.has_cross_thread_reduction(state.state_object, stage_id):
        _bind_outer(state, stage_id, ["blockIdx.x"])
        return
    levels = _tile_levels(state, stage_id)
    if len(levels) >= 3:
        for level, thread in zip(levels, ("blockIdx.x", "vthread", "threadIdx.x"), strict=False):
            names = {loop.name for loop in level}
            loops = [loop for loop in state.stages[stage_id].iters if loop.name in names]
            fused = loops[0] if len(loops) == 1 else state.fuse(stage_id, loops)
            state.bind(stage_id, fused, thread)
        return
    space = _leading_space(state, stage_id)
    if not space:
        return
    fused = space[0] if len(space) == 1 else state.fuse(stage_id, space)
    if (fused.extent or 0) <= hardware.warp_size:
        state.bind(stage_id, fused, "threadIdx.x")
        return
    outer, inner = state.split(stage_id, fused, [hardware.warp_size])
    state.bind(stage_id, outer, "blockIdx.x")
    state.bind(stage_id, inner, "threadIdx.x")


def _tile_levels(state: State, stage_id: int) -> list[list[Iterator]]:
    """The outer spatial loops of a tiled stage by their level: ``i.0 j.0``, then ``i.1 j.1``."""
    levels: dict[str, list[Iterator]] = {}
    for loop in _leading_space(state, stage_id):
        name, _, level = loop.name.rpartition(".")
        if not name or not level.isdecimal():
            return []
        levels.setdefault(level, []).append(loop)
    return list(levels.values())


def _leading_space(state: State, stage_id: int) -> list[Iterator]:
    found = []
    for loop in state.stages[stage_id].iters:
        if loop.iter_kind != LoopKind.SPATIAL or loop.annotation != Annotation.NONE:
            break
        found.append(loop)
    return found


def _bind_outer(state: State, stage_id: int, threads: list[str]) -> None:
    space = _leading_space(state, stage_id)
    if space:
        fused = space[0] if len(space) == 1 else state.fuse(stage_id, space)
        state.bind(stage_id, fused, threads[0])


def _bind_copy(policy: Any, state: State, stage_id: int) -> None:
    """Let the threads of a block load a copy together."""
    loops = list(state.stages[stage_id].iters)
    fused = loops[0] if len(loops) == 1 else state.fuse(stage_id, loops)
    target = state.state_object.attached[stage_id][0]
    threads = [
        loop.extent
        for loop in state.stages[target].iters
        if loop.annotation == Annotation.THREAD_X and loop.extent
    ]
    count = threads[0] if threads else policy.search_task.hardware_params.warp_size
    _, inner = state.split(stage_id, fused, [count])
    state.bind(stage_id, inner, "threadIdx.x")
