"""What the step of a scan consists of, and along which dimensions it keeps to itself."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir.expr import And, Call, IntImm, IterVar, ProducerLoad, Reduce, Select, Var, const

from ..tensor import ComputeOp, Operation, ScanOp, Tensor
from .graph import sub_graph


def scan_get_body(scan: Operation) -> list[Operation]:
    """The operations that compute one step, each after those that it reads."""
    assert isinstance(scan, ScanOp)
    return sub_graph(scan.update, (*scan.state_placeholder, *scan.inputs))


@deep
def scan_fix_point_analysis(scan: Operation) -> dict[IterVar, PrimExpr]:
    """Tell of each spatial axis whether a step reads the states only at its own position: 1 or 0.

    Along such an axis a part of the result can be computed from the same part of the states.
    """
    assert isinstance(scan, ScanOp)
    finder = _PositionFinder(scan)
    for op in reversed(scan_get_body(scan)):
        finder.follow(op)
    fixed = {}
    for index, (update, state) in enumerate(zip(scan.update, scan.state_placeholder, strict=True)):
        for k, axis in enumerate(scan.spatial_axes_of(index)):
            reached = [finder.positions.get((t, k + 1), {axis: None}) for t in (update, state)]
            own = all(list(positions) == [axis] for positions in reached)
            fixed[axis] = const(int(own), "int32")
    return fixed


class _PositionFinder(Visitor):
    """Finds which of a scan's spatial axes each dimension of each tensor is read at.

    None among them stands for any other position.
    """

    def __init__(self, scan: ScanOp) -> None:
        self.positions: dict[tuple[Tensor, int], dict[IterVar | None, None]] = {}
        self.axes: dict[Var, dict[IterVar | None, None]] = {}
        for index, update in enumerate(scan.update):
            for k, axis in enumerate(scan.spatial_axes_of(index)):
                self.positions[update, k + 1] = {axis: None}

    def follow(self, op: Operation) -> None:
        """Note where an operation, whose readers were followed before, reads its inputs."""
        if not isinstance(op, ComputeOp):
            for tensor in op.input_tensors:
                for k in range(tensor.ndim):
                    self._add(tensor, k, {None: None})
            return
        self.axes = {}
        for k, iv in enumerate(op.axis):
            merged: dict[IterVar | None, None] = {}
            for output in op.outputs:
                merged.update(self.positions.get((output, k), {}))
            self.axes[iv.var] = merged
        for value in op.body[:1] if isinstance(op.body[0], Reduce) else op.body:
            self.visit(value)

    def _add(self, tensor: Tensor, k: int, positions: dict[IterVar | None, None]) -> None:
        self.positions.setdefault((tensor, k), {}).update(positions)

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.visit_children(load)
        tensor: Any = load.producer
        for k, index in enumerate(load.indices):
            known = self.axes.get(index) if isinstance(index, Var) else None
            self._add(tensor, k, {None: None} if known is None else known)


def is_fixed(value: PrimExpr) -> bool:
    """Whether an answer of the analysis is yes."""
    return isinstance(value, IntImm) and value.value == 1


def steps_read(op: ComputeOp, states: Container[Tensor]) -> list[PrimExpr]:
    """The steps whose states an operation reads for each of its elements."""
    finder = _StepFinder(states)
    for value in op.body[:1] if isinstance(op.body[0], Reduce) else op.body:
        finder.visit(value)
    return finder.steps


class _StepFinder(Visitor):
    def __init__(self, states: Container[Tensor]) -> None:
        self.states = states
        self.steps: list[PrimExpr] = []

    def visit_producer_load(self, load: ProducerLoad) -> None:
        if load.producer in self.states:
            self.steps.append(load.indices[0])
        self.visit_children(load)

    def visit_select(self, select: Select) -> None:
        self.visit(select.condition)

    def visit_call(self, call: Call) -> None:
        # conditions of the program's own tell where it reads; those of parts do not
        if getattr(call.op, "name", "") != "tir.if_then_else" or _is_likely(call.args[0]):
            self.visit_children(call)


def _is_likely(condition: PrimExpr) -> bool:
    while isinstance(condition, And):
        condition = condition.a
    return isinstance(condition, Call) and getattr(condition.op, "name", "") == "tir.likely"
