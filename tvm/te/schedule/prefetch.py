"""Prefetching what a later iteration of a loop reads.

for i:  ... A[i, j] ...      ->      for i:
                                         prefetch(A[i + 4, 0 : 16])
                                         for j: ... A[i, j] ...

Over a loop inside, each of whose iterations brings a share of the lines:

for i:                               for i:
    for j in range(64):       ->         for j in range(64):
        ... A[i, 0:512] ...                  prefetch(A[i + 1, j * 8 : j * 8 + 8])
                                             ... A[i, 0:512] ...
"""

from __future__ import annotations

import math
from typing import Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op as tir_op
from tvm.tir.expr import IntImm, IterVar, Let, ProducerLoad, Range, Var, const
from tvm.tir.stmt import AttrStmt, For, LetStmt, ProducerRealize, Stmt
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.inject_prefetch import CACHE_LINE_BYTES

from ..tensor import Tensor
from .intervals import Interval, IntervalEvaluator, from_range, simple, to_range, union

PREFETCH_SCOPE = "prefetch_scope"


def prefetch_ahead(tensor: Tensor, var: Var, offset: PrimExpr, body: Stmt) -> Stmt:
    """The body of the loop over ``var`` after a prefetch for ``offset`` iterations later."""
    ends: list[Any] = []
    for region in _region_later(tensor, var, offset, body):
        ends += [region.min, region.extent]
    return AttrStmt(tensor, PREFETCH_SCOPE, tir_op.tvm_tuple(*ends), body)


def prefetch_shared(tensor: Tensor, var: Var, offset: PrimExpr, over: Var, body: Stmt) -> Stmt:
    """The same, shared among the iterations of a loop inside."""
    region = _region_later(tensor, var, offset, body)
    size = _size_in_one_piece(tensor, region)
    sharer = _Sharer(tensor, [r.min for r in region], size, over)
    shared: Stmt = sharer.visit(body)
    if not sharer.is_found:
        raise ScheduleError(
            f"prefetch requires a loop inside {var.name} to share the lines of {tensor.name}, "
            f"got {over.name}",
            hint="loops of one iteration are no loops",
        )
    return shared


def _region_later(tensor: Tensor, var: Var, offset: PrimExpr, body: Stmt) -> list[Range]:
    """What the body reads ``offset`` iterations later."""
    finder = _RegionFinder(tensor)
    finder.visit(body)
    if finder.is_computed_inside:
        raise ScheduleError(
            f"prefetch requires a tensor from outside the loop, got {tensor.name}, which is "
            f"computed inside {var.name}",
            hint="prefetch in a loop further inside, or compute the tensor further outside",
        )
    if finder.region is None:
        raise ScheduleError(
            f"prefetch requires a loop in which {tensor.name} is read, got {var.name}",
            hint="name the tensor that the stage reads, such as its cache",
        )
    later = {var: tir_op.add(var, offset)}
    regions = []
    for read, dim in zip(finder.region, tensor.shape, strict=True):
        region = to_range(read, Range(0, dim), finder.analyzer)
        begin = simple(substitute(region.min, later), finder.analyzer)
        regions.append(Range.from_min_extent(begin, region.extent))
    return regions


def _size_in_one_piece(tensor: Tensor, region: list[Range]) -> int:
    """The elements of a region that lies in one piece."""
    extents = [r.extent.value if type(r.extent) is IntImm else 0 for r in region]
    shape = [d.value if type(d) is IntImm else -1 for d in tensor.shape]
    first = next((i for i, extent in enumerate(extents) if extent != 1), len(extents))
    if 0 in extents or extents[first + 1 :] != shape[first + 1 :]:
        raise ScheduleError(
            f"prefetch over a loop requires a region in one piece, got {extents} of {shape} "
            f"elements of {tensor.name}",
            hint="prefetch without `over`",
        )
    return math.prod(extents)


class _Sharer(Rewriter):
    """Puts shares of a prefetch into the iterations of a loop."""

    def __init__(self, tensor: Tensor, begin: list[PrimExpr], size: int, over: Var) -> None:
        self.tensor = tensor
        self.begin = begin
        self.lines = -(-size // self._per_line())
        self.over = over
        self.outer: list[For] = []
        self.is_found = False

    def visit_for(self, loop: For) -> Stmt:
        self.outer.append(loop)
        if loop.loop_var is self.over:
            self.is_found = True
            body = self._shared(loop.body)
        else:
            body = self.visit(loop.body)
        self.outer.pop()
        return loop if body is loop.body else loop.replace(body=body)

    def _shared(self, body: Stmt) -> Stmt:
        """A body after its share, at least a line."""
        dtype = self.begin[-1].dtype
        number: PrimExpr = const(0, dtype)
        count: PrimExpr = const(1, dtype)
        for loop in self.outer:
            number = number * loop.extent + (loop.loop_var - loop.min)
            count = count * loop.extent
        share = (self.lines + count - 1) // count
        per_line = self._per_line()
        first = self.begin[-1] + number * self.lines // count * per_line
        ends: list[PrimExpr] = []
        for begin in self.begin[:-1]:
            ends += [begin, const(1, dtype)]
        ends += [first, share * per_line]
        return AttrStmt(self.tensor, PREFETCH_SCOPE, tir_op.tvm_tuple(*ends), body)

    def _per_line(self) -> int:
        return max(1, CACHE_LINE_BYTES // self.tensor.dtype.itemsize)


class _RegionFinder(Visitor):
    """Finds the hull of what a statement reads of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.analyzer = Analyzer()
        self.domains: dict[Var, Interval] = {}
        self.region: list[Interval] | None = None
        self.is_computed_inside = False

    def visit_producer_realize(self, realize: ProducerRealize) -> None:
        self.is_computed_inside |= realize.producer is self.tensor
        self.visit_children(realize)

    def visit_for(self, loop: For) -> None:
        self._visit_over(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), loop.body)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if isinstance(attr.node, IterVar) and attr.attr_key in ("thread_extent", "virtual_thread"):
            domain = Range.from_min_extent(const(0, attr.value.dtype), attr.value)
            self._visit_over(attr.node.var, domain, attr.body)
        else:
            self.visit_children(attr)

    def _visit_over(self, var: Var, domain: Range, body: Stmt) -> None:
        self.domains[var] = self._values(from_range(domain))
        self.visit(body)

    def _values(self, interval: Interval) -> Interval:
        evaluator = IntervalEvaluator(self.domains, self.analyzer)
        ends = [None if e is None else evaluator.visit(e) for e in (interval.low, interval.high)]
        return Interval(ends[0] and ends[0].low, ends[1] and ends[1].high)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self.domains[let.var] = IntervalEvaluator(self.domains, self.analyzer).visit(let.value)
        self.visit(let.body)

    def visit_let(self, let: Let) -> None:
        self.visit(let.value)
        self.domains[let.var] = IntervalEvaluator(self.domains, self.analyzer).visit(let.value)
        self.visit(let.body)

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.visit_children(load)
        if load.producer is not self.tensor:
            return
        evaluator = IntervalEvaluator(self.domains, self.analyzer)
        read = [evaluator.visit(index) for index in load.indices]
        if self.region is None:
            self.region = read
        else:
            pairs = zip(self.region, read, strict=True)
            self.region = [union(a, b, self.analyzer) for a, b in pairs]
