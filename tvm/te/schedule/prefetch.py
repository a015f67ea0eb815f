"""Prefetching what a later iteration of a loop reads.

for i:  ... A[i, j] ...      ->      for i:
                                         prefetch(A[i + 4, 0 : 16])
                                         for j: ... A[i, j] ...
"""

from __future__ import annotations

from typing import Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import op as tir_op
from tvm.tir.expr import IterVar, Let, ProducerLoad, Range, Var, const
from tvm.tir.stmt import AttrStmt, For, LetStmt, ProducerRealize, Stmt
from tvm.tir.stmt_functor import substitute

from ..tensor import Tensor
from .intervals import Interval, IntervalEvaluator, from_range, simple, to_range, union

PREFETCH_SCOPE = "prefetch_scope"


def prefetch_ahead(tensor: Tensor, var: Var, offset: PrimExpr, body: Stmt) -> Stmt:
    """The body of the loop over ``var`` after a prefetch for ``offset`` iterations later."""
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
    ends: list[Any] = []
    for read, dim in zip(finder.region, tensor.shape, strict=True):
        region = to_range(read, Range(0, dim), finder.analyzer)
        ends += [simple(substitute(region.min, later), finder.analyzer), region.extent]
    return AttrStmt(tensor, PREFETCH_SCOPE, tir_op.tvm_tuple(*ends), body)


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
