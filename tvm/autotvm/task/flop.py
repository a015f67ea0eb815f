"""The floating-point operations of a schedule, counted in the expressions of its stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.autotvm.utils import get_const_int
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp
from tvm.tir import expr

_HINT = "Please use `cfg.add_flop` to manually set FLOP for this operator"


class FlopCalculationError(RuntimeError):
    """The operations of a stage cannot be counted."""


@deep
def compute_flop(sch: Any) -> int:
    """How many floating-point operations a schedule's program does.

    Parameters
    ----------
    sch : te.Schedule
        The schedule, of computes and placeholders.

    Raises
    ------
    RuntimeError
        If there are none, or other stages; ``cfg.add_flop`` tells the number then.
    """
    try:
        total = sum([_flop_of(op) for op in _operations(sch.outputs)])
    except FlopCalculationError as error:
        raise RuntimeError(
            f"FLOP estimator fails for this operator. Error msg: {error}. {_HINT}"
        ) from error
    if total == 0:
        raise RuntimeError(f"Cannot find float number operation in this operator. {_HINT}")
    return total


def _operations(outputs: Sequence[Operation]) -> list[Operation]:
    found = dict.fromkeys(outputs)
    waiting = list(found)
    for op in waiting:
        for tensor in op.input_tensors:
            if tensor.op not in found:
                found[tensor.op] = None
                waiting.append(tensor.op)
    return waiting


def _flop_of(op: Operation) -> int:
    if isinstance(op, PlaceholderOp):
        return 0
    if not isinstance(op, ComputeOp):
        raise FlopCalculationError(
            "Only support te.compute currently. Other ops like te.scan/te.extern is not supported"
        )
    if len(op.body) != 1:
        raise FlopCalculationError("Found multiple output in the compute")
    return _iterations(op.axis) * int(_FlopCounter().visit(op.body[0]))


def _iterations(axes: Sequence[Any]) -> int:
    try:
        return math.prod([get_const_int(axis.dom.extent) for axis in axes])
    except ValueError as error:
        raise FlopCalculationError("The length of axis is not constant") from error


class _FlopCounter(Visitor, memo=True):
    """The operations of one element."""

    def visit_prim_expr(self, value: Any) -> int:
        return 0  # constants and variables

    def visit_producer_load(self, load: expr.ProducerLoad) -> int:
        return 0  # where to read is not counted

    def visit_cast(self, cast: expr.Cast) -> int:
        return int(self.visit(cast.value))

    def visit_call(self, call: expr.Call) -> int:
        return sum([self.visit(arg) for arg in call.args])

    def visit_select(self, select: expr.Select) -> int:
        branches = max(self.visit(select.true_value), self.visit(select.false_value))
        return int(self.visit(select.condition) + branches)

    def visit_not(self, value: expr.Not) -> int:
        return int(1 + self.visit(value.a))

    def visit_let(self, let: expr.Let) -> int:
        return int(self.visit(let.value) + self.visit(let.body))

    def visit_binary_op_expr(self, value: Any) -> int:
        return int(1 + self.visit(value.a) + self.visit(value.b))

    visit_cmp_expr = visit_logical_expr = visit_binary_op_expr

    def visit_reduce(self, reduce: expr.Reduce) -> int:
        if len(reduce.combiner.result) != 1 or len(reduce.source) != 1:
            raise FlopCalculationError("Found multiple output in the source of reduce op")
        once = self.visit(reduce.combiner.result[0]) + self.visit(reduce.source[0])
        return int(_iterations(reduce.axis) * once)
