"""Time and memory of `from_onnx`, from a path and from a proto, each in a fresh process.

usage: python -m benchmarks.importing [MODEL ...] [--opset N] [--limit X]

A model is a name in benchmarks/zoo.py or an ONNX file. Memory is what the process grows by at
most while it loads and imports the model, in units of the file with its external data; the
packages are imported before. With --limit the status tells whether a model takes more.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

IMPORT = """
import sys, time
import onnx
import tvm
from tvm import relay
from tvm.relay.frontend.onnx import model as _

def read(key):
    with open("/proc/self/status") as status:
        return int(dict(line.split(":", 1) for line in status)[key].split()[0]) * 1024

path, way = sys.argv[1:]
before = read("VmRSS")
model = onnx.load(path) if way == "proto" else path
start = time.perf_counter()
mod, params = relay.frontend.from_onnx(model, shape=None)
seconds = time.perf_counter() - start
print(seconds, read("VmHWM") - before)
"""
WAYS = ("path", "proto")


@dataclass(frozen=True)
class Cost:
    """Of one import."""

    seconds: float
    share: float  # of the file that memory grows by


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names in benchmarks/zoo.py, or ONNX files")
    parser.add_argument("--limit", type=float, help="the most memory, in units of the file")
    options = parser.parse_args()
    from rich.console import Console
    from rich.table import Table

    from benchmarks.zoo import MAIN_MODELS

    table = Table("model", "file MB", *[f"{way}: {what}" for way in WAYS for what in ("s", "x")])
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or MAIN_MODELS:
            path = _file_of(name, Path(folder))
            size = _size(path)
            costs = [_cost(path, size, way) for way in WAYS]
            worst = max([worst, *[cost.share for cost in costs]])
            cells = [f"{value:.2f}" for cost in costs for value in (cost.seconds, cost.share)]
            table.add_row(name, f"{size / 1e6:.1f}", *cells)
    Console().print(table)
    return int(options.limit is not None and worst > options.limit)


def _file_of(name: str, folder: Path) -> Path:
    if Path(name).exists():
        return Path(name)
    from benchmarks.zoo import export_onnx

    return export_onnx(name, folder)


def _size(path: Path) -> int:
    """Of the file and the files of its external data."""
    import onnx
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data

    model = onnx.load(path, load_external_data=False)
    files = {
        ExternalDataInfo(tensor).location
        for tensor in model.graph.initializer
        if uses_external_data(tensor)
    }
    return path.stat().st_size + sum((path.parent / name).stat().st_size for name in files)


def _cost(path: Path, size: int, way: str) -> Cost:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(path), way], capture_output=True, text=True, check=True
    )
    seconds, grown = [float(text) for text in done.stdout.split()[-2:]]
    return Cost(seconds, grown / size)


if __name__ == "__main__":
    sys.exit(main())
