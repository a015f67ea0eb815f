"""Whether random ONNX graphs give what ONNX Runtime gives, unoptimised and optimised.

    python -m tests.relay.frontend.onnx_agreement --count 5000 --seed 1

A graph that ONNX Runtime has no kernels for is not counted. Sums are rounded in another order, and
what follows may magnify that: an element counts as different only if it is farther off than ONNX
Runtime's own result moves when its inputs move by their last digits.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime

import tvm
from tests.executors import run_library
from tvm import relay
from tvm.relay.traverse import post_order
from tvm.relay.ty import is_dynamic

from .random_onnx import random_model

LEVELS = (0, 3)
ROUNDING = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-7}  # attributes are float32
STEP = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}


@dataclass
class Outcome:
    """What became of one seed; `failure` is empty if nothing went wrong."""

    seed: int
    is_counted: bool = True
    failure: str = ""
    operators: tuple[str, ...] = ()


def reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """ONNX Runtime's results, unoptimised; None if it has no kernel for a node."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error):
            return None
        raise
    return session.run(None, inputs)


def ours(model: onnx.ModelProto, inputs: dict[str, np.ndarray], level: int) -> list[np.ndarray]:
    """Our results."""
    mod, params = _imported(model, inputs)
    if _needs_machine(mod):
        return _by_machine(mod, params, inputs, level)
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(mod, "llvm -mcpu=native", params=params)
    names = {p.name_hint for p in mod["main"].params}
    return run_library(lib, **{name: array for name, array in inputs.items() if name in names})


def _imported(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Any:
    """The program for the shapes that the model declares; for the inputs' where those are needed."""
    try:
        return relay.frontend.from_onnx(model, freeze_params=True)
    except (tvm.error.OpNotImplemented, tvm.error.OpAttributeUnImplemented):
        shapes = {name: array.shape for name, array in inputs.items()}
        return relay.frontend.from_onnx(model, shapes, freeze_params=True)


def _needs_machine(mod: Any) -> bool:
    """Whether the program has branches, loops, or extents that the run decides."""
    checked = relay.transform.InferType()(mod)
    return any(
        isinstance(node, (relay.If, relay.Let)) or is_dynamic(node.checked_type)
        for node in post_order(checked["main"])
        if not isinstance(node, tvm.ir.Op)
    )


def _by_machine(
    mod: Any, params: Any, inputs: dict[str, np.ndarray], level: int
) -> list[np.ndarray]:
    """The results by the virtual machine."""
    with tvm.transform.PassContext(opt_level=level):
        program = relay.vm.compile(mod, "llvm -mcpu=native", params=params)
    machine = tvm.runtime.vm.VirtualMachine(program, tvm.cpu())
    given = [p.name_hint for p in mod["main"].params if p.name_hint not in params]
    found = machine.invoke("main", *[tvm.nd.array(inputs[name]) for name in given])
    return [x.numpy() for x in (found if isinstance(found, tvm.runtime.container.ADT) else [found])]


def _moved(inputs: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The inputs, floating-point ones off by their last digits."""
    moved = dict(inputs)
    for name, array in inputs.items():
        step = STEP.get(str(array.dtype))
        if step is not None:
            factor = 1 + step * rng.uniform(-1, 1, array.shape)
            moved[name] = np.asarray(array * factor, array.dtype)
    return moved


def _moved_weights(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    for tensor in moved.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        changed = _moved({tensor.name: array}, rng)[tensor.name]
        tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    return moved


class Checker:
    """Compares results with the reference; how far that may be off is found when first needed."""

    def __init__(self, model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> None:
        self.model = model
        self.inputs = inputs
        self.expected = reference(model, inputs)
        self._slack: list[np.ndarray] | None = None

    def difference(self, found: list[np.ndarray]) -> str:
        """The first result that differs, in words; empty if none does."""
        assert self.expected is not None
        for index, (value, wanted) in enumerate(zip(found, self.expected, strict=True)):
            if value.shape != wanted.shape or value.dtype != wanted.dtype:
                return (
                    f"result {index} is {value.dtype} of {value.shape}, "
                    f"not {wanted.dtype} of {wanted.shape}"
                )
            wrong = self._wrong(index, value, wanted)
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0].tolist())
                return f"result {index} at {at} is {value[at]}, not {wanted[at]}"
        return ""

    def _wrong(self, index: int, value: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        rounding = ROUNDING.get(str(wanted.dtype))
        if rounding is None:
            return np.asarray(value != wanted)
        value, wanted = value.astype("float64"), wanted.astype("float64")
        finite = wanted[np.isfinite(wanted)]
        scale = np.abs(finite).max() if finite.size else 1.0
        near = np.isclose(value, wanted, rtol=rounding, atol=rounding * scale, equal_nan=True)
        if near.all():
            return ~near
        with np.errstate(invalid="ignore"):
            explained = np.abs(value - wanted) <= 30 * self._slack_of(index)
        return ~near & ~explained

    def _slack_of(self, index: int) -> np.ndarray:
        if self._slack is None:
            self._slack = self._find_slack()
        return self._slack[index]

    def _find_slack(self) -> list[np.ndarray]:
        assert self.expected is not None
        slack = [np.zeros(e.shape) for e in self.expected]
        rng = np.random.default_rng(0)
        for _ in range(4):
            moved = reference(_moved_weights(self.model, rng), _moved(self.inputs, rng))
            assert moved is not None
            for index, (a, b) in enumerate(zip(moved, self.expected, strict=True)):
                with np.errstate(invalid="ignore", over="ignore"):
                    step = np.abs(a.astype("float64") - b.astype("float64"))
                # where the reference itself overflows there is nothing to compare
                slack[index] = np.maximum(slack[index], np.where(np.isnan(step), np.inf, step))
        return slack


def check(seed: int, nodes: int | None = None) -> Outcome:
    """One random graph."""
    model, inputs = random_model(seed, nodes)
    outcome = Outcome(seed, operators=tuple(node.op_type for node in model.graph.node))
    checker = Checker(model, inputs)
    if checker.expected is None:
        outcome.is_counted = False
        return outcome
    for level in LEVELS:
        try:
            difference = checker.difference(ours(model, inputs, level))
        except Exception as error:
            difference = f"{type(error).__name__}: {error}"
        if difference:
            outcome.failure = f"opt_level {level}: {difference}"
            return outcome
    return outcome


def main(argv: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description="Compares random ONNX graphs with ONNX Runtime at opt_level 0 and 3."
    )
    parser.add_argument("--count", type=int, default=100, help="how many graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--nodes", type=int, help="nodes of each graph, by default 1 to 20")
    args: Any = parser.parse_args(argv)
    counted, failed = 0, 0
    seen: Counter[str] = Counter()
    for seed in range(args.seed, args.seed + args.count):
        outcome = check(seed, args.nodes)
        counted += outcome.is_counted
        seen.update(outcome.operators if outcome.is_counted else ())
        if outcome.failure:
            failed += 1
            print(f"seed {seed}: {outcome.failure}\n    {' '.join(outcome.operators)}", flush=True)
    print(f"{counted} graphs, {failed} failures, {len(seen)} operators", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
