"""A buffer keeps what neighbouring iterations of a loop share, and has room for one iteration alone.

B = alloc(10)                                  B = alloc(6)
for i in range(2):                             for i in range(2):
    for x in range(6):                  ->         for x in range(6):
        B[i*4 + x] = A[i*4 + x]                        if i < 1 or 2 <= x:
                                                           B[(i*4 + x) % 6] = A[i*4 + x]
    for x in range(4):                             for x in range(4):
        C[i*4 + x] = f(B[i*4 + x : i*4 + x + 3])       C[i*4 + x] = f(B[(i*4 + x ...) % 6])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tvm.arith import Analyzer, detect_linear_equation
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import DepKind, StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, FloorDiv, IntImm, IterVar, Range, Var, const
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    ForKind,
    MatchBufferRegion,
    Stmt,
)
from tvm.tir.stmt_functor import variables_of

from ..analyses.bindings import loops_bound_to, uses_var
from ..analyses.block_kind import require_domain_predicate
from ..analyses.regions import accessed, bound_region, box_ranges, is_shared_by
from ..errors import PrimitiveError
from ..rewriting import AccessRewriter, Reuse
from ..state import ScheduleState
from ..tree import common_ancestor, loops_of, scope_of
from .cache_stage import nth_buffer, only_writer, region_of


@dataclass(frozen=True, slots=True)
class Overlap:
    """What an iteration of a loop needs along an axis that the one before it has computed."""

    axis: int
    loop: StmtSRef
    start: PrimExpr
    extent: int
    shared: int

    def is_new(self, index: PrimExpr, analyzer: Analyzer) -> PrimExpr:
        """Whether the iteration before has not computed the elements of an index."""
        loop = self.loop.loop
        first = analyzer.simplify(op.less(loop.loop_var, op.add(loop.min, 1)))
        offset = analyzer.simplify(op.subtract(index, self.start))
        return op.logical_or(first, op.less_equal(const(self.shared, offset.dtype), offset))


def rolling_buffer(state: ScheduleState, block_sref: StmtSRef, index: int) -> None:
    """Keep in a buffer what iterations share, and compute in each one only what is new."""
    block = block_sref.block
    buffer = nth_buffer(block, index, "write")
    if block_sref.parent is None:
        _reject(block, "it is the root block")
    scope = scope_of(block_sref)
    place = _require_tiled_producer(state, block_sref, buffer, scope)
    overlaps = _overlaps(state, block_sref, buffer, place)
    if not overlaps:
        _reject(
            block,
            f"no loop around it and its consumers moves what it writes of {buffer.name} by less "
            "than the extent that one iteration writes",
        )
    order = loops_of(block_sref)
    roll = min(overlaps, key=lambda overlap: order.index(overlap.loop))
    _require_in_order(block_sref, buffer, place, [o.loop for o in overlaps])
    shape = [*buffer.shape]
    shape[roll.axis] = const(roll.extent, shape[roll.axis].dtype)
    rolled = buffer.replace(shape=tuple(shape), strides=())
    reuse: Reuse = {}
    rewriter = Roller(
        buffer, rolled, roll, block, _is_new(state, block_sref, buffer, overlaps), reuse
    )
    body = rewriter.visit(scope.block.body)
    buffers = tuple([rolled if b is buffer else b for b in scope.block.alloc_buffers])
    new = scope.block.replace(body=body, alloc_buffers=buffers)
    state.replace(scope, new, {**reuse, scope.block: new})


def _reject(block: Block, reason: str) -> NoReturn:
    raise PrimitiveError(
        "ScheduleError: The buffer of the block can't be rolled",
        f"The block {{0}} can't write a rolling buffer: {reason}",
        block,
    )


def _require_tiled_producer(
    state: ScheduleState, block_sref: StmtSRef, buffer: Buffer, scope: StmtSRef
) -> StmtSRef:
    """The innermost loop around a block and all that read its buffer, which it writes for them alone."""
    block = block_sref.block
    if not any([buffer is other for other in scope.block.alloc_buffers]):
        _reject(block, f"{buffer.name} is not allocated by the block around it")
    only_writer(state, scope, buffer)
    if region_of(block.reads, buffer) is not None:
        _reject(block, f"it reads {buffer.name}, which it writes")
    require_domain_predicate(state, block_sref)
    info = state.get_block_scope(scope)
    consumers = [c for c in info.buffer_readers.get(buffer, []) if c is not block_sref]
    place = common_ancestor([block_sref, *consumers]) if consumers else scope
    if place.is_block:
        _reject(block, f"no loop is around it and all blocks that read {buffer.name}")
    if any([d.kind == DepKind.WAR for d in info.get_deps_by_dst(block_sref)]):
        _reject(block, f"{buffer.name} is read before it is written")
    reduced = loops_bound_to(state.realize_of(block_sref), IterVar.CommReduce)
    if any([loop.loop.loop_var in reduced for loop in [place, *loops_of(place)]]):
        _reject(block, "it reduces over a loop that its consumers are in")
    for consumer in consumers:
        if not state.is_written_before(consumer, buffer, block_sref):
            _reject(block, f"{consumer.block.name_hint} reads what other iterations write")
    return place


def _overlaps(
    state: ScheduleState, block_sref: StmtSRef, buffer: Buffer, place: StmtSRef
) -> list[Overlap]:
    """The axes along which neighbouring iterations of a loop write the same elements."""
    analyzer = Analyzer()
    region = region_of(block_sref.block.writes, buffer)
    assert region is not None
    # what a predicate leaves out is computed by no iteration
    realize = state.realize_of(block_sref).replace(predicate=const(True))
    box = accessed(region, realize, block_sref.parent, place)
    sides = box_ranges(box, buffer, analyzer)
    starts = [analyzer.simplify(side.min) for side in sides]
    loops = {loop.loop.loop_var: loop for loop in loops_of(block_sref)}
    found: list[Overlap] = []
    for axis, (start, side) in enumerate(zip(starts, sides, strict=True)):
        moved = [var for var in variables_of(start) if var in loops]
        others = starts[:axis] + starts[axis + 1 :]
        if len(moved) != 1 or any([uses_var(other, {moved[0]: None}) for other in others]):
            continue
        extent, step = side.extent, _step(start, moved[0])
        if step is None or type(extent) is not IntImm or step >= extent.value:
            continue
        found.append(Overlap(axis, loops[moved[0]], start, extent.value, extent.value - step))
    return found


def _step(start: PrimExpr, var: Var) -> int | None:
    """By how much one iteration moves a start at most; None if it does not move on steadily."""
    divisor = 1
    if isinstance(start, FloorDiv) and isinstance(start.b, IntImm):
        divisor = start.b.value
        start = start.a
    linear = detect_linear_equation(start, [var])
    if not linear or type(linear[0]) is not IntImm or linear[0].value <= 0 or divisor <= 0:
        return None
    return -(-linear[0].value // divisor)


def _require_in_order(
    block_sref: StmtSRef, buffer: Buffer, place: StmtSRef, moving: Sequence[StmtSRef]
) -> None:
    """Reject loops whose iterations share the buffer and do not run one after the other."""
    around = [*[above for above in place.ancestors() if not above.is_block], place]
    for sref in around:
        loop = sref.loop
        in_order = loop.kind in (ForKind.SERIAL, ForKind.UNROLLED)
        if not in_order and loop.thread_binding is not None and sref not in moving:
            in_order = not is_shared_by(buffer.scope(), loop.thread_binding.thread_tag)
        if not in_order:
            _reject(
                block_sref.block,
                f"the iterations of the loop {loop.loop_var.name} around it share {buffer.name} and "
                "do not run one after the other",
            )


def _is_new(
    state: ScheduleState, block_sref: StmtSRef, buffer: Buffer, overlaps: Sequence[Overlap]
) -> PrimExpr:
    """Under which condition the block computes what no iteration before has computed."""
    region = region_of(block_sref.block.writes, buffer)
    assert region is not None
    analyzer = Analyzer()
    bounds = bound_region(region, state.realize_of(block_sref))
    if not all([analyzer.can_prove_equal(bounds[o.axis].extent, 1) for o in overlaps]):
        _reject(block_sref.block, f"one instance of it writes several elements of {buffer.name}")
    return op.all(*[o.is_new(bounds[o.axis].min, analyzer) for o in overlaps])


class Roller(AccessRewriter):
    """Gives accesses to a buffer their place in the rolling one; one block computes what is new alone."""

    def __init__(
        self,
        buffer: Buffer,
        rolled: Buffer,
        roll: Overlap,
        producer: Block,
        is_new: PrimExpr,
        reuse: Reuse,
    ) -> None:
        super().__init__(buffer, self._load, self._store, self._region, reuse)
        self.rolled, self.roll = rolled, roll
        self.producer, self.is_new = producer, is_new

    def _place(self, index: PrimExpr) -> PrimExpr:
        return op.floormod(index, const(self.roll.extent, index.dtype))

    def _indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        axis = self.roll.axis
        return (*indices[:axis], self._place(indices[axis]), *indices[axis + 1 :])

    def _load(self, load: BufferLoad) -> PrimExpr:
        return BufferLoad(self.rolled, self._indices(load.indices))

    def _store(self, store: BufferStore) -> Stmt:
        return store.replace(buffer=self.rolled, indices=self._indices(store.indices))

    def _region(self, region: BufferRegion) -> BufferRegion:
        axis, sides = self.roll.axis, [*region.region]
        side = sides[axis]
        one = const(1, side.extent.dtype)
        # several neighbours may lie at the end and at the beginning
        sides[axis] = (
            Range.from_min_extent(self._place(side.min), one)
            if Analyzer().can_prove_equal(side.extent, 1)
            else Range.from_min_extent(const(0, one.dtype), const(self.roll.extent, one.dtype))
        )
        return BufferRegion(self.rolled, tuple(sides))

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> MatchBufferRegion:
        source = match.source
        if source.buffer is self.buffer:
            if not Analyzer().can_prove_equal(source.region[self.roll.axis].extent, 1):
                _reject(self.producer, f"{match.buffer.name} is a view of several of its elements")
        return super().visit_match_buffer_region(match)

    def visit_var(self, var: Var) -> PrimExpr:
        if var is self.buffer.data:
            _reject(self.producer, f"{self.buffer.name} is accessed by its pointer")
        return var

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        old = realize.block
        realize = self.rewrite_children(realize)
        block = realize.block
        # an instance depends on the iterations before it now
        moving = {self.roll.loop.loop.loop_var: None}
        kinds = [
            IterVar.Opaque
            if axis.iter_type == IterVar.DataPar and uses_var(value, moving)
            else axis.iter_type
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
        ]
        if any([kind != axis.iter_type for kind, axis in zip(kinds, block.iter_vars, strict=True)]):
            axes = [a.replace(iter_type=k) for a, k in zip(block.iter_vars, kinds, strict=True)]
            self.reuse[old] = block = block.replace(iter_vars=tuple(axes))
            realize = realize.replace(block=block)
        if old is self.producer:
            predicate = op.all(realize.predicate, self.is_new)
            realize = realize.replace(predicate=Analyzer().simplify(predicate))
        return realize
