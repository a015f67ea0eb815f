"""Copies of buffers that a block accesses at its own variables, or at expressions of them.

C[i, j] += A[i, k] * B[j, k]    reindex(C, ("read", 1))    B_reindex[j, k] = B[j, k]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer, IntervalSet
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Range, Var, const
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    Stmt,
    point_region,
)
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.block_kind import require_complete_or_reduction
from ..analyses.order import require_sequence
from ..analyses.regions import loops_between
from ..errors import PrimitiveError
from ..rewriting import AccessRewriter, Reuse, StmtReplacer
from ..state import ScheduleState
from ..tree import scope_of, surroundings
from .cache_stage import (
    Place,
    inserted,
    nth_buffer,
    only_writer,
    place_after,
    place_before,
    position_in,
    require_storage_scope,
)


def reindex(state: ScheduleState, block_sref: StmtSRef, kind: str, index: int) -> StmtSRef:
    """A copy that has the block's variables as its indices."""
    block = block_sref.block
    buffer = nth_buffer(block, index, kind)
    scope = scope_of(block_sref)
    indices = _single_access(block, buffer, kind)
    used = variables_of(*indices)
    axes = [axis for axis in block.iter_vars if axis.var in used]
    shape = [axis.dom.extent for axis in axes if axis.dom is not None]
    copy = decl_buffer(shape, buffer.dtype, f"{buffer.name}_reindex", scope=buffer.scope())
    position = position_in(scope, block_sref)
    place = Place(scope, position if kind == "read" else position + 1)
    at = [axis.var for axis in axes]
    return _insert(state, block_sref, buffer, copy, kind, place, axes, indices, at)


def reindex_cache_read(
    state: ScheduleState, block: StmtSRef, index: int, storage_scope: str, index_map: IndexMap
) -> StmtSRef:
    """A copy of what a block reads, at the indices that a map makes of its variables."""
    buffer = nth_buffer(block.block, index, "read")
    scope = scope_of(block)
    writer = only_writer(state, scope, buffer)
    place = Place(scope, 0) if writer is None else place_before([block], writer, scope)
    return _reindex_cache(state, block, buffer, "read", storage_scope, index_map, place)


def reindex_cache_write(
    state: ScheduleState, block: StmtSRef, index: int, storage_scope: str, index_map: IndexMap
) -> StmtSRef:
    """A buffer that a block writes first, at the indices that a map makes of its variables."""
    buffer = nth_buffer(block.block, index, "write")
    scope = scope_of(block)
    readers = state.get_block_scope(scope).buffer_readers.get(buffer, [])
    others = [reader for reader in readers if reader is not block]
    place = place_after(block, others, scope)
    return _reindex_cache(state, block, buffer, "write", storage_scope, index_map, place)


def _reindex_cache(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer: Buffer,
    kind: str,
    storage_scope: str,
    index_map: IndexMap,
    place: Place,
) -> StmtSRef:
    require_storage_scope(storage_scope)
    block = block_sref.block
    indices = _single_access(block, buffer, kind)
    variables = [axis.var for axis in block.iter_vars]
    at = index_map.map_indices(variables)
    used, mapped = variables_of(*indices), variables_of(*at)
    axes = [axis for axis in block.iter_vars if axis.var in used]
    if any([(axis.var in used) is not (axis.var in mapped) for axis in block.iter_vars]):
        raise PrimitiveError(
            "ScheduleError: the block itervars appeared in lhs and rhs of reindex cache stage do "
            "not match.",
            f"The index map of {{0}} is required to use the variables that {buffer.name} is accessed "
            f"at, {[var.name for var in used]}, it uses {[var.name for var in mapped]}",
            block,
        )
    domains = [axis.dom for axis in axes if axis.dom is not None]
    compact = IndexMap(
        tuple([axis.var for axis in axes]), tuple([Analyzer().simplify(e) for e in at])
    )
    if not _is_injective(compact, domains):
        raise PrimitiveError(
            "ScheduleError: the index map is not injective",
            f"The index map of {{0}} sends several elements of {buffer.name} to one place",
            block,
        )
    analyzer = Analyzer()
    shape = [analyzer.simplify(e) for e in compact.map_shape([dom.extent for dom in domains])]
    copy = decl_buffer(shape, buffer.dtype, f"{buffer.name}_{storage_scope}", scope=storage_scope)
    return _insert(state, block_sref, buffer, copy, kind, place, axes, indices, at)


def _is_injective(index_map: IndexMap, domains: Sequence[Range]) -> bool:
    try:
        index_map.non_surjective_inverse([*domains])
    except ValueError:
        return False
    return True


def _single_access(block: Block, buffer: Buffer, kind: str) -> tuple[PrimExpr, ...]:
    """The indices that a block accesses a buffer at; rejected if there are several."""
    accesses = _Accesses(buffer, kind)
    accesses.visit(block)
    found = accesses.found
    if not found or any([not structural_equal(other, found[0]) for other in found]):
        raise PrimitiveError(
            "ScheduleError: The buffer is accessed at several places",
            f"The block {{0}} is required to access the buffer {buffer.name} at one place, its "
            f"accesses are at {[str(indices) for indices in found]}".replace("{'", "{{'"),
            block,
        )
    analyzer = Analyzer()
    for axis in block.iter_vars:
        # a variable of one value is an index all the same
        is_unit = axis.dom is not None and analyzer.can_prove_equal(axis.dom.extent, 1)
        if axis.dom is not None and not is_unit:
            analyzer.bind(axis.var, axis.dom)
    return tuple([analyzer.simplify(index) for index in found[0]])


class _Accesses(Visitor):
    """Collects the indices of a buffer's accesses; regions that are no points count as several."""

    def __init__(self, buffer: Buffer, kind: str) -> None:
        self.buffer = buffer
        self.kind = kind
        self.found: list[tuple[PrimExpr, ...]] = []

    def visit_block(self, block: Block) -> None:
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.buffer is self.buffer:
            self.found.append(load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if store.buffer is self.buffer:
            self.found.append(store.indices)
        self.visit_children(store)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        # the variables of inner blocks are none of this one
        for region in (*realize.block.reads, *realize.block.writes):
            if region.buffer is self.buffer:
                self.found += [tuple([s.min for s in region.region]), ()]


def _insert(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer: Buffer,
    copy: Buffer,
    kind: str,
    place: Place,
    axes: Sequence[IterVar],
    indices: Sequence[PrimExpr],
    at: Sequence[PrimExpr],
) -> StmtSRef:
    """Let the block access the copy, and put the block that copies in its place."""
    scope, block = scope_of(block_sref), block_sref.block
    if kind == "write":
        only_writer(state, scope, buffer)
        require_complete_or_reduction(state, block_sref, scope)
    elif any([region.buffer is buffer for region in block.writes]):
        raise PrimitiveError(
            "ScheduleError: The block reads and writes the buffer",
            f"The block {{0}} writes the buffer {buffer.name} too, so that a copy to read is not enough",
            block,
        )
    _require_inside(block, buffer, indices)
    nest, copying = _copy_nest(state, block_sref, buffer, copy, kind, place, axes, indices, at)
    reuse: Reuse = {}
    accesses = AccessRewriter(
        buffer,
        lambda _: BufferLoad(copy, tuple(at)),
        lambda store: store.replace(buffer=copy, indices=tuple(at)),
        lambda _: point_region(copy, at),
        reuse,
    )
    new_block = accesses.visit(block)
    parent = place.parent.stmt
    assert parent is not None
    replacer = StmtReplacer({block: new_block}, reuse)
    old = scope.block
    if parent is old:
        body = inserted(replacer.visit(old.body), place.position, nest)
    else:
        inner = replacer.visit(parent.body)
        replacer.replaced[parent] = parent.replace(body=inserted(inner, place.position, nest))
        body = replacer.visit(old.body)
    reuse[block] = new_block
    new = old.replace(body=body, alloc_buffers=(*old.alloc_buffers, copy))
    state.replace(scope, new, {**reuse, old: new})
    if state.enable_check:
        require_sequence(state, [state.sref_of(copying), state.sref_of(new_block)], block)
    return state.sref_of(copying)


def _require_inside(block: Block, buffer: Buffer, indices: Sequence[PrimExpr]) -> None:
    """Reject accesses that a condition in the block keeps inside of the buffer: the copy has none."""
    analyzer = Analyzer()
    for axis in block.iter_vars:
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    for index, extent in zip(indices, buffer.shape, strict=True):
        inside = op.all(op.greater_equal(index, 0), op.less(index, extent))
        if not analyzer.can_prove(inside):
            raise PrimitiveError(
                "ScheduleError: An index may be outside of the buffer",
                f"The block {{0}} accesses {buffer.name} at {index}, which may be outside of {extent}",
                block,
            )


def _copy_nest(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer: Buffer,
    copy: Buffer,
    kind: str,
    place: Place,
    axes: Sequence[IterVar],
    indices: Sequence[PrimExpr],
    at: Sequence[PrimExpr],
) -> tuple[Stmt, Block]:
    renamed: dict[Var, PrimExpr] = {}
    own: list[IterVar] = []
    for number, axis in enumerate(axes):
        var = axis.var.replace(name=f"v{number}")
        renamed[axis.var] = var
        own.append(IterVar(axis.dom, var, IterVar.DataPar))
    there = [substitute(index, renamed) for index in indices]
    here = [substitute(index, renamed) for index in at]
    source, target = (buffer, copy) if kind == "read" else (copy, buffer)
    read, written = (there, here) if kind == "read" else (here, there)
    body = BufferStore(target, BufferLoad(source, tuple(read)), tuple(written))
    reads: list[BufferRegion] = [point_region(source, read)]
    block = Block(own, reads, [point_region(target, written)], copy.name, body)
    loops: list[tuple[Var, PrimExpr]] = []
    values: list[PrimExpr] = []
    for side in _ranges(state, block_sref, place, axes):
        if not place.parent.is_block and isinstance(side.extent, IntImm) and side.extent.value == 1:
            values.append(side.min)
            continue
        var = Var(f"ax{len(loops)}", side.extent.dtype)
        loops.append((var, side.extent))
        values.append(op.add(side.min, var))
    nest: Stmt = BlockRealize(tuple(values), const(True), block)
    for var, extent in reversed(loops):
        nest = For(var, 0, extent, ForKind.SERIAL, nest)
    return nest, block


def _ranges(
    state: ScheduleState, block_sref: StmtSRef, place: Place, axes: Sequence[IterVar]
) -> list[Range]:
    """What the block's variables run over inside of the place."""
    if place.parent.is_block:
        return [axis.dom for axis in axes if axis.dom is not None]
    analyzer = Analyzer()
    for var, domain in surroundings(place.parent).items():
        analyzer.bind(var, domain)
    inside = loops_between(block_sref.parent, place.parent)
    sets = {var: IntervalSet.from_range(side) for var, side in inside.items()}
    for var, side in inside.items():
        analyzer.bind(var, side)
    realize = state.realize_of(block_sref)
    ranges: list[Range] = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not any([axis is other for other in axes]):
            continue
        assert axis.dom is not None
        found = analyzer.int_set(value, sets)
        low = analyzer.simplify(op.max(found.min_value, axis.dom.min))
        last = op.subtract(op.add(axis.dom.min, axis.dom.extent), 1)
        high = analyzer.simplify(op.min(found.max_value, last))
        extent = analyzer.simplify(op.add(op.subtract(high, low), 1))
        ranges.append(Range.from_min_extent(low, extent))
    return ranges
