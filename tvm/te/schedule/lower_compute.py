"""The statements of a compute stage: its loops, guards, stores, and the two parts of reductions.

for i:  B[i] = sum(A[i, k])     ->     for i:
                                           B[i] = 0
                                           for k: B[i] = B[i] + A[i, k]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.expr import (
    CommReducer,
    IntImm,
    IterVar,
    IterVarType,
    ProducerLoad,
    Reduce,
    Var,
)
from tvm.tir.stmt import IfThenElse, LetStmt, ProducerStore, Stmt, seq
from tvm.tir.stmt_functor import Substituter
from tvm.tir.transform.common import without_likely

from ..tensor import ComputeOp, Tensor
from .loop_nest import (
    Level,
    LoopNest,
    at_element,
    guard,
    guard_depth,
    holds_somewhere,
    is_computed,
    make_loop_nest,
    wrap,
)
from .message_passing import bound_checks, descend_from
from .relations import Ranges, Singleton, Values
from .scan import steps_read
from .stage import Stage

Check = tuple[IterVar | None, PrimExpr]


class Nester(Protocol):
    """What builds the statement that a stage is a part of."""

    @property
    def states(self) -> Mapping[Tensor, Tensor]:
        """The outputs of scans, by what stands for them in a step."""

    def nest(self, levels: list[Level], body: Stmt, threads: Collection[IterVar]) -> Stmt:
        """Put a body into loops, with the stages that are attached there."""

    def holds_stages(self, iv: IterVar) -> bool:
        """Whether other stages are computed inside a loop."""

    def may_skip_stages(self, iv: IterVar, levels: Sequence[Level]) -> bool:
        """Whether stages are computed inside a loop, of these, that its iterations may leave out."""


def provide_compute(
    stage: Stage, ranges: Ranges, threads: Collection[IterVar], nester: Nester
) -> Stmt:
    """The loops that compute a stage.

    Parameters
    ----------
    threads : collection of IterVar
        Thread axes that are open around.
    nester : Nester
        Puts bodies into the stage's loops.
    """
    op: Any = stage.op
    main = make_loop_nest(stage, ranges, threads)
    if op.reduce_axis:
        return _Reduction(stage, ranges, threads, nester, main).build()
    checks = _compute_checks(stage, ranges, main.values, nester)
    outside = place_checks(checks, main, ranges, nester)[0]
    rewriter = Substituter(_axis_values(op, main.values))
    indices = _indices(op, main.values)
    stores = [
        ProducerStore(tensor, rewriter.visit(value), indices)
        for tensor, value in zip(op.outputs, op.body, strict=True)
    ]
    body = guard(store_guards(stage, main.values), seq(stores))
    return guard(outside, nester.nest(main.levels, body, threads))


def place_checks(
    checks: list[Check], nest: LoopNest, ranges: Ranges, nester: Nester
) -> tuple[list[PrimExpr], dict[IterVar | None, int]]:
    """Put each check into the outermost loop where it holds for all of the body.

    Stages inside a loop are not computed where no element is, as the check holds for none of the
    iterations further inside. Returns the checks that stand outside all loops, and how deep those of
    each axis stand.
    """
    outside: list[PrimExpr] = []
    depths: dict[IterVar | None, int] = {}
    for iv, check in checks:
        depth = guard_depth(nest, check, nester.holds_stages)
        (nest.levels[depth - 1].guards if depth else outside).append(check)
        depths[iv] = max(depth, depths.get(iv, 0))
        if iv is None or iv.iter_type is IterVarType.CommReduce:
            continue  # a sum of nothing has its first value
        for around, level in enumerate(nest.levels[: max(depth - 1, 0)], 1):
            if nester.may_skip_stages(level.iv, nest.levels):
                anywhere = holds_somewhere(without_likely(check), nest, around, ranges.analyzer)
                if anywhere is not None:
                    level.stage_guards.append(tir_op.likely(anywhere))
    return outside, depths


def _axis_values(op: ComputeOp, values: Values) -> dict[Var, PrimExpr]:
    return {iv.var: values[iv] for iv in op.root_iter_vars() if iv in values}


def _indices(op: ComputeOp, values: Values) -> tuple[PrimExpr, ...]:
    return tuple([values[iv] for iv in op.axis])


def find_checks(
    stage: Stage, ranges: Ranges, values: Values, skip: Collection[IterVar]
) -> list[Check]:
    """The checks that an iteration is one of the operation's, but for those of axes in ``skip``."""
    checks = bound_checks(stage, ranges, values, skip)
    return [(iv, tir_op.likely(at_element(stage, c, values))) for iv, c in checks]


def _compute_checks(stage: Stage, ranges: Ranges, values: Values, nester: Nester) -> list[Check]:
    checks = find_checks(stage, ranges, values, ())
    op: Any = stage.op
    if nester.states:
        axes = Substituter(_axis_values(op, values))
        for step in steps_read(op, nester.states):
            # a part of several steps may begin with one that the scan never runs
            is_there = tir_op.greater_equal(axes.visit(step), 0)
            if not ranges.analyzer.can_prove(is_there):
                checks.append((None, tir_op.likely(is_there)))
    return checks


def store_guards(stage: Stage, values: Values) -> list[PrimExpr]:
    """The predicate that was set for the stage."""
    if stage.store_predicate is None:
        return []
    known = {iv.var: value for iv, value in values.items()}
    return [Substituter(known).visit(stage.store_predicate)]


@dataclass
class _Reduction:
    """The parts of a reduction: loops in common, then initialization and update."""

    stage: Stage
    ranges: Ranges
    threads: Collection[IterVar]
    nester: Nester
    main: LoopNest

    def build(self) -> Stmt:
        stage, op = self.stage, self.stage.op
        assert isinstance(op, ComputeOp)
        reducing = descend_from(stage, op.reduce_axis)
        # an axis that stands for nothing belongs to the initialization too
        nothing = [r.iter for r in stage.relations if isinstance(r, Singleton)]
        spatial = descend_from(stage, [*op.axis, *nothing])
        levels = self.main.levels
        common = next(
            (i for i, iv in enumerate(stage.leaf_iter_vars) if iv in reducing), len(levels)
        )
        inside = [
            *self.threads,
            *[level.thread for level in levels[:common] if level.thread is not None],
        ]
        checks = _compute_checks(stage, self.ranges, self.main.values, self.nester)
        outside, depths = place_checks(checks, self.main, self.ranges, self.nester)
        body, before = self._update(op), []
        condition = Substituter(_axis_values(op, self.main.values)).visit(_reduce_of(op).condition)
        if is_computed(condition):
            # only at the update its elements are known to exist
            body = IfThenElse(condition, body, None)
        elif not (isinstance(condition, IntImm) and condition.value):
            before = self._place(condition, common)
        body = guard(store_guards(stage, self.main.values), body)
        update = guard(before, self.nester.nest(levels[common:], body, inside))
        # checks in the loops in common hold for both parts
        done = [iv for iv, depth in depths.items() if iv is not None and depth <= common]
        loops = spatial_loops(stage, stage.leaf_iter_vars[common:], spatial, reducing)
        parts = [update]
        if self.ranges.are_reductions_initialized:
            parts.insert(0, self._init(op, common, loops, [*reducing, *done], inside))
        return guard(outside, self.nester.nest(levels[:common], seq(parts), self.threads))

    def _init(
        self,
        op: ComputeOp,
        common: int,
        loops: list[IterVar],
        skip: list[IterVar],
        inside: Collection[IterVar],
    ) -> Stmt:
        known = {level.iv: self.main.values[level.iv] for level in self.main.levels[:common]}
        nest = make_loop_nest(self.stage, self.ranges, inside, loops, known)
        checks = find_checks(self.stage, self.ranges, nest.values, skip)
        outside = place_checks(checks, nest, self.ranges, self.nester)[0]
        reduce = _reduce_of(op)
        start = Substituter(_axis_values(op, nest.values))
        values = [start.visit(v) for v in reduce.init or reduce.combiner.identity_element]
        indices = _indices(op, nest.values)
        stores = [
            ProducerStore(tensor, value, indices)
            for tensor, value in zip(op.outputs, values, strict=False)
        ]
        body = guard(store_guards(self.stage, nest.values), seq(stores))
        return guard(outside, wrap(nest.levels, body))

    def _update(self, op: ComputeOp) -> Stmt:
        reduce = _reduce_of(op)
        axes = Substituter(_axis_values(op, self.main.values))
        indices = _indices(op, self.main.values)
        loads = [ProducerLoad(tensor, indices) for tensor in op.outputs]
        sources = [axes.visit(source) for source in reduce.source]
        # a combiner may depend on the position of the element
        return _combine(op, axes.visit(reduce.combiner), loads, sources, indices)

    def _place(self, condition: PrimExpr, common: int) -> list[PrimExpr]:
        """Put a condition into the outermost loop of the update that it allows.

        Returns it if it stands outside all of these.
        """
        depth = guard_depth(self.main, condition, self.nester.holds_stages)
        if depth <= common:
            return [condition]
        self.main.levels[depth - 1].guards.append(condition)
        return []


def spatial_loops(
    stage: Stage,
    loops: Collection[IterVar],
    spatial: Collection[IterVar],
    reducing: Collection[IterVar],
) -> list[IterVar]:
    """The loops that reach every element once.

    Where a spatial axis was fused with a reduction's, that is a loop over the spatial axis: the
    fused one repeats elements, or reaches none if there is nothing to reduce.
    """
    found = {iv: None for iv in loops if iv not in reducing}
    mixed = {iv: None for iv in loops if iv in reducing and iv in spatial}
    for relation in reversed(stage.relations):
        if any(iv in mixed for iv in relation.children):
            for iv in relation.parents:
                if iv in spatial:
                    (mixed if iv in reducing else found)[iv] = None
    return list(found)


def _reduce_of(op: ComputeOp) -> Reduce:
    reduce = op.body[0]
    assert isinstance(reduce, Reduce)
    return reduce


def _combine(
    op: ComputeOp,
    combiner: CommReducer,
    loads: list[ProducerLoad],
    sources: list[PrimExpr],
    indices: tuple[PrimExpr, ...],
) -> Stmt:
    operands = dict(zip((*combiner.lhs, *combiner.rhs), (*loads, *sources), strict=True))
    if len(combiner.result) == 1:
        result = Substituter(operands).visit(combiner.result[0])
        return ProducerStore(op.outputs[0], result, indices)
    # all results are computed from the old values before the first one is stored; each is read
    # once, so that choices among them are no branches
    values = {var: Var(var.name, value.dtype) for var, value in operands.items()}
    rewriter = Substituter(values)
    results = [rewriter.visit(result) for result in combiner.result]
    names = [Var(f"{op.name}.{i}", result.dtype) for i, result in enumerate(results)]
    body = seq(
        [
            ProducerStore(tensor, name, indices)
            for tensor, name in zip(op.outputs, names, strict=True)
        ]
    )
    bound = [*zip(values.values(), operands.values(), strict=True)]
    for name, value in reversed([*bound, *zip(names, results, strict=True)]):
        body = LetStmt(name, value, body)
    return body
