"""Programs of the auto-scheduler's sketches that the cost model of tiles ranks first.

They are among the first that a search measures, so that it does not end below what is known without it.
"""

from __future__ import annotations

from typing import Any

from tvm.auto_scheduler.factors import divisors
from tvm.auto_scheduler.init_population import add_parallel, add_vectors, with_bounds
from tvm.auto_scheduler.sketch import stage_analysis as analysis
from tvm.auto_scheduler.state_object import StateObject
from tvm.auto_scheduler.steps import PragmaStep, RfactorStep, SplitStep, StepError
from tvm.target.cpu import cpu_info

from .fitted import MATMUL
from .tile_cost import TileStep, relative_cycles

_MOST_ROWS = 16  # of a tile of registers
_MOST_PER_SKETCH = 8
_UNROLL_STEPS = (16, 64, 512)


def rank_first_candidates(policy: Any, sketches: list[StateObject]) -> list[StateObject]:
    """The programs with the best tiles of registers, of all sketches in turn.

    Parameters
    ----------
    policy : SketchPolicy
        The search.
    sketches : list of StateObject
        Its sketches.
    """
    if analysis.is_gpu(policy.search_task.target):
        return []
    ranked = [_of_sketch(policy, sketch) for sketch in sketches]
    longest = max([len(found) for found in ranked], default=0)
    return [found[i] for i in range(longest) for found in ranked if i < len(found)]


def _of_sketch(policy: Any, sketch: StateObject) -> list[StateObject]:
    steps = sketch.transform_steps
    has_tiles = any([isinstance(s, SplitStep) and len(s.lengths) == 3 for s in steps])
    if not has_tiles or any([isinstance(step, RfactorStep) for step in steps]):
        return []
    scored = []
    for rows in range(1, _MOST_ROWS + 1):
        for depth in (1, 4, 16, 64):
            filled = _fill(policy, sketch, rows, depth)
            if filled is not None:
                scored.append(filled)
    scored.sort(key=lambda pair: pair[0])
    return [state for _, state in scored[:_MOST_PER_SKETCH]]


def _fill(
    policy: Any, sketch: StateObject, rows: int, depth: int
) -> tuple[float, StateObject] | None:
    """The sketch with tiles of ``rows`` vectors, and its cost; None if the extents do not divide."""
    info = cpu_info(policy.search_task.target)
    lanes = info.fp32_lanes
    last: dict[int, int] = {}
    for step in sketch.transform_steps:
        if isinstance(step, SplitStep) and len(step.lengths) == 3:
            last[step.stage_id] = max(last.get(step.stage_id, -1), step.iter_id)
    steps: list[Any] = []
    cost = 0.0
    left = dict.fromkeys(last, rows)
    for step in sketch.transform_steps:
        if isinstance(step, SplitStep) and None in step.lengths:
            extent = step.extent or 1
            if len(step.lengths) == 3 and step.iter_id == last[step.stage_id]:
                width = _largest(extent, lanes)
                cost += _cost(rows, width, lanes, info.timing)
                step = step.with_lengths((1, _largest(extent // width, 4), width))
            elif len(step.lengths) == 3:
                height = _largest(extent, left[step.stage_id])
                left[step.stage_id] //= height
                step = step.with_lengths((1, 1, height))
            else:
                step = step.with_lengths(tuple([_largest(extent, depth)] * len(step.lengths)))
        steps.append(step)
    if any([rest > 1 for rest in left.values()]):
        return None  # no axis has that many rows
    return _finished(policy, steps, rows, cost - depth * 1e-6)


def _cost(rows: int, width: int, lanes: int, timing: Any) -> float:
    tile = TileStep(fmas=rows, loads=rows + 1)
    return relative_cycles(tile, MATMUL, timing) * lanes / width


def _finished(
    policy: Any, steps: list[Any], rows: int, cost: float
) -> tuple[float, StateObject] | None:
    """With threads, vectors, and the tile of registers unrolled."""
    unrolled = min([n for n in _UNROLL_STEPS if n >= rows], default=_UNROLL_STEPS[-1])
    try:
        state = add_parallel(policy, with_bounds(policy, steps))
        pragmas = [
            PragmaStep(stage_id, 0, f"auto_unroll_max_step${unrolled}")
            for stage_id, stage in enumerate(state.stages)
            if analysis.has_reduction(stage)
        ]
        state = add_vectors(policy, with_bounds(policy, [*state.transform_steps, *pragmas]))
        return cost, with_bounds(policy, state.transform_steps)
    except StepError:
        return None


def _largest(extent: int, most: int) -> int:
    """The largest divisor up to a number."""
    return max([d for d in divisors(extent) if d <= most])
