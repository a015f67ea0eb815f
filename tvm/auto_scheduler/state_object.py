"""States: the stages of a program after some steps. They never change; steps make new ones.

Placeholder: A, B
parallel i.0@j.0@ (0,64)
  for k (0,512)
    vectorize j.1 (0,8)
      C = ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tvm.runtime.object import Object
from tvm.te.tensor import PlaceholderOp

from .loops import ANNOTATION_NAMES, ComputeAt, Iterator, Stage

if TYPE_CHECKING:
    from .steps.step import Step

# (stage, loop) that a stage is computed at, by its number
Attached = Mapping[int, tuple[int, int]]


class StateObject(Object):
    """Stages, where they are attached, and the steps that led there.

    Attributes
    ----------
    stages : tuple of Stage
        In the order of computation.
    transform_steps : tuple of Step
        The history.
    attached : dict of int to (int, int)
        For stages that are computed at a loop: the stage and the position of that loop.
    concrete : bool
        Whether all lengths of splits are known.
    graph : ComputeGraph
        The operations of the stages, with what is known of their accesses.
    """

    __slots__ = ("attached", "concrete", "graph", "stages", "transform_steps")

    def __init__(
        self,
        stages: tuple[Stage, ...],
        transform_steps: tuple[Step, ...],
        attached: Attached,
        graph: Any,
        concrete: bool = True,
    ) -> None:
        self.stages = stages
        self.transform_steps = transform_steps
        self.attached = attached
        self.graph = graph
        self.concrete = concrete

    @property
    def stage_ops(self) -> list[Any]:
        """The operation of each stage."""
        return [stage.op for stage in self.stages]

    def after(self, step: Step) -> StateObject:
        """The same stages, with one more step of history."""
        steps = (*self.transform_steps, step)
        return StateObject(self.stages, steps, self.attached, self.graph, self.concrete)

    def with_stage(self, stage_id: int, stage: Stage) -> StateObject:
        """The state with another stage at a position."""
        stages = (*self.stages[:stage_id], stage, *self.stages[stage_id + 1 :])
        return self.with_stages(stages)

    def with_stages(self, stages: tuple[Stage, ...]) -> StateObject:
        """The state with other stages."""
        return StateObject(stages, self.transform_steps, self.attached, self.graph, self.concrete)

    def with_attached(self, attached: Attached) -> StateObject:
        """The state with stages at other places."""
        return StateObject(self.stages, self.transform_steps, attached, self.graph, self.concrete)

    def with_steps(self, steps: tuple[Step, ...], concrete: bool) -> StateObject:
        """The stages with another history, which has to lead to them."""
        return StateObject(self.stages, steps, self.attached, self.graph, concrete)

    def move_loops(self, stage_id: int, moved: Callable[[int], int]) -> StateObject:
        """The state whose stages at loops of ``stage_id`` follow these to new positions."""
        if not any([target == stage_id for target, _ in self.attached.values()]):
            return self
        attached = {
            stage: (target, moved(loop) if target == stage_id else loop)
            for stage, (target, loop) in self.attached.items()
        }
        return self.with_attached(attached)

    def stages_at(self) -> dict[tuple[int, int], list[int]]:
        """The stages that are computed at each loop."""
        found: dict[tuple[int, int], list[int]] = {}
        for stage, place in self.attached.items():
            found.setdefault(place, []).append(stage)
        return found

    def text(self, delete_trivial_loop: bool = True) -> str:
        """The loops as text.

        Parameters
        ----------
        delete_trivial_loop : bool
            Whether loops of one iteration are left out.
        """
        return _Printer(self, delete_trivial_loop).text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"StateObject({len(self.stages)} stages, {len(self.transform_steps)} steps)"


class _Printer:
    def __init__(self, state: StateObject, delete_trivial_loop: bool) -> None:
        self.stages = state.stages
        self.is_short = delete_trivial_loop
        self.at = state.stages_at()
        self.lines: list[str] = []

    def text(self) -> str:
        inputs = [stage.op.name for stage in self.stages if isinstance(stage.op, PlaceholderOp)]
        self.line(0, f"Placeholder: {', '.join(inputs)}")
        for stage_id, stage in enumerate(self.stages):
            if stage.compute_at == ComputeAt.ROOT and not isinstance(stage.op, PlaceholderOp):
                self.stage(stage_id, 0)
        return "\n".join(self.lines) + "\n"

    def stage(self, stage_id: int, indent: int) -> None:
        stage = self.stages[stage_id]
        name = stage.op.name
        if stage.attrs.auto_unroll_max_step:
            self.line(indent, f"{name} auto_unroll: {stage.attrs.auto_unroll_max_step}")
        if stage.attrs.storage_offset:
            self.line(indent, f"{name} storage_offset: {stage.attrs.storage_offset}")
        for position, loop in enumerate(stage.iters):
            if not (self.is_short and loop.extent == 1):
                self.line(indent, _loop_text(loop))
                indent += 2
            for inner in self.at.get((stage_id, position), ()):
                self.stage(inner, indent)
        self.line(indent, f"{name} = ...")

    def line(self, indent: int, text: str) -> None:
        self.lines.append(" " * indent + text)


def _loop_text(loop: Iterator) -> str:
    extent = "(None)" if loop.extent is None else f"(0,{loop.extent})"
    return f"{ANNOTATION_NAMES[loop.annotation]} {loop.name} {extent}"
