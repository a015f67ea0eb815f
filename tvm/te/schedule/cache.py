"""Caches: copies of tensors that are read, and places where tensors are computed first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.support.scope import deep
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one
from tvm.tir.expr import IterVar, IterVarType, Range, Reduce, Var, const
from tvm.tir.stmt_functor import Substituter, substitute

from ..annotation_checks import check_scope
from ..tensor import (
    BaseComputeOp,
    ComputeOp,
    Operation,
    ScanOp,
    Tensor,
    TensorComputeOp,
    domain_of,
    reduction_outputs,
    spatial_axes,
)
from .dataflow import replace_dataflow, replace_operation
from .loop_nest import require_equal_rows
from .message_passing import bound_checks, pass_down_domain, pass_down_index, pass_up_index
from .relations import Ranges, Values
from .stage import Stage
from .stage_state import index_of

if TYPE_CHECKING:
    from .schedule import Schedule


@deep
def cache_read(
    schedule: Schedule, tensor: Tensor, scope: str, readers: Sequence[Operation]
) -> Tensor:
    """Put a stage that copies ``tensor`` between it and ``readers``."""
    check_scope("cache_read", scope)
    if not isinstance(tensor, Tensor):
        raise ScheduleError(f"cache_read requires a tensor, got a value of {type(tensor).__name__}")
    if not readers:
        raise ScheduleError(
            f"cache_read requires at least one reader of {tensor.op.name}, got none",
            hint="pass the operations that shall read the copy",
        ).add_context(f"stage {tensor.op.name}")
    source = schedule[tensor]
    # an earlier primitive may have replaced the operation
    tensor = source.op.output(tensor.value_index)
    suffix = f".v{tensor.value_index}" if tensor.op.num_outputs > 1 else ""
    axis = spatial_axes(tensor.shape, [f"ax{i}" for i in range(tensor.ndim)])
    name = _free_name(schedule, f"{tensor.op.name}{suffix}", scope)
    load = tensor(*[iv.var for iv in axis])
    copy = ComputeOp(name, "", {}, axis, (load,)).output(0)

    current = [schedule[reader].op for reader in readers]
    for op in current:
        if tensor not in op.input_tensors:
            raise ScheduleError(
                f"cache_read requires readers of {tensor.op.name}, got {op.name}, which "
                f"reads {', '.join([t.name for t in op.input_tensors]) or 'nothing'}"
            ).add_context(f"stage {tensor.op.name}")
    replace_dataflow(schedule, {}, {op: {tensor: copy} for op in current})
    _insert_stage(schedule, source, 1, copy.op, scope)
    if _is_state(schedule, tensor):
        # what a step reads of the state is copied within the step
        schedule[copy].group = schedule[current[0]].group
    return copy


def _free_name(schedule: Schedule, source: str, scope: str) -> str:
    """The name of a copy: ``A.shared``, for other readers ``A.d.shared``, then ``A.d.d.shared``."""
    taken = dict.fromkeys([stage.op.name for stage in schedule.stages])
    while f"{source}.{scope}" in taken:
        source += ".d"
    return f"{source}.{scope}"


def _is_state(schedule: Schedule, tensor: Tensor) -> bool:
    scans = [stage.op for stage in schedule.stages if isinstance(stage.op, ScanOp)]
    return any(tensor in scan.state_placeholder for scan in scans)


def _insert_stage(schedule: Schedule, source: Stage, after: int, op: Operation, scope: str) -> None:
    stage = Stage(op)
    stage.set_scope(scope)
    stage.group = source.group
    position = schedule.stages.index(source) + after
    schedule.stages.insert(position, stage)
    schedule.stage_map[op] = stage


@deep
def cache_write(schedule: Schedule, tensors: Sequence[Tensor], scope: str) -> list[Tensor]:
    """Put a stage that computes ``tensors`` before their own, which becomes a copy."""
    check_scope("cache_write", scope)
    if not tensors:
        raise ScheduleError("cache_write requires at least one tensor, got none")
    stage = schedule[tensors[0]]
    op = stage.op
    for tensor in tensors:
        if schedule[tensor] is not stage:
            raise ScheduleError(
                f"cache_write requires outputs of one operation, got {tensors[0].name} "
                f"and {tensor.name}"
            ).add_context(f"stage {op.name}")
    if not isinstance(op, (ComputeOp, TensorComputeOp)):
        raise ScheduleError(
            f"cache_write requires a compute, got {op.name}, a {type(op).__name__}"
        ).add_context(f"stage {op.name}")
    if len(tensors) != op.num_outputs:
        raise ScheduleError(
            f"cache_write requires all {op.num_outputs} outputs of {op.name}, got {len(tensors)}",
            hint="pass the list of all outputs",
        ).add_context(f"stage {op.name}")

    cached, copy = (
        _cached_compute(stage, op, scope)
        if isinstance(op, ComputeOp)
        else _cached_calls(stage, op, scope)
    )
    replacements = replace_operation(schedule, stage, copy)
    replace_dataflow(schedule, replacements)
    stage.reset_loops()
    _insert_stage(schedule, stage, 0, cached, scope)
    return list(cached.outputs)


def _cached_compute(stage: Stage, op: ComputeOp, scope: str) -> tuple[ComputeOp, ComputeOp]:
    """The operation laid out by the stage's loops, and the copy of its results."""
    layout = _cache_layout(stage, op, op.axis)
    if layout.predicates:
        require_equal_rows("cache_write after a split that does not divide", stage, op)
    body = _relayout(op, layout)
    cached = ComputeOp(f"{op.name}.{scope}", op.tag, op.attrs, layout.axis, body)
    return cached, _copy_of(op, cached, op.axis, layout.indices)


def _cached_calls(
    stage: Stage, op: TensorComputeOp, scope: str
) -> tuple[TensorComputeOp, ComputeOp]:
    """The same for calls of an intrinsic, each of which keeps its region."""
    outer, inner = op.axis[: op.schedulable_ndim], op.axis[op.schedulable_ndim :]
    layout = _cache_layout(stage, op, outer)
    if layout.predicates:
        raise ScheduleError(
            f"cache_write requires splits of {op.name} that divide, as calls of an intrinsic "
            f"have no conditions, got {layout.predicates[0]}"
        ).add_context(f"stage {op.name}")
    roots = Substituter(layout.roots)
    cached = op.replace(
        name=f"{op.name}.{scope}",
        axis=(
            *layout.axis,
            *[IterVar(iv.dom, Var(iv.var.name, iv.var.dtype), iv.iter_type) for iv in inner],
        ),
        schedulable_ndim=len(layout.axis),
        input_regions=tuple(
            [tuple([roots.visit(domain) for domain in region]) for region in op.input_regions]
        ),
        scalar_inputs=tuple([roots.visit(value) for value in op.scalar_inputs]),
    )
    return cached, _copy_of(op, cached, op.axis, [*layout.indices, *[iv.var for iv in inner]])


def _copy_of(
    op: BaseComputeOp, cached: BaseComputeOp, axis: Sequence[IterVar], indices: Sequence[PrimExpr]
) -> ComputeOp:
    loads = tuple([cached.output(i)(*indices) for i in range(op.num_outputs)])
    return ComputeOp(op.name, op.tag, op.attrs, axis, loads)


@dataclass(frozen=True)
class _CacheLayout:
    """How a cache is laid out: by the loops that the stage had."""

    axis: list[IterVar]  # of the cache
    roots: dict[Var, PrimExpr]  # the operation's axes in terms of the cache's
    indices: list[PrimExpr]  # into the cache, in terms of the operation's axes
    predicates: list[PrimExpr]  # over the cache's axes


def _cache_layout(stage: Stage, op: BaseComputeOp, axes: Sequence[IterVar]) -> _CacheLayout:
    ranges = Ranges(Analyzer())
    for iv in axes:
        ranges[iv] = domain_of(iv)
    pass_down_domain(stage, ranges, allow_missing=True)
    loops = [iv for iv in stage.leaf_iter_vars if iv in ranges]
    values: Values = {}
    axis: list[IterVar] = []
    for loop in loops:
        if loop.iter_type is not IterVarType.DataPar:
            raise ScheduleError(
                f"cache_write requires spatial loops only, got {loop.var.name}",
                hint="call cache_write before transforming the reduction's loops",
            ).add_context(f"stage {op.name}")
        domain: Range = ranges[loop]
        new = IterVar(domain, Var(f"{loop.var.name}.c", loop.var.dtype), loop.iter_type)
        axis.append(new)
        values[loop] = domain.min if is_one(domain.extent) else new.var
    if any(index_of(stage.leaf_iter_vars, iv) < 0 for iv in op.reduce_axis):
        raise ScheduleError(
            "cache_write requires untouched reduction axes, got a stage whose are transformed",
            hint="call cache_write first and transform the loops of the cache's stage",
        ).add_context(f"stage {op.name}")
    pass_up_index(stage, ranges, values)
    down: Values = {iv: iv.var for iv in axes}
    pass_down_index(stage, ranges, down)
    return _CacheLayout(
        axis,
        {iv.var: values[iv] for iv in axes},
        [down[loop] for loop in loops],
        [check for _, check in bound_checks(stage, ranges, values, root_domains=False)],
    )


def _relayout(op: ComputeOp, layout: _CacheLayout) -> tuple[PrimExpr, ...]:
    first = op.body[0]
    if isinstance(first, Reduce):
        new = substitute(first, layout.roots)
        if layout.predicates:
            condition = tir_op.all(new.condition, *layout.predicates)
            new = new.replace(condition=condition, init=_within(layout, new.init))
        return reduction_outputs(new, len(op.body))
    return _within(layout, [substitute(value, layout.roots) for value in op.body])


def _within(layout: _CacheLayout, values: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The values; zeros where the cache reaches beyond the operation's axes."""
    if not layout.predicates:
        return tuple(values)
    guard = tir_op.all(*[tir_op.likely(p) for p in layout.predicates])
    return tuple([tir_op.if_then_else(guard, value, const(0, value.dtype)) for value in values])
