"""Damaged files never change an answer: each is rejected, or gives what the sound one gives.

python -m tests.fuzz.silent KIND CASES SEED      # KIND "all": that many of each
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import cc, graph_executor
from tvm.driver import tvmc
from tvm.driver.tvmc.model import TVMCPackage
from tvm.elf.link import link_shared
from tvm.relay.build_module import GraphExecutorFactoryModule
from tvm.runtime.vm import Executable, VirtualMachine

Rejected, SAME, WRONG, CRASHED = "rejected", "same answer", "WRONG ANSWER", "CRASHED"
# a function that is not found is an AttributeError
PROMISED = (
    tvm.error.TVMError, ValueError, TypeError, RuntimeError, OSError, AttributeError,
    tvmc.TVMCException,
)  # fmt: skip
CASES_A_CHILD = 500
SECONDS_A_CHILD = 300  # of the processor
BLOCK = 64
INPUT = np.array([1, -2, 3, -4], "float32")


@dataclass(frozen=True)
class Sound:
    """A file's content, and what is computed from it."""

    content: bytes
    answer: Callable[[bytes], object]


def damage(content: bytes, draw: random.Random) -> bytes:
    """The content with one change: a flipped bit, a cut, bytes added, a block zeroed or two swapped."""
    changed = bytearray(content)
    kind = draw.choice(("flip", "flip", "flip", "cut", "add", "zero", "swap"))
    place, size = draw.randrange(len(content)), draw.choice((1, 8, BLOCK, 512, 4096))
    if kind == "flip":
        changed[place] ^= 1 << draw.randrange(8)
    elif kind == "cut":
        del changed[place:]
    elif kind == "add":
        changed += draw.randbytes(size) if draw.random() < 0.5 else bytes(size)
    elif kind == "zero":
        changed[place : place + size] = bytes(len(changed[place : place + size]))
    else:
        other = draw.randrange(len(content))
        size = min(size, len(content) - max(place, other), abs(place - other))
        first, second = content[place : place + size], content[other : other + size]
        changed[place : place + size], changed[other : other + size] = second, first
    return bytes(changed)


# ---- what is damaged


def _model() -> tvm.IRModule:
    x = relay.var("x", shape=(4,))
    scale = relay.const(np.array([0.5, 2, 4, 8], "float32"))
    body = relay.nn.relu(relay.add(relay.multiply(x, scale), relay.var("w", shape=(4,))))
    return tvm.IRModule.from_expr(relay.Function([x, body.args[0].args[1]], body))


def _built() -> GraphExecutorFactoryModule:
    params = {"w": tvm.nd.array(np.array([7, 5, 3, 1], "float32"))}
    return relay.build(_model(), "llvm", params=params)


def _run(module: object) -> bytes:
    executor = graph_executor.GraphModule(module)
    executor.run(x=INPUT)
    return executor.get_output(0).numpy().tobytes()  # type: ignore[no-any-return]


def _written(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.unlink(missing_ok=True)  # the loader may still have the last one
    path.write_bytes(content)
    return str(path)


def _loaded(folder: Path, name: str) -> Callable[[bytes], object]:
    return lambda content: _run(
        tvm.runtime.load_module(_written(folder, name, content))["default"](tvm.cpu())
    )


def params(folder: Path) -> Sound:
    """Parameters."""
    arrays = {
        "weight": np.arange(60, dtype="float32").reshape(12, 5),
        "bias": np.zeros(0, "int8"),
        "scale": np.array(2.5, "float64"),
    }

    def read(content: bytes) -> object:
        found = tvm.runtime.load_param_dict(content)
        return [(name, str(a.dtype), a.shape, a.numpy().tobytes()) for name, a in found.items()]

    return Sound(bytes(tvm.runtime.save_param_dict(arrays)), read)


def graph(folder: Path) -> Sound:
    """Graphs for the executor."""
    built = _built()
    library, values = built.get_lib(), built.get_params()

    def run(content: bytes) -> object:
        executor = graph_executor.create(content.decode("latin-1"), library, tvm.cpu())
        executor.set_input(**values)
        executor.run(x=INPUT)
        return executor.get_output(0).numpy().tobytes()

    return Sound(built.get_graph_json().encode(), run)


def library(folder: Path) -> Sound:
    """Exported libraries."""
    _built().export_library(folder / "model.so")
    return Sound((folder / "model.so").read_bytes(), _loaded(folder, "damaged.so"))


def own_linker(folder: Path) -> Sound:
    """Libraries that were linked without a compiler."""
    _built().export_library(folder / "model.so", fcompile=link_shared)
    # what `create_shared` adds where there is no compiler
    _built().export_library(folder / "model.tar")
    with tvm.contrib.utils.tempdir() as temp:
        files = tvm.contrib.tar.normalize_file_list_by_unpacking_tars(
            temp, [str(folder / "model.tar")]
        )
        cc.create_shared(str(folder / "model.so"), files)
    return Sound((folder / "model.so").read_bytes(), _loaded(folder, "damaged.so"))


def stripped(folder: Path) -> Sound:
    """Libraries whose names for debuggers were removed, and the checksum after the last byte."""
    _built().export_library(folder / "model.so")
    subprocess.run(["strip", str(folder / "model.so")], check=True)
    return Sound((folder / "model.so").read_bytes(), _loaded(folder, "damaged.so"))


def aot(folder: Path) -> Sound:
    """Libraries of the AOT executor, with constants among the code."""
    built = relay.build(
        _model(), "llvm", executor=relay.backend.Executor("aot"),
        params={"w": tvm.nd.array(np.array([7, 5, 3, 1], "float32"))},
    )  # fmt: skip
    built.export_library(folder / "model.so")

    def run(content: bytes) -> object:
        path = _written(folder, "damaged.so", content)
        executor = tvm.runtime.executor.AotModule(
            tvm.runtime.load_module(path)["default"](tvm.cpu())
        )
        executor.set_input("x", tvm.nd.array(INPUT))
        executor.run()
        return executor.get_output(0).numpy().tobytes()

    return Sound((folder / "model.so").read_bytes(), run)


def archive(folder: Path) -> Sound:
    """Exported archives of objects."""
    _built().export_library(folder / "model.tar")
    return Sound((folder / "model.tar").read_bytes(), _loaded(folder, "damaged.tar"))


def object_file(folder: Path) -> Sound:
    """Objects."""
    _built().get_lib().save(str(folder / "model.o"))
    name = next(iter(tvm.build(_model_loops(), target="llvm").ir_module_by_target.values()))
    function = name.get_global_vars()[0].name_hint
    tvm.build(_model_loops(), target="llvm").save(str(folder / "model.o"))

    def run(content: bytes) -> object:
        module = tvm.runtime.load_module(_written(folder, "damaged.o", content))
        given, result = tvm.nd.array(INPUT), tvm.nd.array(np.zeros(4, "float32"))
        module[function](given, result)
        return result.numpy().tobytes()

    return Sound((folder / "model.o").read_bytes(), run)


def _model_loops() -> tvm.IRModule:
    a = tvm.te.placeholder((4,), name="a")
    b = tvm.te.compute((4,), lambda i: a[i] * 3 + 1)
    return tvm.IRModule({"main": tvm.te.create_prim_func([a, b])})


def executable(folder: Path) -> Sound:
    """Programs of the virtual machine, with their constants."""
    values = {"w": tvm.nd.array(np.array([7, 5, 3, 1], "float32"))}
    program = relay.vm.compile(_model(), "llvm", params=values)
    code, library = program.save()

    def run(content: bytes) -> object:
        machine = VirtualMachine(Executable.load_exec(content, library), tvm.cpu())
        return machine.run(INPUT).numpy().tobytes()

    return Sound(bytes(code), run)


def package(folder: Path) -> Sound:
    """Compiled models of the command line."""
    values = {"w": tvm.nd.array(np.array([7, 5, 3, 1], "float32"))}
    model = tvmc.model.TVMCModel(_model(), values)
    model.export_package(_built(), str(folder / "model.tar"))

    def run(content: bytes) -> object:
        found = TVMCPackage(_written(folder, "damaged.tar", content))
        module = tvm.runtime.load_module(found.lib_path or "")
        executor = graph_executor.create(found.graph or "", module, tvm.cpu())
        executor.load_params(found.params or b"")
        executor.run(x=INPUT)
        return executor.get_output(0).numpy().tobytes()

    return Sound((folder / "model.tar").read_bytes(), run)


KINDS = {
    kind.__name__: kind
    for kind in (
        params,
        graph,
        library,
        own_linker,
        stripped,
        aot,
        archive,
        object_file,
        executable,
        package,
    )
}


# ---- reading it, in children


def _outcome(sound: Sound, expected: object, content: bytes) -> str:
    try:
        return SAME if sound.answer(content) == expected else WRONG
    except PROMISED:
        return Rejected


def _read_in_child(sound: Sound, expected: object, cases: list[bytes]) -> list[str]:
    """The outcome of each case, up to the first that ends the child."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS_A_CHILD)
            for content in cases:
                os.write(send, f"{_outcome(sound, expected, content)}\n".encode())
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(1)
    os.close(send)
    with os.fdopen(receive, encoding="ascii") as lines:
        outcomes = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    return outcomes if status == 0 else [*outcomes, CRASHED]


def count(kind: str, cases: int, seed: int) -> Counter[str]:
    """How often each outcome came; what must not come is printed."""
    outcomes: Counter[str] = Counter()
    draw = random.Random(f"{kind} {seed}")
    with tempfile.TemporaryDirectory() as name:
        sound = KINDS[kind](Path(name))
        expected = sound.answer(sound.content)
        while outcomes.total() < cases:
            batch: list[bytes] = []
            while len(batch) < min(CASES_A_CHILD, cases - outcomes.total()):
                changed = damage(sound.content, draw)
                if changed != sound.content:
                    batch.append(changed)
            for content, outcome in zip(
                batch, _read_in_child(sound, expected, batch), strict=False
            ):
                outcomes[outcome] += 1
                if outcome in (WRONG, CRASHED):
                    _show(kind, sound.content, content, outcome)
    return outcomes


def _show(kind: str, sound: bytes, content: bytes, outcome: str) -> None:
    places = [i for i, (a, b) in enumerate(zip(sound, content, strict=False)) if a != b]
    text = f"{places[0]}..{places[-1]}" if places else "the end"
    print(f"{kind}: {outcome}, {len(sound)} -> {len(content)} bytes, other at {text}", flush=True)


def main() -> None:
    """Print a line for each kind; exits with 1 if an answer was wrong or a reader crashed."""
    kind, cases, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    is_sound = True
    for name in KINDS if kind == "all" else [kind]:
        outcomes = count(name, cases, seed)
        print(
            f"{name}: {cases} cases, " + ", ".join(f"{n} {o}" for o, n in outcomes.items()),
            flush=True,
        )
        is_sound &= not (outcomes[WRONG] or outcomes[CRASHED])
    raise SystemExit(not is_sound)


if __name__ == "__main__":
    main()
