"""Normal form: inlined stages put in place, attach points legal, every loop from 0.

B[i] = A[i] + 1   (inlined)
C[i] = B[i] * 2               ->    C[i] = (A[i] + 1) * 2
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.scope import deep
from tvm.tir.expr import IterVar, ProducerLoad, Reduce, Var
from tvm.tir.stmt_functor import substitute

from ..tensor import ComputeOp, Tensor, reduction_outputs
from .dataflow import replace_operation
from .intervals import in_dtype
from .relations import Fuse, Rebase, Split
from .stage import Stage
from .stage_data import AttachType
from .stage_state import index_of

if TYPE_CHECKING:
    from .schedule import Schedule


@deep
def normalize(schedule: Schedule) -> Schedule:
    """A copy of the schedule in normal form."""
    new = schedule.copy()
    inject_inline(new)
    _follow_prefetched(new)
    for stage in (*new.stages, *new.groups):
        legalize_attach(stage)
    rebase_loops(new)
    return new


def inject_inline(schedule: Schedule) -> None:
    """Put the bodies of inlined stages wherever they are read."""
    inliner = _Inliner()
    for stage in schedule.stages:
        op = stage.op
        if stage.attach_type is AttachType.Inline:
            stage.attach_type = AttachType.InlinedAlready
            assert isinstance(op, ComputeOp)
            for output in op.outputs:
                inliner.inlined[output] = op
            continue
        if isinstance(op, ComputeOp):
            body = inliner.body_of(op)
            if body is not op.body:
                op = ComputeOp(op.name, op.tag, op.attrs, op.axis, body)
        else:
            op = _with_inputs(op, inliner)
        if op is not stage.op:
            inliner.replacements.update(replace_operation(schedule, stage, op))


def _with_inputs(op: Any, inliner: _Inliner) -> Any:
    for tensor in op.input_tensors:
        if tensor in inliner.inlined:
            raise ScheduleError(
                f"compute_inline requires readers that are computes, got {tensor.name}, "
                f"which {op.name}, a {type(op).__name__}, needs in memory"
            ).add_context(f"stage {tensor.op.name}")
    return op.replace_inputs(inliner.replacements)


class _Inliner(Rewriter):
    """Replaces loads of inlined tensors by their values, and of replaced ones by the new."""

    def __init__(self) -> None:
        self.inlined: dict[Tensor, ComputeOp] = {}
        self.replacements: dict[Tensor, Tensor] = {}

    def body_of(self, op: ComputeOp) -> tuple[PrimExpr, ...]:
        if not any(t in self.inlined or t in self.replacements for t in op.input_tensors):
            return op.body
        first = op.body[0]
        if isinstance(first, Reduce):
            new = self.visit(first)
            return op.body if new is first else reduction_outputs(new, len(op.body))
        return tuple([self.visit(value) for value in op.body])

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        tensor: Any = load.producer
        op = self.inlined.get(tensor)
        if op is None:
            new = self.replacements.get(tensor)
            return load if new is None else ProducerLoad(new, load.indices)
        values: dict[Var, PrimExpr] = {
            iv.var: in_dtype(index, iv.var.dtype)
            for iv, index in zip(op.axis, load.indices, strict=True)
        }
        # the value may read inlined tensors in turn
        rewritten: PrimExpr = self.visit(substitute(op.body[tensor.value_index], values))
        return rewritten


def _follow_prefetched(schedule: Schedule) -> None:
    """Let prefetches name what has replaced the tensors that they were written with."""
    for stage in schedule.stages:
        for iv, attr in stage.iter_var_attrs.items():
            if attr.prefetch_data:
                current = [schedule.current(tensor) for tensor in attr.prefetch_data]
                stage.iter_var_attrs[iv] = replace(attr, prefetch_data=tuple(current))


def legalize_attach(stage: Stage) -> None:
    """Follow an attach point that was split or fused after ``compute_at``."""
    if stage.attach_type is not AttachType.Scope:
        return
    outer: Stage = stage.attach_stage
    point = stage.attach_ivar
    assert point is not None
    if index_of(outer.leaf_iter_vars, point) >= 0:
        return
    for relation in outer.relations:
        if isinstance(relation, Split) and relation.parent is point:
            point = relation.inner
        elif isinstance(relation, Fuse) and (relation.outer is point or relation.inner is point):
            point = relation.fused
    stage.attach_ivar = point


def rebase_loops(schedule: Schedule) -> None:
    """Give each loop over an untouched root axis a variable that starts from 0."""
    rebased: dict[IterVar, IterVar] = {}
    for stage in schedule.stages:
        if stage.is_inlined:
            continue
        for iv in stage.op.root_iter_vars():
            position = index_of(stage.leaf_iter_vars, iv)
            attr = stage.attr_of(iv)
            if position < 0 or attr.bind_thread is not None:
                continue
            new = IterVar(None, Var(iv.var.name, iv.var.dtype), iv.iter_type)
            stage.apply_relation(Rebase(iv, new), (new,))
            stage.leaf_iter_vars[position] = new
            if iv in stage.iter_var_attrs:
                stage.iter_var_attrs[new] = attr
            rebased[iv] = new
    for stage in (*schedule.stages, *schedule.groups):
        if stage.attach_type is AttachType.Scope:
            stage.attach_ivar = rebased.get(stage.attach_ivar, stage.attach_ivar)  # type: ignore[arg-type]
        for iv, attr in stage.iter_var_attrs.items():
            if attr.prefetch_over:
                over = [
                    None if axis is None else rebased.get(axis, axis) for axis in attr.prefetch_over
                ]
                stage.iter_var_attrs[iv] = replace(attr, prefetch_over=tuple(over))
