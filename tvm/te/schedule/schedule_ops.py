"""From a schedule with known ranges to one statement over tensors (``te.schedule.ScheduleOps``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext
from tvm.support.scope import deep
from tvm.tir import op as tir_op
from tvm.tir.expr import BOOL, IterVar, Range, const
from tvm.tir.stmt import NO_OP, AttrStmt, ProducerRealize, Stmt, seq
from tvm.tir.transform.simplify import KEEP_LOOPS

from ..tensor import (
    BaseComputeOp,
    ComputeOp,
    ExternOp,
    HybridOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorComputeOp,
)
from .graph import attach_path
from .loop_nest import Level, guard
from .lower_allreduce import provide_across_threads, reduces_across_threads
from .lower_compute import provide_compute
from .lower_hybrid import schedule_hybrid_loops
from .lower_scan import bind_states, provide_scan, scan_bounds, states_of
from .lower_tensorize import find_tensorized, provide_intrinsic_calls, provide_tensorized
from .relations import Ranges
from .stage import Stage
from .stage_data import AttachType, thread_rank

if TYPE_CHECKING:
    from .schedule import Schedule


@deep
def schedule_ops(
    schedule: Schedule, ranges: Mapping[IterVar, Range], keep_trivial_loop: bool = False
) -> Stmt:
    """The loops of all stages, as one statement that loads from and stores to tensors.

    Parameters
    ----------
    schedule : Schedule
        In normal form.
    ranges : dict of IterVar to Range
        What bound inference found for it.
    keep_trivial_loop : bool
        Whether loops of one iteration stay loops, as with ``tir.debug_keep_trivial_loop``.
    """
    if not isinstance(ranges, Ranges):
        ranges = Ranges.of(ranges)
    ranges.keeps_trivial_loops = keep_trivial_loop or PassContext.current().get(KEEP_LOOPS, False)
    try:
        return _Builder(schedule, ranges).build()
    except KeyError as error:
        if not isinstance(loop := error.args[0], IterVar):
            raise
        raise ScheduleError(
            "ScheduleOps requires bounds that were inferred for the same schedule, got none for "
            f"the loop {loop.var.name}",
            hint="normalize() gives a new schedule each time; infer the bounds of the one it gave",
        ) from None


class _Builder:
    """Nests the stages as they are attached."""

    def __init__(self, schedule: Schedule, ranges: Ranges) -> None:
        self.ranges = ranges
        self.roots: list[Stage] = []
        # stages of the first steps and of the step of each scan
        self.inits: dict[Operation, list[Stage]] = {}
        self.updates: dict[Operation, list[Stage]] = {}
        self.scans = [stage.op for stage in schedule.stages if isinstance(stage.op, ScanOp)]
        self.states = states_of(self.scans)
        # stages by the loop inside which they are computed
        self.attached: dict[IterVar, list[Stage]] = {}
        for stage in schedule.stages:
            if isinstance(stage.op, PlaceholderOp) or stage.is_inlined:
                continue
            spec = stage.attach_spec()
            if spec.attach_type is AttachType.Scope:
                self.attached.setdefault(spec.attach_ivar, []).append(stage)  # type: ignore[arg-type]
            elif spec.attach_type is AttachType.ScanUpdate:
                self.updates.setdefault(spec.attach_stage.op, []).append(stage)
            elif (scan := self._scan_that_starts_with(stage)) is not None:
                self.inits.setdefault(scan, []).append(stage)
            else:
                self.roots.append(stage)

    def _scan_that_starts_with(self, stage: Stage) -> ScanOp | None:
        for scan in self.scans:
            if any(tensor.op is stage.op for tensor in scan.init):
                return scan
        return None

    def build(self) -> Stmt:
        body: Stmt = NO_OP
        for stage in reversed(self.roots):
            body = self.pipeline(stage, body, ())
        return bind_states(body, self.scans) if self.scans else body

    def pipeline(self, stage: Stage, consumer: Stmt, threads: Collection[IterVar]) -> Stmt:
        """Compute a stage, then run what uses it."""
        body = self.provide(stage, threads)
        if stage.is_rolling:
            if stage.attach_spec().attach_type is not AttachType.Scope:
                raise ScheduleError(
                    f"rolling_buffer requires a stage inside a loop, got {stage.op.name} outside",
                    hint=f"s[{stage.op.name}].compute_at(s[consumer], axis)",
                ).add_context(f"stage {stage.op.name}")
            body = AttrStmt(stage.op, "rolling_buffer_scope", const(1), body)
        if stage.is_double_buffered:
            body = AttrStmt(stage.op, "double_buffer_scope", const(1), body)
        return self.realize(stage, seq([body, consumer]))

    def provide(self, stage: Stage, threads: Collection[IterVar]) -> Stmt:
        op = stage.op
        if isinstance(op, ComputeOp):
            if (position := find_tensorized(stage)) is not None:
                return provide_tensorized(stage, position, self.ranges, threads, self)
            if op.reduce_axis and reduces_across_threads(stage):
                return provide_across_threads(stage, self.ranges, threads, self)
            return provide_compute(stage, self.ranges, threads, self)
        if isinstance(op, TensorComputeOp):
            return provide_intrinsic_calls(stage, self.ranges, threads, self)
        if isinstance(op, ExternOp):
            is_script = isinstance(op, HybridOp)
            body = schedule_hybrid_loops(stage, self.ranges) if is_script else op.body
            return _provide_extern(op, body)
        if isinstance(op, ScanOp):
            parts = self.inits.get(op, ()), self.updates.get(op, ())
            return provide_scan(stage, self.ranges, threads, self, self.pipeline, *parts)
        raise ScheduleError(
            f"lowering requires computes and externs, got {op.name}, a {type(op).__name__}"
        )

    def holds_stages(self, iv: IterVar) -> bool:
        """Whether other stages are computed inside a loop."""
        return iv in self.attached

    def may_skip_stages(self, iv: IterVar, levels: Sequence[Level]) -> bool:
        """Whether stages are computed inside a loop, of these, that its iterations may leave out.

        Threads must not part where they wait for each other, and what a stage keeps for the next
        iteration has to be there.
        """
        stages = self.attached.get(iv, ())
        if not stages or any([level.thread is not None for level in levels]):
            return False
        return not any(
            [
                stage.is_rolling
                or stage.is_double_buffered
                or any([stage.thread_of(loop).thread_tag for loop in stage.leaf_iter_vars])
                for stage in stages
            ]
        )

    def nest(self, levels: list[Level], body: Stmt, threads: Collection[IterVar]) -> Stmt:
        """The body inside loops, each with the stages that are attached to it."""
        open_threads = [list(threads)]
        for level in levels:
            more = [level.thread] if level.thread is not None else []
            open_threads.append([*open_threads[-1], *more])
        for level, inside in zip(reversed(levels), reversed(open_threads), strict=False):
            body = guard(level.guards, body)
            for stage in reversed(self.attached.get(level.iv, ())):
                body = self.pipeline(stage, body, inside)
            if not inside:
                body = guard(level.stage_guards, body)
            for wrapper in reversed(level.wrappers):
                body = wrapper(body)
        return body

    def realize(self, stage: Stage, body: Stmt) -> Stmt:
        """Memory for what the stage computes, around all that uses it."""
        op, scope = stage.op, stage.scope or default_scope(stage)
        for tensor in reversed(op.outputs):
            if tensor in self.states:
                continue  # its memory is the scan's
            bounds = self._bounds(stage, tensor)
            body = ProducerRealize(tensor, bounds, const(True, BOOL), body, scope)
            for position, iv in enumerate(op.root_iter_vars()[: tensor.ndim]):
                attr = stage.attr_of(iv)
                if attr.dim_align_factor:
                    align = (position, attr.dim_align_factor, attr.dim_align_offset)
                    body = AttrStmt(tensor, "buffer_dim_align", tir_op.tvm_tuple(*align), body)
        return body

    def _bounds(self, stage: Stage, tensor: Tensor) -> tuple[Range, ...]:
        op = stage.op
        if isinstance(op, BaseComputeOp):
            return tuple([self.ranges[iv] for iv in op.axis])
        if isinstance(op, ScanOp):
            return scan_bounds(op, tensor.value_index, self.ranges)
        return tuple([Range.from_min_extent(const(0, dim.dtype), dim) for dim in tensor.shape])


def default_scope(stage: Stage) -> str:
    """Where a stage's result is kept if nothing is said: as near as the threads around allow."""
    threads = {}
    outer = stage.attach_spec().attach_stage
    while outer is not None:
        threads.update({iv: outer.thread_of(iv).thread_tag for iv in outer.leaf_iter_vars})
        outer = outer.attach_spec().attach_stage
    ranks = [thread_rank(tag) for iv in attach_path(stage) if (tag := threads[iv])]
    if not ranks:
        return "global"
    return "shared" if max(ranks) == 0 else "local"


def _provide_extern(op: ExternOp, body: Stmt) -> Stmt:
    bindings = [
        *zip(op.output_placeholders, op.outputs, strict=True),
        *zip(op.input_placeholders, op.inputs, strict=True),
    ]
    for buffer, tensor in reversed(bindings):
        whole: list[PrimExpr] = []
        for dim in tensor.shape:
            whole += [const(0, dim.dtype), dim]
        body = AttrStmt([buffer, tensor], "buffer_bind_scope", tir_op.tvm_tuple(*whole), body)
    return body
