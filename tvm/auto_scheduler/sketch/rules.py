"""The rules that derive sketches: each says whether it applies to a stage, and what it gives.

A rule gives pairs of a state and the stage to go on with. Stages are visited from the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from ..loop_state import State
from ..loops import Iterator, LoopKind
from ..sketch_params import ALWAYS_INLINE, NO_CACHE_WRITE, SIMPLIFY_CONST_TENSOR, axis_names
from ..state_object import StateObject
from . import stage_analysis as analysis
from .tiling import follow_tiling, multi_level_tiling

Derived = list[tuple[StateObject, int]]


class Condition(IntEnum):
    """Whether a rule applies, and whether those behind it are asked too."""

    SKIP = 0
    APPLY = 1
    APPLY_AND_SKIP_REST = 2


class SketchRule:
    """A rule.

    Attributes
    ----------
    name : str
        For people.
    """

    name = ""

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        """Whether the rule applies to a stage."""
        raise NotImplementedError

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        """The states that it gives, each with the stage to go on with."""
        raise NotImplementedError


def changed(policy: Any, state: StateObject) -> State:
    """The state, to be changed."""
    return State(state, policy.search_task.compute_dag)


class SkipStage(SketchRule):
    """Leave a stage as it is."""

    name = "Skip Stage"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        return Condition.APPLY

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        return [(state, stage_id - 1)]


class AlwaysInline(SketchRule):
    """Inline what costs nothing where it is read; on GPUs all that can be inlined."""

    name = "Always Inline"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        stage = state.stages[stage_id]
        if (
            not analysis.is_compute(stage)
            or analysis.is_output(state, stage_id)
            or analysis.has_reduction(stage)
        ):
            return Condition.SKIP
        wanted = (
            analysis.is_gpu(policy.search_task.target)
            or analysis.is_strictly_inlineable(state, stage_id)
            or ALWAYS_INLINE in stage.op.attrs
        )
        return Condition.APPLY_AND_SKIP_REST if wanted else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        new = changed(policy, state)
        new.compute_inline(stage_id)
        return [(new.state_object, stage_id - 1)]


class MultiLevelTiling(SketchRule):
    """Tile a stage whose inputs are used many times."""

    name = "Multi-Level Tiling"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        wanted = analysis.wants_tiles(state, stage_id)
        return Condition.APPLY_AND_SKIP_REST if wanted else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        new = changed(policy, state)
        multi_level_tiling(new, stage_id, policy.tiling_structure)
        return [(new.state_object, stage_id - 1)]


class MultiLevelTilingWithFusion(SketchRule):
    """Tile a stage, and compute it inside tiles of its only reader."""

    name = "Multi-Level Tiling with Fusion"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        if not analysis.wants_tiles(state, stage_id):
            return Condition.SKIP
        if analysis.single_elementwise_consumer(state, stage_id) is None:
            return Condition.SKIP
        always = analysis.has_cache_write(state, stage_id) or analysis.is_gpu(
            policy.search_task.target
        )
        return Condition.APPLY_AND_SKIP_REST if always else Condition.APPLY

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        target = analysis.single_elementwise_consumer(state, stage_id)
        assert target is not None
        base = changed(policy, state)
        structure = policy.tiling_structure
        steps = multi_level_tiling(base, stage_id, structure)
        levels = [3] if analysis.is_gpu(policy.search_task.target) else [1, 2]
        found = []
        for level in levels:
            if structure[level - 1].upper() != "S":
                continue
            new = base.copy()
            follow_tiling(new, target, steps, level)
            loop = new.stages[target].iters[level * len(steps) - 1] if steps else None
            if loop is None:
                continue
            new.compute_at(stage_id, target, loop)
            found.append((new.state_object, stage_id - 1))
        return found


class AddCacheWrite(SketchRule):
    """Compute a stage that wants tiles in a cache, if no reader could have it in its tiles."""

    name = "Add Cache Write Stage"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        stage = state.stages[stage_id]
        wanted = (
            analysis.wants_tiles(state, stage_id)
            and NO_CACHE_WRITE not in stage.op.attrs
            and stage.op.num_outputs == 1
            and any([loop.iter_kind == LoopKind.SPATIAL for loop in stage.iters])
            and analysis.single_elementwise_consumer(state, stage_id) is None
        )
        if not wanted:
            return Condition.SKIP
        # threads accumulate in registers, never in the result's memory
        on_gpu = analysis.is_gpu(policy.search_task.target)
        return Condition.APPLY_AND_SKIP_REST if on_gpu else Condition.APPLY

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        new = changed(policy, state)
        new.cache_write(stage_id, "local")
        return [(new.state_object, stage_id)]


class AddRfactor(SketchRule):
    """Divide a long reduction among threads, or among lanes of vectors."""

    name = "Add Rfactor"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        wanted = (
            analysis.wants_rfactor(policy.search_task, state, stage_id)
            and not analysis.has_cache_write(state, stage_id)
            and not analysis.has_rfactor(state, stage_id)
            and state.stages[stage_id].op.num_outputs == 1
        )
        return Condition.APPLY if wanted else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        base = changed(policy, state)
        fused, space = fuse_reduction(base, stage_id)
        # the length is sampled later; the stages do not depend on it
        outer, inner = base.split(stage_id, fused, [1])
        found = []
        for loop in (outer, inner):
            new = base.copy()
            place = len(space)
            new.rfactor(stage_id, loop, place)
            if loop is inner:
                loops = list(new.stages[stage_id].iters)
                new.reorder(stage_id, [*loops[:place], *loops[place + 1 :], loops[place]])
            found.append((new.state_object, stage_id - 1))
        return found


def fuse_reduction(state: State, stage_id: int) -> tuple[Iterator, list[Iterator]]:
    """Fuse all loops of a stage's reduction; the fused loop, and the spatial ones."""
    loops = state.stages[stage_id].iters
    space = [loop for loop in loops if loop.iter_kind == LoopKind.SPATIAL]
    reduced = [loop for loop in loops if loop.iter_kind != LoopKind.SPATIAL]
    fused = reduced[0] if len(reduced) == 1 else state.fuse(stage_id, reduced)
    return fused, space


class SimplifyConstTensor(SketchRule):
    """Unroll the axes along which a stage reads a matrix of constants, and tile the others."""

    name = "Simplify Compute with Const Tensor"

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        wanted = SIMPLIFY_CONST_TENSOR in state.stages[stage_id].op.attrs
        return Condition.APPLY_AND_SKIP_REST if wanted else Condition.SKIP

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        new = changed(policy, state)
        stage = new.stages[stage_id]
        names = axis_names(stage.op, SIMPLIFY_CONST_TENSOR)
        tiles: list[Sequence[Iterator]] = []
        unrolled = []
        for loop in stage.iters:
            if loop.name in names:
                unrolled.append(new.unroll(stage_id, loop))
            else:
                tiles.append(new.split(stage_id, loop, [None]))
        outer, inner = [pair[0] for pair in tiles], [pair[1] for pair in tiles]
        new.reorder(stage_id, [*outer, *inner, *unrolled])
        return [(new.state_object, stage_id - 1)]


class CustomRule(SketchRule):
    """A rule of a program: see :class:`PreloadCustomSketchRule`."""

    def __init__(self, meets: Any, applies: Any, name: str) -> None:
        self.meets = meets
        self.applies = applies
        self.name = name

    def condition(self, policy: Any, state: StateObject, stage_id: int) -> Condition:
        return Condition(int(self.meets(policy, state, stage_id)))

    def apply(self, policy: Any, state: StateObject, stage_id: int) -> Derived:
        found = self.applies(policy, state, stage_id)
        return [(getattr(s, "state_object", s), int(next_id)) for s, next_id in found]


CPU_RULES: tuple[SketchRule, ...] = (
    AlwaysInline(), SimplifyConstTensor(), AddRfactor(), AddCacheWrite(),
    MultiLevelTilingWithFusion(), MultiLevelTiling(), SkipStage(),
)  # fmt: skip
