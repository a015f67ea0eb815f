"""bfloat16 and int8 beside our own float32, alternating in one run, and beside ONNX Runtime's int8.

usage: python -m benchmarks.low_precision [MODEL ...] [--kinds bfloat16 u8s8 s8s8] [--threads N]
           [--repeat N]

A model is a name in benchmarks/zoo.py or an ONNX file. Ratios are float32's time over the kind's:
above 1 the kind is faster. int8 models come from ONNX Runtime's static quantiser: QDQ pairs, a
scale for each channel of the weights. The error is the greatest difference from float32 over the
greatest magnitude.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import MODELS_DIR, Subject, onnxruntime_session, subject_of

KINDS = ("bfloat16", "u8s8", "s8s8")


def main() -> None:
    arguments = parse_arguments()
    # the runtimes read their number of threads before they start
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "model", "kind", "float32", "ours", "ratio", "ONNX Runtime", "error", "its error",
        title=f"milliseconds, {arguments.threads} threads",
    )  # fmt: skip
    for name in arguments.models:
        for row in measure(name, arguments):
            table.add_row(Path(name).stem, *row)
    Console(width=110).print(table)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["resnet50", "bert_base"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=20, help="rounds of one run each")
    return parser.parse_args()


def measure(name: str, arguments: argparse.Namespace) -> Iterator[list[str]]:
    """One row of the table for each kind."""
    from benchmarks.timing import alternate

    subject = subject_of(name, arguments.threads)
    modules = {"float32": compiled(subject, "float32")}
    sessions = {}
    for kind in arguments.kinds:
        changed = subject if kind == "bfloat16" else quantized(subject, kind)
        modules[kind] = compiled(changed, kind)
        if kind != "bfloat16":
            sessions[kind] = onnxruntime_session(changed.path, changed.feeds, arguments.threads)
    expected = output_of(modules["float32"], subject)
    errors = {kind: error(output_of(m, subject), expected) for kind, m in modules.items()}
    peers = {f"{kind} peer": session for kind, session in sessions.items()}
    times = alternate({**{k: m.run for k, m in modules.items()}, **peers}, arguments.repeat)
    for kind in arguments.kinds:
        peer, peer_error = "", ""
        if kind in sessions:
            peer = f"{1e3 * times[f'{kind} peer']:.2f}"
            peer_error = f"{error(sessions[kind]()[0], expected):.1e}"
        yield [
            kind, f"{1e3 * times['float32']:.2f}", f"{1e3 * times[kind]:.2f}",
            f"{times['float32'] / times[kind]:.2f}", peer, f"{errors[kind]:.1e}", peer_error,
        ]  # fmt: skip


def compiled(subject: Subject, kind: str) -> Any:
    """Our module, its inputs set."""
    import onnx

    import tvm
    from tvm import relay
    from tvm.contrib import graph_executor

    shapes = {name: array.shape for name, array in subject.feeds.items()}
    mod, params = relay.frontend.from_onnx(onnx.load(subject.path), shapes)
    if kind == "bfloat16":
        mod = relay.transform.ToMixedPrecision("bfloat16")(relay.transform.InferType()(mod))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for key, array in subject.feeds.items():
        module.set_input(key, array)
    return module


def output_of(module: Any, subject: Subject) -> np.ndarray:
    module.run()
    return module.get_output(0).numpy().astype("float32")


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The greatest difference, over the greatest magnitude."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def quantized(subject: Subject, kind: str) -> Subject:
    """The model with its convolutions and matrix products between QDQ pairs."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.getLogger().setLevel(logging.ERROR)  # it warns of each weight without channels
    MODELS_DIR.mkdir(exist_ok=True)
    path = MODELS_DIR / f"{subject.path.stem}_{kind}.onnx"
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            prepared = Path(folder) / "prepared.onnx"
            quant_pre_process(str(subject.path), str(prepared), skip_symbolic_shape=True)
            quantize_static(
                str(prepared), str(path), Calibration(subject.feeds),
                quant_format=QuantFormat.QDQ, per_channel=True, weight_type=QuantType.QInt8,
                activation_type=QuantType.QUInt8 if kind == "u8s8" else QuantType.QInt8,
            )  # fmt: skip
    return Subject(path, subject.feeds, None, None)


class Calibration:
    """The inputs, and variations of those that are real numbers."""

    def __init__(self, feeds: dict[str, np.ndarray], count: int = 4) -> None:
        rng = np.random.default_rng(1)
        self._left = [feeds] + [
            {k: v if v.dtype.kind != "f" else rng.permuted(v) for k, v in feeds.items()}
            for _ in range(count - 1)
        ]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


if __name__ == "__main__":
    main()
