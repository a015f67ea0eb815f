"""The steps of a schedule, in order: replayed on other programs, written as Python and as JSON, simplified."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import RuntimeValueError
from tvm.ir.script_printer import ShownInNotebooks
from tvm.runtime.object import Object
from tvm.tir.expr import Var

from .instruction import Instruction, InstructionKind, replace_variables, variables_in
from .random_variables import BlockRV
from .trace_json import attr_of_json, instruction_json, plain, value_of_json

if TYPE_CHECKING:
    from .schedule import Schedule

POSTPROC = "EnterPostproc"
DecisionProvider = Callable[[Instruction, list[Any], list[Any], Any], Any]


class Trace(ShownInNotebooks, Object):
    """The steps of a schedule and the decisions that were taken.

    Parameters
    ----------
    insts : list of Instruction
        The steps.
    decisions : dict of Instruction to object
        What was decided, for the steps that sample.
    """

    def __init__(
        self, insts: Sequence[Instruction] = (), decisions: Mapping[Instruction, Any] | None = None
    ) -> None:
        self.insts = list(insts)
        self.decisions = dict(decisions or {})

    def get_decision(self, inst: Instruction) -> Any:
        """What was decided in a step; None if nothing was."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add a step, and what was decided in it."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Take the last step off; None if there is none."""
        if not self.insts:
            return None
        last = self.insts.pop()
        self.decisions.pop(last, None)
        return last

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """A trace in which another decision is taken in a step.

        Parameters
        ----------
        inst : Instruction
            The step.
        decision : object
            The decision.
        remove_postproc : bool
            Whether to leave the steps of post-processing out.
        """
        insts = self._steps(remove_postproc)
        decisions = {step: self.decisions[step] for step in insts if step in self.decisions}
        return Trace(insts, {**decisions, inst: decision})

    def simplified(self, remove_postproc: bool) -> Trace:
        """A trace without the steps whose results are not used and that leave the program as it is."""
        used: dict[Any, None] = {}
        kept: list[Instruction] = []
        for inst in reversed(self._steps(remove_postproc)):
            if inst.kind.is_pure and not any([output in used for output in inst.outputs]):
                continue
            kept.append(inst)
            used.update(dict.fromkeys(variables_in(inst.inputs)))
            used.update(dict.fromkeys(variables_in(inst.attrs)))
        kept.reverse()
        return Trace(kept, {step: self.decisions[step] for step in kept if step in self.decisions})

    def apply_to_schedule(
        self,
        sch: Schedule,
        remove_postproc: bool,
        decision_provider: DecisionProvider | None = None,
    ) -> None:
        """Do the steps on another schedule.

        Parameters
        ----------
        sch : Schedule
            The schedule.
        remove_postproc : bool
            Whether to leave the steps of post-processing out.
        decision_provider : callable, optional
            Called with a step, its inputs, its attributes and its decision; gives the decision to take.
        """
        mapping: dict[Any, Any] = {}
        for inst in self._steps(remove_postproc):
            inputs = [replace_variables(value, mapping) for value in inst.inputs]
            decision = self.decisions.get(inst)
            if decision_provider is not None and inst.kind.samples:
                decision = decision_provider(inst, inputs, inst.attrs, decision)
            outputs = inst.kind.apply(sch, inputs, inst.attrs, decision)
            mapping.update(zip(inst.outputs, outputs, strict=True))

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """The trace as lists of texts and numbers: the steps, then ``[step, decision]`` pairs."""
        names = _Names()
        steps = self._steps(remove_postproc)
        rows = []
        for inst in steps:
            for output in inst.outputs:
                names.define(output)
            rows.append(instruction_json(inst, names.known))
        decisions = [
            [position, plain(self.decisions[inst])]
            for position, inst in enumerate(steps)
            if inst in self.decisions
        ]
        return [rows, decisions]

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """The trace as statements of Python, a line each."""
        names = _Names()
        lines = []
        for inst in self._steps(remove_postproc):
            for output in inst.outputs:
                names.define(output)
            lines.append(inst.as_python(names.known, self.decisions.get(inst)))
        return lines

    @staticmethod
    def apply_json_to_schedule(json_obj: Sequence[Any], sch: Schedule) -> None:
        """Do the steps of a trace that was written as JSON.

        Parameters
        ----------
        json_obj : list
            What :meth:`as_json` gave.
        sch : Schedule
            The schedule.
        """
        if len(json_obj) != 2:
            raise RuntimeValueError(
                f"a trace requires two lists, of steps and of decisions, got {json_obj!r}"
            )
        rows, decided = json_obj
        decisions = {int(position): decision for position, decision in decided}
        values: dict[str, Any] = {}
        for position, (kind_name, inputs, attrs, outputs) in enumerate(rows):
            kind = InstructionKind.get(kind_name)
            results = kind.apply(
                sch,
                [value_of_json(item, values) for item in inputs],
                [attr_of_json(item) for item in attrs],
                decisions.get(position),
            )
            values.update(zip(outputs, results, strict=True))

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the trace as Python.

        Parameters
        ----------
        style : str, optional
            Accepted for compatibility, as ``black_format`` is; the text is printed plainly.
        """
        del style, black_format
        print(self)

    def __str__(self) -> str:
        head = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        lines = self.as_python() or ["pass"]
        return "\n".join([*head, *[f"  {line}" for line in lines]])

    __repr__ = __str__

    def _steps(self, remove_postproc: bool) -> list[Instruction]:
        if remove_postproc:
            for position, inst in enumerate(self.insts):
                if inst.kind.name == POSTPROC:
                    return self.insts[:position]
        return list(self.insts)


class _Names:
    """Random variables by number: blocks b0, loops l1, numbers v2."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    def define(self, variable: Any) -> str:
        kind = "b" if isinstance(variable, BlockRV) else "v" if isinstance(variable, Var) else "l"
        found = self.names.get(variable)
        if found is None:
            found = self.names[variable] = f"{kind}{len(self.names)}"
        return found

    def known(self, variable: Any) -> str:
        return self.names.get(variable, "_")
