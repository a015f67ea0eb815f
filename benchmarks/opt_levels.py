"""What optimising changes: each model at opt_level 3 beside itself at opt_level 0.

usage: python -m benchmarks.opt_levels [MODEL ...] [--threads N] [--limit X]

A model is a name in benchmarks/zoo.py or an ONNX file. Errors are the largest difference over the largest
number; the command fails where one is above the limit.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arguments import models_parser

LEVELS = (0, 3)


def main() -> None:
    arguments = parse_arguments()
    os.environ["TVM_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    from benchmarks.zoo import MAIN_MODELS, names_like

    table = Table(
        "model", "kernels at 0", "at 3", "ms at 0", "at 3", "times faster", "error of 3 to 0",
        title=f"{arguments.threads} threads",
    )  # fmt: skip
    worst = 0.0
    for name in names_like(arguments.models or (*MAIN_MODELS, "resnet50", "vit_b_16")):
        error, row = compare(name, arguments.threads)
        worst = max(worst, error)
        table.add_row(Path(name).stem, *row)
    Console(width=100).print(table)
    if worst > arguments.limit:
        sys.exit(f"an error of {worst:.1e} is above {arguments.limit:.1e}")


def parse_arguments() -> argparse.Namespace:
    parser = models_parser(__doc__, "all")
    parser.add_argument("--limit", type=float, default=1e-3, help="the largest error to accept")
    return parser.parse_args()


def compare(name: str, threads: int) -> tuple[float, list[str]]:
    """The error, and one row of the table."""
    from benchmarks.models import subject_of
    from benchmarks.timing import seconds_of

    subject = subject_of(name, threads)
    kernels, seconds, outputs = [], [], []
    for level in LEVELS:
        module, count = compiled(subject, level)
        module.run()
        outputs.append(module.get_output(0).numpy())
        kernels.append(count)
        seconds.append(min([seconds_of(module.run) for _ in range(3 if level == 0 else 10)]))
    error = np.abs(outputs[1] - outputs[0]).max() / max(np.abs(outputs[0]).max(), 1e-30)
    return float(error), [
        *[str(count) for count in kernels], *[f"{1e3 * s:.2f}" for s in seconds],
        f"{seconds[0] / seconds[1]:.1f}", f"{error:.1e}",
    ]  # fmt: skip


def compiled(subject: Any, level: int) -> tuple[Any, int]:
    """The model with its inputs set, and how many kernels it calls."""
    import json

    import onnx

    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    shapes = {key: array.shape for key, array in subject.feeds.items()}
    mod, params = relay.frontend.from_onnx(onnx.load(subject.path), shapes)
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(mod, target="llvm", params=params)
    calls = [node for node in json.loads(lib.get_graph_json())["nodes"] if node["op"] == "tvm_op"]
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for key, array in subject.feeds.items():
        module.set_input(key, array)
    return module, len(calls)


if __name__ == "__main__":
    main()
