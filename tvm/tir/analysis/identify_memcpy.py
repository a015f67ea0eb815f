"""Which loops copy one block of memory to another, element by element in the same order.

for i, j in T.grid(4, 16):
    B[i * 16 + j] = A[i, j]          A[0:4, 0:16] to B[0:64]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm._ffi.registry import register_func
from tvm.arith import Analyzer, IterMapLevel, detect_iter_map
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import INT32, BufferLoad, IterVar, Range, StringImm, Var, const
from tvm.tir.stmt import AttrStmt, BufferRegion, BufferStore, For, Stmt
from tvm.tir.stmt_functor import free_vars

Copy = tuple[BufferRegion, BufferRegion]


def identify_memcpy(stmt: Stmt) -> list[Copy | StringImm]:
    """What each loop copies, as the regions of the source and of the destination.

    Parameters
    ----------
    stmt : Stmt
        Loops are looked for in it, outer ones first.

    Returns
    -------
    list of tuple of BufferRegion, or StringImm
        For each loop the regions, or the reason why it is no copy of one block of memory.
    """
    finder = CopyFinder()
    finder.visit(stmt)
    return finder.found


register_func("tir.analysis._identify_memcpy", identify_memcpy, override=True)


class CopyFinder(Visitor):
    """Asks of each loop what it copies, with the ranges of the variables around it."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.found: list[Copy | StringImm] = []

    def visit_for(self, loop: For) -> None:
        result = copied(loop, self.analyzer)
        self.found.append(StringImm(result) if isinstance(result, str) else result)
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.analyzer.bind(loop.loop_var, bounds, True)
        self.visit(loop.body)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            self.analyzer.bind(attr.node.var, Range(attr.value), True)
        self.visit(attr.body)


def copied(loop: For, analyzer: Analyzer) -> Copy | str:
    """The source and the destination of a nest of loops, or why it is no copy."""
    domains: dict[Var, Range] = {}
    stmt: Stmt = loop
    while isinstance(stmt, For):
        domains[stmt.loop_var] = Range.from_min_extent(stmt.min, stmt.extent)
        stmt = stmt.body
    if not isinstance(stmt, BufferStore):
        return f"a copy requires loops around a store, got {type(stmt).__name__}"
    load = stmt.value
    if not isinstance(load, BufferLoad):
        return f"a copy requires a store of what is loaded, got {load}"
    if stmt.predicate is not None or load.predicate is not None:
        return "a copy requires accesses without predicates"
    if load.buffer.data is stmt.buffer.data:
        return f"a copy requires memory of its own for the destination, got {load.buffer.name} for both"
    return _regions(load, stmt, domains, analyzer)


def _regions(
    load: BufferLoad, store: BufferStore, domains: Mapping[Var, Range], analyzer: Analyzer
) -> Copy | str:
    offsets = [access.buffer.offset_of(access.indices) for access in (load, store)]
    if any([len(offset) != 1 or offset[0].dtype.lanes != 1 for offset in offsets]):
        return "a copy requires accesses of one element by one flat index"
    source, target = [analyzer.simplify(offset[0]) for offset in offsets]
    if _uses(analyzer.simplify(op.subtract(source, target)), domains):
        return (
            "a copy requires the same order of elements in the source and the destination, got the "
            f"indices {source} and {target}"
        )
    count: PrimExpr = const(1, target.dtype)
    for domain in domains.values():
        count = op.multiply(count, op.cast(domain.extent, target.dtype))
    # as many different integers as there are between the bounds are all of them
    whole = _range(target, domains, analyzer)
    is_dense = whole is not None and analyzer.can_prove_equal(whole.extent, count)
    if not is_dense or detect_iter_map([target], domains, True, IterMapLevel.Bijective).errors:
        return (
            "a copy requires elements that are next to each other, and each of them once, got the "
            f"index {target}"
        )
    regions = [_region(a.buffer, a.indices, domains, analyzer) for a in (load, store)]
    for region in regions:
        if isinstance(region, str):
            return region
        if not analyzer.can_prove_equal(_size(region), count):
            return f"a copy requires all elements of a region, got a part of {region}"
    first, second = regions
    assert isinstance(first, BufferRegion) and isinstance(second, BufferRegion)
    return first, second


def _region(
    buffer: Buffer, indices: Sequence[PrimExpr], domains: Mapping[Var, Range], analyzer: Analyzer
) -> BufferRegion | str:
    ranges = [_range(index, domains, analyzer) for index in indices]
    if any([found is None for found in ranges]):
        return f"a copy requires bounds of all indices, got {list(indices)}"
    return BufferRegion(buffer, tuple([found for found in ranges if found is not None]))


def _range(index: PrimExpr, domains: Mapping[Var, Range], analyzer: Analyzer) -> Range | None:
    """The values of an index over all iterations, if both bounds are known outside of the loops."""
    interval = analyzer.int_set(index, domains)
    low, high = interval.min_value, interval.max_value
    extent = analyzer.simplify(op.add(op.subtract(high, low), 1))
    if not (interval.has_lower_bound() and interval.has_upper_bound()):
        return None
    low = analyzer.simplify(low)
    if _uses(low, domains) or _uses(extent, domains):
        return None
    return Range.from_min_extent(low, extent)


def _size(region: BufferRegion) -> PrimExpr:
    size: PrimExpr = const(1, region.region[0].extent.dtype if region.region else INT32)
    for found in region.region:
        size = op.multiply(size, found.extent)
    return size


def _uses(e: PrimExpr, domains: Mapping[Var, Range]) -> bool:
    return any([var in domains for var in free_vars(e)])
