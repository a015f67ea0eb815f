"""The statements of a compute stage: its loops, guards, stores, and the two parts of reductions.

for i:  B[i] = sum(A[i, k])     ->     for i:
                                           B[i] = 0
                                           for k: B[i] = B[i] + A[i, k]
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from tvm.error import OpNotImplemented
from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.expr import IntImm, IterVar, ProducerLoad, Reduce, Var
from tvm.tir.stmt import IfThenElse, LetStmt, ProducerStore, Stmt, seq
from tvm.tir.stmt_functor import Substituter

from ..tensor import ComputeOp
from .loop_nest import Level, LoopNest, guard, make_loop_nest, wrap
from .message_passing import bound_checks, descend_from
from .relations import Ranges, Values
from .stage import Stage

# puts a body into loops, with the stages that are attached there
Nester = Callable[[list[Level], Stmt, Collection[IterVar]], Stmt]


def provide_compute(
    stage: Stage, ranges: Ranges, threads: Collection[IterVar], nest: Nester
) -> Stmt:
    """The loops that compute a stage.

    Parameters
    ----------
    threads : collection of IterVar
        Thread axes that are open around.
    nest : callable
        ``nest(levels, body, threads)`` wraps a body in loops of the stage.
    """
    op: Any = stage.op
    main = make_loop_nest(stage, ranges, threads)
    checks = _checks(stage, ranges, main.values, ())
    if op.reduce_axis:
        return _Reduction(stage, ranges, threads, nest, main, checks).build()
    rewriter = Substituter(_axis_values(op, main.values))
    indices = _indices(op, main.values)
    stores = [
        ProducerStore(tensor, rewriter.visit(value), indices)
        for tensor, value in zip(op.outputs, op.body, strict=True)
    ]
    return nest(main.levels, guard(checks, seq(stores)), threads)


def _axis_values(op: ComputeOp, values: Values) -> dict[Var, PrimExpr]:
    return {iv.var: values[iv] for iv in op.root_iter_vars() if iv in values}


def _indices(op: ComputeOp, values: Values) -> tuple[PrimExpr, ...]:
    return tuple([values[iv] for iv in op.axis])


def _checks(
    stage: Stage, ranges: Ranges, values: Values, skip: Collection[IterVar]
) -> list[PrimExpr]:
    checks = [tir_op.likely(c) for c in bound_checks(stage, ranges, values, skip)]
    if stage.store_predicate is not None:
        known = {iv.var: value for iv, value in values.items()}
        checks.append(Substituter(known).visit(stage.store_predicate))
    return checks


@dataclass
class _Reduction:
    """The parts of a reduction: loops in common, then initialization and update."""

    stage: Stage
    ranges: Ranges
    threads: Collection[IterVar]
    nest: Nester
    main: LoopNest
    checks: list[PrimExpr]

    def build(self) -> Stmt:
        stage, op = self.stage, self.stage.op
        assert isinstance(op, ComputeOp)
        reducing = descend_from(stage, op.reduce_axis)
        spatial = descend_from(stage, op.axis)
        self._refuse_threads(reducing)
        levels = self.main.levels
        common = next(
            (i for i, iv in enumerate(stage.leaf_iter_vars) if iv in reducing), len(levels)
        )
        inside = [*self.threads, *[level.thread for level in levels[:common] if level.thread]]
        update = self.nest(levels[common:], guard(self.checks, self._update(op)), inside)
        init = self._init(op, common, [iv for iv in reducing if iv not in spatial], inside)
        return self.nest(levels[:common], seq([init, update]), self.threads)

    def _refuse_threads(self, reducing: Collection[IterVar]) -> None:
        for iv, attr in self.stage.iter_var_attrs.items():
            if attr.bind_thread is not None and iv in reducing:
                raise OpNotImplemented(
                    f"a reduction across threads is not available yet, got axis {iv.var.name} of "
                    f"{self.stage.op.name} bound to {attr.bind_thread.thread_tag}",
                    hint="bind spatial axes only, or rfactor the reduction",
                )

    def _init(
        self, op: ComputeOp, common: int, skip: list[IterVar], inside: Collection[IterVar]
    ) -> Stmt:
        known = {level.iv: self.main.values[level.iv] for level in self.main.levels[:common]}
        loops = make_loop_nest(self.stage, self.ranges, inside, common, skip, known)
        checks = _checks(self.stage, self.ranges, loops.values, skip + list(op.reduce_axis))
        reduce = _reduce_of(op)
        start = Substituter(_axis_values(op, loops.values))
        values = [start.visit(v) for v in reduce.init or reduce.combiner.identity_element]
        indices = _indices(op, loops.values)
        stores = [
            ProducerStore(tensor, value, indices)
            for tensor, value in zip(op.outputs, values, strict=False)
        ]
        return wrap(loops.levels, guard(checks, seq(stores)))

    def _update(self, op: ComputeOp) -> Stmt:
        reduce = _reduce_of(op)
        axes = Substituter(_axis_values(op, self.main.values))
        indices = _indices(op, self.main.values)
        loads = [ProducerLoad(tensor, indices) for tensor in op.outputs]
        sources = [axes.visit(source) for source in reduce.source]
        body = _combine(op, reduce, loads, sources, indices)
        condition = axes.visit(reduce.condition)
        if isinstance(condition, IntImm) and condition.value:
            return body
        return IfThenElse(condition, body, None)


def _reduce_of(op: ComputeOp) -> Reduce:
    reduce = op.body[0]
    assert isinstance(reduce, Reduce)
    return reduce


def _combine(
    op: ComputeOp,
    reduce: Reduce,
    loads: list[ProducerLoad],
    sources: list[PrimExpr],
    indices: tuple[PrimExpr, ...],
) -> Stmt:
    combiner = reduce.combiner
    operands = dict(zip((*combiner.lhs, *combiner.rhs), (*loads, *sources), strict=True))
    rewriter = Substituter(operands)
    results = [rewriter.visit(result) for result in combiner.result]
    if len(results) == 1:
        return ProducerStore(op.outputs[0], results[0], indices)
    # all results are computed from the old values before the first one is stored
    names = [Var(f"{op.name}.{i}", result.dtype) for i, result in enumerate(results)]
    body = seq(
        [
            ProducerStore(tensor, name, indices)
            for tensor, name in zip(op.outputs, names, strict=True)
        ]
    )
    for name, result in zip(reversed(names), reversed(results), strict=True):
        body = LetStmt(name, result, body)
    return body
