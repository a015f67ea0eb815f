"""The operations of a program, in order; and those that it has after some steps.

Steps that add a stage replace operations. The new ones come from a replay on a te schedule, of only
the steps that they depend on: states that differ in other steps share them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import cached_property

from tvm.error import TVMError
from tvm.te.schedule import Schedule
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor

from .access import AccessAnalyzer
from .loops import Stage, constant_extent
from .state_object import StateObject
from .steps import (
    CacheReadStep,
    FollowFusedSplitStep,
    FollowSplitStep,
    FuseStep,
    ReorderStep,
    Replay,
    SplitStep,
    Step,
)


class ComputeGraph:
    """Operations in the order of computation.

    Attributes
    ----------
    ops : tuple of Operation
        Each behind those that it reads.
    root : ComputeGraph
        The graph before any step.
    """

    def __init__(self, ops: Sequence[Operation], root: ComputeGraph | None = None) -> None:
        self.ops = tuple(ops)
        self.root = root or self
        self._after: dict[tuple[Step, ...], ComputeGraph] = {}

    @cached_property
    def access(self) -> AccessAnalyzer:
        """What the operations read."""
        return AccessAnalyzer(self.ops)

    @cached_property
    def positions(self) -> dict[Operation, int]:
        """Where each operation stands."""
        return {op: position for position, op in enumerate(self.ops)}

    @cached_property
    def outputs(self) -> tuple[Operation, ...]:
        """The operations that nobody reads."""
        return tuple([op for op in self.ops if self.access.is_output(op)])

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the readers of each operation."""
        positions = self.positions
        return tuple([tuple([positions[r] for r in self.access.consumers(op)]) for op in self.ops])

    @cached_property
    def producers(self) -> tuple[tuple[int, ...], ...]:
        """The positions of what each operation reads."""
        positions = self.positions
        return tuple([tuple([positions[r] for r in self.access.producers(op)]) for op in self.ops])

    @cached_property
    def initial_state(self) -> StateObject:
        """A stage for each operation, and no steps."""
        return StateObject(tuple([Stage.of(op) for op in self.ops]), (), {}, self)

    def after(self, steps: Sequence[Step]) -> ComputeGraph:
        """The graph behind steps, of which the last one adds a stage."""
        if self is not self.root:
            return self.root.after(steps)
        key = _relevant(steps)
        if key not in self._after:
            replay = Replay(self.ops, self.outputs)
            replay.run(key)
            self._after[key] = ComputeGraph(replay.ops, self)
        return self._after[key]

    def state_after(self, steps: Sequence[Step]) -> StateObject:
        """The state that steps lead to from the beginning."""
        state = self.root.initial_state
        for step in steps:
            state, _ = step.apply(state)
        return state


def _relevant(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps that operations depend on: those that add stages, and of loops these work on."""
    kept: list[Step] = []
    needed: set[int] = set()
    for position in range(len(steps) - 1, -1, -1):
        step = steps[position]
        if not step.changes_stages:
            if step.stage_id in needed and (known := _loop_step(step, steps)) is not None:
                kept.append(known)
            continue
        kept.append(step)
        is_read = isinstance(step, CacheReadStep)
        new = step.stage_id + is_read
        needed = {stage - (stage > new) for stage in needed if stage != new}
        if not is_read:
            needed.add(step.stage_id)
    return tuple(reversed(kept))


def _loop_step(step: Step, steps: Sequence[Step]) -> Step | None:
    """The step if it transforms loops, without reference to other steps."""
    if isinstance(step, FollowSplitStep):
        return SplitStep(step.stage_id, step.iter_id, None, step.lengths(steps))
    if isinstance(step, FollowFusedSplitStep):
        lengths = (step.length(steps),)
        return SplitStep(step.stage_id, step.iter_id, None, lengths, step.factor_or_nparts)
    if isinstance(step, SplitStep):
        return SplitStep(step.stage_id, step.iter_id, None, step.lengths, step.inner_to_outer)
    return step if isinstance(step, (FuseStep, ReorderStep)) else None


def sorted_operations(tensors: Sequence[Tensor]) -> list[Operation]:
    """The operations that tensors need, each behind those that it reads.

    Of those that could come next, the one that was found last from the tensors does: records name
    stages by this order.
    """
    found: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    waiting: dict[Operation, int] = {}
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op in found:
            continue
        _check(op)
        found[op] = len(found)
        waiting[op] = len(op.input_tensors)
        for tensor in op.input_tensors:
            readers.setdefault(tensor.op, []).append(op)
            stack.append(tensor.op)
    queue = [(-place, op.name, op) for op, place in found.items() if not waiting[op]]
    heapq.heapify(queue)
    order: list[Operation] = []
    while queue:
        op = heapq.heappop(queue)[2]
        order.append(op)
        for reader in readers.get(op, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(queue, (-found[reader], reader.name, reader))
    return order


def operations_of(schedule: Schedule) -> list[Operation]:
    """The operations of a schedule that no primitive has changed, in its order."""
    for stage in schedule.stages:
        if stage.relations or stage.iter_var_attrs or stage.attach_ivar is not None:
            raise TVMError(
                f"ComputeDAG requires a schedule without primitives, got one with a transformed "
                f"stage {stage.op.name}",
                hint="pass the tensors instead",
            )
        _check(stage.op)
    return [stage.op for stage in schedule.stages]


def _check(op: Operation) -> None:
    if isinstance(op, PlaceholderOp):
        return
    if not isinstance(op, ComputeOp):
        raise TVMError(
            f"ComputeDAG requires placeholders and computes, got {op.name}, a {type(op).__name__}"
        )
    names: dict[str, None] = {}
    for axis in op.root_iter_vars():
        name = axis.var.name
        if name in names:
            raise TVMError(
                f"ComputeDAG requires different names for the axes of {op.name}, got {name} twice",
                hint='name them: te.reduce_axis((0, n), name="k")',
            )
        names[name] = None
        if constant_extent(axis) is None:
            raise TVMError(
                f"ComputeDAG requires constant extents, got {name} of {op.name} with "
                f"{axis.dom.extent if axis.dom else None}"
            )
