"""What blocks in a loop access of a buffer is copied in each iteration, by one block.

for i in range(4):                        for i in range(4):
    for j in range(8):                        A_shared[i*8 : i*8 + 8] = A[i*8 : i*8 + 8]
        C[i*8 + j] = A[i*8 + j] + 1   ->      for j in range(8):
                                                  C[i*8 + j] = A_shared[i*8 + j] + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tvm.arith import Analyzer, IntervalSet
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, Stmt
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.domains import hull
from ..analyses.regions import accessed_for_certain, box_ranges, covers, within
from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import domain_of, loops_of, scope_of, surroundings
from .cache import Redirection, blocks_of, insert_cache, with_inner
from .cache_stage import (
    Place,
    in_scope,
    nth_buffer,
    position_in,
    region_of,
    relaxed_region,
    require_storage_scope,
)

AUTO_COPY = "auto_copy"


def read_at(
    state: ScheduleState, loop: StmtSRef, block: StmtSRef, index: int, storage_scope: str
) -> StmtSRef:
    """The block that copies what blocks in a loop read of a buffer, before the first of them."""
    buffer = nth_buffer(block.block, index, "read")
    _require_inside(loop, block, storage_scope)
    inside = state.child_blocks(loop)
    readers = [b for b in inside if region_of(b.block.reads, buffer) is not None]
    if any([region_of(other.block.writes, buffer) is not None for other in inside]):
        _reject(block, loop, f"{buffer.name} is written in the loop too")
    cache = in_scope(buffer, storage_scope)
    ranges = _region(state, loop, readers, "reads", buffer, cache)
    copy, copied = _auto_copy(buffer, cache, ranges, loop, cache.name)
    place = Place(loop, min([position_in(loop, reader) for reader in readers]))
    _insert(state, place, copy, Redirection(buffer, cache, None, reads=True, writes=False), readers)
    return state.sref_of(copied)


def write_at(
    state: ScheduleState, loop: StmtSRef, block: StmtSRef, index: int, storage_scope: str
) -> StmtSRef:
    """The block that copies what a block in a loop writes to where it wrote before, after it."""
    buffer = nth_buffer(block.block, index, "write")
    _require_inside(loop, block, storage_scope)
    for other in state.child_blocks(loop):
        regions = (*other.block.reads, *other.block.writes)
        if other is not block and region_of(regions, buffer) is not None:
            _reject(block, loop, f"{other.block.name_hint} in the loop accesses {buffer.name} too")
    if region_of(block.block.reads, buffer) is not None:
        _reject(block, loop, f"it reads {buffer.name}, which it writes")
    cache = in_scope(buffer, storage_scope)
    ranges = _region(state, loop, [block], "writes", buffer, cache)
    _require_all_written(state, loop, block, buffer, ranges)
    copy, copied = _auto_copy(cache, buffer, ranges, loop, cache.name)
    place = Place(loop, position_in(loop, block) + 1)
    _insert(state, place, copy, Redirection(buffer, cache, None, reads=True, writes=True), [block])
    return state.sref_of(copied)


def _reject(block: StmtSRef, loop: StmtSRef, reason: str) -> NoReturn:
    raise PrimitiveError(
        "ScheduleError: The buffer can't be copied in the loop",
        f"What the block {{0}} accesses can't be copied in the loop {{1}}: {reason}",
        block.block, loop.loop,
    )  # fmt: skip


def _require_inside(loop: StmtSRef, block: StmtSRef, storage_scope: str) -> None:
    require_storage_scope(storage_scope)
    if not any([loop is around for around in loops_of(block)]):
        _reject(block, loop, "the loop is not around the block in its scope")


def _region(
    state: ScheduleState,
    loop: StmtSRef,
    blocks: Sequence[StmtSRef],
    kind: str,
    buffer: Buffer,
    cache: Buffer,
) -> list[Range]:
    """What blocks access in one iteration of a loop; in all threads that share the copy."""
    analyzer = Analyzer()
    for var, domain in surroundings(loop).items():
        analyzer.bind(var, domain)
    box: list[IntervalSet] = []
    for block in blocks:
        for region in getattr(block.block, kind):
            if region.buffer is buffer:
                copied = BufferRegion(cache, region.region)
                sides = [
                    IntervalSet(side.min, op.subtract(op.add(side.min, side.extent), 1))
                    for side in relaxed_region(state, copied, block, loop).region
                ]
                pairs = zip(box or sides, sides, strict=True)
                box = [hull(a, b, analyzer) for a, b in pairs]
    return [
        Range.from_min_extent(analyzer.simplify(side.min), side.extent)
        for side in box_ranges(box, buffer, analyzer)
    ]


def _require_all_written(
    state: ScheduleState, loop: StmtSRef, block: StmtSRef, buffer: Buffer, ranges: Sequence[Range]
) -> None:
    """All of a region is copied back, so all of it has to be written."""
    analyzer = Analyzer()
    for var, domain in surroundings(loop).items():
        analyzer.bind(var, domain)
    region = region_of(block.block.writes, buffer)
    assert region is not None
    written = accessed_for_certain(region, state.realize_of(block), block.parent, loop)
    copied = within([IntervalSet.from_range(side) for side in ranges], buffer.shape, analyzer)
    written = None if written is None else within(written, buffer.shape, analyzer)
    if written is None or not all(
        [covers(outer, inner, analyzer) for outer, inner in zip(written, copied, strict=True)]
    ):
        _reject(block, loop, f"it may leave out elements of {buffer.name}, which would be lost")


def _auto_copy(
    source: Buffer, target: Buffer, ranges: Sequence[Range], loop: StmtSRef, name: str
) -> tuple[Stmt, Block]:
    """A block that copies a region, over the loops around it that the region moves with."""
    domains = domain_of([*loops_of(loop), loop])
    moving = [
        var
        for var in variables_of(*[end for side in ranges for end in (side.min, side.extent)])
        if var in domains
    ]
    axes = [
        IterVar(domains[var], Var(f"v{i}", var.dtype), IterVar.DataPar)
        for i, var in enumerate(moving)
    ]
    inside = {var: axis.var for var, axis in zip(moving, axes, strict=True)}
    sides = [substitute(side, inside) for side in ranges]
    counters = [Var(f"ax{i}", side.extent.dtype) for i, side in enumerate(sides)]
    indices: tuple[PrimExpr, ...] = tuple(
        [op.add(side.min, counter) for side, counter in zip(sides, counters, strict=True)]
    )
    body: Stmt = BufferStore(target, BufferLoad(source, indices), indices)
    for counter, side in reversed(list(zip(counters, sides, strict=True))):
        body = For(counter, 0, side.extent, ForKind.SERIAL, body)
    block = Block(
        axes, [BufferRegion(source, tuple(sides))], [BufferRegion(target, tuple(sides))], name,
        body, annotations={AUTO_COPY: 1},
    )  # fmt: skip
    return BlockRealize(tuple(moving), const(True), block), block


def _insert(
    state: ScheduleState,
    place: Place,
    copy: Stmt,
    redirect: Redirection,
    users: Sequence[StmtSRef],
) -> None:
    chosen = blocks_of(with_inner(state, users))
    insert_cache(state, scope_of(place.parent), place, copy, redirect.cache, redirect, chosen, {})
