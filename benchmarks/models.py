"""Latency and compile time of models beside ONNX Runtime's and OpenVINO's, alternating in one run.

usage: python -m benchmarks.models [MODEL ...] [--threads N] [--repeat N] [--importer onnx|pytorch]
                                   [--batch N] [--image N] [--tokens N]

A model is a name in benchmarks/zoo.py, a pattern of such names ('regnet*', '*' for all), or an ONNX file.
Ratios are the faster peer over ours: above 1 we are faster. Outputs are compared first, with PyTorch's, or
ONNX Runtime's for a file. All compute in float32.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.arguments import models_parser

if TYPE_CHECKING:
    from benchmarks.zoo import Sizes

MODELS_DIR = Path(tempfile.gettempdir()) / "classic-tvm-bench-models"


@dataclass(frozen=True)
class Subject:
    """A model, what goes into it and, where it is known, what comes out."""

    path: Path
    feeds: dict[str, np.ndarray]
    expected: np.ndarray | None
    example: tuple[Any, Any] | None  # the PyTorch module and its inputs


def main() -> None:
    arguments = parse_arguments()
    # the runtimes read their number of threads before they start
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from benchmarks.zoo import MAIN_MODELS, names_like

    table = Table(
        "model", "ours", "ONNX Runtime", "OpenVINO", "ratio", "compile s", "import s", "max error",
        title=f"milliseconds, {arguments.threads} threads, importer {arguments.importer}",
    )  # fmt: skip
    ratios = []
    for name in track(names_like(arguments.models or MAIN_MODELS), console=Console(stderr=True)):
        try:
            ratio, row = measure(name, arguments)
        except Exception as error:  # a survey goes on: peers reject some models, too
            table.add_row(Path(name).stem, "failed", str(error).strip().splitlines()[0][:60])
            continue
        ratios.append(ratio)
        table.add_row(Path(name).stem, *row)
    if ratios:
        table.add_row("geometric mean", "", "", "", f"{statistics.geometric_mean(ratios):.2f}")
    Console(width=100).print(table)


def parse_arguments() -> argparse.Namespace:
    parser = models_parser(__doc__)
    parser.add_argument("--repeat", type=int, default=30, help="rounds of one run each")
    parser.add_argument("--importer", choices=["onnx", "pytorch"], default="onnx")
    parser.add_argument("--target", default="llvm")
    for size, what in (("batch", "images or sequences"), ("image", "rows"), ("tokens", "words")):
        parser.add_argument(f"--{size}", type=int, help=f"number of {what} (default: the usual)")
    return parser.parse_args()


def measure(name: str, arguments: argparse.Namespace) -> tuple[float, list[str]]:
    """The ratio, and one row of the table."""
    from benchmarks.timing import alternate
    from benchmarks.zoo import Sizes

    sizes = Sizes(arguments.batch, arguments.image, arguments.tokens)
    subject = subject_of(name, arguments.threads, sizes)
    module, import_seconds, build_seconds = compile_ours(subject, arguments)
    for key, array in subject.feeds.items():
        module.set_input(key, array)
    module.run()
    session = onnxruntime_session(subject.path, subject.feeds, arguments.threads)
    expected = session()[0] if subject.expected is None else subject.expected
    error = np.abs(module.get_output(0).numpy() - expected).max() / np.abs(expected).max()
    openvino = openvino_request(subject.path, subject.feeds, arguments.threads)
    times = alternate(
        {"ours": module.run, "onnxruntime": session, "openvino": openvino}, arguments.repeat
    )
    ratio = min(times["onnxruntime"], times["openvino"]) / times["ours"]
    return ratio, [
        *[f"{1e3 * seconds:.2f}" for seconds in times.values()], f"{ratio:.2f}",
        f"{build_seconds:.1f}", f"{import_seconds:.1f}", f"{error:.1e}",
    ]  # fmt: skip


def subject_of(name: str, threads: int, sizes: Sizes | None = None) -> Subject:
    """A model of the zoo, or a file with inputs made up."""
    if Path(name).suffix == ".onnx":
        return Subject(Path(name), made_up_inputs(Path(name)), None, None)
    import torch

    from benchmarks.zoo import USUAL, build, export_onnx

    torch.set_num_threads(threads)
    sizes = sizes or USUAL
    model, inputs = build(name, sizes)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    path = export_onnx(name, MODELS_DIR, sizes)
    feeds = {f"in{i}": x.numpy() for i, x in enumerate(inputs)}
    wanted = {value.name for value in graph_inputs(path)}
    feeds = {key: array for key, array in feeds.items() if key in wanted}
    return Subject(path, feeds, expected, (model, inputs))


def graph_inputs(path: Path) -> list[Any]:
    """The inputs of an ONNX file that are no weights."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def made_up_inputs(path: Path) -> dict[str, np.ndarray]:
    """Normal numbers, or small integers as indices; masks of ones; batches of 1 where open."""
    import onnx

    rng = np.random.default_rng(0)
    feeds = {}
    for value in graph_inputs(path):
        tensor = value.type.tensor_type
        shape = [dim.dim_value or 1 for dim in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if "mask" in value.name:
            feeds[value.name] = np.ones(shape, dtype)
        elif np.issubdtype(dtype, np.integer):
            feeds[value.name] = rng.integers(0, 1000, shape).astype(dtype)
        else:
            feeds[value.name] = rng.normal(size=shape).astype(dtype)
    return feeds


def compile_ours(subject: Subject, arguments: argparse.Namespace) -> tuple[Any, float, float]:
    """The compiled model, and the seconds of importing and of building it."""
    import onnx

    import tvm
    from benchmarks.zoo import input_infos, trace
    from tvm import relay
    from tvm.contrib import graph_executor

    start = time.perf_counter()
    if arguments.importer == "pytorch" and subject.example is not None:
        model, inputs = subject.example
        mod, params = relay.frontend.from_pytorch(trace(model, inputs), input_infos(inputs))
    else:
        shapes = {name: array.shape for name, array in subject.feeds.items()}
        mod, params = relay.frontend.from_onnx(onnx.load(subject.path), shapes)
    imported = time.perf_counter()
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=arguments.target, params=params)
    built = time.perf_counter()
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    return module, imported - start, built - imported


def compiled_onnx(
    model: Any, feeds: dict[str, np.ndarray], opt_level: int = 3, target: str = "llvm"
) -> tuple[Any, float]:
    """A loaded ONNX model compiled, with its inputs, and the seconds of building it."""
    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    shapes = {name: array.shape for name, array in feeds.items()}
    mod, params = relay.frontend.from_onnx(model, shapes)
    start = time.perf_counter()
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(mod, target=target, params=params)
    seconds = time.perf_counter() - start
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for name, array in feeds.items():
        module.set_input(name, array)
    return module, seconds


def onnxruntime_session(
    path: Path, feeds: dict[str, np.ndarray], threads: int
) -> Callable[[], Any]:
    """The peer, with all its optimisations."""
    import onnxruntime

    options = onnxruntime_options(threads)
    # its threads spin while it runs, but not on the other sides' turns
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def onnxruntime_in_place(
    model: Any, feeds: dict[str, np.ndarray], threads: int
) -> tuple[Callable[[], Any], list[np.ndarray]]:
    """The peer on a small model with inputs and outputs that lie ready, and what it computes.

    Its threads spin between calls, as they do when it runs alone.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(
        model.SerializeToString(), onnxruntime_options(threads), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, feeds)
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for value, array in zip(session.get_outputs(), expected, strict=True):
        room = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(array))
        binding.bind_ortvalue_output(value.name, room)
    return lambda: session.run_with_iobinding(binding), expected


def onnxruntime_options(threads: int) -> Any:
    """Options of a session with all optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return options


def openvino_request(path: Path, feeds: dict[str, np.ndarray], threads: int) -> Callable[[], Any]:
    """The peer, tuned for the latency of one request; it would take bfloat16 by itself."""
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    model.reshape({name: list(array.shape) for name, array in feeds.items()})
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
    request = compiled.create_infer_request()
    return lambda: request.infer(feeds, share_inputs=True, share_outputs=True)


if __name__ == "__main__":
    main()
