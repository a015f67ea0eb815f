"""The elements of a buffer, or the iterations of a block, in another order.

B[i, j] with (i, j) -> (i, j // 4, j % 4)    ->    B[i, j // 4, j % 4]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer, IntervalSet, detect_iter_map, iter_map_simplify
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support import deep
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Range, Var, const
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    point_region,
    seq,
)
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.bindings import has_only
from ..errors import PrimitiveError
from ..rewriting import Reuse
from ..state import ScheduleState
from ..tree import only_child, range_of, root_of, scope_of
from .buffer_properties import allocating_block, exchange_parameter
from .cache_stage import nth_buffer, only_writer


def transform_layout(
    state: ScheduleState,
    block_sref: StmtSRef,
    index: int,
    kind: str,
    index_map: IndexMap,
    pad_value: IndexMap | None,
    assume_injective: bool,
) -> None:
    """Store a buffer's elements where an index map says."""
    buffer = nth_buffer(block_sref.block, index, kind)
    padding = _padding(buffer, index_map, assume_injective, block_sref.block)
    if padding is not None and pad_value is None:
        raise PrimitiveError(
            "ScheduleError: The transformation would introduce padding",
            f"The index map of the buffer {buffer.name} of {{0}} would leave elements undefined, "
            f"where {padding[1]}; pad_value says what they are",
            block_sref.block,
        )
    place = allocating_block(block_sref, buffer)
    whole = root_of(block_sref) if place is None else place
    extents = index_map.map_shape(buffer.shape)
    analyzer = Analyzer()
    shape = tuple([analyzer.simplify(extent) for extent in extents])
    new = buffer.replace(shape=shape, strides=(), axis_separators=())
    reuse: Reuse = {}
    rewriter = LayoutRewriter(buffer, new, index_map, reuse)
    changed = rewriter.run(whole.block)
    if place is None:
        exchange_parameter(state, whole, buffer, new)
    else:
        allocated = tuple([new if b is buffer else b for b in changed.alloc_buffers])
        changed = changed.replace(alloc_buffers=allocated)
    reuse[whole.block] = changed
    state.replace(whole, changed, reuse)
    if padding is not None and pad_value is not None:
        _fill_padding(state, block_sref, new, padding, pad_value)


def _padding(
    buffer: Buffer, index_map: IndexMap, assume_injective: bool, block: Block
) -> tuple[IndexMap, PrimExpr] | None:
    """The way back, and which new indices stand for no element; None if all do."""
    if assume_injective:
        return None
    try:
        inverse, padding = index_map.non_surjective_inverse([*buffer.shape])
    except ValueError as error:
        raise PrimitiveError(
            "ScheduleError: The index map is not injective",
            f"The index map of the buffer {buffer.name} of {{0}} has no inverse: "
            + str(error).replace("{", "{{").replace("}", "}}"),
            block,
        ) from None
    is_none = isinstance(padding, IntImm) and not padding.value
    return None if is_none else (inverse, padding)


class LayoutRewriter(Rewriter):
    """Maps the indices of a buffer's accesses, simplified by what is known of variables around them."""

    def __init__(self, old: Buffer, new: Buffer, index_map: IndexMap, reuse: Reuse) -> None:
        self.old, self.new, self.index_map, self.reuse = old, new, index_map, reuse
        self.domain: dict[Var, Range] = {}

    @deep
    def run(self, block: Block) -> Block:
        """The block with all accesses inside it rewritten."""
        new = self.visit(block)
        assert isinstance(new, Block)
        return new

    def visit_for(self, loop: For) -> Stmt:
        self.domain[loop.loop_var] = range_of(loop)
        return self.rewrite_children(loop)

    def visit_block(self, block: Block) -> Stmt:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.domain[axis.var] = axis.dom
        new = self.rewrite_children(block)
        if new is not block:
            self.reuse[block] = new
        return new

    def _indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        bindings = dict(zip(self.index_map.initial_indices, indices, strict=True))
        mapped = [substitute(index, bindings) for index in self.index_map.final_indices]
        analyzer = Analyzer()
        for var, domain in self.domain.items():
            analyzer.bind(var, domain)
        simple = [analyzer.simplify(index) for index in mapped]
        found = iter_map_simplify(simple, self.domain, True, "nocheck", True)
        return tuple([analyzer.simplify(index) for index in found])

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        if load.buffer is not self.old:
            return load
        return load.replace(buffer=self.new, indices=self._indices(load.indices))

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        if store.buffer is not self.old:
            return store
        return store.replace(buffer=self.new, indices=self._indices(store.indices))

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        region = self.rewrite_children(region)
        if region.buffer is not self.old:
            return region
        if all([isinstance(s.extent, IntImm) and s.extent.value == 1 for s in region.region]):
            return point_region(self.new, self._indices([side.min for side in region.region]))
        return BufferRegion(self.new, tuple(self._box(region.region)))

    def _box(self, sides: Sequence[Range]) -> list[Range]:
        """A box around where the elements of a box go."""
        analyzer = Analyzer()
        steps = [Var(f"s{i}", side.min.dtype) for i, side in enumerate(sides)]
        spans: dict[Var, IntervalSet] = {}
        for step, side in zip(steps, sides, strict=True):
            zero = const(0, step.dtype)
            spans[step] = IntervalSet(zero, op.subtract(side.extent, 1))
            analyzer.bind(step, Range.from_min_extent(zero, side.extent))
        for var, domain in self.domain.items():
            analyzer.bind(var, domain)
        points = [op.add(side.min, step) for side, step in zip(sides, steps, strict=True)]
        bindings = dict(zip(self.index_map.initial_indices, points, strict=True))
        ranges: list[Range] = []
        for final, extent in zip(self.index_map.final_indices, self.new.shape, strict=True):
            found = analyzer.int_set(analyzer.simplify(substitute(final, bindings)), spans)
            if not found.has_lower_bound() or not found.has_upper_bound():
                ranges.append(Range.from_min_extent(const(0, extent.dtype), extent))
                continue
            length = op.add(op.subtract(found.max_value, found.min_value), 1)
            ranges.append(
                Range.from_min_extent(analyzer.simplify(found.min_value), analyzer.simplify(length))
            )
        return ranges


def _fill_padding(
    state: ScheduleState,
    block_sref: StmtSRef,
    buffer: Buffer,
    padding: tuple[IndexMap, PrimExpr],
    pad_value: IndexMap,
) -> None:
    """A block after the writer that stores what is in the padding."""
    scope = scope_of(block_sref)
    writer = only_writer(state, scope, buffer)
    if writer is None:
        # the caller of the function fills the padding of its inputs
        return
    loops = [Var(f"ax{i}", extent.dtype) for i, extent in enumerate(buffer.shape)]
    axes = [
        IterVar(Range.from_min_extent(const(0, e.dtype), e), Var(f"v{i}", e.dtype), IterVar.DataPar)
        for i, e in enumerate(buffer.shape)
    ]
    variables = [axis.var for axis in axes]
    inverse, where = padding
    condition = substitute(where, dict(zip(inverse.initial_indices, variables, strict=True)))
    value = pad_value.map_indices(variables)[0]
    store = BufferStore(buffer, op.cast(value, buffer.dtype), tuple(variables))
    body: Stmt = IfThenElse(condition, store)
    block = Block(axes, [], [point_region(buffer, variables)], f"{buffer.name}_pad", body)
    result: Stmt = BlockRealize(tuple(loops), const(True), block)
    for var, extent in reversed(list(zip(loops, buffer.shape, strict=True))):
        result = For(var, 0, extent, ForKind.SERIAL, result)
    body = scope.block.body
    state.replace_body(scope, seq([result, body]))


def transform_block_layout(state: ScheduleState, block_sref: StmtSRef, index_map: IndexMap) -> None:
    """Loops over the images of a block's iterations under an index map."""
    block, realize = block_sref.block, state.realize_of(block_sref)
    if not has_only(block.iter_vars, IterVar.DataPar, IterVar.CommReduce):
        raise PrimitiveError(
            "ScheduleError: Types of iteration variables are not handled",
            "The variables of {0} are required to be data parallel or reductions",
            block,
        )
    loops = _plain_loops(state, block_sref, realize)
    variables = [axis.var for axis in block.iter_vars]
    domain = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    final = index_map.map_indices(variables)
    detected = detect_iter_map(final, domain, True, "bijective", False)
    if not detected.indices:
        raise PrimitiveError(
            "ScheduleError: The index map is not bijective affine",
            f"The index map {index_map} of {{0}} is required to be bijective and affine",
            block,
        )
    analyzer = Analyzer()
    shape = [
        analyzer.simplify(e)
        for e in index_map.map_shape([a.dom.extent for a in block.iter_vars if a.dom])
    ]
    inverse = index_map.inverse([a.dom for a in block.iter_vars])
    axes: list[IterVar] = []
    for number, (expr, extent) in enumerate(zip(final, shape, strict=True)):
        kind = _kind_of(expr, block)
        if kind is None:
            raise PrimitiveError(
                "ScheduleError: The block iter type of the transformed variable is ambiguous",
                f"The index {expr} mixes data parallel and reduction variables of {{0}}",
                block,
            )
        var = Var(f"v{number}", expr.dtype)
        zero = const(0, extent.dtype)
        axes.append(IterVar(Range.from_min_extent(zero, extent), var, kind))
    new_vars = [axis.var for axis in axes]
    for axis in axes:
        assert axis.dom is not None
        analyzer.bind(axis.var, axis.dom)
    old_values = [analyzer.simplify(value) for value in inverse.map_indices(new_vars)]
    values = dict(zip(variables, old_values, strict=True))
    reuse: Reuse = {}
    inner = substitute(block.replace(iter_vars=()), values)
    new = inner.replace(iter_vars=tuple(axes))
    reuse[block] = new
    new_loops = [Var(f"ax{i}", axis.var.dtype) for i, axis in enumerate(axes)]
    result: Stmt = BlockRealize(tuple(new_loops), const(True), new)
    for var, extent in reversed(list(zip(new_loops, shape, strict=True))):
        result = For(var, 0, extent, ForKind.SERIAL, result)
    if loops:
        assert isinstance(result, (For, BlockRealize))
        state.replace(loops[0], result, reuse)
    else:
        state.replace_realize(block_sref, result, reuse)


def _plain_loops(state: ScheduleState, block: StmtSRef, realize: BlockRealize) -> list[StmtSRef]:
    """The loops around a block that are its variables in order, nothing else inside of them."""
    analyzer = Analyzer()
    found: list[StmtSRef] = []
    at = block
    axes = block.block.iter_vars
    is_plain = isinstance(realize.predicate, IntImm) and bool(realize.predicate.value)
    for axis, value in zip(reversed(axes), reversed(realize.iter_values), strict=True):
        parent = at.parent
        if not is_plain or parent is None or parent.is_block or axis.dom is None:
            return _reject_loops(block)
        loop = parent.loop
        is_plain = value is loop.loop_var and only_child(loop, at.stmt)
        is_plain = is_plain and analyzer.can_prove_equal(loop.extent, axis.dom.extent)
        if not is_plain or not analyzer.can_prove_equal(loop.min, axis.dom.min):
            return _reject_loops(block)
        found.insert(0, parent)
        at = parent
    if state.enable_check and not is_plain:
        return _reject_loops(block)
    return found


def _reject_loops(block: StmtSRef) -> list[StmtSRef]:
    raise PrimitiveError(
        "ScheduleError: The block is not nested in loops that are its variables",
        "The variables of {0} are required to be the loops around it, in order, with nothing else "
        "inside of them",
        block.block,
    )


def _kind_of(expr: PrimExpr, block: Block) -> int | None:
    from_axes = {axis.var: axis.iter_type for axis in block.iter_vars}
    kinds = {int(from_axes[var]) for var in variables_of(expr) if var in from_axes}
    if len(kinds) > 1:
        return None
    return next(iter(kinds), int(IterVar.DataPar))
