"""Analyses of the stages of a state, for the rules of sketches: who reads whom, what is tiled or cached."""

from __future__ import annotations

from tvm.target import Target
from tvm.te.tensor import ComputeOp, PlaceholderOp

from ..loops import Annotation, ComputeAt, LoopKind, Stage
from ..state_object import StateObject
from ..steps import (
    CacheReadStep,
    CacheWriteStep,
    RfactorStep,
    Step,
)
from ..task import Task


def is_gpu(target: Target) -> bool:
    """Whether loops are bound to threads of blocks."""
    return "gpu" in target.keys


def is_compute(stage: Stage) -> bool:
    """Whether a stage computes."""
    return not isinstance(stage.op, PlaceholderOp)


def is_output(state: StateObject, stage_id: int) -> bool:
    """Whether nobody reads a stage."""
    access: bool = state.graph.access.is_output(state.stages[stage_id].op)
    return access


def wants_tiles(state: StateObject, stage_id: int) -> bool:
    """Whether elements of inputs are used many times."""
    found: bool = state.graph.access.wants_tiles[state.stages[stage_id].op]
    return found


def is_strictly_inlineable(state: StateObject, stage_id: int) -> bool:
    """Whether a stage costs nothing where it is read."""
    found: bool = state.graph.access.strictly_inlineable[state.stages[stage_id].op]
    return found


def has_reduction(stage: Stage) -> bool:
    """Whether a stage has loops of a reduction."""
    return any([loop.iter_kind != LoopKind.SPATIAL for loop in stage.iters])


def consumers(state: StateObject, stage_id: int) -> list[int]:
    """The stages that read a stage, through those that are inlined."""
    found: dict[int, None] = {}
    for reader in state.graph.consumers[stage_id]:
        if state.stages[reader].compute_at == ComputeAt.INLINED:
            found.update(dict.fromkeys(consumers(state, reader)))
        else:
            found[reader] = None
    return list(found)


def producers(state: StateObject, stage_id: int) -> list[int]:
    """The stages that a stage reads, through those that are inlined."""
    found: dict[int, None] = {}
    for source in state.graph.producers[stage_id]:
        if state.stages[source].compute_at == ComputeAt.INLINED:
            found.update(dict.fromkeys(producers(state, source)))
        else:
            found[source] = None
    return list(found)


def single_elementwise_consumer(state: StateObject, stage_id: int) -> int | None:
    """The only reader of a stage, if it reads each element where it is written."""
    readers = consumers(state, stage_id)
    if len(readers) != 1:
        return None
    (target,) = readers
    stage, reader = state.stages[stage_id], state.stages[target]
    if has_reduction(stage) and has_reduction(reader):
        return None
    if reader.op.name.endswith(".shared") or not is_elementwise_match(state, stage_id, target):
        return None
    return target


def is_elementwise_match(state: StateObject, stage_id: int, target: int) -> bool:
    """Whether a stage's values go element by element to another one."""
    access = state.graph.access
    found: bool = access.is_elementwise_chain(state.stages[stage_id].op, state.stages[target].op)
    return found


def common_outer_loops(state: StateObject, stage_id: int, target: int) -> int:
    """How many outer axes two stages share: what the one writes there, the other reads there."""
    count: int = state.graph.access.common_outer_axes(
        state.stages[stage_id].op, state.stages[target].op
    )
    return count


def _was_made_by(state: StateObject, stage_id: int, kind: type[Step]) -> bool:
    """Whether a step of a kind split the stage off another one, or another one off the stage."""
    for step in reversed(state.transform_steps):
        if isinstance(step, kind) and step.stage_id == stage_id:
            return True
        if step.changes_stages and stage_id > step.stage_id:
            stage_id -= 1
    return False


def has_cache_write(state: StateObject, stage_id: int) -> bool:
    """Whether the stage is the cache of the next one."""
    return _was_made_by(state, stage_id, CacheWriteStep)


def has_cache_read(state: StateObject, stage_id: int) -> bool:
    """Whether the next stage is a copy of this one."""
    return _was_made_by(state, stage_id, CacheReadStep)


def has_rfactor(state: StateObject, stage_id: int) -> bool:
    """Whether the stage computes partial results of the next one."""
    return _was_made_by(state, stage_id, RfactorStep)


def has_cross_thread_reduction(state: StateObject, stage_id: int) -> bool:
    """Whether threads of a block share the reduction of a stage."""

    def is_shared(stage: Stage) -> bool:
        return any(
            [
                loop.annotation == Annotation.THREAD_X and loop.iter_kind == LoopKind.REDUCTION
                for loop in stage.iters
            ]
        )

    return is_shared(state.stages[stage_id])


def is_tiled(stage: Stage) -> bool:
    """Whether loops of a stage were split."""
    op = stage.op
    return isinstance(op, ComputeOp) and len(stage.iters) != len(op.root_iter_vars())


def extents_by_kind(stage: Stage) -> tuple[int, int]:
    """The numbers of spatial iterations and of those of the reduction."""
    space = reduction = 1
    for loop in stage.iters:
        if loop.iter_kind == LoopKind.SPATIAL:
            space *= loop.extent or 1
        else:
            reduction *= loop.extent or 1
    return space, reduction


def wants_rfactor(task: Task, state: StateObject, stage_id: int) -> bool:
    """Whether a stage has little but its reduction to be shared among threads."""
    stage = state.stages[stage_id]
    if not isinstance(stage.op, ComputeOp):
        return False
    space, reduction = extents_by_kind(stage)
    cores = task.hardware_params.num_cores
    if wants_tiles(state, stage_id):
        return not (space > reduction or space > cores * 16)
    return reduction > 1 and reduction > cores


def wants_cross_thread_reduction(task: Task, state: StateObject, stage_id: int) -> bool:
    """The same for threads of a GPU."""
    stage = state.stages[stage_id]
    if not isinstance(stage.op, ComputeOp):
        return False
    space, reduction = extents_by_kind(stage)
    if wants_tiles(state, stage_id):
        return space <= reduction and space <= task.hardware_params.max_threads_per_block
    return reduction > 1 and task.hardware_params.warp_size < reduction


def is_annotated(state: StateObject, stage_id: int, annotation: Annotation) -> bool:
    """Whether a loop of a stage runs in that way."""
    return any([loop.annotation == annotation for loop in state.stages[stage_id].iters])
