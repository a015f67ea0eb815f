"""What breaks a model: a graph pass, a kernel, or what was there before any pass.

The module is evaluated after each number of passes by the interpreter, one operator at a time and with
plain loops instead of schedules, so that later passes and kernels cannot disturb the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm.contrib.onnx_backend import needs_interpreter
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext
from tvm.relay.backend.evaluate import compile_function
from tvm.relay.backend.kernels import kernel_name
from tvm.relay.build_module import create_executor
from tvm.relay.expr import Call, Tuple
from tvm.relay.function import Function, is_primitive
from tvm.relay.pipeline import fusion, optimization
from tvm.relay.traverse import post_order
from tvm.runtime.device import cpu
from tvm.runtime.ndarray import NDArray
from tvm.runtime.ndarray import array as as_ndarray
from tvm.target import Target

from .compare import Difference, Tolerance, compare
from .engine import Engine
from .search import Reproducer

# no operator has a schedule for this key: loops stay as they are computed
_PLAIN = "llvm -keys=plain"
# passes on loops that programs stay right without
_OPTIONAL_PASSES = ("tir.LoopPartition", "tir.InjectDoubleBuffer", "tir.StorageRewrite",
                    "tir.UnrollLoop", "tir.VectorizeLoop", "tir.RemoveNoOp",
                    "tir.RewriteUnsafeSelect", "tir.HoistIfThenElse", "tir.CommonSubexprElimTIR",
                    "tir.Simplify")  # fmt: skip

ROUNDING = (
    "rounding that adds up over many nodes: no nodes near each other show it. "
    "If that is acceptable, allow more with atol"
)

_IN_MACHINE = (
    "a kernel's schedule or code, or the program of the virtual machine: the operators themselves "
    "are right, and so are the graph passes"
)

UNSTABLE = "what differs from one compilation to the next: compiled once more, the output agrees"


@dataclass(frozen=True)
class Verdict:
    """Who is to blame.

    Attributes
    ----------
    kind : str
        "import", "pass", "kernel", "rounding" or "unknown".
    name : str
        The pass or kernel.
    text : str
        The same as a sentence.
    before, after : str
        The program around the pass, or the kernel's function.
    """

    kind: str
    name: str
    text: str
    before: str = ""
    after: str = ""


def find_culprit(
    reproducer: Reproducer,
    engine: Engine,
    tolerance: Tolerance,
    tell: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Who makes the reproducer's output differ."""
    mod = engine.imported(reproducer.model, reproducer.inputs)
    trial = _Trial(reproducer.inputs, reproducer.expected, tolerance, tell)
    nodes = ", ".join(dict.fromkeys(node.op_type for node in reproducer.model.graph.node))
    if not trial.is_right(mod):
        text = f"the importer or the definition of an operator: {nodes}, before any pass"
        return Verdict("import", nodes, text, before=str(mod))
    is_interpreted = needs_interpreter(mod["main"])
    passes, mods = _states(mod, engine, is_interpreted)
    wrong = trial.first_wrong(mods)
    if wrong is None and is_interpreted:
        return Verdict("kernel", "", _IN_MACHINE)
    if wrong is None:
        return _find_kernel(mods[-1], engine, trial)
    culprit = passes[wrong - 1]
    return Verdict(
        "pass", culprit.info.name,
        f"graph pass {culprit.info.name}, number {wrong} of {len(passes)}",
        str(mods[wrong - 1]), str(mods[wrong]),
    )  # fmt: skip


def _states(
    mod: IRModule, engine: Engine, is_interpreted: bool
) -> tuple[list[Pass], list[IRModule]]:
    """The passes that run, and the module before the first and after each."""
    with PassContext(opt_level=engine.opt_level, **engine.context) as context, engine.target:
        fused = [] if is_interpreted else fusion().passes
        stages = [*engine.passes, *optimization().passes, *fused]
        passes = [p for p in stages if context.enables(p.info.name, p.info.opt_level)]
        mods = [mod]
        for each in passes:
            mods.append(each(mods[-1]))
    return passes, mods


@dataclass(frozen=True)
class _Trial:
    """Whether modules give what is expected."""

    inputs: Mapping[str, Any]
    expected: Any
    tolerance: Tolerance
    tell: Callable[[str], None]

    def evaluate(self, mod: IRModule) -> Any:
        """The result of `main`, one operator at a time."""
        with PassContext(opt_level=0):
            run = create_executor("debug", mod, cpu(), Target(_PLAIN)).evaluate()
            return run(*[self.inputs[param.name_hint] for param in mod["main"].params])

    def is_right(self, mod: IRModule) -> bool:
        """Whether the module gives what is expected."""
        result = self.evaluate(mod)
        found = result.numpy() if isinstance(result, NDArray) else None
        return compare(found, self.expected, self.tolerance) is None

    def first_wrong(self, mods: Sequence[IRModule]) -> int | None:
        """The first module that is wrong where the one before is right; the very first is right."""
        if self.is_right(mods[-1]):
            return None
        good, bad = 0, len(mods) - 1
        while bad - good > 1:
            self.tell(f"searching passes {good + 1} to {bad}")
            middle = (good + bad) // 2
            if self.is_right(mods[middle]):
                good = middle
            else:
                bad = middle
        return bad


def _find_kernel(mod: IRModule, engine: Engine, trial: _Trial) -> Verdict:
    """The first kernel whose compiled code differs from its operators, given what these give."""
    main = mod["main"]
    calls = [n for n in post_order(main.body) if isinstance(n, Call) and is_primitive(n.op)]
    for call, results, arguments in _observed(main, calls, trial):
        assert isinstance(call.op, Function)
        name = kernel_name(call.op)
        trial.tell(f"checking kernel {name}")
        kernel = _Kernel(call.op, arguments, results, trial.tolerance)
        difference = kernel.difference(engine)
        if difference is not None:
            text = f"{_blamed_for(kernel, name, engine)}: {difference}"
            return Verdict("kernel", name, text, before=str(call.op))
    return Verdict(
        "unknown", "",
        "every pass and every kernel is right by itself: rounding that adds up, or the executor",
    )  # fmt: skip


def _blamed_for(kernel: _Kernel, name: str, engine: Engine) -> str:
    """What of a wrong kernel is wrong."""
    for suspect, without in _suspects(engine):
        if kernel.difference(without) is None:
            return f"{suspect} in kernel {name}, which is right without it"
    plain = replace(engine.unoptimised(), target=Target(_PLAIN))
    if kernel.difference(plain) is None:
        return f"the schedule or the code of kernel {name}"
    calls = [n for n in post_order(kernel.func.body) if isinstance(n, Call)]
    operators = dict.fromkeys([call.operator.name for call in calls])
    return f"the compute of {' or '.join(operators)}, wrong in kernel {name} without a schedule too"


@dataclass(frozen=True)
class _Kernel:
    """A fused function with values of its arguments, and what its operators give."""

    func: Function
    arguments: Sequence[np.ndarray[Any, Any]]
    results: Sequence[np.ndarray[Any, Any]]
    tolerance: Tolerance

    def difference(self, engine: Engine) -> Difference | None:
        """How the compiled kernel differs."""
        with PassContext(opt_level=engine.opt_level, **engine.context):
            made = compile_function(self.func, engine.target)(
                [as_ndarray(a) for a in self.arguments]
            )
        found = [
            compare(array.numpy(), expected, self.tolerance)
            for array, expected in zip(made, self.results, strict=True)
        ]
        return next((difference for difference in found if difference is not None), None)


def _suspects(engine: Engine) -> Iterator[tuple[str, Engine]]:
    """What kernels can be compiled without, and how to compile without it."""
    config = dict(engine.context.get("config") or {})
    disabled = list(engine.context.get("disabled_pass") or ())
    own = list(config.get("tir.add_lower_pass", ()))
    for i, (_, item) in enumerate(own):
        name = item.info.name if isinstance(item, Pass) else getattr(item, "__name__", "")
        rest = {**config, "tir.add_lower_pass": [*own[:i], *own[i + 1 :]]}
        yield f"your pass {name}", engine.with_context(config=rest)
    for name in _OPTIONAL_PASSES:
        yield f"pass {name}", engine.with_context(disabled_pass=[*disabled, name])
    if engine.target.kind.name == "llvm":
        plain = Target({**engine.target.export(), "opt-level": 0})
        yield "LLVM's optimiser", replace(engine, target=plain)


def _observed(
    main: Function, calls: Sequence[Call], trial: _Trial
) -> list[tuple[Call, list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]]:
    """Each call with its results and its arguments' values."""
    shown = Tuple([Tuple([call, *call.args]) for call in calls])
    values = trial.evaluate(IRModule.from_expr(Function(main.params, shown)))
    return [
        (call, _flat(result), _flat(arguments))
        for call, (result, *arguments) in zip(calls, values, strict=True)
    ]


def _flat(value: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(value, NDArray):
        return [value.numpy()]
    if not isinstance(value, (list, tuple)):
        raise TVMError(f"a kernel takes tensors, got {type(value).__name__}")
    return [array for item in value for array in _flat(item)]
