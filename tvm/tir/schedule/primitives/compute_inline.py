"""A block is computed where its result is used, or finishes the block that it uses.

B[i] = A[i] * 2      compute_inline(B)            C[i] = A[i] * 2 + 1
C[i] = B[i] + 1      reverse_compute_inline(C)    C[i] = A[i] * 2 + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tvm.arith import (
    Analyzer,
    detect_iter_map,
    estimate_region_lower_bound,
    inverse_affine_iter_map,
)
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support import deep
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.constants import is_true
from tvm.tir.expr import BufferLoad, IntImm, Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferStore, MatchBufferRegion, Stmt
from tvm.tir.stmt_functor import free_vars, substitute

from ..analyses.access import buffers_by_pointer, with_regions
from ..analyses.bindings import bindings_of
from ..analyses.block_kind import is_output_block, require_complete, require_stage_pipeline
from ..errors import PrimitiveError
from ..rewriting import Reuse
from ..state import ScheduleState
from .removal import body_without


def compute_inline(state: ScheduleState, block_sref: StmtSRef) -> None:
    """Compute a block's elements where they are read."""
    block = block_sref.block
    scope = require_stage_pipeline(state, block_sref)
    require_complete(state, block_sref, scope)
    buffer = _single_buffer(block, "write")
    _require_not_output(state, block_sref, scope)
    store = _single_store(block)
    variables = _distinct_variables(store.indices, block)
    _require_only_variables(store, variables, block)
    body = body_without(state, block_sref, scope)
    single = {axis.var: axis.dom.min for axis in block.iter_vars if axis.dom is not None}
    single = {var: value for var, value in single.items() if var not in dict.fromkeys(variables)}
    inliner = Inliner(buffer, substitute(store.value, single), variables, scope.block)
    _rewrite(state, scope, body, inliner, buffer, block)


def reverse_compute_inline(state: ScheduleState, block_sref: StmtSRef) -> None:
    """Compute a block's elements right where what it reads is computed."""
    block = block_sref.block
    scope = require_stage_pipeline(state, block_sref)
    require_complete(state, block_sref, scope)
    store = _single_store(block)
    producer, buffer = _single_producer(state, block_sref, scope)
    require_complete(state, producer, scope)
    if buffer not in dict.fromkeys(scope.block.alloc_buffers):
        raise PrimitiveError(
            "ScheduleError: Cannot inline an output block",
            f"The buffer {buffer.name} that {{0}} reads is used outside of the scope, so it can't "
            "be inlined",
            block,
        )
    source = _single_store(producer.block)
    realize = state.realize_of(block_sref)
    producer_realize = state.realize_of(producer)
    if not is_true(producer_realize.predicate):
        raise PrimitiveError(
            "ScheduleError: The producer block has a non-trivial predicate",
            f"The producer block {{0}} has the predicate {producer_realize.predicate}, so that "
            "{1} can't be inlined into it",
            producer.block, block,
        )  # fmt: skip
    values, condition = _inverted(store, buffer, realize, source, producer_realize)
    fused = substitute(store, values)
    fused = LoadReplacer(buffer, source.value).visit(fused)
    body = body_without(state, block_sref, scope)
    finisher = Finisher(producer.block, fused, condition, scope.block)
    _rewrite(state, scope, body, finisher, buffer, block)


# ---- what they require


def _single_buffer(block: Block, kind: str) -> Buffer:
    regions = block.writes if kind == "write" else block.reads
    buffers = dict.fromkeys([region.buffer for region in regions])
    if len(buffers) != 1:
        raise PrimitiveError(
            f"ScheduleError: The block is required to {kind} exactly one buffer",
            f"The block {{0}} is required to {kind} exactly one buffer, it has "
            f"{[buffer.name for buffer in buffers]}",
            block,
        )
    return next(iter(buffers))


def _single_store(block: Block) -> BufferStore:
    if block.init is not None:
        raise PrimitiveError(
            "ScheduleError: The block has init statement",
            "The block {0} can't be inlined because it has an init",
            block,
        )
    if not isinstance(block.body, BufferStore):
        raise PrimitiveError(
            "ScheduleError: The body of the inlined block should be in form of "
            "'A[i, j, k, ...] = f(i, j, k, ...)'",
            "The body of the block {0} is required to be one store, A[i, j, k] = f(i, j, k)",
            block,
        )
    return block.body


def _distinct_variables(indices: Sequence[PrimExpr], block: Block) -> list[Var | None]:
    """The variables that the indices are; None for a constant 0."""
    found: list[Var | None] = []
    for index in indices:
        if isinstance(index, IntImm) and index.value == 0:
            found.append(None)
        elif isinstance(index, Var) and not any([index is other for other in found]):
            found.append(index)
        else:
            raise PrimitiveError(
                "ScheduleError: The body of the inlined block should be in form of "
                "'A[i, j, k, ...] = f(i, j, k, ...)', where the indices on the left are distinct "
                "atomic variables",
                "The block {0} is required to store at distinct variables, the index "
                f"{index} is none",
                block,
            )
    return found


def _require_only_variables(
    store: BufferStore, variables: Sequence[Var | None], block: Block
) -> None:
    axes = {axis.var: axis for axis in block.iter_vars}
    for var in free_vars(store.value):
        is_axis = var in axes and not any([var is known for known in variables])
        if is_axis:
            extent = axes[var].dom
            if (
                extent is not None
                and isinstance(extent.extent, IntImm)
                and extent.extent.value == 1
            ):
                continue
            raise PrimitiveError(
                "ScheduleError: The body of the inlined block should be in form of "
                "'A[i, j, k, ...] = f(i, j, k, ...)', and not variables other than those used as "
                "indices are allowed",
                f"The block {{0}} uses {var.name}, which is not among the indices that it stores at",
                block,
            )


def _require_not_output(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    if is_output_block(state, block, scope):
        raise PrimitiveError(
            "ScheduleError: Cannot operate on an output block",
            "The block {0} is an output block: what it writes is used outside of its scope",
            block.block,
        )


def _single_producer(
    state: ScheduleState, block: StmtSRef, scope: StmtSRef
) -> tuple[StmtSRef, Buffer]:
    """The only block that writes what the block reads, which only this block reads."""
    info = state.get_block_scope(scope)
    producers = info.producers(block)
    if len(producers) != 1:
        raise PrimitiveError(
            "ScheduleError: The consumer block to be inlined is required to have only a single "
            "producer block, and the producer block should only have a single consumer",
            f"The block {{0}} is required to have one producer, it has {len(producers)}",
            block.block,
        )
    (producer,) = producers
    buffer = _single_buffer(producer.block, "write")
    if info.consumers(producer) != [block]:
        raise PrimitiveError(
            "ScheduleError: The consumer block to be inlined is required to have only a single "
            "producer block, and the producer block should only have a single consumer",
            "The producer {0} of {1} is required to have one consumer",
            producer.block, block.block,
        )  # fmt: skip
    return producer, buffer


def _inverted(
    store: BufferStore,
    buffer: Buffer,
    realize: BlockRealize,
    source: BufferStore,
    producer: BlockRealize,
) -> tuple[dict[Var, PrimExpr], PrimExpr]:
    """The consumer's variables in terms of the producer's, and when the consumer has an instance."""
    block = realize.block
    collector = LoadCollector(buffer)
    collector.visit(store.value)
    loads = collector.found
    if not loads or any([not structural_equal(load.indices, loads[0].indices) for load in loads]):
        _reject_indices(block)
    axes = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    found = detect_iter_map(loads[0].indices, axes, True, "nocheck", False)
    if not found.indices:
        _reject_indices(block)
    _require_all_written(loads[0], block, source, producer.block)
    # an element that several instances read would be computed with for one of them only
    back = inverse_affine_iter_map(found.indices, loads[0].indices)
    reader = Analyzer()
    for var, dom in axes.items():
        reader.bind(var, dom)
    if not all([reader.can_prove_equal(value, var) for var, value in back.items()]):
        _reject_indices(block)
    inverse = inverse_affine_iter_map(found.indices, source.indices)
    values: dict[Var, PrimExpr] = {}
    analyzer = Analyzer()
    for axis in producer.block.iter_vars:
        assert axis.dom is not None
        analyzer.bind(axis.var, axis.dom)
    condition: PrimExpr = const(True)
    for axis in block.iter_vars:
        assert axis.dom is not None
        if axis.var not in inverse:
            if not analyzer.can_prove_equal(axis.dom.extent, 1):
                _reject_indices(block)
            inverse[axis.var] = axis.dom.min
        value = analyzer.simplify(inverse[axis.var])
        values[axis.var] = value
        high = op.add(axis.dom.min, axis.dom.extent)
        condition = op.all(condition, op.greater_equal(value, axis.dom.min), op.less(value, high))
    # an element of the producer that the consumer's map does not reach has no consumer
    again = [substitute(index, values) for index in loads[0].indices]
    for index, wanted in zip(again, source.indices, strict=True):
        condition = op.all(condition, op.equal(index, wanted))
    return values, op.all(analyzer.simplify(condition), _predicate(realize, values, analyzer))


def _require_all_written(
    load: BufferLoad, block: Block, source: BufferStore, producer: Block
) -> None:
    """An instance of the consumer beyond what is written would have none to be computed in."""
    analyzer = Analyzer()
    for axis in (*producer.iter_vars, *block.iter_vars):
        assert axis.dom is not None
        analyzer.bind(axis.var, axis.dom)
    domain = {axis.var: axis.dom for axis in producer.iter_vars if axis.dom is not None}
    points = [Range.from_min_extent(index, 1) for index in source.indices]
    written = estimate_region_lower_bound(points, domain)
    if written is None:
        _reject_indices(block)
    for index, stored in zip(load.indices, written, strict=True):
        inside = op.all(
            op.greater_equal(index, stored.min_value), op.less_equal(index, stored.max_value)
        )
        if not analyzer.can_prove(inside):
            raise PrimitiveError(
                "ScheduleError: The producer block does not write all that the consumer block "
                "reads",
                f"The block {{0}} reads {load.buffer.name} at {index}, beyond the elements from "
                f"{stored.min_value} to {stored.max_value} that {{1}} writes, so it can't be "
                "inlined into it",
                block, producer,
            )  # fmt: skip


def _predicate(realize: BlockRealize, values: dict[Var, PrimExpr], analyzer: Analyzer) -> PrimExpr:
    """What the consumer's predicate says of the producer's variables: its domain says as much."""
    del values, analyzer
    if is_true(realize.predicate) or _is_domain_check(realize):
        return const(True)
    raise PrimitiveError(
        "ScheduleError: The consumer block has a non-trivial predicate",
        f"The block {{0}} has the predicate {realize.predicate}, which is more than a check of its "
        "variables' domains, so it can't be inlined",
        realize.block,
    )


def _is_domain_check(realize: BlockRealize) -> bool:
    analyzer = Analyzer()
    inside: PrimExpr = const(True)
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        assert axis.dom is not None
        high = op.add(axis.dom.min, axis.dom.extent)
        inside = op.all(inside, op.greater_equal(value, axis.dom.min), op.less(value, high))
    with analyzer.constraint_scope(inside):
        return analyzer.can_prove(realize.predicate)


def _reject_indices(block: Block) -> NoReturn:
    raise PrimitiveError(
        "ScheduleError: The body of the inlined block should be in form of "
        "'B[...] = g(i, j, k, A[f(i, j, k, ...)] ...)', where A is the only buffer the block "
        "consumes, whose indices are distinct atomic variables",
        "The block {0} is required to read its producer's buffer at one place, whose indices have "
        "an inverse",
        block,
    )


# ---- the rewrite


class LoadCollector(Visitor):
    """Collects the loads of a buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.found: list[BufferLoad] = []

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.buffer is self.buffer:
            self.found.append(load)
        self.visit_children(load)


class LoadReplacer(Rewriter):
    """Puts a value into the place of the loads of a buffer."""

    def __init__(self, buffer: Buffer, value: PrimExpr) -> None:
        self.buffer = buffer
        self.value = value

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if load.buffer is self.buffer:
            return self.value
        return self.rewrite_children(load)


class _BlockUpdater(Rewriter):
    """Finds the regions of changed blocks anew, and notes what they became."""

    def __init__(self, scope: Block) -> None:
        self.reuse: Reuse = {}
        self.known = buffers_by_pointer(
            [*scope.alloc_buffers, *[r.buffer for r in (*scope.reads, *scope.writes)]]
        )

    def visit_block(self, block: Block) -> Stmt:
        self.known.update(buffers_by_pointer(block.alloc_buffers))
        self.known.update(buffers_by_pointer([r.buffer for r in (*block.reads, *block.writes)]))
        body = self.visit(block.body)
        init = None if block.init is None else self.visit(block.init)
        matches = tuple([self.visit(match) for match in block.match_buffers])
        changed = body is not block.body or init is not block.init
        if not changed and all([a is b for a, b in zip(matches, block.match_buffers, strict=True)]):
            return block
        new = with_regions(block.replace(body=body, init=init), self.known)
        self.reuse[block] = new
        return new


class Inliner(_BlockUpdater):
    """Computes a value in the place of each load of a buffer."""

    def __init__(
        self, buffer: Buffer, value: PrimExpr, variables: Sequence[Var | None], scope: Block
    ) -> None:
        super().__init__(scope)
        self.buffer = buffer
        self.value = value
        self.variables = variables
        self.is_opaque = False
        reads = LoadBuffers()
        reads.visit(value)
        self.known.update(buffers_by_pointer(reads.found))

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        if load.buffer is not self.buffer:
            return load
        values = {
            var: index
            for var, index in zip(self.variables, load.indices, strict=True)
            if var is not None
        }
        result: PrimExpr = substitute(self.value, values)
        return result

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> MatchBufferRegion:
        self.is_opaque = self.is_opaque or match.source.buffer is self.buffer
        return match

    def visit_var(self, var: Var) -> PrimExpr:
        self.is_opaque = self.is_opaque or var is self.buffer.data
        return var


class LoadBuffers(Visitor):
    """Collects the buffers that an expression loads from."""

    def __init__(self) -> None:
        self.found: dict[Buffer, None] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found[load.buffer] = None
        self.visit_children(load)


class Finisher(_BlockUpdater):
    """Gives a block another store, under a condition of its variables."""

    is_opaque = False

    def __init__(
        self, producer: Block, store: BufferStore, condition: PrimExpr, scope: Block
    ) -> None:
        super().__init__(scope)
        self.producer = producer
        self.store = store
        self.condition = condition
        self.known.update(buffers_by_pointer([store.buffer]))
        reads = LoadBuffers()
        reads.visit(store.value)
        self.known.update(buffers_by_pointer(reads.found))

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        if realize.block is not self.producer:
            return self.rewrite_children(realize)
        block = with_regions(realize.block.replace(body=self.store), self.known)
        self.reuse[realize.block] = block
        condition = substitute(self.condition, bindings_of(realize))
        return realize.replace(block=block, predicate=Analyzer().simplify(condition))


@deep
def _rewrite(
    state: ScheduleState,
    scope: StmtSRef,
    body: Stmt,
    rewriter: Inliner | Finisher,
    buffer: Buffer,
    block: Block,
) -> None:
    old = scope.block
    new_body = rewriter.visit(body)
    if rewriter.is_opaque:
        raise PrimitiveError(
            "ScheduleError: The buffer to be inlined has opaque access (e.g. `B.data`), or its "
            "subregion is matched into other blocks",
            f"The buffer {buffer.name}, written by {{0}}, is accessed by its pointer, or a part of "
            "it is matched into another block, so it can't be inlined",
            block,
        )
    left = tuple([allocated for allocated in old.alloc_buffers if allocated is not buffer])
    new = old.replace(body=new_body, alloc_buffers=left)
    state.replace(scope, new, {**rewriter.reuse, old: new})
