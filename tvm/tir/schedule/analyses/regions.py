"""What blocks access while some of the loops around them run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.arith import (
    Analyzer,
    IntervalSet,
    estimate_region_lower_bound,
    estimate_region_upper_bound,
    neg_inf,
    pos_inf,
)
from tvm.arith.pattern import conjuncts
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, For, ForKind
from tvm.tir.stmt_functor import substitute

from ..tree import range_of
from .bindings import bindings_of

Box = list[IntervalSet]

# how near a storage scope is to one thread; a scope is shared by the threads of its rank and below
_RANKS = {"global": 0, "shared": 1, "warp": 2, "local": 3}


def full_region(buffer: Buffer) -> BufferRegion:
    """All of a buffer."""
    return BufferRegion(
        buffer, tuple([Range.from_min_extent(const(0, e.dtype), e) for e in buffer.shape])
    )


def storage_rank(scope: str) -> int:
    """How near to a thread a storage scope is: 0 for memory that all threads share."""
    return _RANKS.get(scope.split(".")[0], 4)


def is_shared_by(scope: str, thread_tag: str) -> bool:
    """Whether the threads of an axis share what is in a storage scope."""
    rank = storage_rank(scope)
    if rank == _RANKS["warp"]:
        return thread_tag == "threadIdx.x"
    thread_rank = 0 if thread_tag.startswith("blockIdx") else 1
    return rank <= thread_rank


def loops_between(low: StmtSRef | None, high: StmtSRef | None, scope: str = "") -> dict[Var, Range]:
    """The ranges of loops from ``low`` up to ``high``, which does not count.

    Of the loops further up those count whose threads share the storage scope.
    """
    domain: dict[Var, Range] = {}
    at = low
    while at is not None and at is not high:
        if isinstance(at.stmt, For):
            domain[at.stmt.loop_var] = range_of(at.stmt)
        at = at.parent
    if scope and storage_rank(scope) > 0:
        while at is not None:
            loop = at.stmt
            if isinstance(loop, For) and loop.kind == ForKind.THREAD_BINDING:
                assert loop.thread_binding is not None
                if is_shared_by(scope, loop.thread_binding.thread_tag):
                    domain[loop.loop_var] = range_of(loop)
            at = at.parent
    return domain


def bound_region(region: BufferRegion, realize: BlockRealize) -> list[Range]:
    """A region that a block accesses, in terms of the loops around it."""
    values = bindings_of(realize)
    return [substitute(item, values) for item in region.region]


def accessed(
    region: BufferRegion, realize: BlockRealize, low: StmtSRef | None, high: StmtSRef | None
) -> Box:
    """A box around all that is accessed while the loops from ``low`` up to ``high`` run."""
    domain = loops_between(low, high, region.buffer.scope())
    return list(
        estimate_region_upper_bound(bound_region(region, realize), domain, realize.predicate)
    )


def accessed_for_certain(
    region: BufferRegion, realize: BlockRealize, low: StmtSRef | None, high: StmtSRef | None
) -> Box | None:
    """A box that is accessed completely, up to what is outside of the buffer; None if none is known."""
    domain = loops_between(low, high, region.buffer.scope())
    ranges = bound_region(region, realize)
    found = estimate_region_lower_bound(ranges, domain, realize.predicate)
    if found is None:
        predicate = without_domain_checks(realize, _axes_along(region, realize.block))
        found = estimate_region_lower_bound(ranges, domain, predicate)
    return None if found is None else list(found)


def _axes_along(region: BufferRegion, block: Block) -> dict[Var, None]:
    """The variables that run along an axis of the buffer: outside of their domains it has no elements."""
    domains = {axis.var: axis.dom for axis in block.iter_vars}
    analyzer = Analyzer()
    found: dict[Var, None] = {}
    for side, extent in zip(region.region, region.buffer.shape, strict=True):
        if isinstance(side.min, Var) and (domain := domains.get(side.min)) is not None:
            is_whole = analyzer.can_prove_equal(domain.extent, extent)
            if is_whole and analyzer.can_prove_equal(domain.min, 0):
                found[side.min] = None
    return found


def without_domain_checks(realize: BlockRealize, axes: dict[Var, None] | None = None) -> PrimExpr:
    """The predicate without conditions that hold for all points of the block's domain.

    Where they fail, the block has no instance. Of the variables the given ones count, or all of them.
    """
    analyzer = Analyzer()
    pairs = list(zip(realize.block.iter_vars, realize.iter_values, strict=True))
    inside: PrimExpr = const(True)
    for axis, value in pairs:
        if axes is not None and axis.var not in axes:
            continue
        assert axis.dom is not None
        low, high = axis.dom.min, op.add(axis.dom.min, axis.dom.extent)
        inside = op.all(inside, op.greater_equal(value, low), op.less(value, high))
    rest: list[PrimExpr] = []
    with analyzer.constraint_scope(inside):
        for condition in conjuncts(analyzer.simplify(realize.predicate)):
            if not analyzer.can_prove(condition):
                rest.append(condition)
    return op.all(const(True), *rest)


def within(box: Box, shape: Sequence[PrimExpr], analyzer: Analyzer) -> Box:
    """The part of a box that is inside of a buffer."""
    clipped: Box = []
    for side, extent in zip(box, shape, strict=True):
        low, high = side.min_value, side.max_value
        zero, last = const(0, extent.dtype), op.subtract(extent, 1)
        low = zero if low is neg_inf() else analyzer.simplify(op.max(low, zero))
        high = last if high is pos_inf() else analyzer.simplify(op.min(high, last))
        clipped.append(IntervalSet(low, high))
    return clipped


def covers(outer: IntervalSet, inner: IntervalSet, analyzer: Analyzer) -> bool:
    """Whether an interval holds another one for certain."""
    if outer.is_everything():
        return True
    if inner.is_everything() or not outer.has_lower_bound() or not outer.has_upper_bound():
        return False
    below = op.less_equal(outer.min_value, inner.min_value)
    above = op.less_equal(inner.max_value, outer.max_value)
    return analyzer.can_prove(below) and analyzer.can_prove(above)


def box_ranges(box: Sequence[IntervalSet], buffer: Buffer, analyzer: Analyzer) -> list[Range]:
    """The sides of a box as ranges; a side without an end is the buffer's own."""
    ranges: list[Range] = []
    for side, extent in zip(box, buffer.shape, strict=True):
        if not side.has_lower_bound() or not side.has_upper_bound():
            ranges.append(Range.from_min_extent(const(0, extent.dtype), extent))
            continue
        span: Any = op.add(op.subtract(side.max_value, side.min_value), 1)
        ranges.append(Range.from_min_extent(side.min_value, analyzer.simplify(span)))
    return ranges
