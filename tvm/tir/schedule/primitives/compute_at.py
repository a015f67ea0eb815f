"""A block moves into a loop of the blocks that use it, or of those that it uses.

for i: for j: B[i, j] = A[i, j]                            for i:
for i: for j: C[i, j] = B[i, j]    compute_at(B, i)            for ax0: B[i, ax0] = A[i, ax0]
                                                               for j: C[i, j] = B[i, j]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, For, ForKind, Stmt, seq

from ..analyses.block_kind import (
    is_output_block,
    require_complete_or_reduction,
    require_domain_predicate,
    require_stage_pipeline,
)
from ..analyses.domains import Domain, block_domains
from ..analyses.order import require_order
from ..analyses.regions import Box, accessed
from ..errors import PrimitiveError
from ..rewriting import StmtReplacer
from ..state import ScheduleState
from ..tree import realizes_below, scope_of, statements_inside, surroundings
from .removal import body_without


def compute_at(
    state: ScheduleState,
    block_sref: StmtSRef,
    loop_sref: StmtSRef,
    preserve_unit_loops: bool,
    index: int,
) -> None:
    """Compute what the blocks inside a loop read of a block in each of its iterations."""
    if loop_sref is StmtSRef.inline_mark():
        raise RuntimeValueError("compute_at requires a loop, inlining is done by compute_inline")
    scope = _require_movable(state, block_sref, loop_sref)
    if is_output_block(state, block_sref, scope):
        raise PrimitiveError(
            "ScheduleError: Cannot operate on an output block",
            "The block {0} is an output block: what it writes is used outside of its scope",
            block_sref.block,
        )
    consumers = state.get_block_scope(scope).consumers(block_sref)
    _require_all_inside(consumers, block_sref, loop_sref, "consumer")
    required = _regions(state, consumers, loop_sref, block_sref, "reads")
    _move(state, block_sref, loop_sref, scope, required, preserve_unit_loops, index, False)


def reverse_compute_at(
    state: ScheduleState,
    block_sref: StmtSRef,
    loop_sref: StmtSRef,
    preserve_unit_loops: bool,
    index: int,
) -> None:
    """Use what the blocks inside a loop compute in each of its iterations right there."""
    if loop_sref is StmtSRef.inline_mark():
        raise RuntimeValueError(
            "reverse_compute_at requires a loop, inlining is done by other primitives"
        )
    scope = _require_movable(state, block_sref, loop_sref)
    producers = state.get_block_scope(scope).producers(block_sref)
    _require_all_inside(producers, block_sref, loop_sref, "producer")
    provided = _regions(state, producers, loop_sref, block_sref, "writes")
    _move(state, block_sref, loop_sref, scope, provided, preserve_unit_loops, index, True)


def _require_movable(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> StmtSRef:
    scope = require_stage_pipeline(state, block)
    require_complete_or_reduction(state, block, scope)
    require_domain_predicate(state, block)
    if scope_of(loop) is not scope:
        raise PrimitiveError(
            "ScheduleError: Expected the block and loop to be under the same block scope",
            "The block {0} and the loop {1} are required to be in the same scope",
            block.block, loop.loop,
        )  # fmt: skip
    if block.is_inside(loop):
        raise PrimitiveError(
            "ScheduleError: Cannot move a block under its own ancestor",
            "The block {0} can't be moved under the loop {1}, which is around it already",
            block.block, loop.loop,
        )  # fmt: skip
    return scope


def _require_all_inside(
    others: Sequence[StmtSRef], block: StmtSRef, loop: StmtSRef, what: str
) -> None:
    outside = [other for other in others if not other.is_inside(loop)]
    if outside:
        raise PrimitiveError(
            f"ScheduleError: Not all {what}s of the block are under the target loop",
            f"The {what} {{0}} of the block {{1}} is required to be under the loop {{2}}",
            outside[0].block, block.block, loop.loop,
        )  # fmt: skip


def _regions(
    state: ScheduleState,
    others: Sequence[StmtSRef],
    loop: StmtSRef,
    block: StmtSRef,
    kind: str,
) -> list[tuple[Buffer, Box]]:
    """What other blocks read or write of the block's buffers in one iteration of the loop."""
    scope = state.get_block_scope(scope_of(block))
    mine = block.block.writes if kind == "reads" else scope.reads_of(block)
    buffers = dict.fromkeys([region.buffer for region in mine])
    found: list[tuple[Buffer, Box]] = []
    for other in others:
        realize = state.realize_of(other)
        for region in scope.reads_of(other) if kind == "reads" else other.block.writes:
            if region.buffer in buffers:
                found.append((region.buffer, accessed(region, realize, other.parent, loop)))
    return found


def _move(
    state: ScheduleState,
    block_sref: StmtSRef,
    loop_sref: StmtSRef,
    scope: StmtSRef,
    needed: list[tuple[Buffer, Box]],
    preserve_unit_loops: bool,
    index: int,
    is_reverse: bool,
) -> None:
    block, loop = block_sref.block, loop_sref.loop
    stmts = list(statements_inside(loop.body))
    position = _insertion_point(state, block_sref, loop_sref, scope, stmts, index)
    analyzer = Analyzer()
    for var, domain in surroundings(loop_sref).items():
        analyzer.bind(var, domain)
    reads = state.get_block_scope(scope).reads_of(block_sref)
    regions = reads if is_reverse else block.writes
    domains = block_domains(block, regions, needed, analyzer)
    new = _new_loops(block, domains, preserve_unit_loops, analyzer)
    body = body_without(state, block_sref, scope)
    stmts.insert(position, new)
    replacer = StmtReplacer({loop: loop.replace(body=seq(stmts))}, {})
    new_scope = scope.block.replace(body=replacer.visit(body))
    state.replace(scope, new_scope, {**replacer.reuse, scope.block: new_scope})
    if state.enable_check:
        require_order(state, [state.sref_of(block)], block)


def _insertion_point(
    state: ScheduleState,
    block: StmtSRef,
    loop: StmtSRef,
    scope: StmtSRef,
    stmts: Sequence[Stmt],
    index: int,
) -> int:
    """The position in the loop's body: after the producers there, before the consumers."""
    info = state.get_block_scope(scope)
    before = dict.fromkeys([d.src.block for d in info.get_deps_by_dst(block)])
    after = dict.fromkeys([d.dst.block for d in info.get_deps_by_src(block)])
    first, last = 0, len(stmts)
    for position, stmt in enumerate(stmts):
        inside = [realize.block for realize in realizes_below(stmt)]
        if any([found in before for found in inside]):
            first = position + 1
        if last == len(stmts) and any([found in after for found in inside]):
            last = position
    if first > last:
        raise PrimitiveError(
            "ScheduleError: Cannot find the insertion point that satisfies the producer-consumer "
            "constraint",
            f"No position inside of {{0}} is after the producers of {{1}} (from {first}) and before "
            f"its consumers (to {last})",
            loop.loop, block.block,
        )  # fmt: skip
    if index == -1:
        return last
    if index == -2:
        return first
    if not first <= index <= last:
        raise PrimitiveError(
            "ScheduleError: The insertion index is out of range",
            f"The position {index} inside of {{0}} is required to be from {first} to {last}",
            loop.loop,
        )
    return index


def _new_loops(
    block: Block, domains: Sequence[Domain], preserve_unit_loops: bool, analyzer: Analyzer
) -> Stmt:
    """Loops over the domains of a block's variables, the block inside."""
    loops: list[tuple[Var, PrimExpr]] = []
    values: list[PrimExpr] = []
    predicate: PrimExpr = const(True)
    for domain, axis in zip(domains, block.iter_vars, strict=True):
        first, extent = domain.first, domain.extent
        is_unit = analyzer.can_prove_equal(extent, 1)
        if preserve_unit_loops or not is_unit:
            bits = max(first.dtype.bits, extent.dtype.bits)
            var = Var(f"ax{len(loops)}", f"int{bits}")
            extent = analyzer.simplify(extent)
            loops.append((var, extent))
            value = op.add(first, var)
            analyzer.bind(var, Range.from_min_extent(const(0, var.dtype), extent))
        else:
            value = first
        values.append(value)
        if domain.bound is not None:
            low, last = domain.bound
            predicate = op.all(predicate, op.greater_equal(value, low))
            predicate = op.all(predicate, op.less(value, op.add(last, 1)))
        assert axis.dom is not None
    result: Stmt = BlockRealize(tuple(values), analyzer.simplify(predicate), block)
    for var, extent in reversed(loops):
        result = For(var, 0, extent, ForKind.SERIAL, result)
    return result
