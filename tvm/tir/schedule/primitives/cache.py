"""Copies of buffers in nearer memory: before a block reads, after it writes, or both.

for i: C[i] = A[i] + 1    cache_read(C, 0, "shared")    for ax0: A_shared[ax0] = A[ax0]
                                                        for i: C[i] = A_shared[i] + 1
                          cache_write(C, 0, "local")    for i: C_local[i] = A[i] + 1
                                                        for ax0: C[ax0] = C_local[ax0]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Range
from tvm.tir.stmt import Block, BufferRegion, BufferStore, For, Stmt

from ..analyses.regions import full_region
from ..errors import PrimitiveError
from ..rewriting import AccessRewriter, Reuse
from ..state import ScheduleState
from .cache_stage import (
    Place,
    copy_block,
    in_scope,
    inserted,
    is_full,
    nth_buffer,
    only_writer,
    place_after,
    place_before,
    position_in,
    region_of,
    relaxed_region,
    require_storage_scope,
    sized,
)
from .get import blocks_inside, enclosing_scope


def cache_read(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer_index: int,
    storage_scope: str,
    consumers: Sequence[StmtSRef],
) -> StmtSRef:
    """A copy of what a block reads, in a storage scope, that it and others read."""
    require_storage_scope(storage_scope)
    buffer = nth_buffer(block_sref.block, buffer_index, "read")
    scope = enclosing_scope(block_sref)
    chosen = with_inner(state, consumers) or None
    writer, earlier = _writer_before(state, scope, buffer, chosen)
    if writer is not None:
        place = place_before(_readers(state, scope, buffer, chosen, writer), writer, scope)
        written = region_of(writer.block.writes, buffer)
        assert written is not None
        region = relaxed_region(state, written, writer, place.parent)
    else:
        place = Place(scope, 0)
        known = region_of(scope.block.reads, buffer)
        region = full_region(buffer) if known is None else known
    full = _is_whole(state, region, scope, place)
    cache = _cache_buffer(buffer, region, storage_scope, full)
    copy, copied = copy_block(buffer, cache, region, True, full)
    offsets = None if full else [side.min for side in region.region]
    redirect = Redirection(buffer, cache, offsets, reads=True, writes=False)
    skipped = dict.fromkeys([sref.block for sref in earlier])
    insert_cache(state, scope, place, copy, cache, redirect, blocks_of(chosen), skipped)
    return state.sref_of(copied)


def cache_write(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer_index: int,
    storage_scope: str,
    consumers: Sequence[StmtSRef],
) -> StmtSRef:
    """A buffer in a storage scope that a block writes, and the copy of it to where it wrote before."""
    require_storage_scope(storage_scope)
    block = block_sref.block
    buffer = nth_buffer(block, buffer_index, "write")
    scope = enclosing_scope(block_sref)
    chosen = with_inner(state, consumers)
    only_writer(state, scope, buffer)
    cached = dict.fromkeys(chosen)
    readers = [
        reader
        for reader in _readers(state, scope, buffer, None, block_sref)
        if reader not in cached
    ]
    place = place_after(block_sref, readers, scope)
    written = region_of(block.writes, buffer)
    assert written is not None
    region = relaxed_region(state, written, block_sref, place.parent)
    full = _is_whole(state, region, scope, place)
    _require_no_earlier_values(block, buffer, scope.block)
    cache = _cache_buffer(buffer, region, storage_scope, full)
    copy, copied = copy_block(cache, buffer, region, False, full)
    offsets = None if full else [side.min for side in region.region]
    redirect = Redirection(buffer, cache, offsets, reads=True, writes=True)
    inside = with_inner(state, [block_sref])
    insert_cache(state, scope, place, copy, cache, redirect, blocks_of([*inside, *chosen]), {})
    return state.sref_of(copied)


def _require_no_earlier_values(block: Block, buffer: Buffer, scope: Block) -> None:
    """A cache begins without what a buffer from outside of the scope holds already."""
    is_own = buffer in dict.fromkeys(scope.alloc_buffers)
    if region_of(block.reads, buffer) is not None and not is_own:
        raise PrimitiveError(
            "ScheduleError: The block changes what a buffer holds already",
            f"The block {{0}} reads {buffer.name}, which it writes: a cache of what it writes "
            "would begin without its values; cache_inplace copies them there first",
            block,
        )


def cache_inplace(
    state: ScheduleState, block_sref: StmtSRef, buffer_index: int, storage_scope: str
) -> list[StmtSRef]:
    """A copy of a buffer that a block changes: made before the block, and copied back after it."""
    require_storage_scope(storage_scope)
    block = block_sref.block
    buffer = nth_buffer(block, buffer_index, "read")
    if region_of(block.writes, buffer) is None:
        raise PrimitiveError(
            "ScheduleError: The target block does not both read & write target buffer.",
            f"The block {{0}} is required to read and to write the buffer {buffer.name}",
            block,
        )
    scope, parent = enclosing_scope(block_sref), block_sref.parent
    assert parent is not None
    cache = in_scope(buffer, storage_scope)
    position = position_in(parent, block_sref)
    regions = [region_of(block.reads, buffer), region_of(block.writes, buffer)]
    there, back = [relaxed_region(state, r, block_sref, parent) for r in regions if r is not None]
    copy_there, copied = copy_block(buffer, cache, there, True, True)
    copy_back, copied_back = copy_block(cache, buffer, back, False, True)
    redirect = Redirection(buffer, cache, None, reads=True, writes=True)
    inside = blocks_of(with_inner(state, [block_sref]))
    insert_cache(state, scope, Place(parent, position), copy_there, cache, redirect, inside, {})
    assert parent.stmt is not None
    state.replace_body(parent, inserted(parent.stmt.body, position + 2, copy_back))
    return [state.sref_of(copied), state.sref_of(copied_back)]


def _writer_before(
    state: ScheduleState, scope: StmtSRef, buffer: Buffer, chosen: Sequence[StmtSRef] | None
) -> tuple[StmtSRef | None, list[StmtSRef]]:
    """The block that writes what is read, and the blocks up to it; None if it comes after the reads."""
    info = state.get_block_scope(scope)
    writer = only_writer(state, scope, buffer)
    if writer is None:
        return None, []
    order = list(info.children)
    earlier = order[: order.index(writer) + 1]
    if chosen is not None and all(
        [any([c is e for e in earlier]) or c not in order for c in chosen]
    ):
        return None, []
    return writer, earlier


def with_inner(state: ScheduleState, blocks: Sequence[StmtSRef]) -> list[StmtSRef]:
    """The blocks and those inside of them."""
    found: list[StmtSRef] = []
    for block in blocks:
        found += [block, *blocks_inside(state, block)]
    return found


def blocks_of(srefs: Sequence[StmtSRef] | None) -> dict[Block, None] | None:
    return None if srefs is None else dict.fromkeys([sref.block for sref in srefs])


def _readers(
    state: ScheduleState,
    scope: StmtSRef,
    buffer: Buffer,
    chosen: Sequence[StmtSRef] | None,
    writer: StmtSRef,
) -> list[StmtSRef]:
    """The blocks of the scope that read a buffer: all of them, or the chosen ones."""
    readers = state.get_block_scope(scope).buffer_readers.get(buffer, [])
    allowed = None if chosen is None else dict.fromkeys(chosen)
    return [r for r in readers if r is not writer and (allowed is None or r in allowed)]


def _all_inside(state: ScheduleState, buffer: Buffer, scope: StmtSRef, place: StmtSRef) -> bool:
    """Whether a buffer is read nowhere but inside of a place."""
    readers = state.get_block_scope(scope).buffer_readers.get(buffer, [])
    return all([reader.is_inside(place) for reader in readers])


def _is_whole(state: ScheduleState, region: BufferRegion, scope: StmtSRef, place: Place) -> bool:
    """Whether the copy has the shape of the buffer, rather than of the region."""
    if not place.parent.is_block or is_full(region):
        return True
    return not _all_inside(state, region.buffer, scope, place.parent)


def _cache_buffer(buffer: Buffer, region: BufferRegion, scope: str, full: bool) -> Buffer:
    if full:
        return in_scope(buffer, scope)
    return sized(buffer, [side.extent for side in region.region], scope)


class Redirection:
    """Accesses to a buffer become accesses to its copy, which may begin at an offset."""

    def __init__(
        self,
        buffer: Buffer,
        cache: Buffer,
        offsets: Sequence[PrimExpr] | None,
        reads: bool,
        writes: bool,
    ) -> None:
        self.buffer, self.cache, self.offsets = buffer, cache, offsets
        self.reads, self.writes = reads, writes
        self.analyzer = Analyzer()

    def indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where an element is in the copy."""
        if self.offsets is None:
            return tuple(indices)
        pairs = zip(indices, self.offsets, strict=True)
        return tuple([self.analyzer.simplify(op.subtract(i, o)) for i, o in pairs])

    def load(self, load: BufferLoad) -> PrimExpr:
        """The load from the copy."""
        return BufferLoad(self.cache, self.indices(load.indices))

    def store(self, store: BufferStore) -> Stmt:
        """The store to the copy."""
        return store.replace(buffer=self.cache, indices=self.indices(store.indices))

    def region(self, region: BufferRegion) -> BufferRegion:
        """The region of the copy."""
        starts = self.indices([side.min for side in region.region])
        sides = [
            Range.from_min_extent(start, side.extent)
            for start, side in zip(starts, region.region, strict=True)
        ]
        return BufferRegion(self.cache, tuple(sides))


class CacheRewriter(AccessRewriter):
    """Redirects accesses in blocks: in all, or in the chosen ones and regions of those around them."""

    def __init__(
        self,
        redirect: Redirection,
        chosen: dict[Block, None] | None,
        skipped: dict[Block, None],
        reuse: Reuse,
    ) -> None:
        store = redirect.store if redirect.writes else _same_store
        super().__init__(redirect.buffer, redirect.load, store, redirect.region, reuse)
        self.redirect = redirect
        self.chosen = chosen
        self.skipped = skipped
        self.active = False
        self.inside = False
        self.done: dict[Stmt, Stmt] = {}  # loops that have been rewritten

    def visit_for(self, loop: For) -> Stmt:
        return self.done.get(loop) or self.rewrite_children(loop)

    def visit_block(self, block: Block) -> Stmt:
        if block in self.skipped:
            return block
        # what is inside of a chosen block, its initialisation too, is chosen with it
        is_chosen = self.inside or self.chosen is None or block in self.chosen
        before, outer = self.active, self.inside
        self.active, self.inside = is_chosen, is_chosen and self.chosen is not None
        body = self.visit(block.body)
        init = None if block.init is None else self.visit(block.init)
        matches = tuple([self.visit(match) for match in block.match_buffers])
        self.active, self.inside = before, outer
        same = body is block.body and init is block.init
        same = same and all([a is b for a, b in zip(matches, block.match_buffers, strict=True)])
        reads, writes = block.reads, block.writes
        if is_chosen:
            reads = self._regions(reads, True)
            writes = self._regions(writes, self.redirect.writes)
        elif not same:
            reads = (*reads, *self._added(reads))
            if self.redirect.writes:
                writes = (*writes, *self._added(writes))
        if same and reads is block.reads and writes is block.writes:
            return block
        new = block.replace(body=body, init=init, match_buffers=matches, reads=reads, writes=writes)
        self.reuse[block] = new
        return new

    def _regions(
        self, regions: tuple[BufferRegion, ...], renamed: bool
    ) -> tuple[BufferRegion, ...]:
        """The regions with the buffer, if it is to be, and loads in their bounds redirected."""
        before, self.active = self.active, True
        inside = [self.rewrite_children(region) for region in regions]
        self.active = before
        new = [self.region(r) if renamed and r.buffer is self.buffer else r for r in inside]
        same = all([a is b for a, b in zip(new, regions, strict=True)])
        return regions if same else tuple(new)

    def _added(self, regions: Sequence[BufferRegion]) -> list[BufferRegion]:
        return [self.region(r) for r in regions if r.buffer is self.buffer]

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        return self.load(load) if self.active and load.buffer is self.buffer else load

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        return self.store(store) if self.active and store.buffer is self.buffer else store

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        region = self.rewrite_children(region)
        return self.region(region) if self.active and region.buffer is self.buffer else region

    def visit_var(self, var: object) -> object:
        if self.active and var is self.buffer.data:
            return self.redirect.cache.data
        return var


def _same_store(store: BufferStore) -> Stmt:
    return store


def insert_cache(
    state: ScheduleState,
    scope: StmtSRef,
    place: Place,
    copy: Stmt,
    cache: Buffer,
    redirect: Redirection,
    chosen: dict[Block, None] | None,
    skipped: dict[Block, None],
) -> None:
    """Redirect accesses in a scope, put the copy in its place, and allocate the buffer."""
    old = scope.block
    parent = place.parent.stmt
    assert parent is not None
    reuse: Reuse = {}
    rewriter = CacheRewriter(redirect, chosen, skipped, reuse)
    rewriter.active = chosen is None
    if parent is old:
        body = inserted(rewriter.visit(old.body), place.position, copy)
    else:
        # the copy's own accesses stay: it is put in after the others were redirected
        inner = rewriter.visit(parent.body)
        rewriter.done[parent] = parent.replace(body=inserted(inner, place.position, copy))
        body = rewriter.visit(old.body)
    new = old.replace(body=body, alloc_buffers=(*old.alloc_buffers, cache))
    state.replace(scope, new, {**reuse, old: new})
