"""Peak memory of inference beside ONNX Runtime's, each side in a fresh process.

usage: python -m benchmarks.memory [MODEL ...] [--threads N]

A model is a name in benchmarks/zoo.py or an ONNX file. Our side loads a library that
`export_library` wrote, weights inside; the peer loads the ONNX file. Both run three times; the
peak is what the system counts as resident at most (VmHWM), interpreter and packages included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.arguments import models_parser

RUNS = 3
PEAK = """
with open("/proc/self/status") as status:
    lines = dict(line.split(":", 1) for line in status)
print(int(lines["VmHWM"].split()[0]) / 1024)
"""
OURS = f"""
import sys
import numpy as np
import tvm
from tvm.contrib import graph_executor

module = graph_executor.GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu()))
for name, array in np.load(sys.argv[2]).items():
    module.set_input(name, array)
for _ in range({RUNS}):
    module.run()
    module.get_output(0).numpy()
{PEAK}"""
PEER = f"""
import sys
import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
for _ in range({RUNS}):
    session.run(None, feeds)
{PEAK}"""


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    from benchmarks.zoo import MAIN_MODELS

    table = Table(
        "model", "weights", "ours", "ONNX Runtime", "ratio", title="peak of resident memory, MiB"
    )
    ratios = []
    for name in arguments.models or MAIN_MODELS:
        weights, ours, peer = peaks(name, arguments.threads)
        ratios.append(peer / ours)
        figures = [f"{value:.0f}" for value in (weights, ours, peer)]
        table.add_row(Path(name).stem, *figures, f"{peer / ours:.2f}")
    table.add_row("geometric mean", "", "", "", f"{statistics.geometric_mean(ratios):.2f}")
    Console(width=100).print(table)


def parse_arguments() -> argparse.Namespace:
    return models_parser(__doc__).parse_args()


def peaks(name: str, threads: int) -> tuple[float, float, float]:
    """The ONNX file's size, and the peaks of both sides, in MiB."""
    import numpy as np

    from benchmarks.models import subject_of

    subject = subject_of(name, threads)
    with tempfile.TemporaryDirectory() as folder:
        library, feeds = Path(folder) / "model.so", Path(folder) / "feeds.npz"
        np.savez(feeds, **subject.feeds)
        export(subject.path, {key: x.shape for key, x in subject.feeds.items()}, library)
        ours = peak_of(OURS, library, feeds, threads)
        peer = peak_of(PEER, subject.path, feeds, threads)
    return subject.path.stat().st_size / (1 << 20), ours, peer


def export(model: Path, shapes: dict[str, tuple[int, ...]], library: Path) -> None:
    """Compile a model into a library."""
    import onnx

    import tvm
    from tvm import relay

    mod, params = relay.frontend.from_onnx(onnx.load(model), shapes)
    with tvm.transform.PassContext(opt_level=3):
        relay.build(mod, target="llvm", params=params).export_library(str(library))


def peak_of(program: str, *arguments: object) -> float:
    """What a program in a process of its own prints at the end."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found.stdout.split()[-1])


if __name__ == "__main__":
    main()
