"""Compilations that are interrupted at random times: how fast each ends, and what it leaves behind.

python -m tests.driver.interrupted_builds CASE INTERRUPTS SEED      # CASE "all": that many of each
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import tvm
from tvm import knobs, relay, te
from tvm.contrib.graph_executor import GraphModule
from tvm.driver.tvmc.main import _main
from tvm.relay.testing import resnet

SHAPE = (1, 3, 28, 28)
INTERRUPTED = 130  # what tvmc ends with


def _model() -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    mod, params = resnet.get_workload(num_layers=8, image_shape=SHAPE[1:], num_classes=10)
    return mod, params


def model(folder: Path) -> object:
    """`relay.build`, whose kernels several processes compile."""
    mod, params = _model()
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    executor = GraphModule(lib["default"](tvm.cpu()))
    executor.run(data=np.ones(SHAPE, "float32"))
    return executor.get_output(0).numpy().tobytes()


def function(folder: Path) -> object:
    """`tvm.build`, of many functions."""
    funcs = {}
    for i in range(16):
        a = te.placeholder((64, 64 + i), name="a")
        b = te.compute(a.shape, lambda *at, a=a: te.tanh(a(*at)) + te.exp(a(*at)), name="b")
        schedule = te.create_schedule(b.op)
        schedule[b].unroll(schedule[b].split(b.op.axis[1], 16)[1])
        funcs[f"f{i}"] = tvm.lower(schedule, [a, b], name=f"f{i}")[f"f{i}"]
    built = tvm.build(tvm.IRModule(funcs), target="llvm")
    given, result = tvm.nd.array(np.ones((64, 64), "float32")), tvm.nd.empty((64, 64))
    built["f0"](given, result)
    return result.numpy().tobytes()


def command(folder: Path) -> object:
    """`tvmc compile`, which writes a file."""
    source, package = folder / "model.relay", folder / "model.tar"
    if not source.exists():
        source.write_text(_model()[0].astext())
    status = _main(["compile", "--quiet", str(source), "-o", str(package)])
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    assert status == 0
    return len(package.read_bytes()) > 0


CASES: dict[str, Callable[[Path], object]] = {
    case.__name__: case for case in (model, function, command)
}


# ---- what must be as before


def _state() -> dict[str, object]:
    context = tvm.transform.PassContext.current()
    return {
        "pass context": (context.opt_level, dict(context.config)),
        "target": tvm.target.Target.current(allow_none=True),
        "collections": gc.get_threshold(),
        "recursion": sys.getrecursionlimit(),
        "threads": threading.active_count(),
        "handler": signal.getsignal(signal.SIGINT),
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "files": sorted(os.listdir(tempfile.gettempdir())),
    }


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


# ---- interrupting children


def _prepared(folder: Path, processes: int, scopes: ExitStack) -> None:
    """Give the process folders of its own, so that nothing is compiled yet."""
    (folder / "temp").mkdir()
    tempfile.tempdir = str(folder / "temp")
    scopes.enter_context(knobs.CACHE.scope(True))
    scopes.enter_context(knobs.CACHE_DIR.scope(folder / "cache"))
    scopes.enter_context(knobs.COMPILE_PROCESSES.scope(processes))


def _outcome_in_child(case: str, folder: Path, processes: int, expected: object, tell: int) -> str:
    """The seconds from the signal to its exception, or what is wrong."""
    with ExitStack() as scopes:
        _prepared(folder, processes, scopes)
        before = _state()
        try:
            os.write(tell, b".")
            CASES[case](folder)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return "done"
        except KeyboardInterrupt:
            caught = time.monotonic()
        after = _state()
        if after != before:
            return f"left {[(name, after[name]) for name in after if after[name] != before[name]]}"
        if _has_children():
            return "left a process"
        # a copy of the process that is killed leaves what it writes, which is tidied up one day
        if processes == 1 and (parts := list((folder / "cache").rglob("*.part"))):
            return f"left {parts}"
        return f"{caught}" if CASES[case](folder) == expected else "wrong answer afterwards"


def interrupted(case: str, processes: int, delay: float, expected: object) -> float | None:
    """Interrupt one compilation: how many seconds it went on, or None if it was done before."""
    with tempfile.TemporaryDirectory() as name:
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            outcome = "ended"
            try:
                with contextlib.redirect_stderr(io.StringIO()):
                    outcome = _outcome_in_child(case, Path(name), processes, expected, send)
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"
            finally:
                os.write(send, outcome.encode())
                os._exit(0)
        os.close(send)
        os.read(receive, 1)
        time.sleep(delay)
        sent = time.monotonic()
        os.kill(child, signal.SIGINT)
        with os.fdopen(receive) as lines:
            outcome = lines.read()
        os.waitpid(child, 0)
    if outcome == "done":
        return None
    assert outcome.replace(".", "").isdigit(), f"after {delay:.3f} s: {outcome}"
    return float(outcome) - sent


def sound(case: str) -> tuple[object, float]:
    """What a case gives, and how long it takes, in this process."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as scopes:
        before, start = tempfile.tempdir, time.monotonic()
        _prepared(Path(name), 1, scopes)
        try:
            return CASES[case](Path(name)), time.monotonic() - start
        finally:
            tempfile.tempdir = before


def main() -> None:
    """Print the longest waits of each case."""
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for case in CASES if kind == "all" else [kind]:
        draw, (expected, seconds) = random.Random(f"{case} {seed}"), sound(case)
        found = [
            interrupted(case, 1 + i % 2, draw.uniform(0, seconds), expected) for i in range(count)
        ]
        waits = sorted([wait for wait in found if wait is not None])
        print(
            f"{case}: {len(waits)} of {count} interrupted, in {seconds:.1f} s of work; median "
            f"{waits[len(waits) // 2]:.3f} s, longest {waits[-1]:.3f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
