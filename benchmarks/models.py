"""Latency and compile time of real models beside ONNX Runtime's, alternating in one run.

usage: python -m benchmarks.models [MODEL ...] [--threads N] [--repeat N] [--importer onnx|pytorch]

Ratios are peer over ours: above 1 we are faster. Outputs are compared with PyTorch's first.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

MODELS_DIR = Path(tempfile.gettempdir()) / "pytvm-bench-models"


def main() -> None:
    arguments = parse_arguments()
    # both runtimes read their number of threads before they start
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    from benchmarks.zoo import MAIN_MODELS

    table = Table(
        "model", "ours ms", "ONNX Runtime ms", "ratio", "compile s", "import s", "max error",
        title=f"{arguments.threads} threads, batch 1, importer {arguments.importer}",
    )  # fmt: skip
    for name in arguments.models or MAIN_MODELS:
        table.add_row(name, *measure(name, arguments))
    Console().print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names in benchmarks/zoo.py (default: the main)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=30, help="rounds of one run each")
    parser.add_argument("--importer", choices=["onnx", "pytorch"], default="onnx")
    parser.add_argument("--target", default="llvm")
    return parser.parse_args()


def measure(name: str, arguments: argparse.Namespace) -> list[str]:
    """One row of the table."""
    import numpy as np
    import torch

    from benchmarks.timing import alternate
    from benchmarks.zoo import build, export_onnx

    torch.set_num_threads(arguments.threads)
    model, inputs = build(name)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    path = export_onnx(name, MODELS_DIR)
    arrays = {f"in{i}": x.numpy() for i, x in enumerate(inputs)}
    module, import_seconds, build_seconds = compile_ours(model, inputs, path, arguments)
    for key, array in arrays.items():
        module.set_input(key, array)
    module.run()
    error = np.abs(module.get_output(0).numpy() - expected).max() / np.abs(expected).max()
    session = open_session(path, arguments.threads)
    feeds = {i.name: arrays[i.name] for i in session.get_inputs()}
    times = alternate(
        {"ours": module.run, "peer": lambda: session.run(None, feeds)}, arguments.repeat
    )
    ours, peer = 1e3 * times["ours"], 1e3 * times["peer"]
    return [f"{ours:.2f}", f"{peer:.2f}", f"{peer / ours:.2f}", f"{build_seconds:.1f}",
            f"{import_seconds:.1f}", f"{error:.1e}"]  # fmt: skip


def compile_ours(
    model: Any, inputs: Any, path: Path, arguments: argparse.Namespace
) -> tuple[Any, float, float]:
    """The compiled model, and the seconds of importing and of building it."""
    import onnx

    import tvm
    from benchmarks.zoo import input_infos, trace
    from tvm import relay
    from tvm.contrib import graph_executor

    start = time.perf_counter()
    if arguments.importer == "onnx":
        mod, params = relay.frontend.from_onnx(onnx.load(path))
    else:
        mod, params = relay.frontend.from_pytorch(trace(model, inputs), input_infos(inputs))
    imported = time.perf_counter()
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=arguments.target, params=params)
    built = time.perf_counter()
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    return module, imported - start, built - imported


def open_session(path: Path, threads: int) -> Any:
    """The peer, with all its optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # its threads spin while it runs, but not on our side's turns
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main()
