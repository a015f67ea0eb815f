"""The line that shows how far a tuner is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tvm.autotvm.tuner import GridSearchTuner
from tvm.autotvm.tuner.callback import progress_bar
from tvm.autotvm.tuner.progress_bar import ProgressBar

from .made_up import far_from_16_by_32, tune
from .templates import matmul_task


def _shown(console: Console, **options: int) -> str:
    bar = ProgressBar(6, prefix="[Task  1/ 3] ", console=console)
    tune(GridSearchTuner(matmul_task()), far_from_16_by_32, callbacks=[bar], **options)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_the_share_and_the_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_QUIET", raising=False)
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    text = _shown(console, n_trial=6)
    assert "[Task  1/ 3]" in text and "6/6" in text
    best = max(
        matmul_task().flop / far_from_16_by_32(matmul_task().config_space.get(i)) for i in range(6)
    )
    assert f"best {best / 1e9:.2f} GFLOPS" in text
    assert text.endswith("\n\x1b[?25h")


def test_the_cursor_comes_back_when_tuning_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_QUIET", raising=False)
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    assert _shown(console, n_trial=2).rstrip().endswith("\x1b[?25h")


def test_nothing_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert _shown(Console(file=io.StringIO(), force_terminal=False), n_trial=6) == ""
    tune(GridSearchTuner(matmul_task()), n_trial=6, callbacks=[progress_bar(6)])
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_nothing_is_shown_where_quiet_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_QUIET", "1")
    assert _shown(Console(file=io.StringIO(), force_terminal=True), n_trial=6) == ""


def test_failures_are_counted_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TVM_QUIET", raising=False)
    console = Console(file=io.StringIO(), force_terminal=True, width=140, color_system=None)
    bar = ProgressBar(9, console=console, seconds=60.0)
    for kind in (7, 7, 6):
        bar.note_failure(kind)
        bar.show(1, 0.0, 1e9)
    bar.describe("[Task  2/ 3]")
    bar.show(1, 2e9, 2e9)
    bar.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "best 2.00 GFLOPS, last 2.00, 2 run_timeout, 1 build_timeout" in text
    assert "[Task  2/ 3]" in text and "4/9" in text
