"""How near each kernel of a model comes to what the machine can do.

usage: python -m benchmarks.roofline [MODEL ...] [--threads N] [--rows N] [--write]

The roof of a kernel is the longer of its operations at the peak of multiply-adds and its arguments' bytes at
the memory's bandwidth, both measured in the same run; its share is the roof over its time. What stays in
a cache between kernels can be faster than memory: such shares are above 100 %. --write puts the tables into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import models_parser

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
REPEAT = 30


@dataclass(frozen=True)
class Roof:
    """The peaks of a machine."""

    flops: float  # operations a second
    bandwidth: float  # bytes a second


@dataclass
class Kernel:
    """All calls of one kernel in a run of the model."""

    name: str
    flops: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    calls: int = 0

    def roof_seconds(self, roof: Roof) -> float:
        """The least time it can take."""
        return max(self.flops / roof.flops, self.bytes / roof.bandwidth)

    def bound(self, roof: Roof) -> str:
        """What limits it."""
        is_memory = self.bytes / roof.bandwidth > self.flops / roof.flops
        return "memory" if is_memory else "multiply-add"


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    from benchmarks.peak import peak_bandwidth, peak_flops
    from benchmarks.zoo import MAIN_MODELS

    roof = Roof(peak_flops(), peak_bandwidth())
    sections = [introduction(roof, arguments.threads)]
    for name in arguments.models or MAIN_MODELS:
        kernels = measured_kernels(name, arguments.threads)
        sections.append(section(Path(name).stem, kernels, roof, arguments.rows))
    text = "\n".join(sections)
    print(text)
    if arguments.write:
        PAGE.write_text(text)


def parse_arguments() -> argparse.Namespace:
    parser = models_parser(__doc__)
    parser.add_argument("--rows", type=int, default=12, help="kernels to show of each model")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    return parser.parse_args()


def measured_kernels(name: str, threads: int) -> list[Kernel]:
    """The kernels of a model, the slowest first; the shortest of several times of each."""
    import onnx

    import tvm
    from benchmarks.models import subject_of
    from tvm import relay
    from tvm.contrib.debugger import debug_executor

    subject = subject_of(name, threads)
    shapes = {key: array.shape for key, array in subject.feeds.items()}
    mod, params = relay.frontend.from_onnx(onnx.load(subject.path), shapes)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    graph = json.loads(lib.get_graph_json())
    module = debug_executor.create(lib.get_graph_json(), lib, tvm.cpu())
    module.set_input(**lib.get_params())
    for key, array in subject.feeds.items():
        module.set_input(key, array)
    runs = [
        [call["Duration (us)"].value / 1e6 for call in module.profile().calls]
        for _ in range(REPEAT)
    ]
    functions = {
        name: next(iter(info.tir_primfuncs.values()), None)
        for name, info in lib.function_metadata.items()
    }
    return kernels_of(graph, functions, np.min(runs, axis=0))


def kernels_of(graph: dict[str, Any], functions: Any, seconds: Any) -> list[Kernel]:
    """The calls of a graph, those of the same kernel together; `seconds` has one number a call."""
    from tvm.tir.analysis import estimate_tir_flops

    found: dict[str, Kernel] = {}
    sizes, rows = tensor_bytes(graph), graph["node_row_ptr"]
    calls = [
        (number, node, node["attrs"]["func_name"])
        for number, node in enumerate(graph["nodes"])
        if node["op"] != "null" and node["attrs"]["func_name"] != "__nop"
    ]
    for (number, node, symbol), duration in zip(calls, seconds, strict=True):
        function = functions.get(symbol)
        if function is None:
            continue
        name = symbol.removeprefix("tvmgen_default_")
        kernel = found.setdefault(name, Kernel(name))
        entries = [rows[source[0]] + source[1] for source in node["inputs"]]
        entries += range(rows[number], rows[number + 1])
        kernel.flops += estimate_tir_flops(function)
        kernel.bytes += sum([sizes[entry] for entry in entries])
        kernel.seconds += float(duration)
        kernel.calls += 1
    return sorted(found.values(), key=lambda kernel: -kernel.seconds)


def tensor_bytes(graph: dict[str, Any]) -> list[int]:
    """The size of each tensor of a graph."""
    from tvm.support.dtype import dtype

    attrs = graph["attrs"]
    return [
        int(np.prod(shape, dtype="int64")) * max(dtype(kind).bits // 8, 1)
        for shape, kind in zip(attrs["shape"][1], attrs["dltype"][1], strict=True)
    ]


def introduction(roof: Roof, threads: int) -> str:
    """What the tables mean, and where they were measured."""
    from tvm.target.cpu import cpu_info

    info = cpu_info()
    return f"""# How near the kernels come to the machine

Written by `python -m benchmarks.roofline --write`.

Processor: {info.name} ({info.arch}), {threads} threads. Measured in the same run: {roof.flops / 1e9:.0f} GFLOP/s of
multiply-adds in registers, {roof.bandwidth / 1e9:.0f} GB/s read and written. The roof of a kernel is the longer of
its operations at that peak and its arguments' bytes at that bandwidth; its share is the roof over its time.
What stays in a cache between kernels can be faster than memory: such shares are above 100 %.
"""


def section(name: str, kernels: list[Kernel], roof: Roof, rows: int) -> str:
    """One model's table."""
    total = sum([kernel.seconds for kernel in kernels])
    least = sum([kernel.roof_seconds(roof) for kernel in kernels])
    lines = [
        f"## {name}\n",
        f"{1e3 * total:.2f} ms in {sum([k.calls for k in kernels])} calls of {len(kernels)} kernels, "
        f"{least / total:.0%} of the roof.\n",
        "| kernel | calls | ms | MFLOP | MB | bound by | share |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {k.name} | {k.calls} | {1e3 * k.seconds:.3f} | {k.flops / 1e6:.1f} | {k.bytes / 1e6:.2f} "
        f"| {k.bound(roof)} | {k.roof_seconds(roof) / max(k.seconds, 1e-9):.0%} |"
        for k in kernels[:rows]
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
