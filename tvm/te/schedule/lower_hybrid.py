"""The loops of a hybrid script as they were scheduled: split, unrolled, bound, ...

for i in range(16): body(i)     ->     for i.outer in parallel(4):
                                           for i.inner in range(4): body(i.outer*4 + i.inner)
"""

from __future__ import annotations

from tvm.error import ScheduleError
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import IterVar
from tvm.tir.stmt import For, Stmt
from tvm.tir.stmt_functor import substitute

from ..tensor import HybridOp
from .loop_nest import guard, make_loop_nest, wrap
from .message_passing import bound_checks, descend_from
from .relations import Ranges
from .stage import Stage


def schedule_hybrid_loops(stage: Stage, ranges: Ranges) -> Stmt:
    """The body of a hybrid operation with the loops that the schedule makes of its axes."""
    op = stage.op
    assert isinstance(op, HybridOp)
    body: Stmt = _LoopScheduler(stage, ranges, _leaves_by_axis(stage)).visit(op.body)
    return body


def _leaves_by_axis(stage: Stage) -> dict[IterVar, list[IterVar]]:
    found: dict[IterVar, list[IterVar]] = {}
    for iv in stage.op.root_iter_vars():
        reached = descend_from(stage, [iv])
        found[iv] = [leaf for leaf in stage.leaf_iter_vars if leaf in reached]
    order = [leaf for leaves in found.values() for leaf in leaves]
    if [id(leaf) for leaf in order] != [id(leaf) for leaf in stage.leaf_iter_vars]:
        raise ScheduleError(
            "a hybrid script requires loops that stay in their places, got "
            f"{', '.join([leaf.var.name for leaf in stage.leaf_iter_vars])}",
            hint="loops may be split, annotated and bound; write another order in the script",
        ).add_context(f"stage {stage.op.name}")
    return found


class _LoopScheduler(Rewriter):
    def __init__(self, stage: Stage, ranges: Ranges, leaves: dict[IterVar, list[IterVar]]) -> None:
        self.stage, self.ranges, self.leaves = stage, ranges, leaves
        self.roots = {iv.var: iv for iv in leaves}

    def visit_for(self, loop: For) -> Stmt:
        root = self.roots.get(loop.loop_var)
        if root is None:
            return self.rewrite_children(loop)
        stage = self.stage
        body = self.visit(loop.body)
        nest = make_loop_nest(stage, self.ranges, (), self.leaves[root])
        skip = [iv for iv in stage.all_iter_vars if iv not in nest.values]
        checks = bound_checks(stage, self.ranges, nest.values, skip)
        body = substitute(body, {root.var: nest.values[root]})
        return wrap(nest.levels, guard([check for _, check in checks], body))
