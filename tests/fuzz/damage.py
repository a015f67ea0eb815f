"""Damaged input: each kind of file is changed at random and read; only the errors that readers promise may come.

python -m tests.fuzz.damage KIND CASES SEED
"""

from __future__ import annotations

import faulthandler
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tvm
from tvm import relay, te
from tvm.contrib import graph_executor

PROMISED = (tvm.error.TVMError, ValueError, TypeError)
SPARE_BYTES = 1 << 30  # what a reader may allocate beside what the program has
SECONDS_A_CASE = 20


@dataclass(frozen=True)
class Target:
    """Something that reads bytes."""

    content: bytes
    read: Callable[[bytes], object]
    first: int = 0  # the bytes that are damaged
    last: int | None = None


def params(folder: Path) -> Target:
    """Parameters."""
    arrays = {
        "weight": np.arange(12, dtype="float32").reshape(3, 4),
        "bias": np.zeros(0, "int8"),
        "scale": np.array(2.5, "float64"),
    }
    blob = tvm.runtime.save_param_dict({n: tvm.nd.array(a) for n, a in arrays.items()})
    return Target(bytes(blob), tvm.runtime.load_param_dict)


def _model() -> tvm.runtime.Module:
    x = relay.var("x", shape=(4,))
    w = relay.const(np.arange(4, dtype="float32"))
    body = relay.reshape(relay.nn.relu(relay.add(x, w)), (2, 2))
    return relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")


def graph(folder: Path) -> Target:
    """Graphs for the executor."""
    model = _model()
    library = model.get_lib()

    def create(content: bytes) -> object:
        return graph_executor.create(content.decode("latin-1"), library, tvm.cpu())

    return Target(model.get_graph_json().encode(), create)


def _exported(folder: Path) -> bytes:
    path = folder / "model.so"
    _model().export_library(str(path))
    return path.read_bytes()


def _loader(folder: Path) -> Callable[[bytes], object]:
    path = folder / "damaged.so"

    def load(content: bytes) -> object:
        path.unlink(missing_ok=True)  # the loader may still have the last one
        path.write_bytes(content)
        module = tvm.runtime.load_module(str(path))
        # the name of the model may be what was damaged
        return module["default"](tvm.cpu()) if module.implements_function("default") else None

    return load


def library(folder: Path) -> Target:
    """Exported libraries, anywhere but in what they embed."""
    content = _exported(folder)
    return Target(content, _loader(folder), last=content.index(b"GraphExecutorFactory") - 24)


def embedded(folder: Path) -> Target:
    """Graphs and parameters in exported libraries."""
    content = _exported(folder)
    start = content.index(b"GraphExecutorFactory") - 8
    length = int.from_bytes(content[start - 16 : start - 8], "little")
    return Target(content, _loader(folder), start - 8, start - 8 + length)


def symbols(folder: Path) -> Target:
    """The beginning of libraries of other linkers: headers, segments, names."""
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1)
    objects = folder / "plain.o"
    tvm.build(te.create_schedule(b.op), [a, b], "llvm").save(str(objects))
    path = folder / "plain.so"
    tvm.contrib.cc.create_shared(str(path), str(objects))
    return Target(path.read_bytes(), _loader(folder), last=0x200)


def ir_json(folder: Path) -> Target:
    """Programs as JSON."""
    a = te.placeholder((te.var("n"),), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1)
    functions = {"main": te.create_prim_func([a, b])}
    x = relay.var("x", shape=(4,))
    constant = relay.const(np.arange(4, dtype="float32"))
    functions["add"] = relay.Function([x], relay.add(x, constant))
    text = tvm.ir.save_json(tvm.IRModule(functions))
    return Target(text.encode(), lambda content: tvm.ir.load_json(content.decode("latin-1")))


def relay_text(folder: Path) -> Target:
    """Programs of relay as text."""
    x = relay.var("x", shape=(1, 3, 8, 8))
    w = relay.var("w", shape=(4, 3, 3, 3))
    body = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    text = tvm.IRModule.from_expr(relay.Function([x, w], body)).astext()
    return Target(text.encode(), lambda content: relay.fromtext(content.decode("latin-1")))


def archive(folder: Path) -> Target:
    """Exported archives."""
    path = folder / "model.tar"
    _model().export_library(str(path))
    damaged = folder / "damaged.tar"

    def load(content: bytes) -> object:
        damaged.write_bytes(content)
        return tvm.runtime.load_module(str(damaged))

    return Target(path.read_bytes(), load, last=512)


KINDS = {
    kind.__name__: kind
    for kind in (params, graph, library, embedded, symbols, ir_json, relay_text, archive)
}


def damage(target: Target, draw: random.Random) -> bytes:
    """The content with one to three changes: flipped bits, other bytes, cuts, pieces twice or elsewhere."""
    content = bytearray(target.content)
    last = len(content) if target.last is None else target.last
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(target.first, max(min(last, len(content)), target.first + 1))
        place = min(place, len(content) - 1)
        change = draw.randrange(12)
        if change < 6:
            content[place] ^= 1 << draw.randrange(8)
        elif change < 9:
            content[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif change == 9:
            content[place : place + 8] = draw.randbytes(8)[: len(content) - place]
        elif change == 10:
            del content[max(place, 1) :]
        else:
            source = draw.randrange(len(content))
            content[place:place] = content[source : source + 16]
    return bytes(content)


def run(kind: str, cases: int, seed: int) -> None:
    """Read that many damaged contents; raises what no reader promises."""
    with tempfile.TemporaryDirectory() as name:
        target = KINDS[kind](Path(name))
        target.read(target.content)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        draw = random.Random(seed)
        refused = 0
        for case in range(cases):
            if case % 100 == 0:
                faulthandler.dump_traceback_later(SECONDS_A_CASE, exit=True)
            content = damage(target, draw)
            try:
                target.read(content)
            except PROMISED:
                refused += 1
            except BaseException as error:
                error.add_note(f"case {case} of {kind}: {content!r}"[:2000])
                raise
        print(f"{kind}: {cases} cases, {refused} refused")


def run_apart(kind: str, cases: int, seed: int) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        __spec__.name,
        kind,
        str(cases),
        str(seed),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
