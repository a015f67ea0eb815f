"""Tiles on several levels, and tiles of a reader that follow those of what it reads.

SSRSRS of C(i, j, k):  i.0 j.0  i.1 j.1  k.0  i.2 j.2  k.1  i.3 j.3
"""

from __future__ import annotations

from tvm.error import TVMError

from ..loop_state import State
from ..loops import Iterator, LoopKind
from ..sketch_params import NO_SPLIT_INNER, NO_SPLIT_OUTER, axis_names

_SPACE, _REDUCTION = "S", "R"


def multi_level_tiling(state: State, stage_id: int, structure: str) -> list[int]:
    """Tile a stage; the positions of the steps that split its spatial axes.

    Parameters
    ----------
    state : State
        Is changed.
    stage_id : int
        The stage.
    structure : str
        The levels from the outermost: ``S`` of spatial axes, ``R`` of reduction axes.
    """
    structure = structure.upper()
    counts = {kind: structure.count(kind) for kind in (_SPACE, _REDUCTION)}
    if sum(counts.values()) != len(structure):
        raise TVMError(f"a tiling structure consists of S and R, got {structure!r}")
    levels: dict[str, list[list[Iterator]]] = {
        kind: [[] for _ in range(count)] for kind, count in counts.items()
    }
    op = state.stages[stage_id].op
    inner, outer = axis_names(op, NO_SPLIT_INNER), axis_names(op, NO_SPLIT_OUTER)
    steps: list[int] = []
    ends: dict[str, tuple[list[Iterator], list[Iterator]]] = {k: ([], []) for k in levels}
    for loop in state.stages[stage_id].iters:
        kind = _SPACE if loop.iter_kind == LoopKind.SPATIAL else _REDUCTION
        if loop.name in outer or loop.name in inner:
            ends[kind][loop.name in inner].append(loop)
            continue
        if counts[kind] == 1:
            levels[kind][0].append(loop)
            continue
        parts = state.split(stage_id, loop, [None] * (counts[kind] - 1))
        for level, part in zip(levels[kind], parts, strict=True):
            level.append(part)
        if kind == _SPACE:
            steps.append(len(state.transform_steps) - 1)
    for kind, (first, last) in ends.items():
        levels[kind][0][:0] = first
        levels[kind][-1].extend(last)
    queues = {kind: iter(found) for kind, found in levels.items()}
    state.reorder(stage_id, [loop for kind in structure for loop in next(queues[kind])])
    return steps


def follow_tiling(state: State, stage_id: int, split_steps: list[int], levels: int) -> None:
    """Tile a reader's spatial axes like those of what it reads.

    Parameters
    ----------
    state : State
        Is changed.
    stage_id : int
        The reader.
    split_steps : list of int
        The positions of the splits to follow, one for each axis.
    levels : int
        How many times each axis is split.
    """
    stage = state.stages[stage_id]
    kept = axis_names(stage.op, NO_SPLIT_INNER)
    rows: list[list[Iterator]] = [[] for _ in range(levels + 1)]
    sources = iter(split_steps)
    for loop in stage.iters:
        if loop.name in kept:
            rows[-1].append(loop)
            continue
        for row, part in zip(
            rows, state.follow_split(stage_id, loop, next(sources), levels), strict=True
        ):
            row.append(part)
    state.reorder(stage_id, [loop for row in rows for loop in row])
