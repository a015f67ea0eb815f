"""The loops of a hybrid script as they were scheduled: split, fused, reordered, unrolled, bound, ...

for i in range(16): body(i)     ->     for i.outer in parallel(4):
                                           for i.inner in range(4): body(i.outer*4 + i.inner)

Loops change places only with those directly inside them, where each iteration has cells of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.error import ScheduleError, TVMError
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar
from tvm.tir.stmt import BufferRealize, BufferStore, For, Stmt
from tvm.tir.stmt_functor import substitute, variables_of

from ..tensor import HybridOp
from .loop_nest import guard, make_loop_nest, wrap
from .message_passing import bound_checks, descend_from
from .relations import Ranges
from .stage import Stage


@dataclass(frozen=True)
class _Group:
    """Neighbouring loops of the script, outermost first, and those that the schedule makes of them."""

    roots: tuple[IterVar, ...]
    leaves: list[IterVar]


def schedule_hybrid_loops(stage: Stage, ranges: Ranges) -> Stmt:
    """The body of a hybrid operation with the loops that the schedule makes of its axes."""
    op = stage.op
    assert isinstance(op, HybridOp)
    body: Stmt = _LoopScheduler(stage, ranges, _groups(stage)).visit(op.body)
    return body


def _groups(stage: Stage) -> list[_Group]:
    """The smallest groups of loops whose scheduled loops stand side by side, in the script's order."""
    groups: list[_Group] = []
    reached = {root: descend_from(stage, [root]) for root in stage.op.root_iter_vars()}
    position, pending = 0, dict[IterVar, None]()
    for root in reached:
        pending[root] = None
        others = [other for other in reached if other not in pending]
        own = [leaf for leaf in stage.leaf_iter_vars if any([leaf in reached[r] for r in pending])]
        placed = stage.leaf_iter_vars[position : position + len(own)]
        in_place = [id(leaf) for leaf in placed] == [id(leaf) for leaf in own]
        if in_place and not any([leaf in reached[other] for leaf in own for other in others]):
            groups.append(_Group(tuple(pending), own))
            position, pending = position + len(own), {}
    if pending:
        raise _misplaced(stage, stage.leaf_iter_vars)
    return groups


def _misplaced(stage: Stage, loops: Sequence[IterVar]) -> TVMError:
    return ScheduleError(
        "a hybrid script requires loops that stay in their places, got "
        f"{', '.join([leaf.var.name for leaf in loops])}",
        hint="loops change places, or fuse, only directly inside each other and where each "
        "iteration has elements of its own; write another order in the script",
    ).add_context(f"stage {stage.op.name}")


class _LoopScheduler(Rewriter):
    def __init__(self, stage: Stage, ranges: Ranges, groups: list[_Group]) -> None:
        self.stage, self.ranges = stage, ranges
        self.groups = {group.roots[0].var: group for group in groups}

    def visit_for(self, loop: For) -> Stmt:
        group = self.groups.get(loop.loop_var)
        if group is None:
            return self.rewrite_children(loop)
        stage = self.stage
        body: Stmt = self.visit(self._inside(loop, group))
        nest = make_loop_nest(stage, self.ranges, (), group.leaves)
        skip = [iv for iv in stage.all_iter_vars if iv not in nest.values]
        checks = bound_checks(stage, self.ranges, nest.values, skip)
        body = substitute(body, {root.var: nest.values[root] for root in group.roots})
        return wrap(nest.levels, guard([check for _, check in checks], body))

    def _inside(self, loop: For, group: _Group) -> Stmt:
        """The body of the innermost loop of a group."""
        if len(group.roots) > 1 and not _are_independent(loop):
            raise _misplaced(self.stage, group.leaves)
        outer = dict.fromkeys([group.roots[0].var])
        for root in group.roots[1:]:
            inner = loop.body
            if not isinstance(inner, For) or inner.loop_var is not root.var:
                raise _misplaced(self.stage, group.leaves)
            if any([var in outer for e in (inner.min, inner.extent) for var in variables_of(e)]):
                raise _misplaced(self.stage, group.leaves)
            outer[root.var] = None
            loop = inner
        return loop.body


def _are_independent(loop: For) -> bool:
    """Whether what is written is read in no other place: iterations may run in another order."""
    finder = _AccessFinder()
    finder.visit(loop)
    return all([finder.is_in_place(load) for load in finder.loads])


class _AccessFinder(Visitor):
    def __init__(self) -> None:
        self.loads: list[BufferLoad] = []
        self.stores: dict[Buffer, list[BufferStore]] = {}
        self.own: dict[Buffer, None] = {}  # memory made inside, by each iteration anew

    def visit_buffer_realize(self, realize: BufferRealize) -> None:
        self.own[realize.buffer] = None
        self.visit_children(realize)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.loads.append(load)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.stores.setdefault(store.buffer, []).append(store)
        self.visit_children(store)

    def is_in_place(self, load: BufferLoad) -> bool:
        """Whether the element is one that only the same places of the program write."""
        if load.buffer in self.own:
            return True
        return all([
            all([structural_equal(a, b) for a, b in zip(store.indices, load.indices, strict=True)])
            for store in self.stores.get(load.buffer, ())
        ])  # fmt: skip
