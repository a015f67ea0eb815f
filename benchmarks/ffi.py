"""The cost of crossing borders: calls, arrays, operators, threads, libraries; beside apache-tvm-ffi.

usage: python -m benchmarks.ffi [--rows NAME ...] [--model FILE.onnx] [--rounds N]

Ours and the peer's take turns in one run and each keeps its best round: what is left is the cost, not
the load of the machine. Rows without a peer have a bound alone.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Call = Callable[[], object]
GRAPH_OPERATORS = 1000


@dataclass(frozen=True)
class Row:
    """What is measured: ours, the peer's equivalent, and the bound in seconds."""

    ours: Call
    bound: float
    peer: Call | None = None
    base: Call | None = None  # what ours costs without the thing measured
    per: int = 1  # how many things one call does


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = "2"  # read when the runtime starts
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "ours", "bound", "peer", "ours/peer", title="best of alternating rounds")
    for name in arguments.rows:
        table.add_row(name, *describe(ROWS[name](arguments), arguments.rounds))
    Console().print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=15, help="rounds of a few milliseconds each")
    parser.add_argument(
        "--model", type=Path, help="ONNX file of the library row (default: a ResNet-50 is exported)"
    )
    return parser.parse_args()


def describe(row: Row, rounds: int) -> list[str]:
    calls = {"ours": row.ours, "peer": row.peer, "base": row.base}
    times = best_alternating({name: call for name, call in calls.items() if call}, rounds)
    ours = (times["ours"] - times.get("base", 0.0)) / row.per
    peer = times.get("peer")
    ratio = f"{ours / peer:.2f}" if peer else ""
    verdict = "[green]" if ours <= row.bound else "[red]"
    return [verdict + readable(ours), readable(row.bound), readable(peer) if peer else "", ratio]


def best_alternating(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """The shortest time of one call of each, which take turns."""
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    # about two milliseconds a round
    numbers = {name: max(1, round(2e-3 / timer.timeit(3) * 3)) for name, timer in timers.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(numbers[name]) / numbers[name])
    return best


def readable(seconds: float) -> str:
    for unit, scale in (("ns", 1e9), ("us", 1e6)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def packed_call(_: argparse.Namespace) -> Row:
    """A registered C++ function that does nothing, with three arrays."""
    import numpy as np
    import tvm_ffi

    import tvm

    ours, peer = (ffi.get_global_func("testing.nop") for ffi in (tvm, tvm_ffi))
    a, b, c = (tvm.nd.array(np.zeros(4, "float32")) for _ in range(3))
    x, y, z = (tvm_ffi.from_dlpack(np.zeros(4, "float32")) for _ in range(3))
    return Row(lambda: ours(a, b, c), 0.4e-6, lambda: peer(x, y, z))


def packed_call_of_values(_: argparse.Namespace) -> Row:
    """The same with a number, a real number and text."""
    import tvm_ffi

    import tvm

    ours, peer = (ffi.get_global_func("testing.nop") for ffi in (tvm, tvm_ffi))
    return Row(lambda: ours(1, 2.5, "text"), 0.4e-6, lambda: peer(1, 2.5, "text"))


def compiled_call(_: argparse.Namespace) -> Row:
    """A compiled addition of one element: the call, and the checks of its three arrays."""
    function, arrays = addition(1, parallel=False)
    return Row(lambda: function(*arrays), 0.4e-6)


def callback(_: argparse.Namespace) -> Row:
    """A Python function that is called through the runtime."""
    import tvm_ffi

    import tvm

    def nothing(_value: int) -> None: ...

    ours, peer = tvm.runtime.convert(nothing), tvm_ffi.convert(nothing)
    return Row(lambda: ours(1), 1e-6, lambda: peer(1))


def small_array(_: argparse.Namespace) -> Row:
    """``nd.array`` of eight numbers, which are copied."""
    import numpy as np

    import tvm

    values = np.arange(8, dtype="float32")
    return Row(lambda: tvm.nd.array(values), 2e-6)


def torch_array(_: argparse.Namespace) -> Row:
    """``from_dlpack`` of a torch tensor, whose memory is shared."""
    import torch
    import tvm_ffi

    import tvm

    tensor = torch.arange(8, dtype=torch.float32)
    return Row(lambda: tvm.nd.from_dlpack(tensor), 1.5e-6, lambda: tvm_ffi.from_dlpack(tensor))


def graph_operator(_: argparse.Namespace) -> Row:
    """One operator of a graph: a chain of additions of one element."""
    import numpy as np

    import tvm
    from tvm.contrib import graph_executor

    function, _arrays = addition(1, parallel=False)
    executor = graph_executor.create(addition_chain(GRAPH_OPERATORS), function, tvm.cpu())
    executor.set_input("x", np.ones(1, "float32"))
    run = executor.module["run"]
    run()
    assert executor.get_output(0).numpy()[0] == GRAPH_OPERATORS + 1
    return Row(run, 150e-9, per=GRAPH_OPERATORS)


def thread_launch(_: argparse.Namespace) -> Row:
    """A parallel loop of two tasks, over the same loop on one thread."""
    parallel, arrays = addition(2, parallel=True)
    serial, _arrays = addition(2, parallel=False)
    return Row(lambda: parallel(*arrays), 5e-6, base=lambda: serial(*arrays))


def load_library(arguments: argparse.Namespace) -> Row:
    """Loading the exported library of a ResNet-50, up to an executor that is ready to run."""
    import onnx

    import tvm
    from tvm import relay

    model = arguments.model
    if model is None:
        from benchmarks.zoo import export_onnx

        model = export_onnx("resnet50", Path(tempfile.gettempdir()) / "classic-tvm-bench-models")
    module, params = relay.frontend.from_onnx(onnx.load(model), freeze_params=True)
    path = str(Path(tempfile.mkdtemp()) / "model.so")
    relay.build(module, "llvm", params=params).export_library(path)
    return Row(lambda: tvm.runtime.load_module(path)["default"](tvm.cpu()), 50e-3)


def addition(extent: int, parallel: bool) -> tuple[Any, list[Any]]:
    """The compiled sum of two arrays, and arrays to call it with."""
    import numpy as np

    import tvm
    from tvm import te

    a, b = (te.placeholder((extent,), name=name) for name in "ab")
    c = te.compute((extent,), lambda i: a[i] + b[i], name="c")
    schedule = te.create_schedule(c.op)
    if parallel:
        schedule[c].parallel(schedule[c].op.axis[0])
    arrays = [tvm.nd.array(np.ones(extent, "float32")) for _ in range(3)]
    return tvm.build(schedule, [a, b, c], name="add"), arrays


def addition_chain(count: int) -> str:
    """The JSON of a graph that adds its input to the running sum ``count`` times."""
    attributes = {"func_name": "add", "num_inputs": "2", "num_outputs": "1", "flatten_data": "0"}
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "x", "inputs": []}]
    for i in range(count):
        inputs = [[i, 0, 0], [0, 0, 0]]
        nodes.append({"op": "tvm_op", "name": f"add{i}", "attrs": attributes, "inputs": inputs})
    size = count + 1
    storage = [0, *[1 + i % 2 for i in range(count)]]
    return json.dumps(
        {
            "nodes": nodes,
            "arg_nodes": [0],
            "heads": [[count, 0, 0]],
            "node_row_ptr": list(range(size + 1)),
            "attrs": {
                "dltype": ["list_str", ["float32"] * size],
                "storage_id": ["list_int", storage],
                "shape": ["list_shape", [[1]] * size],
            },
        }
    )


ROWS: dict[str, Callable[[argparse.Namespace], Row]] = {
    "packed-call": packed_call,
    "packed-call-of-values": packed_call_of_values,
    "compiled-call": compiled_call,
    "callback": callback,
    "nd-array": small_array,
    "dlpack-from-torch": torch_array,
    "graph-operator": graph_operator,
    "thread-launch": thread_launch,
    "load-library": load_library,
}


if __name__ == "__main__":
    main()
