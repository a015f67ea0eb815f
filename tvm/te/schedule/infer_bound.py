"""Bound inference: over which part of its axes each stage has to run.

    for i: B[i] = A[i]                          B, computed at loop i.outer of C, runs over
    for i.outer:                          ->        [i.outer*4, i.outer*4 + 4]
        for i.inner in range(4):
            C[i] = B[i] + B[i + 1]

Stages are visited from the outputs to the inputs. A stage's readers tell which elements they need
while the loops around it stand still; the range of an axis is the hull of what they need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one
from tvm.tir.expr import (
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    ProducerLoad,
    Range,
    Reduce,
    Var,
    const,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import variables_of

from ..tensor import (
    BaseComputeOp,
    ComputeOp,
    ExternOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorComputeOp,
    domain_of,
)
from .graph import attach_path, create_feed_graph
from .intervals import (
    EVERYTHING,
    Interval,
    IntervalEvaluator,
    from_range,
    interval_of,
    last_of,
    point,
    simple,
    to_range,
    union,
)
from .message_passing import descend_from, pass_down_domain, pass_up_domain, pass_up_index
from .relations import Fuse, Ranges, Sets, Values
from .scan import is_fixed, scan_fix_point_analysis
from .stage import Stage
from .stage_data import AttachType, StorageRank, storage_rank, thread_rank
from .stage_state import index_of

if TYPE_CHECKING:
    from .schedule import Schedule

# what is needed of each dimension of a tensor
Needs = dict[Tensor, list[Interval | None]]


@dataclass
class BoundContext:
    """What all stages share while bounds are inferred."""

    ranges: Ranges
    feeds: dict[Tensor, list[Operation]]
    stage_of: dict[Operation, Stage]
    # loops of other stages around each operation, innermost first
    paths: dict[Operation, list[IterVar]]
    # loops that are bound to threads
    threads: dict[IterVar, IterVar] = field(default_factory=dict)

    @property
    def analyzer(self) -> Analyzer:
        return self.ranges.analyzer


def infer_ranges(schedule: Schedule) -> Ranges:
    """The range of every axis of a normalized schedule."""
    stages = [stage for stage in schedule.stages if not stage.is_inlined]
    for stage in stages:
        _check_attachment(stage)
    graph = {stage.op: stage.op.input_tensors for stage in stages}
    context = BoundContext(
        Ranges(Analyzer()),
        create_feed_graph(graph),
        {stage.op: stage for stage in stages},
        {stage.op: attach_path(stage) for stage in stages},
    )
    for stage in stages:
        for iv, attr in stage.iter_var_attrs.items():
            if attr.bind_thread is not None:
                context.threads[iv] = attr.bind_thread
    for stage in reversed(stages):
        if isinstance(stage.op, PlaceholderOp):
            continue
        try:
            _infer_root_ranges(stage, context)
            pass_down_domain(stage, context.ranges)
        except ScheduleError as error:
            error.add_context(f"stage {stage.op.name}")
            raise
    return context.ranges


def _check_attachment(stage: Stage) -> None:
    spec = stage.attach_spec()
    outer = spec.attach_stage
    if spec.attach_type is AttachType.Scope and outer.is_inlined:
        raise ScheduleError(
            f"compute_at requires a stage with loops, got {outer.op.name}, which is inlined",
            hint=f"compute_at the stage that {outer.op.name} was inlined into",
        ).add_context(f"stage {stage.op.name}")


def _infer_root_ranges(stage: Stage, context: BoundContext) -> None:
    op, ranges = stage.op, context.ranges
    consumers = list(
        dict.fromkeys([c for tensor in op.outputs for c in context.feeds.get(tensor, ())])
    )
    # statements have the whole of it in compact memory
    is_whole = isinstance(op, ComputeOp) and any(isinstance(c, ExternOp) for c in consumers)
    if stage.is_output or not consumers or is_whole:
        inner = op.axis[op.schedulable_ndim :] if isinstance(op, TensorComputeOp) else ()
        for iv in (*op.root_iter_vars(), *inner):
            ranges.learn(iv, domain_of(iv).min, domain_of(iv).extent)
        return
    needs: Needs = {tensor: [None] * tensor.ndim for tensor in op.outputs}
    rank = _effective_rank(stage, context)
    for consumer in consumers:
        _add_needs(stage, context.stage_of[consumer], rank, needs, context)
    _gather(op, needs, context)


def _effective_rank(stage: Stage, context: BoundContext) -> int:
    """The rank of the stage's storage; by default what suits the threads around it."""
    if stage.scope:
        return storage_rank(stage.scope)
    around = [
        thread_rank(tag)
        for iv in context.paths[stage.op]
        if (tag := context.threads.get(iv, iv).thread_tag)
    ]
    if not around:
        return StorageRank.GLOBAL
    return StorageRank.SHARED if max(around) == 0 else StorageRank.LOCAL


def _needs_relax(iv: IterVar, inside: bool, stage: Stage, rank: int, context: BoundContext) -> bool:
    """Whether the stage must provide for all iterations of a loop around its reader.

    Those are the loops inside the attach point, and those over threads that share the storage or
    that do not run yet where the stage is computed.
    """
    thread = context.threads.get(iv, iv)
    tag = thread.thread_tag
    if not tag or tag == "pipeline":
        return inside
    if inside and all(stage.thread_of(leaf) is not thread for leaf in stage.leaf_iter_vars):
        return True
    if rank == StorageRank.WARP and tag == "threadIdx.x":
        return True
    return rank <= thread_rank(tag)


def _add_needs(
    stage: Stage, consumer: Stage, rank: int, needs: Needs, context: BoundContext
) -> None:
    """Widen ``needs`` by what one reader reads while the loops around the stage stand still."""
    ranges, analyzer = context.ranges, context.analyzer
    sets, inside = _loop_sets(stage, consumer, rank, context)
    around: list[IterVar] = []
    for iv in context.paths[consumer.op]:
        inside = inside and not _is_attach_point(stage, iv, context)
        if _needs_relax(iv, inside, stage, rank, context):
            around.append(iv)
    relaxed: dict[Var, Interval] = {}
    for iv in reversed(around):  # outer loops first: the range of an inner one may depend on them
        hull = _hull(from_range(ranges[iv]), relaxed, analyzer)
        relaxed[iv.var] = relaxed[context.threads.get(iv, iv).var] = hull
    if context.paths[stage.op] and inside:
        outer = stage.attach_spec().attach_stage
        raise ScheduleError(
            f"compute_at requires every reader of {stage.op.name} inside the loop "
            f"{context.paths[stage.op][0].var.name} of {outer.op.name}, "
            f"got {consumer.op.name} outside",
            hint=f"compute_at {consumer.op.name} there too, or leave {stage.op.name} at the root",
        ).add_context(f"stage {stage.op.name}")
    _check_start(stage, consumer, context)
    pass_up_domain(consumer, ranges, sets, analyzer)
    domains: dict[Var, Interval] = {}
    for iv in consumer.op.root_iter_vars():
        values = sets.get(iv)
        if values is None or not values.is_bounded:
            values = from_range(ranges[iv])
        domains[iv.var] = _hull(values, relaxed, analyzer)
    fused = {} if relaxed else _fused_values(consumer, ranges)
    if fused:
        domains |= {iv.var: sets[iv] for iv in consumer.leaf_iter_vars}
    _propagate(consumer.op, domains, needs, analyzer, fused)


def _fused_values(stage: Stage, ranges: Ranges) -> dict[Var, PrimExpr]:
    """The axes of a stage that share a fused loop, in terms of its loops.

    An index over several of them, such as y*w + x, may be simple in the fused loop, while the
    intervals of the axes alone tell nothing of it.
    """
    loops = [relation.fused for relation in stage.relations if isinstance(relation, Fuse)]
    if not loops:
        return {}
    values: Values = {iv: iv.var for iv in stage.leaf_iter_vars}
    pass_up_index(stage, ranges, values)
    below = [(iv, descend_from(stage, [iv])) for iv in stage.op.root_iter_vars()]
    return {iv.var: values[iv] for iv, found in below if any([loop in found for loop in loops])}


def _check_start(stage: Stage, consumer: Stage, context: BoundContext) -> None:
    """Reject computing inside a reduction's loop what its first value needs."""
    op, path = consumer.op, context.paths[stage.op]
    if not (path and isinstance(op, ComputeOp) and isinstance(op.body[0], Reduce)):
        return
    if not op.body[0].init:
        return
    position = index_of(consumer.leaf_iter_vars, path[0])
    reducing = descend_from(consumer, op.reduce_axis)
    if not any(iv in reducing for iv in consumer.leaf_iter_vars[: position + 1]):
        return
    finder = _LoadFinder(stage.op.outputs)
    for value in op.body[0].init:
        finder.visit(value)
    if finder.found:
        raise ScheduleError(
            f"compute_at requires a loop of {op.name} outside its reduction, where its init reads "
            f"{stage.op.name}, got {path[0].var.name}",
            hint=f"compute_at a loop around all of the reduction's loops of {op.name}",
        ).add_context(f"stage {stage.op.name}")


class _LoadFinder(Visitor):
    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors
        self.found = False

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.found = self.found or load.producer in self.tensors
        self.visit_children(load)


def _hull(values: Interval, relaxed: Mapping[Var, Interval], analyzer: Analyzer) -> Interval:
    """All values of an interval whose ends depend on variables that run over ``relaxed``."""
    if not relaxed or values.low is None or values.high is None:
        return values
    low = interval_of(values.low, relaxed, analyzer)
    high = low if values.is_point else interval_of(values.high, relaxed, analyzer)
    return Interval(low.low, high.high)


def _loop_sets(
    stage: Stage, consumer: Stage, rank: int, context: BoundContext
) -> tuple[Sets, bool]:
    """The intervals of the reader's loops, and whether all of them are inside the attach point."""
    sets: Sets = {}
    inside = True
    for iv in reversed(consumer.leaf_iter_vars):
        inside = inside and not _is_attach_point(stage, iv, context)
        domain = context.ranges[iv]
        if is_one(domain.extent):
            sets[iv] = point(domain.min)
        elif _needs_relax(iv, inside, stage, rank, context):
            sets[iv] = from_range(domain)
        else:
            sets[iv] = point(context.threads.get(iv, iv).var)
    return sets, inside


def _is_attach_point(stage: Stage, iv: IterVar, context: BoundContext) -> bool:
    path = context.paths[stage.op]
    return bool(path) and iv is path[0]


def _propagate(
    op: Operation,
    domains: Mapping[Var, Interval],
    needs: Needs,
    analyzer: Analyzer,
    fused: Mapping[Var, PrimExpr] | None = None,
) -> None:
    """Add what ``op`` reads to ``needs`` while its axes run over ``domains``."""
    if isinstance(op, ComputeOp):
        collector = _ReadCollector(domains, needs, analyzer, fused or {})
        shared = len(op.reduce_axis) > 0
        for value in op.body[:1] if shared else op.body:
            collector.visit(value)
    elif isinstance(op, TensorComputeOp):
        for tensor, region in zip(op.inputs, op.input_regions, strict=True):
            if tensor in needs:
                for axis, domain in enumerate(region):
                    low = interval_of(domain.min, domains, analyzer)
                    high = interval_of(last_of(domain), domains, analyzer)
                    _widen(needs[tensor], axis, Interval(low.low, high.high), analyzer)
    elif isinstance(op, ScanOp):
        _propagate_scan(op, domains, needs, analyzer)
    else:
        for tensor in op.input_tensors:
            if tensor in needs:
                for axis, extent in enumerate(tensor.shape):
                    whole = Range.from_min_extent(const(0, extent.dtype), extent)
                    _widen(needs[tensor], axis, from_range(whole), analyzer)


def _propagate_scan(
    op: ScanOp, domains: Mapping[Var, Interval], needs: Needs, analyzer: Analyzer
) -> None:
    """Of ``init`` all steps are needed, of ``update`` the current one."""
    for index, (init, update) in enumerate(zip(op.init, op.update, strict=True)):
        steps = Range.from_min_extent(const(0, init.shape[0].dtype), init.shape[0])
        times = from_range(steps), domains[op.scan_axis.var]
        for tensor, time in zip((init, update), times, strict=True):
            if tensor in needs:
                around = [domains[axis.var] for axis in op.spatial_axes_of(index)]
                for k, values in enumerate((time, *around)):
                    _widen(needs[tensor], k, values, analyzer)


def read_regions(
    op: Operation, domains: Mapping[IterVar, Range], analyzer: Analyzer
) -> dict[Tensor, tuple[Range, ...]]:
    """What ``op`` reads of each input while its axes run over ``domains``."""
    needs: Needs = {tensor: [None] * tensor.ndim for tensor in op.input_tensors}
    _propagate(op, {iv.var: from_range(r) for iv, r in domains.items()}, needs, analyzer)
    return {
        tensor: tuple(
            [
                to_range(read or EVERYTHING, Range.from_min_extent(const(0, d.dtype), d), analyzer)
                for read, d in zip(read_dims, tensor.shape, strict=True)
            ]
        )
        for tensor, read_dims in needs.items()
    }


class _ReadCollector(Visitor):
    """Widens the needs by every load in an expression."""

    def __init__(
        self,
        domains: Mapping[Var, Interval],
        needs: Needs,
        analyzer: Analyzer,
        fused: Mapping[Var, PrimExpr],
    ) -> None:
        self.fused = fused
        self.evaluator = IntervalEvaluator(domains, analyzer)
        self.needs = needs
        self.analyzer = analyzer

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.visit_children(load)
        tensor = load.producer
        if not isinstance(tensor, Tensor) or (wanted := self.needs.get(tensor)) is None:
            return
        for axis, index in enumerate(load.indices):
            read = self.evaluator.visit(self._in_loops(index))
            _widen(wanted, axis, self._within(read, tensor.shape[axis]), self.analyzer)

    def _in_loops(self, index: PrimExpr) -> PrimExpr:
        """The index in terms of fused loops, if nothing that varies is divided there."""
        if not self.fused or sum([v in self.fused for v in variables_of(index)]) < 2:
            return index
        found = self.analyzer.simplify(substitute(index, self.fused))
        finder = _DivisionFinder(self.evaluator.domains)
        finder.visit(found)
        return index if finder.found else found

    def _within(self, read: Interval, extent: PrimExpr) -> Interval:
        """The whole dimension, where that is no more than what is read."""
        low, high = read.low, read.high
        zero, last = const(0, extent.dtype), tir_op.subtract(extent, 1)
        if low is None or high is None:
            return Interval(zero, last)
        if _is_plainly_inside(low, high, last):
            return read
        proves = self.analyzer.can_prove
        if proves(tir_op.less_equal(low, zero)) and proves(tir_op.greater_equal(high, last)):
            return Interval(zero, last)
        return read


class _DivisionFinder(Visitor):
    """Whether something that runs over more than one value is divided."""

    def __init__(self, domains: Mapping[Var, Interval]) -> None:
        self.domains = domains
        self.found = False

    def visit_floor_div(self, division: FloorDiv) -> None:
        self._look_into(division)

    def visit_floor_mod(self, division: FloorMod) -> None:
        self._look_into(division)

    def _look_into(self, division: FloorDiv | FloorMod) -> None:
        domains = [self.domains.get(v) for v in variables_of(division)]
        self.found = self.found or not all([d is None or d.is_point for d in domains])
        self.visit_children(division)


def _is_plainly_inside(low: PrimExpr, high: PrimExpr, last: PrimExpr) -> bool:
    """Whether the answer is known without a proof: ends that are constant and inside."""
    if low is high:
        return True
    if isinstance(low, IntImm):
        if low.value > 0:
            return True
        if isinstance(high, IntImm) and isinstance(last, IntImm):
            return high.value < last.value
    return False


def _widen(wanted: list[Interval | None], axis: int, read: Interval, analyzer: Analyzer) -> None:
    before = wanted[axis]
    wanted[axis] = read if before is None else union(before, read, analyzer)


def _gather(op: Operation, needs: Needs, context: BoundContext) -> None:
    """Set the ranges of the root axes: the hull of what is needed of the outputs."""
    if isinstance(op, ScanOp):
        _gather_scan(op, needs, context)
        return
    if not isinstance(op, BaseComputeOp):
        for iv in op.root_iter_vars():
            context.ranges.learn(iv, domain_of(iv).min, domain_of(iv).extent)
        return
    fixed = op.schedulable_ndim if isinstance(op, TensorComputeOp) else len(op.axis)
    for iv in op.axis[fixed:]:
        context.ranges.learn(iv, domain_of(iv).min, domain_of(iv).extent)
    for axis, iv in enumerate(op.axis[:fixed]):
        hull: Interval | None = None
        for tensor in op.outputs:
            wanted = needs[tensor][axis]
            if wanted is not None:
                hull = wanted if hull is None else union(hull, wanted, context.analyzer)
        assert iv.dom is not None
        domain = to_range(hull or EVERYTHING, iv.dom, context.analyzer)
        context.ranges.learn(iv, domain.min, domain.extent)
    for iv in op.reduce_axis:
        assert iv.dom is not None
        context.ranges.learn(iv, iv.dom.min, iv.dom.extent)


def _gather_scan(op: ScanOp, needs: Needs, context: BoundContext) -> None:
    """All steps up to the last one needed; of axes where steps mix positions, everything."""
    analyzer = context.analyzer
    hull: Interval | None = None
    for tensor in op.outputs:
        if (wanted := needs[tensor][0]) is not None:
            hull = wanted if hull is None else union(hull, wanted, analyzer)
    steps = op.scan_axis.dom
    assert steps is not None
    time = to_range(hull or EVERYTHING, steps, analyzer)
    last = tir_op.subtract(tir_op.add(time.min, time.extent), steps.min)
    context.ranges.learn(op.scan_axis, steps.min, simple(tir_op.maximum(last, 0), analyzer))
    fixed = scan_fix_point_analysis(op)
    for index, tensor in enumerate(op.outputs):
        for k, axis in enumerate(op.spatial_axes_of(index)):
            assert axis.dom is not None
            wanted = needs[tensor][k + 1]
            domain = axis.dom
            if wanted is not None and is_fixed(fixed[axis]):
                domain = to_range(wanted, axis.dom, analyzer)
            context.ranges.learn(axis, domain.min, domain.extent)


@deep
def infer_bound(schedule: Schedule) -> dict[IterVar, Range]:
    """The range of every axis of a normalized schedule (``te.schedule.InferBound``)."""
    ranges = infer_ranges(schedule)
    analyzer = ranges.analyzer
    return {
        iv: Range.from_min_extent(simple(domain.min, analyzer), simple(domain.extent, analyzer))
        for iv, domain in ranges.items()
    }
