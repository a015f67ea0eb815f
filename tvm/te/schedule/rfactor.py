"""Factoring a reduction: partial results along one of its loops, combined by a second reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.support.scope import deep
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one, is_true
from tvm.tir.expr import IterVar, IterVarType, Range, Reduce, Var, const
from tvm.tir.stmt_functor import substitute

from ..tensor import ComputeOp, Tensor, domain_of, reduction_outputs
from .dataflow import replace_dataflow, replace_operation
from .loop_nest import require_equal_rows
from .message_passing import bound_checks, descend_from, pass_down_domain, pass_up_index
from .relations import Ranges, Values
from .stage import Stage

if TYPE_CHECKING:
    from .schedule import Schedule


@deep
def rfactor(schedule: Schedule, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
    """See :meth:`Schedule.rfactor`."""
    stage = schedule[tensor]
    op = stage.op
    if not isinstance(op, ComputeOp) or not isinstance(op.body[0], Reduce):
        raise ScheduleError(f"rfactor requires a reduction, got {op.name}").add_context(
            f"stage {op.name}"
        )
    stage.find_leaf("rfactor", axis)
    if axis.iter_type is not IterVarType.CommReduce:
        raise ScheduleError(
            f"rfactor requires a loop that comes from a reduction axis, got {axis.var.name}"
        ).add_context(f"stage {op.name}")
    mixed = descend_from(stage, op.axis)
    for loop in stage.leaf_iter_vars:
        if loop in mixed and loop.iter_type is IterVarType.CommReduce:
            raise ScheduleError(
                f"rfactor requires loops that come from reduction axes alone, got {loop.var.name}, "
                "which was fused with a spatial one",
                hint="call rfactor before fusing",
            ).add_context(f"stage {op.name}")
    if not isinstance(factor_axis, int):
        raise ScheduleError(
            f"rfactor requires an integer as factor_axis, got {factor_axis!r}"
        ).add_context(f"stage {op.name}")
    if not -len(op.axis) - 1 <= factor_axis <= len(op.axis):
        raise ScheduleError(
            f"rfactor requires factor_axis in [{-len(op.axis) - 1}, {len(op.axis)}], "
            f"got {factor_axis}"
        ).add_context(f"stage {op.name}")
    if op.body[0].init:
        raise ScheduleError(
            f"rfactor requires a reduction without init, got {op.name}"
        ).add_context(f"stage {op.name}")
    require_equal_rows("rfactor", stage, op)
    position = factor_axis if factor_axis >= 0 else len(op.axis) + 1 + factor_axis

    partial, ranges = _partial_results(stage, op, axis, position)
    combined = _combine_partial(op, partial, ranges[axis], axis, position)
    replacements = replace_operation(schedule, stage, combined)
    replace_dataflow(schedule, replacements)
    new = Stage(partial)
    new.group = stage.group
    schedule.stages.insert(schedule.stages.index(stage), new)
    schedule.stage_map[partial] = new
    stage.reset_loops()
    return partial.output(0) if partial.num_outputs == 1 else list(partial.outputs)


def _partial_results(
    stage: Stage, op: ComputeOp, axis: IterVar, position: int
) -> tuple[ComputeOp, Ranges]:
    """The operation over the axes with ``axis`` among them, reducing over the other loops."""
    ranges = Ranges(Analyzer())
    for iv in op.reduce_axis:
        ranges[iv] = domain_of(iv)
    pass_down_domain(stage, ranges, allow_missing=True)
    values: Values = {}
    # axes that no primitive touched come first
    untouched: list[IterVar] = []
    derived: list[IterVar] = []
    factor = IterVar(ranges[axis], Var(axis.var.name, axis.var.dtype), IterVarType.DataPar)
    for loop in stage.leaf_iter_vars:
        if loop not in ranges:
            continue
        if loop is axis:
            values[loop] = factor.var
        else:
            is_own = any(loop is iv for iv in op.reduce_axis)
            new = loop if is_own else IterVar(ranges[loop], loop.var, IterVarType.CommReduce)
            (untouched if is_own else derived).append(new)
            values[loop] = ranges[loop].min if is_one(ranges[loop].extent) else new.var
    reduced = [*untouched, *derived]
    pass_up_index(stage, ranges, values)
    skip = [iv for iv in stage.all_iter_vars if iv not in values]
    checks = bound_checks(stage, ranges, values, skip, root_domains=False)

    reduce: Any = op.body[0]
    # the spatial axes are new, for the old ones belong to the combination
    spatial = [IterVar(iv.dom, Var(iv.var.name, iv.var.dtype), iv.iter_type) for iv in op.axis]
    mapping: dict[Var, PrimExpr] = {iv.var: values[iv] for iv in op.reduce_axis}
    mapping.update({old.var: new.var for old, new in zip(op.axis, spatial, strict=True)})
    sources = [substitute(source, mapping) for source in reduce.source]
    inside = [tir_op.likely(check) for _, check in checks]
    condition = tir_op.all(substitute(reduce.condition, mapping), *inside)
    axes = [*spatial[:position], factor, *spatial[position:]]
    name = f"{op.name}.rf"
    if reduced:
        first = Reduce(reduce.combiner, sources, reduced, condition, 0)
        body: tuple[PrimExpr, ...] = reduction_outputs(first, len(op.body))
    else:
        identity = reduce.combiner.identity_element
        body = tuple(
            [
                source if is_true(condition) else tir_op.if_then_else(condition, source, zero)
                for source, zero in zip(sources, identity, strict=True)
            ]
        )
    return ComputeOp(name, op.tag, op.attrs, axes, body), ranges


def _combine_partial(
    op: ComputeOp, partial: ComputeOp, domain: Range, axis: IterVar, position: int
) -> ComputeOp:
    """The operation as a reduction of the partial results."""
    over = IterVar(domain, Var(f"{axis.var.name}.v", axis.var.dtype), IterVarType.CommReduce)
    indices = [iv.var for iv in op.axis]
    indices.insert(position, over.var)
    loads = [output(*indices) for output in partial.outputs]
    reduce: Any = op.body[0]
    first = Reduce(reduce.combiner, loads, [over], const(True, "bool"), 0)
    return ComputeOp(op.name, op.tag, op.attrs, op.axis, reduction_outputs(first, len(op.body)))
