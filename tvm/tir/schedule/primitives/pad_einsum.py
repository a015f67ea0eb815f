"""An einsum runs over multiples of given extents, on operands that are padded with zeros.

for i: for j: for k:                       for i: for k: A_pad[i, k] = A[i, k] if k < 127 else 0
    C[i, j] += A[i, k] * B[k, j]    ->     for k: for j: B_pad[k, j] = B[k, j] if k < 127 else 0
                                           for i: for j: for k in range(128):
                                               C[i, j] += A_pad[i, k] * B_pad[k, j]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import (
    Add,
    BufferLoad,
    Cast,
    FloatImm,
    IntImm,
    IterVar,
    Mul,
    Range,
    Sub,
    Var,
    const,
)
from tvm.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, point_region

from ..analyses.access import buffers_by_pointer, with_regions
from ..analyses.block_kind import require_complete_or_reduction
from ..errors import PrimitiveError
from ..rewriting import BufferReplacer, Reuse, StmtReplacer
from ..state import ScheduleState
from ..tree import loops_of, only_child, scope_of
from .cache_stage import inserted, position_in


@dataclass(frozen=True, slots=True)
class Extent:
    """Of a variable or an axis: how far it ran, and how far it runs now."""

    old: PrimExpr
    new: PrimExpr

    @property
    def is_padded(self) -> bool:
        """Whether it runs further."""
        return not structural_equal(self.old, self.new)


def pad_einsum(state: ScheduleState, block_sref: StmtSRef, padding: Sequence[int]) -> None:
    """Pad the domains of a block's variables to multiples, and the buffers that they index."""
    block = block_sref.block
    if block_sref.parent is None:
        _reject(block, "it is the root block")
    scope = scope_of(block_sref)
    require_complete_or_reduction(state, block_sref, scope)
    loops = _bound_loops(state, block_sref)
    extents = _extents(block, padding)
    accesses = _accesses(block)
    output = block.writes[0].buffer
    operands = [buffer for buffer in accesses if buffer is not output]
    shapes = {b: _padded_shape(block, b, accesses[b], extents) for b in (*operands, output)}
    padded = {
        buffer: decl_buffer(
            [e.new for e in shape], buffer.dtype, f"{buffer.name}_pad", scope=buffer.scope()
        )
        for buffer, shape in shapes.items()
        if any([extent.is_padded for extent in shape])
    }
    _require_neutral(block, extents)
    _require_indexed(block, output, accesses[output], extents)
    if output in padded:
        _require_variables(block, output, accesses[output])
    new_block = _over_more(block, extents, padded)
    nest: Stmt = state.realize_of(block_sref).replace(block=new_block)
    for loop, axis in reversed(loops):
        nest = loop.replace(extent=extents[axis].new, body=nest)
    position = position_in(scope, block_sref)
    body = StmtReplacer({loops[0][0]: nest}, {}).visit(scope.block.body)
    if output in padded:
        back = _copy(padded[output], output, [e.old for e in shapes[output]], None)
        body = inserted(body, position + 1, back)
    for buffer in [b for b in reversed(operands) if b in padded]:
        shape = shapes[buffer]
        fill = _copy(buffer, padded[buffer], [e.new for e in shape], shape)
        body = inserted(body, position, fill)
    buffers = (*scope.block.alloc_buffers, *padded.values())
    new = scope.block.replace(body=body, alloc_buffers=buffers)
    state.replace(scope, new, {block: new_block, scope.block: new})


def _reject(block: Block, reason: str) -> NoReturn:
    raise PrimitiveError(
        "ScheduleError: The block is not an einsum that can be padded",
        f"The block {{0}} can't be padded: {reason}",
        block,
    )


def _bound_loops(state: ScheduleState, block_sref: StmtSRef) -> list[tuple[For, Var]]:
    """The loops around a block, each with the one variable whose value it is."""
    realize, block = state.realize_of(block_sref), block_sref.block
    if not (isinstance(realize.predicate, IntImm) and realize.predicate.value):
        _reject(block, "it has a predicate")
    bound: dict[PrimExpr, Var] = {}
    for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if type(value) is not Var or value in bound:
            _reject(block, f"the value of {axis.var.name} is not a loop of its own")
        bound[value] = axis.var
    loops = [sref.loop for sref in loops_of(block_sref)]
    if not loops:
        _reject(block, "no loop is around it")
    inner: list[For | Block] = [*loops[1:], block]
    for loop, below in zip(loops, inner, strict=True):
        if loop.loop_var not in bound:
            _reject(block, f"the loop {loop.loop_var.name} around it is no value of a variable")
        if not only_child(loop, below):
            _reject(block, f"it is not alone in the loop {loop.loop_var.name}")
    return [(loop, bound[loop.loop_var]) for loop in loops]


def _extents(block: Block, padding: Sequence[int]) -> dict[Var, Extent]:
    """How far each variable runs."""
    if len(padding) != len(block.iter_vars) or any([factor <= 0 for factor in padding]):
        _reject(
            block,
            f"it requires a positive factor for each of its {len(block.iter_vars)} variables, got "
            f"{[*padding]}",
        )
    analyzer = Analyzer()
    found: dict[Var, Extent] = {}
    for axis, factor in zip(block.iter_vars, padding, strict=True):
        assert axis.dom is not None
        if not analyzer.can_prove_equal(axis.dom.min, 0):
            _reject(block, f"the domain of {axis.var.name} does not begin at 0")
        old = axis.dom.extent
        step = const(factor, old.dtype)
        new = analyzer.simplify(op.multiply(op.floordiv(op.add(old, factor - 1), step), step))
        found[axis.var] = Extent(old, old if analyzer.can_prove_equal(old, new) else new)
    return found


class _AccessCollector(Visitor):
    """Collects the indices that buffers are accessed with."""

    def __init__(self) -> None:
        self.found: dict[Buffer, list[tuple[PrimExpr, ...]]] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found.setdefault(load.buffer, []).append(load.indices)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit(store.value)
        self.found.setdefault(store.buffer, []).append(store.indices)


def _accesses(block: Block) -> dict[Buffer, list[tuple[PrimExpr, ...]]]:
    """The indices of all accesses, which are variables and constants."""
    stores = [block.body] if block.init is None else [block.init, block.body]
    collector = _AccessCollector()
    for store in stores:
        if not isinstance(store, BufferStore):
            _reject(block, "it does more than to store one value")
        collector.visit(store)
    for buffer, accesses in collector.found.items():
        for index in [index for indices in accesses for index in indices]:
            if type(index) not in (Var, IntImm):
                _reject(block, f"the index {index} of {buffer.name} is no variable")
    return collector.found


def _padded_shape(
    block: Block,
    buffer: Buffer,
    accesses: Sequence[tuple[PrimExpr, ...]],
    extents: dict[Var, Extent],
) -> list[Extent]:
    """How far each axis of a buffer reaches: as far as the variable that indexes it."""
    shape: list[Extent] = []
    for axis, size in enumerate(buffer.shape):
        wanted = [
            extents[index] if isinstance(index, Var) and index in extents else Extent(size, size)
            for index in [indices[axis] for indices in accesses]
        ]
        is_padded = any([extent.is_padded for extent in wanted])
        for other in wanted[1:] if is_padded else ():
            same = structural_equal(other.old, wanted[0].old)
            if not same or not structural_equal(other.new, wanted[0].new):
                _reject(block, f"axis {axis} of {buffer.name} is padded in different ways")
        # an axis that is not padded keeps its size, though only a part of it may be accessed
        if not is_padded:
            shape.append(Extent(size, size))
            continue
        # a guarded access may name elements that are outside of the buffer
        inside = Analyzer().simplify(op.min(wanted[0].old, size))
        shape.append(Extent(inside, wanted[0].new))
    return shape


def _require_variables(
    block: Block, output: Buffer, accesses: Sequence[tuple[PrimExpr, ...]]
) -> None:
    """All of the result is copied back, so all of it has to be computed."""
    domains = {axis.var: axis.dom for axis in block.iter_vars}
    analyzer = Analyzer()
    for index, size in zip(accesses[0], output.shape, strict=True):
        domain = domains.get(index) if isinstance(index, Var) else None
        extent = const(1, size.dtype) if domain is None else domain.extent
        if not analyzer.can_prove_equal(extent, size):
            _reject(block, f"it computes only a part of {output.name}")


def _require_indexed(
    block: Block,
    output: Buffer,
    accesses: Sequence[tuple[PrimExpr, ...]],
    extents: dict[Var, Extent],
) -> None:
    """What is computed in the padding of an axis goes to the padding of the result."""
    for axis in block.iter_vars:
        is_index = any([index is axis.var for indices in accesses for index in indices])
        if axis.iter_type != IterVar.CommReduce and extents[axis.var].is_padded and not is_index:
            _reject(block, f"{axis.var.name} is padded, but no index of {output.name}")


class _LoadReplacer(Rewriter):
    """Replaces loads by variables, which may be any numbers."""

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        return Var("loaded", load.dtype)


def _require_neutral(block: Block, extents: dict[Var, Extent]) -> None:
    """What is computed of zeros has to leave the result of a reduction as it is."""
    body = block.body
    assert isinstance(body, BufferStore)
    if not any([extent.is_padded for extent in extents.values()]):
        return
    if not is_safe_anywhere(_LoadReplacer().visit(body.value)):
        _reject(block, f"{body.value} can't be computed of zeros")
    result = BufferLoad(body.buffer, body.indices)
    for axis in block.iter_vars:
        if axis.iter_type == IterVar.CommReduce and extents[axis.var].is_padded:
            if not _adds_zero(body.value, result, axis.var):
                _reject(block, f"zeros along {axis.var.name} change what it reduces to")


def _adds_zero(value: PrimExpr, result: BufferLoad, axis: Var) -> bool:
    """Whether a value is a sum of the result and what is zero in the padding of an axis."""
    match value:
        case Add(a=a, b=b) if structural_equal(a, result):
            return _is_zero(b, axis)
        case Add(a=a, b=b) if structural_equal(b, result):
            return _is_zero(a, axis)
        case Sub(a=a, b=b) if structural_equal(a, result):
            return _is_zero(b, axis)
    return False


def _is_zero(value: PrimExpr, axis: Var) -> bool:
    """Whether a value is zero in the padding of an axis, where loads that it indexes are."""
    match value:
        case BufferLoad(indices=indices):
            return any([index is axis for index in indices])
        case Cast(value=inner):
            return _is_zero(inner, axis)
        case Add(a=a, b=b) | Sub(a=a, b=b):
            return _is_zero(a, axis) and _is_zero(b, axis)
        case Mul(a=a, b=b):
            zeros = [_is_zero(a, axis), _is_zero(b, axis)]
            # zero times infinity is no number
            is_finite = (
                not value.dtype.is_float or isinstance(a, FloatImm) or isinstance(b, FloatImm)
            )
            return all(zeros) or (any(zeros) and is_finite)
    return False


def _over_more(block: Block, extents: dict[Var, Extent], padded: dict[Buffer, Buffer]) -> Block:
    """The block over the padded domains, on the padded buffers."""
    axes = [
        axis.replace(dom=Range.from_min_extent(axis.dom.min, extents[axis.var].new))
        if axis.dom is not None and extents[axis.var].is_padded
        else axis
        for axis in block.iter_vars
    ]
    reuse: Reuse = {}
    new = BufferReplacer(padded, reuse).visit(block)
    assert isinstance(new, Block)
    known = buffers_by_pointer([r.buffer for r in (*new.reads, *new.writes)])
    return with_regions(new.replace(iter_vars=tuple(axes)), known)


def _copy(
    source: Buffer, target: Buffer, extents: Sequence[PrimExpr], inside: Sequence[Extent] | None
) -> Stmt:
    """Loops that copy; where it is outside of the old extents, if there are some, zeros are stored."""
    counters = [Var(f"i{i}", extent.dtype) for i, extent in enumerate(extents)]
    variables = [Var(f"v{i}", extent.dtype) for i, extent in enumerate(extents)]
    value: PrimExpr = BufferLoad(source, tuple(variables))
    bounds = [
        op.less(var, extent.old)
        for var, extent in zip(variables, inside or (), strict=inside is not None)
        if extent.is_padded
    ]
    if bounds:
        value = op.if_then_else(op.all(*bounds), value, const(0, source.dtype))
    axes = [
        IterVar(Range.from_min_extent(const(0, extent.dtype), extent), var, IterVar.DataPar)
        for var, extent in zip(variables, extents, strict=True)
    ]
    is_fill = inside is not None
    block = Block(
        axes, [point_region(source, variables)], [point_region(target, variables)],
        target.name if is_fill else source.name,
        BufferStore(target, value, tuple(variables)),
    )  # fmt: skip
    result: Stmt = BlockRealize(tuple(counters), const(True), block)
    for counter, extent in reversed(list(zip(counters, extents, strict=True))):
        result = For(counter, 0, extent, ForKind.SERIAL, result)
    return result
