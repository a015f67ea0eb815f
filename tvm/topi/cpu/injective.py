"""Injective operators: outer loops fused and parallel, the innermost vectorised.

for i.j in parallel(n * m):
    for k in range(c / 16):
        B[i, j, ramp(k * 16, 1, 16)] = f(A[i, j, ramp(k * 16, 1, 16)])
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.support.dtype import dtype as as_dtype

from ..access import axis_read_in_order, period_of_last_axis, steps_of_axes
from ..generic.schedules import as_outputs, inline_injective
from ..tag import SHARED_ROWS, is_broadcast
from ..utils import dims, get_max_power2_factor, operations_above
from .common import (
    UNKNOWN_COUNT,
    element_count,
    fuse_and_parallel,
    fuse_rows_and_parallel,
    lanes_of,
    masked_lanes,
    processor,
    row_lanes,
    vector_lanes,
    vectorize_inner,
)

# elements of a cache line, and of what does not stay in L1 anyway
TILE_ROWS = 16
LEAST_TRANSPOSED = 4096


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """Schedule one output whose producers are inlined or scheduled already."""
    if not isinstance(sch[out].op, te.tensor.ComputeOp):
        return sch
    info = processor()
    axes = list(sch[out].op.axis)
    if not axes:
        return sch
    shape = dims(out.shape)
    total = element_count(out)
    lanes = vector_lanes(shape[-1], out.dtype, info)
    is_short = lanes < lanes_of(out.dtype, info)
    is_static = total < UNKNOWN_COUNT
    run = period_of_last_axis(out)
    if run is not None and run > lanes and run % lanes_of(out.dtype, info):
        _schedule_runs(sch, out, run, total)
        return sch
    if len(axes) == 1 or (is_short and is_static and _is_flat(out)):
        # all operands have the output's shape: one loop over everything keeps the vectors full
        can_cut = is_short and is_static
        _schedule_flat(sch, out, row_lanes(total, out.dtype, info) if can_cut else lanes)
        return sch
    across = axis_read_in_order(out) if total >= LEAST_TRANSPOSED else None
    wide = lanes if lanes > 4 else masked_lanes(shape[-1], out.dtype, info)
    if across is not None and wide > 1:
        _schedule_tiles(sch, out, across, wide, total)
        return sch
    if is_short:
        lanes = row_lanes(shape[-1], out.dtype, info)
    fuse_rows_and_parallel(sch, out, axes[:-1], total)
    vectorize_inner(sch, out, axes[-1], lanes)
    return sch


def _schedule_flat(sch: te.Schedule, out: te.Tensor, lanes: int) -> None:
    """One loop over all elements."""
    axes, total = list(sch[out].op.axis), element_count(out)
    flat = axes[0] if len(axes) == 1 else sch[out].fuse(*axes)
    if lanes > 1:
        flat, inner = sch[out].split(flat, factor=lanes)
        sch[out].vectorize(inner)
        sch[out].pragma(flat, "loop_partition_hint")
    elif total >= UNKNOWN_COUNT:
        return
    fuse_and_parallel(sch, out, [flat], total)


def _schedule_runs(sch: te.Schedule, out: te.Tensor, run: int, total: int) -> None:
    """The last axis in runs that are read in order."""
    *outer, last = sch[out].op.axis
    runs, within = sch[out].split(last, factor=run)
    fuse_and_parallel(sch, out, [*outer, runs], total)
    vectorize_inner(sch, out, within, row_lanes(run, out.dtype, processor()))


def _schedule_tiles(sch: te.Schedule, out: te.Tensor, across: int, lanes: int, total: int) -> None:
    """A transpose in tiles: the lines that one vector reads from serve the next rows too."""
    axes, shape = list(sch[out].op.axis), list(dims(out.shape))
    steps = steps_of_axes(out, [min(1, extent - 1) for extent in shape])
    # neighbours that are read as one axis leave fewer tiles incomplete
    for at in (len(axes) - 1, across):
        if at > 0 and at - 1 != across and steps[at - 1] == shape[at] * steps[at] > 0:
            axes[at - 1 : at + 1] = [sch[out].fuse(axes[at - 1], axes[at])]
            shape[at - 1 : at + 1] = [shape[at - 1] * shape[at]]
            del steps[at - 1]
            across -= at == across
    height, width = _full_tile(shape[across], shape[-1], out.dtype)
    rows, row = sch[out].split(axes[across], factor=height or TILE_ROWS)
    vectors, lane = sch[out].split(axes[-1], factor=width or lanes)
    # what lies further apart in the input goes further out: a thread takes what it computed before
    others = [axis for i, axis in enumerate(axes[:-1]) if i != across]
    far = [step for i, step in enumerate(steps[:-1]) if i != across]
    tile_step = steps[across] * (height or TILE_ROWS)
    position = next((i for i, step in enumerate(far) if 0 < step < tile_step), len(others))
    loops = [*others[:position], rows, *others[position:]]
    sch[out].reorder(*loops, vectors, row, lane)
    sch[out].vectorize(lane)
    fuse_and_parallel(sch, out, [*loops, vectors] if height else loops, total)


def _full_tile(across: int, along: int, dtype: str) -> tuple[int, int]:
    """Rows and lanes of tiles that registers transpose, which divide both extents; zeros without."""
    if as_dtype(dtype).bits != 32:
        return 0, 0
    height = get_max_power2_factor(across, TILE_ROWS)
    width = min(vector_lanes(along, dtype, processor()), height)
    return (height, width) if width >= 4 else (0, 0)


def _shared_rows(out: te.Tensor) -> list[te.tensor.Operation]:
    """The stages whose rows the output's rows read, each that of its own position."""
    shape = dims(out.shape)
    in_place = {id(out.op)}
    found: dict[int, te.tensor.Operation] = {}
    for op in reversed(operations_above(out.op)):
        if id(op) not in in_place:
            continue
        rows = [x.op for x in op.input_tensors if x.op.tag == SHARED_ROWS]
        found |= {id(x): x for x in rows}
        if not rows and is_broadcast(op.tag):
            in_place |= {id(x.op) for x in op.input_tensors if dims(x.shape) == shape}
    return list(found.values())


def _schedule_shared_rows(
    sch: te.Schedule, out: te.Tensor, rows: Sequence[te.tensor.Operation]
) -> None:
    """A row of the output at a time, behind the rows that it reads."""
    *outer, last = sch[out].op.axis
    info = processor()
    work = sum(element_count(x) for x in [out, *[op.output(0) for op in rows]])
    row = fuse_and_parallel(sch, out, outer, work)
    vectorize_inner(sch, out, last, row_lanes(dims(out.shape)[-1], out.dtype, info))
    for op in rows:
        stage = op.output(0)
        sch[stage].compute_at(sch[out], row)
        lanes = row_lanes(dims(stage.shape)[-1], stage.dtype, info)
        vectorize_inner(sch, stage, sch[stage].op.axis[-1], lanes)


def _is_flat(out: te.Tensor) -> bool:
    """Whether everything above is element-wise, on tensors of one shape and scalars."""
    shape = dims(out.shape)
    return all(
        is_broadcast(op.tag) and all(dims(x.shape) in (shape, ()) for x in op.input_tensors)
        for op in operations_above(out.op)
    )


def schedule_injective(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule outputs of injective operators, everything above them inlined."""
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    rows = _shared_rows(outputs[0]) if len(outputs) == 1 else []
    inline_injective(s, outputs, rows)
    if rows:
        _schedule_shared_rows(s, outputs[0], rows)
        return s
    done: set[int] = set()
    for x in outputs:
        if isinstance(x.op, te.tensor.PlaceholderOp) or id(x.op) in done:
            continue
        done.add(id(x.op))
        schedule_injective_from_existing(s, x)
    return s


schedule_elemwise = schedule_injective
schedule_broadcast = schedule_injective
schedule_concatenate = schedule_concatenate_cpu = schedule_injective
