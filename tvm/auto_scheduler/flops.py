"""The arithmetic operations of a graph, counted in the expressions of its computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.te.tensor import ComputeOp, Operation
from tvm.tir import expr

from .loops import constant_extent


def count_flops(ops: Sequence[Operation]) -> float:
    """The operations on numbers of the type that each compute results in; ``attrs["FLOP"]`` overrules."""
    return float(sum([_flops_of(op) for op in ops if isinstance(op, ComputeOp)]))


@deep
def _flops_of(op: ComputeOp) -> float:
    if "FLOP" in op.attrs:
        given = op.attrs["FLOP"]
        return float(getattr(given, "value", given))
    once = sum([_FlopCounter(value.dtype.code).visit(value) for value in op.body])
    return float(once * _iterations(op.axis))


def _iterations(axes: Sequence[Any]) -> int:
    return math.prod([constant_extent(axis) or 0 for axis in axes])


class _FlopCounter(Visitor):
    """The operations of one element that are on numbers of one kind."""

    def __init__(self, code: Any) -> None:
        self.code = code

    def counts(self, value: Any) -> int:
        return int(value.dtype.code == self.code)

    def visit_prim_expr(self, value: Any) -> int:
        return 0  # constants and variables

    def visit_producer_load(self, load: expr.ProducerLoad) -> int:
        return 0  # where to read is not counted

    def visit_cast(self, cast: expr.Cast) -> int:
        return int(self.visit(cast.value))

    def visit_let(self, let: expr.Let) -> int:
        return int(self.visit(let.value) + self.visit(let.body))

    def visit_call(self, call: expr.Call) -> int:
        if getattr(call.op, "name", "") == "tir.if_then_else":
            return int(max(self.visit(call.args[1]), self.visit(call.args[2])))
        return int(self.counts(call) + sum([self.visit(arg) for arg in call.args]))

    def visit_select(self, select: expr.Select) -> int:
        return int(max(self.visit(select.true_value), self.visit(select.false_value)))

    def visit_binary_op_expr(self, value: Any) -> int:
        return int(self.counts(value.a) + self.visit(value.a) + self.visit(value.b))

    def visit_cmp_expr(self, value: Any) -> int:
        return int(self.visit(value.a) + self.visit(value.b))

    def visit_not(self, value: expr.Not) -> int:
        return int(self.visit(value.a))

    visit_logical_expr = visit_cmp_expr

    def visit_reduce(self, reduce: expr.Reduce) -> int:
        place = reduce.value_index
        once = self.visit(reduce.combiner.result[place]) + self.visit(reduce.source[place])
        return int(_iterations(reduce.axis) * once)
