"""A report from a model: it is built as `relay.build` does, watched, and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tvm.error import OpNotImplemented
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relay.backend.build_graph import build_graph
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.lowering import lower_model
from tvm.relay.backend.machines import Machines
from tvm.relay.backend.runtime import Runtime
from tvm.relay.backend.target_hooks import external_targets
from tvm.relay.function import Function
from tvm.relay.program import Params, as_module
from tvm.relay.progress import Progress, progress
from tvm.relay.transform.infer_type import infer_types
from tvm.runtime.device import cpu
from tvm.support.scope import compiling
from tvm.tir.function import PrimFunc
from tvm.topi.choice import ranked

from .graphs import built_graph, imported_graph, link, marked
from .kernels import kernel_records, slowest
from .measure import call_seconds, describe_machine, device_of, enter_times
from .memory import model_weights, planned_memory
from .passes import PassTrace
from .record import Report
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
    mod: IRModule | Function,
    params: Params | None = None,
    target: Any = "llvm",
    *,
    name: str = "model",
    inputs: Mapping[str, Any] | None = None,
    repeat: int = 3,
    detailed: int = 4,
) -> Report:
    """Build a model, run it, and tell all that is known of both.

    The options of passes are those of the current `PassContext`, tiles those of the current records
    of tuning. The model's kernels are lowered anew, whatever caches hold.

    Parameters
    ----------
    mod : IRModule or relay.Function
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
        If the module has functions of relax.
    """
    if repeat < 0 or detailed < 0:
        raise ValueError(f"explain requires numbers of at least 0, got {repeat=}, {detailed=}")
    given = as_relay(mod, params)
    trace = PassTrace()
    machines = Machines.of(target, None)
    with compiling(), external_targets(target), progress() as step:
        timer = _Timer(step)
        source, names = marked(infer_types(given))
        source = infer_types(source)
        with watched_by(trace), ranked():
            model = lower_model(source, machines, "default", timer)
        factory = build_graph(model, Executor("graph"), Runtime("cpp"), timer)
        timer("compiling kernels for show")
        kernels = kernel_records(model, timer.kernels)
        timer("measuring")
        imported, numbers = imported_graph(source["main"], names)
        built, index = built_graph(model, numbers)
        link(imported, built)
        dev = device_of(model.target) if repeat else "kernels were not measured"
        machine, roof = describe_machine(model.target, dev)
        seconds: dict[int, float] = {}
        if not isinstance(dev, str) and (roof or dev.device_type != cpu().device_type):
            seconds = call_seconds(factory, model, dev, inputs or {}, repeat)
        enter_times(kernels, built, index, model, seconds, roof)
        timer("comparing")
        report = Report(
            name, str(model.target), machine, imported, built, kernels,
            planned_memory(factory.get_graph_json(), model, index),
            model_weights(model, imported, built, index),
            trace.passes(slowest(kernels, detailed)),
            remarks(built, kernels, model.graph.kernels),
            timer.phases, sum(seconds.values()),
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


def as_relay(mod: IRModule | Function, params: Params | None) -> IRModule:
    """The model as a module of relay."""
    found = as_module(mod, params)
    for var, func in found.functions.items():
        if not isinstance(func, (Function, PrimFunc)):
            raise OpNotImplemented(
                f"explain requires functions of relay, got {var.name_hint}, which is one of relax",
                hint="import the model with relay.frontend.from_onnx or from_pytorch",
            )
    return found
