"""Changes of programs: other tile sizes, places, unrolling and granularity of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .factors import moved_factor
from .init_population import compute_locations, replayed, unroll_steps, with_bounds
from .loops import Annotation, LoopKind
from .sketch import stage_analysis as analysis
from .state_object import StateObject
from .steps import (
    AnnotationStep,
    ComputeAtStep,
    ComputeRootStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    SplitStep,
    Step,
)

# from a program to another one, or to None if nothing can be changed
Mutation = Callable[[Any, StateObject], StateObject | None]


def mutate_tile_size(policy: Any, state: StateObject) -> StateObject | None:
    """Move a factor between the lengths of one split."""
    largest = policy.params["max_innermost_split_factor"]
    places = [
        place
        for place, step in enumerate(state.transform_steps)
        if isinstance(step, SplitStep)
        and (step.extent or 1) > 1
        and None not in step.lengths
        and (step.lengths[-1] or 1) <= largest
    ]
    if not places:
        return None
    place = policy.rng.choice(places)
    step: Any = state.transform_steps[place]
    lengths = moved_factor(policy.rng, step.extent, step.lengths, largest)
    if lengths is None:
        return None
    return replayed(policy, _with_step(state.transform_steps, place, step.with_lengths(lengths)))


def mutate_auto_unroll(policy: Any, state: StateObject) -> StateObject | None:
    """Unroll one stage more or less."""
    places = [
        place
        for place, step in enumerate(state.transform_steps)
        if isinstance(step, PragmaStep) and step.max_step is not None
    ]
    if not places:
        return None
    place = policy.rng.choice(places)
    step: Any = state.transform_steps[place]
    choices = [steps for steps in unroll_steps(policy) if steps != step.max_step]
    new = replace(step, pragma_type=f"auto_unroll_max_step${policy.rng.choice(choices)}")
    return replayed(policy, _with_step(state.transform_steps, place, new))


def mutate_compute_location(policy: Any, state: StateObject) -> StateObject | None:
    """Compute a stage that was not tiled at another loop, or on its own."""
    if policy.params["disable_change_compute_location"]:
        return None
    places = [
        place
        for place, step in enumerate(state.transform_steps)
        if isinstance(step, ComputeAtStep) and not _is_tiled_later(state, place, step)
    ]
    if not places:
        return None
    place = policy.rng.choice(places)
    old: Any = state.transform_steps[place]
    before = with_bounds(policy, state.transform_steps[:place])
    choices: list[Step] = [
        ComputeAtStep(old.stage_id, *location)
        for location in compute_locations(before, old.stage_id)
    ]
    choices.append(ComputeRootStep(old.stage_id))
    choices = [step for step in choices if step != old]
    new = policy.rng.choice(choices)
    return replayed(policy, _with_step(state.transform_steps, place, new))


def _is_tiled_later(state: StateObject, place: int, step: ComputeAtStep) -> bool:
    """Whether the stage is part of the tiles of its reader, rather than placed by chance."""
    stage_id = step.stage_id
    for later in state.transform_steps[place + 1 :]:
        if later.changes_stages and later.stage_id <= stage_id:
            stage_id += 1
    return analysis.is_tiled(state.stages[stage_id]) or analysis.wants_tiles(state, stage_id)


def mutate_parallel(policy: Any, state: StateObject) -> StateObject | None:
    """Fuse more or fewer outer loops to one that threads share."""
    steps = state.transform_steps
    places = [
        place
        for place in range(1, len(steps))
        if _is_fused_parallel(steps[place - 1], steps[place])
    ]
    if not places:
        return None
    place = policy.rng.choice(places) - 1
    fuse: Any = steps[place]
    before = with_bounds(policy, steps[:place])
    most = _parallel_loops(before, fuse.stage_id)
    counts = [n for n in range(1, most + 1) if n != len(fuse.fused_ids)]
    if not counts:
        return None
    count = policy.rng.choice(counts)
    # single loops are fused too, so that a later mutation finds the step
    new = FuseStep(fuse.stage_id, tuple(range(count)))
    offset = len(fuse.fused_ids) - count
    later = [_renumbered(step, fuse, count, offset) for step in steps[place + 1 :]]
    if None in later:
        return None
    return replayed(policy, (*steps[:place], new, *[step for step in later if step is not None]))


def _is_fused_parallel(fuse: Step, step: Step) -> bool:
    """Whether the outermost loops are fused, then shared among threads."""
    return (
        isinstance(step, AnnotationStep)
        and isinstance(fuse, FuseStep)
        and step.annotation == Annotation.PARALLEL
        and step.iter_id == 0
        and fuse.stage_id == step.stage_id
        and fuse.fused_ids[:1] == (0,)
    )


def _parallel_loops(state: StateObject, stage_id: int) -> int:
    """How many outer loops of a stage can be fused."""
    occupied = state.stages_at()
    count = 0
    for place, loop in enumerate(state.stages[stage_id].iters):
        if loop.iter_kind != LoopKind.SPATIAL or loop.annotation != Annotation.NONE:
            break
        count += 1
        if (stage_id, place) in occupied:
            break
    return count


def _renumbered(step: Step, fuse: FuseStep, count: int, offset: int) -> Step | None:
    """A step behind a fusion of ``count`` loops in place of ``count + offset``."""

    def moved(place: int) -> int:
        return place if place == 0 else place + offset

    if isinstance(step, ComputeAtStep) and step.target_stage_id == fuse.stage_id:
        place = moved(step.target_iter_id)
        return replace(step, target_iter_id=place) if place >= 0 else None
    if step.stage_id != fuse.stage_id or isinstance(step, (ComputeAtStep, ComputeRootStep)):
        return step
    if isinstance(step, (FuseStep, ReorderStep)):
        if isinstance(step, ReorderStep):
            return None
        ids = tuple([moved(place) for place in step.fused_ids])
        return replace(step, fused_ids=ids) if min(ids, default=0) >= 0 else None
    if isinstance(step, (AnnotationStep, PragmaStep)):
        place = moved(step.iter_id)
        return replace(step, iter_id=place) if place >= 0 else None
    return None


def _with_step(steps: Sequence[Step], place: int, step: Step) -> tuple[Step, ...]:
    return (*steps[:place], step, *steps[place + 1 :])


CPU_MUTATIONS: tuple[tuple[Mutation, float], ...] = (
    (mutate_tile_size, 0.90),
    (mutate_auto_unroll, 0.04),
    (mutate_compute_location, 0.05),
    (mutate_parallel, 0.01),
)
GPU_MUTATIONS: tuple[tuple[Mutation, float], ...] = (
    (mutate_tile_size, 0.90),
    (mutate_auto_unroll, 0.10),
)
