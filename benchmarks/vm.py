"""The Relay VM: what an instruction costs, and networks of any batch or image size beside those of fixed ones.

usage: python -m benchmarks.vm [--model FILE.onnx] [--batches N ...] [--images N ...] [--threads N] [--repeat N]

The model's first dimension, or with --images its last two, are left open for the VM; the graph executor gets
it compiled once for each batch or size.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

ITERATIONS = 1000


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    from benchmarks.models import MODELS_DIR
    from benchmarks.zoo import export_onnx

    path = arguments.model or export_onnx("resnet18", MODELS_DIR)
    kind, values = ("image", arguments.images) if arguments.images else ("batch", arguments.batches)
    table = Table(
        kind, "fixed", "open", "open/fixed", "max error",
        title=f"{path.stem}: milliseconds, {arguments.threads} threads",
    )  # fmt: skip
    machine = open_machine(path, kind)
    for value in values:
        table.add_row(str(value), *beside_fixed(machine, path, kind, value, arguments.repeat))
    Console().print(
        f"{nanoseconds_of_an_instruction():.0f} ns an instruction, small kernels included"
    )
    Console().print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", type=Path, help="with one input of floats (default: a ResNet-18 is exported)"
    )
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4, 8, 16])
    parser.add_argument(
        "--images", type=int, nargs="*", help="rows and columns, instead of batches"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--repeat", type=int, default=10, help="rounds, of which the best run counts"
    )
    return parser.parse_args()


def counting_loop() -> Any:
    """A function that calls itself until its counter is used up."""
    import tvm
    from tvm import relay

    loop, mod = relay.GlobalVar("loop"), tvm.IRModule()
    count, total = relay.var("count", "int32"), relay.var("total", "float32")
    again = loop(count - relay.const(1), total + relay.const(1.0))
    body = relay.If(relay.equal(count, relay.const(0)), total, again)
    mod[loop] = relay.Function([count, total], body, relay.TensorType((), "float32"))
    count, total = relay.var("count", "int32"), relay.var("total", "float32")
    mod["main"] = relay.Function([count, total], loop(count, total))
    return mod


def nanoseconds_of_an_instruction() -> float:
    """The best of some runs of a loop of tiny kernels, over the instructions that they take."""
    import tvm
    from benchmarks.timing import seconds_of
    from tvm import relay
    from tvm.runtime.vm import VirtualMachine

    program = relay.vm.compile(counting_loop(), "llvm")
    machine = VirtualMachine(program, tvm.cpu())
    start = tvm.nd.array(np.int32(ITERATIONS)), tvm.nd.array(np.float32(0))
    assert machine.invoke("main", *start).numpy() == ITERATIONS
    # each round takes all but the other branch of two instructions
    instructions = program.bytecode.count("#") - 2
    seconds = min(seconds_of(lambda: machine.invoke("main", *start)) for _ in range(30))
    return 1e9 * seconds / (ITERATIONS * instructions)


def imported(path: Path, kind: str, value: Any) -> tuple[Any, Any, str, tuple[int, ...]]:
    """The module for a batch or an image size, its weights, and the name and the shape of its input."""
    import onnx

    from benchmarks.models import graph_inputs
    from tvm import relay

    (tensor,) = graph_inputs(path)
    shape = [max(dim.dim_value, 1) for dim in tensor.type.tensor_type.shape.dim]
    if kind == "batch":
        shape[0] = value
    else:
        shape[2:] = [value, value]
    mod, params = relay.frontend.from_onnx(onnx.load(path), {tensor.name: tuple(shape)})
    return mod, params, tensor.name, tuple(shape)


def open_machine(path: Path, kind: str) -> Any:
    """The VM with the model for any batch, or images of any size."""
    import tvm
    from tvm import relay
    from tvm.runtime.vm import VirtualMachine

    mod, params, _, _ = imported(path, kind, relay.Any())
    with tvm.transform.PassContext(opt_level=3):
        return VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())


def beside_fixed(machine: Any, path: Path, kind: str, value: int, repeat: int) -> list[str]:
    """One row: times of both, their ratio, and how far their results are apart."""
    import tvm
    from benchmarks.timing import shortest
    from tvm import relay
    from tvm.contrib import graph_executor

    mod, params, name, shape = imported(path, kind, value)
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(mod, "llvm", params=params)
    fixed = graph_executor.GraphModule(library["default"](tvm.cpu()))
    data = tvm.nd.array(np.random.default_rng(0).normal(size=shape).astype("float32"))
    fixed.set_input(name, data)
    fixed.run()
    wanted, found = fixed.get_output(0).numpy(), machine.invoke("main", data).numpy()
    times = shortest({"fixed": fixed.run, "open": lambda: machine.invoke("main", data)}, repeat)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    milliseconds = [f"{1e3 * seconds:.2f}" for seconds in times.values()]
    return [*milliseconds, f"{times['open'] / times['fixed']:.2f}", f"{error:.1e}"]


if __name__ == "__main__":
    main()
