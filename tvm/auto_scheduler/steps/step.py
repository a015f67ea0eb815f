"""What all steps share: how they change a state, a te schedule, and how they are written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tvm import te
from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.te.tensor import ComputeOp, Operation
from tvm.tir.expr import IterVar

from ..loops import Iterator, Stage, clean_name
from ..state_object import StateObject

if TYPE_CHECKING:
    StepClass = TypeVar("StepClass", bound="type[Step]")

KINDS: dict[str, type[Step]] = {}


class StepError(TVMError):
    """A step does not suit the state that it is applied to."""


class Step(Object):
    """A transformation of a stage. Steps are values: they never change.

    Attributes
    ----------
    record_prefix : str
        What the step's row of a record begins with.
    stage_id : int
        The position of the stage that it transforms.
    changes_stages : bool
        Whether the state has more stages afterwards.
    """

    __slots__ = ()

    record_prefix: ClassVar[str]
    changes_stages: ClassVar[bool] = False
    stage_id: int

    def apply_to_state(self, state: StateObject) -> tuple[StateObject, Any]:
        """The state behind the step, and what the step gives: loops, or a stage's position.

        The history of ``state`` is that before the step.
        """
        raise NotImplementedError

    def apply_to_schedule(self, replay: Replay) -> str:
        """Transform the schedule; the Python code that does the same."""
        raise NotImplementedError

    def row(self) -> list[Any]:
        """The step in a record, behind its prefix."""
        raise NotImplementedError

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Step:
        """The step of a record's row, without its prefix."""
        return cls(*row)

    def apply(self, state: StateObject) -> tuple[StateObject, Any]:
        """The state with the step in its history, and what the step gives."""
        try:
            new, result = self.apply_to_state(state)
        except IndexError as error:
            raise StepError(
                f"step {self.record_prefix} requires stages and loops that the state has, "
                f"got {self.row()}"
            ) from error
        return new.after(self), result

    def require(self, condition: bool, what: str) -> None:
        """Raise an error unless the condition holds."""
        if not condition:
            raise StepError(f"step {self.record_prefix} requires {what}, got {self.row()}")


def step_kind(cls: StepClass) -> StepClass:
    """Make a class of steps known to records."""
    KINDS[cls.record_prefix] = cls
    return cls


def step_from_row(row: Sequence[Any]) -> Step:
    """The step of a row of a record."""
    if not row or row[0] not in KINDS:
        raise TVMError(f"a record's step begins with one of {', '.join(KINDS)}, got {row!r}")
    return KINDS[row[0]].from_row(row[1:])


def step_row(step: Step) -> list[Any]:
    """The row of a record for a step."""
    return [step.record_prefix, *step.row()]


class Replay:
    """A te schedule on which steps are replayed, with the loops of each stage by position."""

    def __init__(self, ops: Sequence[Operation], outputs: Sequence[Operation]) -> None:
        self.schedule = te.create_schedule(list(outputs))
        self.stages = [self.schedule[op] for op in ops]
        self.axes: list[list[IterVar]] = [list(op.root_iter_vars()) for op in ops]
        self.steps: tuple[Step, ...] = ()

    def run(self, steps: Sequence[Step]) -> str:
        """Apply steps; the Python code of all."""
        lines = []
        for position, step in enumerate(steps):
            self.steps = tuple(steps[:position])
            try:
                lines.append(step.apply_to_schedule(self))
            except IndexError:
                raise TVMError(
                    f"step {position} of a record, {step_row(step)}, is about a stage or a loop "
                    "that the program does not have"
                ) from None
        return "".join(lines)

    @property
    def ops(self) -> list[Operation]:
        """The operations of the stages."""
        return [stage.op for stage in self.stages]

    def reset_axes(self, stage_id: int) -> None:
        """Take over the loops of a stage whose operation has changed."""
        self.axes[stage_id] = list(self.stages[stage_id].op.root_iter_vars())

    def insert(self, stage_id: int, op: Operation) -> None:
        """Put the stage of a new operation at a position."""
        self.stages.insert(stage_id, self.schedule[op])
        self.axes.insert(stage_id, list(op.root_iter_vars()))

    def name(self, stage_id: int) -> str:
        """The name of a stage in Python code."""
        return clean_name(self.stages[stage_id].op.name)

    def axis_name(self, stage_id: int, axis: IterVar) -> str:
        """The name of a loop in Python code."""
        return f"{self.name(stage_id)}_{clean_name(axis.var.name)}"

    def axes_line(self, stage_id: int) -> str:
        """The line that names the axes of a stage."""
        name = self.name(stage_id)
        axes = [self.axis_name(stage_id, iv) for iv in self.axes[stage_id]]
        comma = "," if len(axes) == 1 else ""
        reduced = ""
        op = self.stages[stage_id].op
        if isinstance(op, ComputeOp) and op.reduce_axis:
            reduced = f" + tuple({name}.op.reduce_axis)"
        return f"{', '.join(axes)}{comma} = tuple({name}.op.axis){reduced}\n"


def replace_loops(
    state: StateObject, stage_id: int, first: int, count: int, new: Sequence[Iterator]
) -> StateObject:
    """The state with ``count`` loops of a stage replaced."""
    stage = state.stages[stage_id]
    iters = (*stage.iters[:first], *new, *stage.iters[first + count :])
    return state.with_stage(stage_id, stage.with_iters(iters))


def shift_stages(state: StateObject, start: int, offset: int) -> StateObject:
    """The state whose attached stages are numbered for ``offset`` new stages at ``start``."""

    def moved(stage: int) -> int:
        return stage + offset if stage >= start else stage

    attached = {moved(s): (moved(t), loop) for s, (t, loop) in state.attached.items()}
    return state.with_attached(attached)


def forget_extents(stage: Stage) -> tuple[Iterator, ...]:
    """The loops without what was known of their extents."""
    return tuple([loop.with_extent(None) for loop in stage.iters])
