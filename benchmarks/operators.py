"""Single operators beside ONNX Runtime's, alternating in one run: a table for each family.

usage: python -m benchmarks.operators [PATTERN ...] [--threads N] [--rounds N] [--below RATIO]

A pattern chooses the operators whose family or name contains it. The ratio is the peer's time over
ours: above 1 we are faster. Inputs and outputs lie ready on both sides. A wrong number is an error.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.operator_cases import FAMILIES, Case

# of the greatest magnitude that is expected
TOLERANCES = {"float16": 1e-2, "float32": 1e-3, "float64": 1e-6}


@dataclass(frozen=True)
class Measured:
    """Seconds of both sides, or why there are none."""

    case: Case
    ours: float = 0.0
    peer: float = 0.0
    fault: str = ""

    @property
    def ratio(self) -> float:
        return self.peer / self.ours


def main() -> None:
    arguments = parse_arguments()
    # the runtimes read their number of threads before they start
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console

    console = Console(width=110)
    found: list[Measured] = []
    for family, cases in chosen(arguments.patterns):
        rows = [measure(case, arguments) for case in cases]
        found += rows
        show(console, family, rows, arguments.below)
    ratios = [row.ratio for row in found if not row.fault]
    if ratios:
        mean, count = statistics.geometric_mean(ratios), len(ratios)
        console.print(f"geometric mean of {count} operators {mean:.2f}, least {min(ratios):.2f}")
    if faults := [f"{row.case.name}: {row.fault}" for row in found if row.fault]:
        sys.exit("\n".join(["wrong or rejected:", *faults]))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="parts of families or names (default: all)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=4, help="turns of each side")
    parser.add_argument("--below", type=float, default=float("inf"), help="show only lesser ratios")
    parser.add_argument("--target", default="llvm")
    return parser.parse_args()


def chosen(patterns: Sequence[str]) -> Iterator[tuple[str, list[Case]]]:
    """The families with those of their operators that are asked for."""
    for family, make in FAMILIES.items():
        cases = [
            case
            for case in make()
            if not patterns or any(p in f"{family} {case.name}" for p in patterns)
        ]
        if cases:
            yield family, cases


def measure(case: Case, arguments: argparse.Namespace) -> Measured:
    """Both sides' times, once their results agree."""
    import tvm
    from benchmarks.models import onnxruntime_in_place
    from benchmarks.timing import shortest

    model, feeds = case.model()
    peer, expected = onnxruntime_in_place(model, feeds, arguments.threads)
    try:
        run, results = compiled(model, feeds, arguments.target)
    except (tvm.TVMError, NotImplementedError, ValueError) as error:
        return Measured(case, fault=str(error).partition("\n")[0])
    if fault := disagreement(results, expected):
        return Measured(case, fault=fault)
    times = shortest({"ours": run, "peer": peer}, arguments.rounds)
    return Measured(case, times["ours"], times["peer"])


def compiled(
    model: onnx.ModelProto, feeds: dict[str, np.ndarray], target: str
) -> tuple[Callable[[], object], list[np.ndarray]]:
    """What runs an operator, and its results; the virtual machine, if shapes depend on values."""
    import tvm
    from benchmarks.models import compiled_onnx
    from tvm import relay
    from tvm.runtime.vm import VirtualMachine

    if all(is_static(value) for value in model.graph.output):
        module, _ = compiled_onnx(model, feeds, target=target)
        module.run()
        return module.run, [
            x.numpy() for x in map(module.get_output, range(module.get_num_outputs()))
        ]
    shapes = {name: array.shape for name, array in feeds.items()}
    mod, params = relay.frontend.from_onnx(model, shapes)
    with tvm.transform.PassContext(opt_level=3):
        machine = VirtualMachine(relay.vm.compile(mod, target, params=params), tvm.cpu())
    arrays = [tvm.nd.array(feeds[x.name_hint]) for x in mod["main"].params if x.name_hint in feeds]
    found = machine.invoke("main", *arrays)
    results = [found] if isinstance(found, tvm.nd.NDArray) else list(found)
    return lambda: machine.invoke("main", *arrays), [x.numpy() for x in results]


def is_static(value: onnx.ValueInfoProto) -> bool:
    """Whether shape inference found every extent."""
    kind = value.type.tensor_type
    return kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)


def disagreement(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """What is wrong with the results; nothing if they are right."""
    for found, wanted in zip(results, expected, strict=True):
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            return f"{found.dtype}{found.shape}, expected {wanted.dtype}{wanted.shape}"
        if not wanted.size:
            continue
        scale = np.abs(wanted).max() if wanted.dtype != bool else True
        # what is small beside 1 may be the rest of a difference
        bound = TOLERANCES.get(str(wanted.dtype), 0.0) * max(float(scale), 1e-2)
        error = np.abs(found.astype("float64") - wanted.astype("float64")).max()
        if not error <= bound:
            return f"differs by {error:.1e} of {scale:.1e}"
    return ""


def show(console: object, family: str, rows: Sequence[Measured], below: float) -> None:
    """Print a family's table, the slowest beside the peer first."""
    from rich.table import Table

    right = sorted([row for row in rows if not row.fault], key=lambda row: row.ratio)
    if not right:
        return
    mean = statistics.geometric_mean([row.ratio for row in right])
    table = Table(family, "ours, us", "ONNX Runtime, us", "ratio")
    for row in right:
        if row.ratio < below:
            times = [f"{1e6 * seconds:.1f}" for seconds in (row.ours, row.peer)]
            table.add_row(row.case.name, *times, f"{row.ratio:.2f}")
    table.add_row(f"geometric mean of {len(right)}", "", "", f"{mean:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
