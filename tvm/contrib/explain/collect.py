"""A report from a model: it is built as `relay.build` does, watched, and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tvm.error import OpNotImplemented
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relax.expr import Function as RelaxFunction
from tvm.relay.backend.target_hooks import external_targets
from tvm.relay.function import Function
from tvm.relay.program import Params, as_module
from tvm.relay.progress import Progress, progress
from tvm.runtime.device import cpu
from tvm.support.scope import compiling
from tvm.tir.function import PrimFunc

from .kernels import kernel_records, slowest
from .measure import describe_machine, device_of, enter_times
from .passes import PassTrace
from .program import Program
from .record import Report
from .relax_program import is_relax, relax_program
from .relay_program import relay_program
from .remarks import remarks

A = TypeVar("A")
B = TypeVar("B")


class _Timer(Progress):
    """Tells what a build is doing, and keeps how long each phase and each kernel takes."""

    def __init__(self, step: Progress) -> None:
        super().__init__(step.line, step.title)
        self.phases: dict[str, float] = {}
        self.kernels: dict[str, float] = {}
        self._phase = ""
        self._since = time.perf_counter()

    def __call__(self, text: str | Callable[[], str], done: float | None = None) -> None:
        if isinstance(text, str):
            self.end()
            self._phase = text
        super().__call__(text, done)

    def end(self) -> None:
        """The phase ends."""
        now = time.perf_counter()
        if self._phase:
            self.phases[self._phase] = self.phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = "", now

    def counting(
        self, text: str, f: Callable[[A], B], total: int, describe: Callable[[A], str]
    ) -> Callable[[A], B]:
        def timed(value: A) -> B:
            start = time.perf_counter()
            result = f(value)
            # equal functions are lowered once, and found at once later
            self.kernels.setdefault(str(getattr(result, "name", "")), time.perf_counter() - start)
            return result

        return super().counting(text, timed, total, describe)


def explain(
    mod: IRModule | Function | RelaxFunction,
    params: Params | None = None,
    target: Any = "llvm",
    *,
    name: str = "model",
    inputs: Mapping[str, Any] | None = None,
    repeat: int = 3,
    detailed: int = 4,
) -> Report:
    """Build a model of relay or relax, run it, and tell all that is known of both.

    The options of passes are those of the current `PassContext`, tiles those of the current records
    of tuning. The model's kernels are lowered anew, whatever caches hold.

    Parameters
    ----------
    mod : IRModule, relay.Function or relax.Function
        The model; its function `main`.
    params : dict of str to NDArray, optional
        Values of its parameters.
    target : str or Target
        The machine. Kernels are measured if they run here.
    name : str
        What the report calls the model.
    inputs : dict of str to array, optional
        Inputs of the measured runs; others are random.
    repeat : int
        How often the model runs; times are the shortest ones. 0 measures nothing.
    detailed : int
        How many kernels, the slowest ones, have the changes of each pass on loops shown.

    Returns
    -------
    Report

    Raises
    ------
    NeedsVirtualMachine
        If shapes are open or the model has control flow.
    OpNotImplemented
        If a model of relax has open shapes or control flow, or one of relay functions of relax.
    """
    if repeat < 0 or detailed < 0:
        raise ValueError(f"explain requires numbers of at least 0, got {repeat=}, {detailed=}")
    trace = PassTrace()
    with compiling(), external_targets(target), progress() as step:
        timer = _Timer(step)
        if is_relax(mod):
            program: Program = relax_program(mod, params, target, watched_by(trace), timer)
        else:
            program = relay_program(as_relay(mod, params), target, watched_by(trace), timer)
        timer("compiling kernels for show")
        kernels = kernel_records(program, timer.kernels)
        timer("measuring")
        dev = device_of(program.target) if repeat else "kernels were not measured"
        machine, roof = describe_machine(program.target, dev)
        seconds: dict[int, float] = {}
        if not isinstance(dev, str) and (roof or dev.device_type != cpu().device_type):
            seconds = program.call_seconds(dev, inputs or {}, repeat)
        enter_times(kernels, program, seconds, roof)
        timer("comparing")
        report = Report(
            name, str(program.target), machine, program.imported, program.built, kernels,
            program.memory(), program.weights(), trace.passes(slowest(kernels, detailed)),
            remarks(program, kernels), timer.phases, sum(seconds.values()),
        )  # fmt: skip
        timer.end()
    return report


def watched_by(trace: PassTrace) -> PassContext:
    """The current options of passes, with one who watches them more."""
    outer = PassContext.current()
    return PassContext(
        outer.opt_level, outer.required_pass, outer.disabled_pass, [*outer.instruments, trace],
        outer.config,
    )  # fmt: skip


def as_relay(mod: Any, params: Params | None) -> IRModule:
    """The model as a module of relay."""
    found = as_module(mod, params)
    for var, func in found.functions.items():
        if not isinstance(func, (Function, PrimFunc)):
            raise OpNotImplemented(
                f"explain requires functions of relay, got {var.name_hint}, which is one of relax",
                hint="import the model with relay.frontend.from_onnx or from_pytorch",
            )
    return found
