"""Where compile time goes: importing the package, importing a model, building it, each pass.

usage: python -m benchmarks.compile_time [MODEL ...] [--passes]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tvm
from benchmarks.zoo import MAIN_MODELS, build, input_infos, trace
from tvm import knobs, relay
from tvm.ir.instrument import PassTimingInstrument


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names in benchmarks/zoo.py (default: the main)")
    parser.add_argument("--passes", action="store_true", help="print the time of each pass")
    arguments = parser.parse_args()
    print(f"import tvm: {import_seconds():.2f} s")
    for name in arguments.models or MAIN_MODELS:
        measure(name, arguments.passes)


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


def measure(name: str, show_passes: bool) -> None:
    """Import a model from PyTorch, build it without and with a warm object cache."""
    model, inputs = build(name)
    script = trace(model, inputs)
    start = time.perf_counter()
    mod, params = relay.frontend.from_pytorch(script, input_infos(inputs))
    imported = time.perf_counter() - start
    seconds = []
    timing = PassTimingInstrument()
    with tempfile.TemporaryDirectory() as folder, knobs.CACHE_DIR.scope(Path(folder)):
        for instruments in ([timing] if show_passes else [], []):
            start = time.perf_counter()
            with tvm.transform.PassContext(opt_level=3, instruments=instruments):
                relay.build(mod, target="llvm", params=params)
                if instruments:
                    print(timing.render())
            seconds.append(time.perf_counter() - start)
    cold, warm = seconds
    print(f"{name}: import {imported:.1f} s, build {cold:.1f} s cold, {warm:.1f} s warm")


if __name__ == "__main__":
    main()
