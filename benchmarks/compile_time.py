"""Where compile time goes: importing the package, building a model cold and warm, depth, each pass.

usage: python -m benchmarks.compile_time [MODEL ...] [--passes] [--depths N [N ...]]

A model is a name in benchmarks/zoo.py, such a name with _qdq behind it for its quantised form, or an
ONNX file. Each is built by two fresh processes with one cache that was empty before. Processor seconds
are those of a process and of those that it starts: on busy machines only these tell something.
With --depths, transformers of so many layers are built cold: the seconds of a layer should stay.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.models import MODELS_DIR, made_up_inputs, subject_of

# the slowest among the models that the project promises figures for, and beside them
MODELS = (
    "resnet50", "bert_base_qdq", "swin_t", "densenet121", "inception_v3", "deeplabv3_resnet50",
)  # fmt: skip
QDQ = "_qdq"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"names or files (default: {', '.join(MODELS)})")
    parser.add_argument("--passes", action="store_true", help="print the time of each pass")
    parser.add_argument("--depths", nargs="+", type=int, help="layers of transformers")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(*build_seconds(Path(arguments.models[0]), arguments.passes))
        return
    if arguments.depths:
        for layers in arguments.depths:
            measure(transformer(layers), False)
        return
    print(f"import tvm: {import_seconds():.2f} s")
    for name in arguments.models or MODELS:
        measure(file_of(name), arguments.passes)


def import_seconds() -> float:
    """The best of five fresh processes, less what an empty one takes."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - start)
        return min(times)

    return best("import tvm") - best("pass")


def file_of(name: str) -> Path:
    """The model's ONNX file, made at the first request."""
    subject = subject_of(name.removesuffix(QDQ), 1)
    if not name.endswith(QDQ):
        return subject.path
    from benchmarks.low_precision import quantized

    return quantized(subject, "u8s8").path


def transformer(layers: int) -> Path:
    """A small BERT of so many layers as an ONNX file."""
    path = MODELS_DIR / f"bert_of_{layers}.onnx"
    if not path.exists():
        from benchmarks.zoo import LastHiddenState  # which declares what torchvision expects

        path.parent.mkdir(exist_ok=True)
        import torch
        from transformers import BertConfig, BertModel

        shape = BertConfig(
            num_hidden_layers=layers, hidden_size=256, num_attention_heads=4,
            intermediate_size=1024, attn_implementation="eager",
        )  # fmt: skip
        ids = torch.ones((1, 64), dtype=torch.int64)
        torch.onnx.export(
            LastHiddenState(BertModel(shape).eval()), (ids, ids), str(path), opset_version=17,
            dynamo=False, input_names=["ids", "mask"],
        )  # fmt: skip
    return path


def measure(path: Path, show_passes: bool) -> None:
    """Build without and with a warm cache, in a process each."""
    found = []
    with tempfile.TemporaryDirectory() as cache:
        for is_shown in (show_passes, False):
            command = [sys.executable, "-m", "benchmarks.compile_time", str(path), "--here"]
            ran = subprocess.run(
                [*command, *(["--passes"] if is_shown else [])], check=True, text=True,
                stdout=subprocess.PIPE, env={**os.environ, "TVM_CACHE_DIR": cache},
            )  # fmt: skip
            *shown, last = ran.stdout.splitlines()
            print(*shown, sep="\n", end="\n" if shown else "")
            found.append([float(seconds) for seconds in last.split()])
    (imported, cold, cold_cpu), (_, warm, warm_cpu) = found
    print(
        f"{path.stem}: import {imported:.1f} s, build {cold:.1f} s cold ({cold_cpu:.1f} of processors),"
        f" {warm:.1f} s warm ({warm_cpu:.1f})",
        flush=True,
    )


def build_seconds(path: Path, show_passes: bool) -> tuple[float, float, float]:
    """Seconds of importing and of building in this process, and processor seconds of building."""
    import onnx

    import tvm
    from tvm import relay
    from tvm.ir.instrument import PassTimingInstrument

    timing = PassTimingInstrument()
    shapes = {name: array.shape for name, array in made_up_inputs(path).items()}
    start = time.perf_counter()
    mod, params = relay.frontend.from_onnx(onnx.load(path), shapes)
    imported, before = time.perf_counter(), processor_seconds()
    with tvm.transform.PassContext(opt_level=3, instruments=[timing] if show_passes else []):
        relay.build(mod, target="llvm", params=params)
        if show_passes:
            print(timing.render())
    return imported - start, time.perf_counter() - imported, processor_seconds() - before


def processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
