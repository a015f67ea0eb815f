from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tvm.relay import progress as progress_module
from tvm.relay.progress import COMPILING, Line, Progress, progress


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress_module, "time", found)
    return found


def test_time_left_follows_from_the_share_that_is_done(clock: Clock) -> None:
    step = Progress(Line(), "net.onnx")
    step("optimizing the graph", 0.0)
    assert step.describe() == "[0 s] net.onnx: optimizing the graph"
    clock.now += 9
    step("compiling 3 kernels", COMPILING)
    assert step.describe() == "[9 s, about 11 s left] net.onnx: compiling 3 kernels"
    clock.now += 4
    assert step.describe().startswith("[13 s, about 7 s left]")
    clock.now += 20
    assert step.describe().startswith("[33 s, nearly done]")


def test_kernels_are_counted(clock: Clock) -> None:
    seen: list[str] = []
    step = Progress(Line())

    def lower(name: str) -> str:
        seen.append(step.describe())
        clock.now += 1
        return name.upper()

    lower_counted: Callable[[str], str] = step.counting("lowering kernel", lower, 2, str)
    assert [lower_counted(name) for name in ("conv", "relu")] == ["CONV", "RELU"]
    assert "lowering kernel 1 of 2: conv" in seen[0] and "2 of 2: relu" in seen[1]


def test_builds_inside_of_others_share_the_line() -> None:
    with progress() as outer:
        outer("verifying")
        with progress() as inner:
            inner("compiling")
            assert inner.line is outer.line and inner.describe().endswith("verifying: compiling")
    with progress() as later:
        assert later.title == ""


def test_the_line_is_drawn_on_terminals(tmp_path: Path) -> None:
    program = (
        "import time; from tvm.relay import progress as p; p.QUIET_SECONDS = 0\n"
        "with p.progress() as step:\n    step('baking bread', 0.5); time.sleep(0.3)\n"
    )
    written = tmp_path / "screen"
    with written.open("wb") as screen:

        def read(fd: int) -> bytes:
            data = os.read(fd, 1024)
            screen.write(data)
            return data

        # what the terminal shows goes to the file, not to the test's own output
        stdout = os.dup(1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        try:
            status = pty.spawn([sys.executable, "-c", program], read)
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
            os.close(null)
    assert status == 0 and b"baking bread" in written.read_bytes()
