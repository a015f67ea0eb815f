"""What a block says of its accesses, changed by hand: regions left out, or stated."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import Range
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import BufferRegion
from tvm.tir.stmt_functor import substitute

from ..errors import PrimitiveError
from ..state import ScheduleState

ANNOTATION = {"read": "explicit_read_region", "write": "explicit_write_region"}


def unsafe_hide_buffer_access(
    state: ScheduleState, block_sref: StmtSRef, kind: str, indices: Sequence[int]
) -> None:
    """Leave regions out of what a block says it reads or writes."""
    block = block_sref.block
    if kind not in ("read", "write"):
        raise PrimitiveError(
            "ScheduleError: Invalid buffer type for hide buffer access",
            f"buf_type requires 'read' or 'write', got {kind!r}",
            block,
        )
    regions = block.reads if kind == "read" else block.writes
    for index in indices:
        if not 0 <= index < len(regions):
            raise PrimitiveError(
                "ScheduleError: Invalid buffer index array for hide buffer access",
                f"{{0}} has {len(regions)} {kind} regions, got the index {index}",
                block,
            )
    hidden = dict.fromkeys(indices)
    kept = tuple([region for i, region in enumerate(regions) if i not in hidden])
    new = block.replace(reads=kept) if kind == "read" else block.replace(writes=kept)
    state.replace(block_sref, new, {block: new})


def annotate_buffer_access(
    state: ScheduleState, block_sref: StmtSRef, index: int, kind: str, index_map: IndexMap
) -> None:
    """State the region of a buffer that a block accesses: a begin and an end for each dimension."""
    block = block_sref.block
    regions = list(block.reads if kind == "read" else block.writes)
    if not 0 <= index < len(regions):
        raise PrimitiveError(
            f"ScheduleError: The buffer index is out of range for {kind} buffers",
            f"{{0}} has {len(regions)} {kind} regions, got the index {index}",
            block,
        )
    variables = [axis.var for axis in block.iter_vars]
    bindings = dict(zip(index_map.initial_indices, variables, strict=True))
    ends = [substitute(end, bindings) for end in index_map.final_indices]
    buffer = regions[index].buffer
    if len(ends) != 2 * len(buffer.shape):
        raise PrimitiveError(
            "ScheduleError: The region has another rank than the buffer",
            f"The region requires {2 * len(buffer.shape)} bounds for {buffer.name}, got {len(ends)}",
            block,
        )
    sides = [Range(ends[2 * i], ends[2 * i + 1]) for i in range(len(buffer.shape))]
    regions[index] = BufferRegion(buffer, tuple(sides))
    annotations = dict(block.annotations)
    known = tuple([int(i) for i in annotations.get(ANNOTATION[kind], ())])
    stated = (*known, index) if index not in known else known
    new = block.replace(
        reads=tuple(regions) if kind == "read" else block.reads,
        writes=tuple(regions) if kind == "write" else block.writes,
    )
    new = type(block)(
        new.iter_vars, new.reads, new.writes, new.name_hint, new.body, new.init, new.alloc_buffers,
        new.match_buffers, {**annotations, ANNOTATION[kind]: list(stated)},
    )  # fmt: skip
    state.replace(block_sref, new, {block: new})
