"""Work shared out between forked copies of this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from tvm.support import workers
from tvm.support.workers import share_out, usual_processes


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started."""
    started: list[int] = []
    fork = os.fork

    def counted() -> int:
        process = fork()
        started.append(process)
        return process

    monkeypatch.setattr(os, "fork", counted)
    return started


def assert_ended(processes: list[int]) -> None:
    assert processes
    for process in processes:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_each_item_is_done_once(tmp_path: Path) -> None:
    def work(item: int) -> None:
        with (tmp_path / str(item)).open("x") as file:
            file.write(str(os.getpid()))

    share_out(work, range(200), 3)
    assert len(list(tmp_path.iterdir())) == 200


def test_what_fails_in_a_copy_is_left_undone(tmp_path: Path) -> None:
    own = os.getpid()

    def work(item: int) -> None:
        if os.getpid() != own:
            raise ValueError(item)
        (tmp_path / str(item)).touch()

    share_out(work, range(20), 3)
    for item in set(range(20)) - {int(found.name) for found in tmp_path.iterdir()}:
        work(item)
    assert len(list(tmp_path.iterdir())) == 20


def test_a_failure_here_is_raised_and_leaves_no_process(copies: list[int]) -> None:
    def work(item: int) -> None:
        raise ValueError(item)

    with pytest.raises(ValueError):
        share_out(work, range(20), 3)
    assert_ended(copies)


def test_a_copy_that_hangs_is_ended(copies: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpid()

    def work(item: int) -> None:
        while os.getpid() != own:
            signal.pause()

    monkeypatch.setattr(workers, "_PATIENCE", 0.1)
    share_out(work, range(20), 2)
    assert_ended(copies)


def test_one_process_leaves_all_to_the_caller(tmp_path: Path) -> None:
    share_out(lambda item: (tmp_path / str(item)).touch(), range(20), 1)
    assert not list(tmp_path.iterdir())


def test_files_are_closed_again() -> None:
    before = len(os.listdir("/proc/self/fd"))
    share_out(lambda item: None, range(20), 3)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_process_to_be_had_leaves_the_rest_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejected() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", rejected)
    share_out(lambda item: (tmp_path / str(item)).touch(), range(20), 3)
    assert len(list(tmp_path.iterdir())) == 20


def test_a_program_that_ignores_the_end_of_its_children_goes_on(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        share_out(lambda item: (tmp_path / str(item)).touch(), range(20), 3)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.skipif(sys.platform != "linux", reason="one process elsewhere")
def test_processes_are_started_unasked_where_no_other_thread_runs_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "usable_cores", lambda: 64)
    monkeypatch.setattr(sys, "_current_frames", lambda: {threading.get_ident(): None})
    assert usual_processes() == 4
    monkeypatch.undo()
    monkeypatch.setattr(workers, "usable_cores", lambda: 64)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert usual_processes() == 1
    done.set()
    thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="one process elsewhere")
def test_a_build_in_a_thread_starts_no_process() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(usual_processes()))
    thread.start()
    thread.join()
    assert found == [1]
