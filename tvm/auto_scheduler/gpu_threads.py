"""Loops of GPU programs bound to blocks and threads, and what a block may hold.

i.0 j.0 i.1 j.1 i.2 j.2 k.0      blockIdx.x i.0@j.0, vthread i.1@j.1, threadIdx.x i.2@j.2
  A.shared: ax0 ax1          ->    k.0
                                     A.shared: ax.0, threadIdx.x ax.1 of the same extent
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.runtime import DataType
from tvm.te.tensor import ComputeOp

from .bounds import Bounds, infer_bounds
from .loop_state import State
from .loops import Annotation, ComputeAt, Iterator, LoopKind, constant_extent
from .sketch import stage_analysis as analysis
from .state_object import StateObject
from .steps import SplitStep, StepError

SHARED = ".shared"


def bind_threads(policy: Any, state: StateObject) -> StateObject:
    """Bind the outer loops of each stage on its own to blocks and threads."""
    hardware = policy.search_task.hardware_params
    new = State(state, policy.search_task.compute_dag)
    tiled = _roots_of_tiles(state)
    for stage_id in range(len(state.stages) - 1, -1, -1):
        stage = new.stages[stage_id]
        if not analysis.is_compute(stage) or stage.compute_at == ComputeAt.INLINED:
            continue
        if stage.compute_at == ComputeAt.ITER:
            if stage.op.name.endswith(SHARED):
                _share_copy(new, stage_id)
        elif _shares_reduction(new.state_object, stage_id):
            new.bind(stage_id, _fused(new, stage_id, _outer_space(new, stage_id)), "blockIdx.x")
        elif analysis.is_annotated(new.state_object, stage_id, Annotation.THREAD_X):
            continue
        elif stage_id in tiled:
            _bind_tiles(new, stage_id, hardware)
        else:
            _bind_rows(new, stage_id, hardware.warp_size)
    bounds = infer_bounds(new.state_object)
    if reason := exceeded_limit(bounds, hardware):
        raise StepError(reason)
    return bounds.with_extents()


def exceeded_limit(bounds: Bounds, hardware: Any) -> str | None:
    """What a block of the program has too much of, or None.

    Parameters
    ----------
    bounds : Bounds
        The extents of the program's loops.
    hardware : HardwareParams
        The limits.
    """
    shared: dict[int, int] = {}
    for stage_id, stage in enumerate(bounds.state.stages):
        for loop, extent in zip(stage.iters, bounds.extents[stage_id], strict=False):
            if loop.annotation == Annotation.THREAD_X and extent > hardware.max_threads_per_block:
                return f"a block has at most {hardware.max_threads_per_block} threads, not {extent}"
        if stage.op.name.endswith(SHARED) and stage.compute_at == ComputeAt.ITER:
            size = DataType(stage.op.output(0).dtype).itemsize
            root = _root(bounds.state, stage_id)
            count = math.prod(bounds.regions[stage_id])
            shared[root] = shared.get(root, 0) + count * size
    most = max(shared.values(), default=0)
    if most > hardware.max_shared_memory_per_block:
        return f"a block has at most {hardware.max_shared_memory_per_block} bytes, not {most}"
    return None


def _roots_of_tiles(state: StateObject) -> set[int]:
    """The stages whose loops hold tiles of a stage that reads its inputs many times."""
    return {
        state.attached[stage_id][0]
        for stage_id, stage in enumerate(state.stages)
        if stage.compute_at == ComputeAt.ITER and analysis.wants_tiles(state, stage_id)
    }


def _root(state: StateObject, stage_id: int) -> int:
    while stage_id in state.attached:
        stage_id = state.attached[stage_id][0]
    return stage_id


def _shares_reduction(state: StateObject, stage_id: int) -> bool:
    """Whether threads share the reduction of a stage, or of one that is computed in its loops."""
    inner = [stage for stage, place in state.attached.items() if place[0] == stage_id]
    return any([analysis.has_cross_thread_reduction(state, each) for each in (stage_id, *inner)])


def _bind_rows(state: State, stage_id: int, warp_size: int) -> None:
    """Give the elements of a stage without tiles to the threads of blocks of one warp."""
    fused = _fused(state, stage_id, _outer_space(state, stage_id))
    if (fused.extent or 1) <= warp_size:
        state.bind(stage_id, fused, "threadIdx.x")
        return
    outer, inner = state.split(stage_id, fused, [warp_size])
    state.bind(stage_id, outer, "blockIdx.x")
    state.bind(stage_id, inner, "threadIdx.x")


def _bind_tiles(state: State, stage_id: int, hardware: Any) -> None:
    """Bind the three outer levels of tiles: blocks, virtual threads and threads."""
    op = state.stages[stage_id].op
    assert isinstance(op, ComputeOp)
    elements = math.prod([constant_extent(axis) or 1 for axis in op.axis])
    for level, thread in enumerate(("blockIdx.x", "vthread", "threadIdx.x")):
        loops = []
        for loop in state.stages[stage_id].iters[level:]:
            # axes that are not split have no further levels
            if not loop.name.endswith(f".{level}") or loop.annotation != Annotation.NONE:
                break
            loops.append(loop)
        fused = _fused(state, stage_id, loops, level)
        extent = fused.extent or 1
        if thread == "vthread" and extent > hardware.max_vthread_extent:
            raise StepError(f"a thread computes at most {hardware.max_vthread_extent} tiles")
        is_small = elements <= hardware.warp_size * 2
        if thread == "threadIdx.x" and extent < hardware.warp_size and not is_small:
            raise StepError(f"a block has at least {hardware.warp_size} threads")
        state.bind(stage_id, fused, thread)


def _share_copy(state: State, stage_id: int) -> None:
    """Let the threads of a block, as many as its tiles have, load a copy together."""
    target = state.state_object.attached[stage_id][0]
    fused = _fused(state, stage_id, list(state.stages[stage_id].iters))
    outer, inner = state.split(stage_id, fused, [1])
    state.vectorize(stage_id, inner)
    sources = _spatial_splits(state.state_object, target)
    _, shared = state.follow_fused_split(stage_id, outer, sources, 1, True)
    state.bind(stage_id, shared, "threadIdx.x")


def _spatial_splits(state: StateObject, stage_id: int) -> list[int]:
    """The positions of the steps that made the tiles of a stage's spatial axes, the last first."""
    op = state.stages[stage_id].op
    assert isinstance(op, ComputeOp)
    found = []
    for position in range(len(state.transform_steps) - 1, -1, -1):
        step = state.transform_steps[position]
        if step.changes_stages:
            stage_id -= stage_id > step.stage_id
        elif isinstance(step, SplitStep) and step.stage_id == stage_id:
            found.append(position)
    # axes of the reduction were split behind all others
    return found[len(op.reduce_axis) :]


def _outer_space(state: State, stage_id: int) -> list[Iterator]:
    """The outer spatial loops that can be fused."""
    occupied = state.state_object.stages_at()
    found: list[Iterator] = []
    for place, loop in enumerate(state.stages[stage_id].iters):
        if loop.iter_kind != LoopKind.SPATIAL or loop.annotation != Annotation.NONE:
            break
        if (stage_id, place - 1) in occupied:
            break
        found.append(loop)
    return found


def _fused(state: State, stage_id: int, loops: Sequence[Iterator], place: int = 0) -> Iterator:
    """One loop of several; a loop of one iteration, if there are none."""
    if len(loops) == 1:
        return loops[0]
    if not loops and place:
        raise StepError("tiles require levels for blocks, virtual threads and threads")
    fused: Iterator = state.fuse(stage_id, loops)
    return fused
