"""The rules of the initial population: they complete a sketch at random.

Tile sizes, where small stages are computed, threads, unrolling, vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError

from .bounds import infer_bounds
from .factors import random_lengths
from .gpu_threads import exceeded_limit
from .loop_state import State
from .loops import Annotation, ComputeAt, LoopKind, Stage
from .sketch import stage_analysis as analysis
from .sketch_params import ALWAYS_UNROLL, ALWAYS_UNROLL_INNER, SKIP_REGION, axis_names
from .state_object import StateObject
from .steps import SplitStep, Step

CPU_UNROLL_STEPS = (0, 16, 64, 512)
GPU_UNROLL_STEPS = (0, 16, 64, 512, 1024)
# iterations of parallel loops for each core are enough to share them out evenly
TASKS_PER_CORE = 16


def unroll_steps(policy: Any) -> tuple[int, ...]:
    """How far loops may be unrolled."""
    return GPU_UNROLL_STEPS if analysis.is_gpu(policy.search_task.target) else CPU_UNROLL_STEPS


def fill_tile_sizes(policy: Any, state: StateObject) -> StateObject:
    """The state with random lengths for the splits that have none."""
    largest = policy.params["max_innermost_split_factor"]
    steps: list[Step] = []
    for step in state.transform_steps:
        if isinstance(step, SplitStep) and None in step.lengths:
            extent = step.extent or 1
            lengths = random_lengths(policy.rng, extent, len(step.lengths), largest)
            step = step.with_lengths(lengths)
        steps.append(step)
    return with_bounds(policy, steps)


def with_bounds(policy: Any, steps: Sequence[Step]) -> StateObject:
    """The state that steps lead to, with the extents of its loops."""
    graph = policy.search_task.compute_dag.graph
    return infer_bounds(graph.state_after(steps)).with_extents()


def replayed(policy: Any, steps: Sequence[Step]) -> StateObject | None:
    """The program of steps; None if one does not suit those before it, or blocks are too large."""
    task = policy.search_task
    try:
        bounds = infer_bounds(task.compute_dag.graph.state_after(steps))
    except TVMError:
        return None
    if analysis.is_gpu(task.target) and exceeded_limit(bounds, task.hardware_params):
        return None
    return bounds.with_extents()


def change_compute_location(policy: Any, state: StateObject) -> StateObject:
    """Put stages that were not tiled somewhere into the loops of their readers."""
    if policy.params["disable_change_compute_location"]:
        return state
    dag = policy.search_task.compute_dag
    for stage_id in range(len(state.stages) - 1, -1, -1):
        stage = state.stages[stage_id]
        if not analysis.is_compute(stage) or stage.compute_at == ComputeAt.INLINED:
            continue
        if analysis.is_tiled(stage) or analysis.wants_tiles(state, stage_id):
            continue
        if analysis.is_output(state, stage_id) or analysis.has_rfactor(state, stage_id):
            continue
        places = compute_locations(state, stage_id)
        choice = policy.rng.randrange(len(places) + 2)
        new = State(state, dag)
        if choice == 0:
            is_free = all([target != stage_id for target, _ in state.attached.values()])
            if not analysis.has_reduction(stage) and is_free:
                new.compute_inline(stage_id)
        elif choice > 1:
            new.compute_at(stage_id, *places[choice - 2])
        if new.state_object is not state:
            state = infer_bounds(new.state_object).with_extents()
    return state


def compute_locations(state: StateObject, stage_id: int) -> list[tuple[int, int]]:
    """The loops of its only reader, and of the stage that this one is computed at, for a stage."""
    readers = analysis.consumers(state, stage_id)
    if len(readers) != 1:
        return []
    (target,) = readers
    occupied = state.stages_at()
    stage = state.stages[target]
    is_inside = stage.compute_at == ComputeAt.ITER
    found: list[tuple[int, int]] = []
    seen_reduction = False
    for place, loop in enumerate(stage.iters):
        if loop.iter_kind == LoopKind.REDUCTION:
            seen_reduction = True
            if not analysis.is_tiled(stage):
                break
        elif seen_reduction:
            break  # what is inside is the tile of registers
        if loop.annotation == Annotation.UNROLL:
            break
        if loop.extent == 1 or (is_inside and loop.name.endswith(".0")):
            continue
        found.append((target, place))
        if (target, place) in occupied:
            break
    if is_inside:
        outer, _ = state.attached[target]
        found.extend(_locations_around(state, outer, occupied))
    return found


def _locations_around(
    state: StateObject, outer: int, occupied: dict[tuple[int, int], list[int]]
) -> list[tuple[int, int]]:
    found = []
    for place, loop in enumerate(state.stages[outer].iters):
        if loop.iter_kind == LoopKind.REDUCTION or (outer, place) in occupied:
            break
        if loop.annotation == Annotation.UNROLL:
            break
        if loop.extent != 1:
            found.append((outer, place))
    return found


def add_parallel(policy: Any, state: StateObject) -> StateObject:
    """Share the outer loops of each stage on its own among threads."""
    new = State(state, policy.search_task.compute_dag)
    for stage_id, stage in enumerate(state.stages):
        if stage.compute_at == ComputeAt.ROOT and analysis.is_compute(stage):
            _parallelize(policy, new, stage_id, 0)
    return new.state_object


def _parallelize(policy: Any, state: State, stage_id: int, first: int) -> None:
    enough = policy.search_task.hardware_params.num_cores * TASKS_PER_CORE
    occupied = state.state_object.stages_at()
    loops = state.stages[stage_id].iters
    degree, end = 1, first
    for place in range(first, len(loops)):
        loop = loops[place]
        if loop.iter_kind != LoopKind.SPATIAL or loop.annotation != Annotation.NONE:
            break
        degree *= loop.extent or 1
        end = place + 1
        if degree > enough or (stage_id, place) in occupied:
            break
    if degree == 1:
        place = max(end - 1, first)
        for inner in occupied.get((stage_id, place), ()):
            _parallelize(policy, state, inner, 0)
        if (stage_id, place) in occupied and end < len(loops):
            _parallelize(policy, state, stage_id, end)
        return
    fused = list(state.stages[stage_id].iters[first:end])
    loop = fused[0] if len(fused) == 1 else state.fuse(stage_id, fused)
    state.parallel(stage_id, loop)


def add_unroll(policy: Any, state: StateObject) -> StateObject:
    """Let inner loops of reductions be unrolled up to a random number of statements."""
    new = State(state, policy.search_task.compute_dag)
    for stage_id, stage in enumerate(state.stages):
        if stage.compute_at == ComputeAt.INLINED or not analysis.is_compute(stage):
            continue
        if SKIP_REGION in stage.op.attrs:
            new.pragma(stage_id, 0, "debug_skip_region")
            continue
        _unroll_named(new, stage_id)
        if analysis.has_reduction(stage):
            steps = policy.rng.choice(unroll_steps(policy))
            new.pragma(stage_id, 0, f"auto_unroll_max_step${steps}")
    return new.state_object


def _unroll_named(state: State, stage_id: int) -> None:
    """Unroll the loops of axes that an attribute names, of the innermost tile."""
    op = state.stages[stage_id].op
    names = axis_names(op, ALWAYS_UNROLL_INNER)
    everywhere = axis_names(op, ALWAYS_UNROLL)
    seen: set[str] = set()
    for place in range(len(state.stages[stage_id].iters) - 1, -1, -1):
        loop = state.stages[stage_id].iters[place]
        name = loop.name.split(".")[0]
        is_wanted = name in everywhere or (name in names and name not in seen)
        seen.add(name)
        if is_wanted and loop.annotation == Annotation.NONE:
            state.unroll(stage_id, loop)


def add_vectors(policy: Any, state: StateObject) -> StateObject:
    """Execute the innermost loops as vector instructions."""
    new = State(state, policy.search_task.compute_dag)
    occupied = state.stages_at()
    for stage_id, stage in enumerate(state.stages):
        if stage.compute_at == ComputeAt.INLINED or not analysis.is_compute(stage):
            continue
        count = _vector_loops(policy, stage, stage_id, occupied)
        if count > 1:
            count = policy.rng.randint(1, count)
        if count:
            loops = list(new.stages[stage_id].iters[-count:])
            new.vectorize(stage_id, loops[0] if count == 1 else new.fuse(stage_id, loops))
    return new.state_object


def _vector_loops(
    policy: Any, stage: Stage, stage_id: int, occupied: dict[tuple[int, int], list[int]]
) -> int:
    """How many of the innermost loops can be fused to one of vectors."""
    lanes = 1
    count = 0
    while count < len(stage.iters):
        place = len(stage.iters) - 1 - count
        loop = stage.iters[place]
        if (stage_id, place) in occupied or loop.annotation != Annotation.NONE:
            break
        if loop.iter_kind != LoopKind.SPATIAL or (count and analysis.is_tiled(stage)):
            break
        lanes *= loop.extent or 1
        if lanes > policy.params["max_vectorize_size"]:
            break
        count += 1
    return count


def random_program(policy: Any, sketch: StateObject) -> StateObject:
    """A sketch whose tile sizes and annotations are drawn at random."""
    state = fill_tile_sizes(policy, sketch)
    for rule in policy.init_rules:
        state = rule(policy, state)
    return infer_bounds(state).with_extents()
