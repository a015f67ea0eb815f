"""Writers that are killed at any time leave the old content or the new one.

python -m tests.fuzz.kills WRITER KILLS SEED      # WRITER "all": that many of each
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import tvm
from tests.fuzz.silent import _built
from tvm import knobs, relay
from tvm.autotvm import record
from tvm.codegen.cache import load_object, store_object
from tvm.contrib import cc, tar
from tvm.contrib.pickle_memoize import Cache
from tvm.driver.tvmc.model import TVMCModel
from tvm.micro import export_model_library_format
from tvm.support.files import append_lines, write_text

LINE = 4000


@dataclass(frozen=True)
class Writer:
    """Writes one of two contents, told by a number, to a file; `read` tells which is there."""

    name: str
    write: Callable[[Path, int], object]
    read: Callable[[Path], int]


def _loops(number: int) -> tvm.runtime.Module:
    a = tvm.te.placeholder((4,), name="a")
    b = tvm.te.compute((4,), lambda i: a[i] + float(number))
    return tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm")


_MODULES = {number: _loops(number) for number in (0, 1)}
_WEIGHTS = {number: {"w": np.full(1 << 20, number, "float32")} for number in (0, 1)}


def _export(path: Path, number: int) -> None:
    _MODULES[number].export_library(path)


def _export_alone(path: Path, number: int) -> None:
    """The same without a compiler."""
    cc.get_cc = lambda: None
    _export(path, number)


def _result(path: Path) -> int:
    given, result = tvm.nd.array(np.zeros(4, "float32")), tvm.nd.array(np.ones(4, "float32"))
    tvm.runtime.load_module(path)(given, result)
    return int(result.numpy()[0])


def _weight(path: Path) -> int:
    return int(tvm.runtime.load_param_dict_from_file(path)["w"].numpy().mean())


def _write_archive(path: Path, number: int) -> None:
    source = path.parent / f"member{number}"
    source.write_bytes(bytes([number]) * (1 << 22))
    tar.tar(str(path), [str(source)])


def _member(path: Path) -> int:
    folder = path.parent / "unpacked"
    for old in folder.glob("*"):
        old.unlink()
    tar.untar(str(path), str(folder))
    (found,) = folder.iterdir()
    return found.read_bytes()[0]


def _write_model(path: Path, number: int) -> None:
    TVMCModel(_MODEL, _WEIGHTS[number]).save(str(path))


_MODEL = tvm.IRModule.from_expr(relay.Function([], relay.const(1.0)))


def _model_weight(path: Path) -> int:
    return int(TVMCModel(model_path=str(path)).params["w"].numpy().mean())


_LIBRARY_FORMAT = {number: _built() for number in (0, 1)}


def _untar_sources(path: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        tar.untar(str(path), folder)
        assert (Path(folder) / "metadata.json").is_file()
    return 0


def _write_results(path: Path, number: int) -> None:
    with knobs.CACHE_DIR.scope(path.parent):
        cache = Cache("results", save_at_exit=False)
        cache.cache.clear()
        cache.cache[b"x"] = [number] * (1 << 18)
        cache.dirty = True
        cache.save()


def _results(path: Path) -> int:
    with knobs.CACHE_DIR.scope(path.parent):
        return int(Cache("results", save_at_exit=False).cache[b"x"][0])


def _write_entry(path: Path, number: int) -> None:
    with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(path.parent):
        store_object("ab" * 20, bytes([number]) * (1 << 22))


def _entry(path: Path) -> int:
    with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(path.parent):
        found = load_object("ab" * 20)
    assert found is not None and found.count(found[0]) == len(found)
    return found[0]


def _text(path: Path) -> int:
    text = path.read_text()
    assert len(text) == 1 << 22 and text.count(text[0]) == len(text)
    return int(text[0])


def _append(path: Path, number: int) -> None:
    for _ in range(20):
        append_lines(path, f"# {number}{'x' * LINE}\n")


def _log(path: Path) -> int:
    """Every line but the last is whole."""
    lines = path.read_text().split("\n")
    assert {len(line) for line in lines[:-1]} <= {0, LINE + 3}
    assert not list(record.load_from_file(path))
    return 0


WRITERS = {
    writer.name: writer
    for writer in (
        Writer("model.so", _export, _result),
        Writer("alone.so", _export_alone, _result),
        Writer("model.tar", _export, _result),
        Writer("model.o", lambda path, n: _MODULES[n].save(str(path)), _result),
        Writer(
            "model.params",
            lambda path, n: tvm.runtime.save_param_dict_to_file(_WEIGHTS[n], path),
            _weight,
        ),
        Writer("files.tar", _write_archive, _member),
        Writer("tvmc.tar", _write_model, _model_weight),
        Writer(
            "sources.tar",
            lambda path, n: export_model_library_format(_LIBRARY_FORMAT[n], path),
            _untar_sources,
        ),
        Writer("results", _write_results, _results),
        Writer("entry", _write_entry, _entry),
        Writer("text", lambda path, n: write_text(path, str(n) * (1 << 22)), _text),
        Writer("tuning.log", _append, _log),
    )
}


def _start(write: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        try:
            write()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def check(name: str, kills: int, seed: int) -> int:
    """Kill the writer that often, at random times of its work; how often it was not done."""
    draw, writer, unfinished = random.Random(f"{name} {seed}"), WRITERS[name], 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        writer.write(path, 0)
        started = time.perf_counter()
        _, status = os.waitpid(_start(partial(writer.write, path, 0)), 0)
        assert status == 0, f"{name} cannot be written"
        seconds = time.perf_counter() - started
        before = writer.read(path)
        for _ in range(kills):
            child = _start(partial(writer.write, path, 1 - before))
            time.sleep(draw.uniform(0, 1.2 * seconds))
            os.kill(child, signal.SIGKILL)
            unfinished += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
            before = writer.read(path)  # the old content or the new one, or it raises
            assert before in (0, 1)
    return unfinished


def main() -> None:
    """Print a line for each writer."""
    name, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for each in WRITERS if name == "all" else [name]:
        unfinished = check(each, kills, seed)
        print(
            f"{each}: {kills} kills, {unfinished} before the writer was done, all readable",
            flush=True,
        )


if __name__ == "__main__":
    main()
