"""Memory of one process that builds again and again, by kind of build.

usage: python -m benchmarks.build_memory [KIND ...] [--builds N]

Each kind runs in a process of its own, with a cache of its own that is off for half of the builds:
a compiler of code is then in each round. A line gives the resident memory after each tenth of the
builds, less that after the first tenth, and the numbers of open files and of threads at the end.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tvm
from tvm import knobs, relay, te
from tvm.contrib import graph_executor
from tvm.relay.backend import Executor
from tvm.runtime.vm import VirtualMachine

_LENGTHS = 8  # of vectors, so that not all builds are of one program


def build_te(number: int, folder: Path) -> None:
    """A map of a vector: lowered, compiled, called."""
    length = 16 + number % _LENGTHS
    a = te.placeholder((length,), name="a")
    b = te.compute((length,), lambda i: a[i] * 2.0 + number % 5, name="b")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    add = tvm.build(s, [a, b], "llvm")
    result = tvm.nd.array(np.zeros(length, "float32"))
    add(tvm.nd.array(np.ones(length, "float32")), result)
    assert result.numpy()[0] == 2 + number % 5


def _model(number: int) -> tvm.IRModule:
    x = relay.var("x", shape=(1, 16 + number % _LENGTHS), dtype="float32")
    weight = relay.const(np.ones((4, 16 + number % _LENGTHS), "float32"))
    return tvm.IRModule.from_expr(relay.nn.relu(relay.nn.dense(x, weight)) + relay.const(1.0))


def _input(number: int) -> np.ndarray:
    return np.ones((1, 16 + number % _LENGTHS), "float32")


def _check(result: tvm.nd.NDArray, number: int) -> None:
    assert result.numpy()[0, 0] == 17 + number % _LENGTHS


def build_graph(number: int, folder: Path) -> None:
    """A layer for the graph executor."""
    module = graph_executor.GraphModule(relay.build(_model(number), "llvm")["default"](tvm.cpu()))
    module.run(x=_input(number))
    _check(module.get_output(0), number)


def build_aot(number: int, folder: Path) -> None:
    """A layer for the ahead-of-time executor."""
    lib = relay.build(_model(number), "llvm", executor=Executor("aot"))
    module = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
    module.run(x=_input(number))
    _check(module.get_output(0), number)


def build_vm(number: int, folder: Path) -> None:
    """A layer for the virtual machine."""
    machine = VirtualMachine(relay.vm.compile(_model(number), "llvm"), tvm.cpu())
    _check(machine.invoke("main", tvm.nd.array(_input(number))), number)


def build_export(number: int, folder: Path) -> None:
    """A layer that is exported, loaded and removed."""
    path = folder / "model.so"
    relay.build(_model(number), "llvm").export_library(str(path))
    module = graph_executor.GraphModule(tvm.runtime.load_module(str(path))["default"](tvm.cpu()))
    path.unlink()
    module.run(x=_input(number))
    _check(module.get_output(0), number)


KINDS: dict[str, Callable[[int, Path], None]] = {
    "te": build_te,
    "graph": build_graph,
    "aot": build_aot,
    "vm": build_vm,
    "export": build_export,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--builds", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for kind in arguments.kinds:
        if kind not in KINDS:
            raise SystemExit(f"no kind is called {kind!r}; known are {', '.join(KINDS)}")
    each = arguments.builds // len(arguments.kinds)
    for kind in arguments.kinds:
        if arguments.here:
            report(kind, each)
            continue
        command = [sys.executable, "-m", "benchmarks.build_memory", kind, "--here"]
        subprocess.run([*command, "--builds", str(each)], check=True)


def report(kind: str, builds: int) -> None:
    """One line for one kind."""
    growth = growth_of(kind, builds)
    files = len(os.listdir("/proc/self/fd"))
    print(
        f"{kind:7}{builds:6} builds: {' '.join([f'{kib:+d}' for kib in growth])} KiB, "
        f"{files} files, {threading.active_count()} threads",
        flush=True,
    )


def growth_of(kind: str, builds: int) -> list[int]:
    """KiB of resident memory after each tenth of the builds, less those after the first."""
    step = max(builds // 10, 1)
    sizes = []
    with scratch() as folder:
        for number in range(10 * step):
            with knobs.CACHE.scope(number % 2 == 0):
                KINDS[kind](number, folder)
            if number % step == step - 1:
                gc.collect()
                sizes.append(resident_kib())
    return [size - sizes[0] for size in sizes[1:]]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for files and for the cache, removed afterwards."""
    with tempfile.TemporaryDirectory() as name, knobs.CACHE_DIR.scope(Path(name) / "cache"):
        yield Path(name)


def resident_kib() -> int:
    """This process's memory that is not swapped out."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


if __name__ == "__main__":
    main()
