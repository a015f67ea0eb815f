"""Inlining all element-wise stages of a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir.expr import IntImm, ProducerLoad, Var

from ..tensor import ComputeOp, Operation

if TYPE_CHECKING:
    from .schedule import Schedule


def auto_inline_injective(schedule: Schedule) -> None:
    """Inline every stage without a reduction whose result is not an output."""
    _inline_where(schedule, is_injective)


def auto_inline_elem_wise(schedule: Schedule) -> None:
    """Inline the stages that read other tensors only at their own element."""
    _inline_where(schedule, is_elem_wise)


def auto_inline_broadcast(schedule: Schedule) -> None:
    """Inline the stages that read other tensors at their own axes, in order."""
    _inline_where(schedule, is_broadcast)


@deep
def _inline_where(schedule: Schedule, wanted: Callable[[Operation], bool]) -> None:
    for stage in schedule.stages:
        if not stage.is_inlined and not stage.is_output and wanted(stage.op):
            stage.compute_inline()


def is_injective(op: Operation) -> bool:
    """Whether each element of the result is computed on its own."""
    return isinstance(op, ComputeOp) and not op.reduce_axis


def is_elem_wise(op: Operation) -> bool:
    """Whether all loads are at exactly the axes of the result."""
    return is_injective(op) and _loads_are(op, _same_axes)


def is_broadcast(op: Operation) -> bool:
    """Whether all loads are at axes of the result, in their order, some left out or constant."""
    return is_injective(op) and _loads_are(op, _axes_in_order)


class _Loads(Visitor):
    def __init__(self) -> None:
        self.found: list[ProducerLoad] = []

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.found.append(load)
        self.visit_children(load)


def _loads_are(op: Operation, holds: Callable[[list[Var], tuple[PrimExpr, ...]], bool]) -> bool:
    assert isinstance(op, ComputeOp)
    loads = _Loads()
    for value in op.body:
        loads.visit(value)
    axes = [iv.var for iv in op.axis]
    return all(holds(axes, load.indices) for load in loads.found)


def _same_axes(axes: list[Var], indices: tuple[PrimExpr, ...]) -> bool:
    return len(axes) == len(indices) and all(
        index is var for index, var in zip(indices, axes, strict=True)
    )


def _axes_in_order(axes: list[Var], indices: tuple[PrimExpr, ...]) -> bool:
    position = 0
    for index in indices:
        if isinstance(index, IntImm):
            continue
        while position < len(axes) and axes[position] is not index:
            position += 1
        if position == len(axes):
            return False
        position += 1
    return True
