"""Reject operations that read beyond a tensor, or use an axis that is none of theirs.

    A = te.placeholder((10,))
    te.compute((10,), lambda i: A[i + 5])                                     rejected
    te.compute((10,), lambda i: te.if_then_else(i < 5, A[i + 5], 0.0))        taken

A read is rejected only if there is a point of the axes, all conditions around it true, where an index is
outside of a known extent. What depends on data or on sizes that only the run knows is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir import expr as tir
from tvm.tir.interp_values import BINARY
from tvm.tir.op import logical_not

from ..tensor import ComputeOp, Operation, ScanOp, Tensor, domain_of

Bound = tuple[int, int]
# points at which an index is evaluated
MOST_POINTS = 1 << 16


@deep
def check_reads(ops: Iterable[Operation]) -> None:
    """Raise an error for the first operation that reads beyond a tensor.

    Parameters
    ----------
    ops : iterable of Operation
        Operations in the order of the program, as it was written.
    """
    program = list(ops)
    scans = [op for op in program if isinstance(op, ScanOp)]
    # the first steps of a scan are not computed by what computes the others
    stepwise = {tensor for scan in scans for tensor in (*scan.state_placeholder, *scan.update)}
    for op in program:
        outputs = set(op.outputs)
        if not isinstance(op, ScanOp) and not stepwise.isdisjoint((*op.input_tensors, *outputs)):
            stepwise |= outputs
        elif isinstance(op, ComputeOp):
            _check(op)


def _check(op: ComputeOp) -> None:
    checker = ReadChecker(op)
    first = op.body[0]
    if isinstance(first, tir.Reduce):
        checker.guarded(first.condition, first.source)
    else:
        checker.guarded(None, op.body)


class ReadChecker(Visitor):
    """Looks at each read of one operation, within the conditions around it."""

    def __init__(self, op: ComputeOp) -> None:
        self.op = op
        self.ranges: dict[tir.Var, Bound] = {}
        for iv in (*op.axis, *op.reduce_axis):
            low, extent = domain_of(iv).min, domain_of(iv).extent
            if isinstance(low, tir.IntImm) and isinstance(extent, tir.IntImm):
                self.ranges[iv.var] = (low.value, low.value + extent.value - 1)
        self.has_open_axes = len(self.ranges) < len(op.axis) + len(op.reduce_axis)
        self.is_empty = any([low > high for low, high in self.ranges.values()])
        self.conditions: list[PrimExpr] = []

    def guarded(self, condition: PrimExpr | None, parts: Sequence[PrimExpr]) -> None:
        """Look at expressions where a condition holds."""
        if condition is not None:
            self.visit(condition)
            self.conditions.append(condition)
        for part in parts:
            self.visit(part)
        if condition is not None:
            self.conditions.pop()

    def visit_select(self, node: tir.Select) -> None:
        self._choice(node.condition, node.true_value, node.false_value)

    def visit_call(self, call: tir.Call) -> None:
        if getattr(call.op, "name", "") == "tir.if_then_else":
            self._choice(*call.args)
        else:
            self.visit_children(call)

    def _choice(self, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> None:
        self.guarded(condition, [yes])
        if condition.dtype.lanes == 1:
            self.guarded(logical_not(condition), [no])

    def visit_and(self, node: tir.And) -> None:
        self.guarded(node.a, [node.b])

    def visit_or(self, node: tir.Or) -> None:
        self.visit(node.a)
        self.guarded(logical_not(node.a), [node.b])

    def visit_producer_load(self, load: tir.ProducerLoad) -> None:
        self.visit_children(load)
        if self.is_empty or not isinstance(load.producer, Tensor):
            return
        for axis, (index, extent) in enumerate(
            zip(load.indices, load.producer.shape, strict=False)
        ):
            if not isinstance(extent, tir.IntImm) or self._is_within(index, extent.value):
                continue
            # loops of open extents over a tensor without elements have no steps
            if extent.value or not self.has_open_axes:
                self._search(load, axis, index, extent.value)

    def _is_within(self, index: PrimExpr, extent: int) -> bool:
        """Whether the bounds of the index alone show that it is within the extent."""
        bound = self._bound(index)
        return bound is not None and bound[0] >= 0 and bound[1] < extent

    def _bound(self, e: Any) -> Bound | None:
        kind = type(e)
        if kind is tir.Var:
            return self.ranges.get(e)
        if kind is tir.IntImm:
            return e.value, e.value
        if kind is tir.Add or kind is tir.Sub or kind is tir.Mul or kind in _BY_CONSTANT:
            a, b = self._bound(e.a), self._bound(e.b)
            return None if a is None or b is None else _combined(kind, a, b)
        return None

    def _search(self, load: tir.ProducerLoad, axis: int, index: PrimExpr, extent: int) -> None:
        """Look for a point where the index is outside, and every condition holds."""
        found = values_where(index, self.conditions, self.ranges)
        if found is None or not found.size:
            return
        low, high = int(found.min()), int(found.max())
        if low >= 0 and high < extent:
            return
        tensor = load.producer
        raise TVMError(
            f"compute {self.op.name} reads {tensor.name} outside of its extents: index {index} of "  # type: ignore[attr-defined]
            f"axis {axis} takes values from {low} to {high}, and the extent is {extent}",
            hint="put the read into te.if_then_else, or limit the index with te.max and te.min",
        )


def _combined(kind: type, a: Bound, b: Bound) -> Bound | None:
    if kind is tir.Add:
        return a[0] + b[0], a[1] + b[1]
    if kind is tir.Sub:
        return a[0] - b[1], a[1] - b[0]
    if kind is tir.Mul:
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if b[0] != b[1] or b[0] <= 0:
        return None
    if kind is tir.FloorDiv:
        return a[0] // b[0], a[1] // b[0]
    return (a[0], a[1]) if a[0] >= 0 and a[1] < b[0] else (0, b[0] - 1)


_BY_CONSTANT = frozenset({tir.FloorDiv, tir.FloorMod})


def values_where(
    index: PrimExpr, conditions: Sequence[PrimExpr], ranges: dict[tir.Var, Bound]
) -> np.ndarray | None:
    """Values of an index at points where conditions hold; None if that cannot be told."""
    needed: dict[tir.Var, None] = {}
    pending: list[Any] = [index, *conditions]
    while pending:
        node = pending.pop()
        if isinstance(node, tir.Var):
            needed[node] = None
        pending.extend(node.children())
    if not all([var in ranges for var in needed]):
        return None
    points = _points([ranges[var] for var in needed])
    evaluator = PointEvaluator(dict(zip(needed, points, strict=True)))
    try:
        holds: Any = True
        for condition in conditions:
            holds = holds & evaluator.visit(condition)
        values = evaluator.visit(index)
    except _Unknown:
        return None
    shape = points[0].shape if points else (1,)
    found: np.ndarray = np.broadcast_to(values, shape)[
        np.broadcast_to(np.asarray(holds, bool), shape)
    ]
    return found


def _points(ranges: Sequence[Bound]) -> list[np.ndarray]:
    """All points of a grid; of a large one those at its edges and in the middle."""
    sides = [np.arange(low, high + 1) for low, high in ranges if high - low < MOST_POINTS]
    if len(sides) < len(ranges) or np.prod([float(len(s)) for s in sides]) > MOST_POINTS:
        for per_side in (5, 3, 2):
            sides = [_sample(low, high, per_side) for low, high in ranges]
            if np.prod([float(len(s)) for s in sides]) <= MOST_POINTS:
                break
        else:
            sides = [np.asarray([high]) for _, high in ranges]
    grid = np.meshgrid(*sides, indexing="ij")
    return [axis.ravel().astype(np.int64) for axis in grid]


def _sample(low: int, high: int, count: int) -> np.ndarray:
    wanted = {
        5: (low, low + 1, (low + high) // 2, high - 1, high),
        3: (low, (low + high) // 2, high),
    }
    return np.asarray(sorted({min(max(v, low), high) for v in wanted.get(count, (low, high))}))


class _Unknown(Exception):
    """A value that only the run knows."""


class PointEvaluator(Visitor):
    """Evaluates expressions of integers at many points at once."""

    def __init__(self, values: dict[tir.Var, np.ndarray]) -> None:
        self.values = values

    def visit_prim_expr(self, node: PrimExpr) -> Any:
        raise _Unknown

    def visit_var(self, var: tir.Var) -> Any:
        return self.values[var]

    def visit_int_imm(self, imm: tir.IntImm) -> Any:
        return bool(imm.value) if imm.dtype.is_bool else np.int64(imm.value)

    def visit_binary_op_expr(self, node: tir.BinaryOpExpr) -> Any:
        return self._binary(node)

    def visit_cmp_expr(self, node: tir.CmpExpr) -> Any:
        return self._binary(node)

    def _binary(self, node: Any) -> Any:
        if not node.a.dtype.is_int:
            raise _Unknown
        with np.errstate(all="ignore"):
            return BINARY[type(node)](self.visit(node.a), self.visit(node.b))

    def visit_and(self, node: tir.And) -> Any:
        return np.logical_and(self.visit(node.a), self.visit(node.b))

    def visit_or(self, node: tir.Or) -> Any:
        return np.logical_or(self.visit(node.a), self.visit(node.b))

    def visit_not(self, node: tir.Not) -> Any:
        return np.logical_not(self.visit(node.a))

    def visit_select(self, node: tir.Select) -> Any:
        return np.where(*[self.visit(part) for part in node.children()])

    def visit_cast(self, node: tir.Cast) -> Any:
        if not (node.dtype.is_int and node.dtype.bits >= 32 and node.value.dtype.is_int):
            raise _Unknown
        return self.visit(node.value)

    def visit_call(self, call: tir.Call) -> Any:
        name = getattr(call.op, "name", "")
        if name == "tir.if_then_else":
            return np.where(*[self.visit(arg) for arg in call.args])
        if name == "tir.likely":
            return self.visit(call.args[0])
        raise _Unknown
