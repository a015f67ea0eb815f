"""Functions in other processes: results, errors, timeouts, replacement."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm.contrib.popen_pool import (
    MapResult,
    PopenPoolExecutor,
    PopenWorker,
    StatusKind,
    dump_object,
    kill_child_processes,
    write_message,
)
from tvm.testing import popen_pool as jobs


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def sleep_with_child(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    written = Path(path + ".part")
    written.write_text(f"{os.getpid()} {child.pid}")
    written.rename(path)
    time.sleep(3600)


def fail(value: int) -> None:
    raise tvm.TVMError(f"the value {value} is bad")


class Unreadable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def fail_unreadably() -> None:
    raise Unreadable(1, 2)


def test_a_worker_calls_functions_elsewhere() -> None:
    worker = PopenWorker()
    assert not worker.is_alive()
    worker.send(os.getpid)
    first = worker.recv()
    assert first != os.getpid() and worker.is_alive()
    worker.send(os.getpid)
    assert worker.recv() == first
    worker.send(sorted, ([3, 1, 2],), {"reverse": True}, timeout=60)
    assert worker.recv() == [3, 2, 1]
    local = 5
    worker.send(lambda x: x + local, (2,))
    assert worker.recv() == 7
    large = np.arange(1 << 20)
    worker.send(np.negative, [large])
    np.testing.assert_array_equal(worker.recv(), -large)
    worker.join()
    assert not worker.is_alive() and not is_running(first)
    with pytest.raises(ChildProcessError, match="recv needs a call"):
        worker.recv()


def test_errors_come_back_with_their_traceback() -> None:
    worker = PopenWorker()
    worker.send(fail, [3])
    with pytest.raises(tvm.TVMError, match="the value 3 is bad") as caught:
        worker.recv()
    assert "in fail" in str(caught.value.__cause__)
    worker.send(fail_unreadably)
    with pytest.raises(RuntimeError, match="Unreadable: 1 and 2"):
        worker.recv()
    worker.send(tempfile.TemporaryFile)  # a result that cannot be sent
    with pytest.raises(TypeError, match="pickle"):
        worker.recv()
    worker.send(os._exit, [3])
    with pytest.raises(ChildProcessError, match="ended before the function returned"):
        worker.recv()
    worker.send(jobs.fast_summation, [5])  # a new process
    assert worker.recv() == 10


def test_timeouts_kill_the_process_and_its_children(tmp_path: Path) -> None:
    worker = PopenWorker()
    worker.send(jobs.identity_py, [1], timeout=60)
    assert worker.recv() == 1
    written = tmp_path / "pids"
    worker.send(sleep_with_child, [str(written)], timeout=0.1)
    while not written.exists():  # the call has a child, however slow the machine is
        time.sleep(0.01)
    with pytest.raises(TimeoutError, match="longer than its timeout"):
        worker.recv()
    assert not worker.is_alive()
    pids = [int(pid) for pid in written.read_text().split()]
    assert len(pids) == 2 and not any(is_running(pid) for pid in pids)
    worker.send(jobs.fast_summation, [4])
    assert worker.recv() == 6


def test_processes_are_initialised_and_replaced() -> None:
    worker = PopenWorker(jobs.initializer, (1, 2, 3), maximum_uses=2)
    pids = []
    for _ in range(5):
        worker.send(os.getpid)
        pids.append(worker.recv())
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    worker.send(jobs.after_initializer)
    assert worker.recv() == (1, 2, 3)
    broken = PopenWorker(fail, (7,))
    with pytest.raises(tvm.TVMError, match="7 is bad"):
        broken.send(os.getpid)
    with pytest.raises(TypeError, match="initializer must be callable, got int"):
        PopenWorker(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="maximum_uses must be at least 1"):
        PopenWorker(maximum_uses=0)


def test_output_goes_where_it_should(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        worker = PopenWorker(stdout=out, stderr=subprocess.DEVNULL)
        worker.send(print, ["printed there"])
        assert worker.recv() is None
        worker.join()
    assert (tmp_path / "out").read_text() == "printed there\n"


def test_registered_functions_are_those_of_the_process() -> None:
    pool = PopenPoolExecutor(max_workers=1, initializer=jobs.register_ffi)
    for job in (jobs.call_py_ffi, jobs.call_cpp_ffi, jobs.call_cpp_py_ffi):
        assert pool.submit(job, 5).result() == 5
    assert tvm.get_global_func("testing.identity_py", allow_missing=True) is None


def check_square(n: int) -> int:
    if n == 4:
        raise ValueError("four")
    return n * n


def test_a_pool_keeps_the_order_and_catches_errors() -> None:
    pool = PopenPoolExecutor(max_workers=2)
    results = list(pool.map_with_error_catching(check_square, range(7)))
    assert [r.value for r in results if r.status == StatusKind.COMPLETE] == [0, 1, 4, 9, 25, 36]
    assert results[4].status == StatusKind.EXCEPTION and str(results[4].value) == "four"
    assert isinstance(results[0], MapResult)
    assert pool.submit(pow, 2, exp=5).result() == 32
    processes = [worker._proc.pid for worker in pool._workers if worker._proc]
    del pool, results
    assert processes and not any(is_running(pid) for pid in processes)


def test_a_pool_tells_which_calls_took_too_long() -> None:
    pool = PopenPoolExecutor(max_workers=1, timeout=0.1)
    (result,) = pool.map_with_error_catching(time.sleep, [3600])
    assert result.status == StatusKind.TIMEOUT and isinstance(result.value, TimeoutError)


class TimeOfReading:
    """Is read as the time at which it was read."""

    def __reduce__(self) -> tuple[object, ...]:
        return (time.monotonic, ())


def test_what_a_call_imports_does_not_count_against_its_timeout() -> None:
    worker = PopenWorker()
    worker.send(float, (TimeOfReading(),))
    _, started, _ = worker._receive(None)
    _, read_at, _ = worker._receive(None)
    assert started >= read_at


def test_children_are_killed_and_the_process_is_not() -> None:
    program = "import subprocess, time; p = subprocess.Popen(['sleep', '3600']); print(p.pid, flush=True); p.wait(); time.sleep(3600)"
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    kill_child_processes(parent.pid)
    while is_running(child):
        time.sleep(0.01)
    assert parent.poll() is None
    parent.kill()
    parent.communicate()


def test_a_killed_program_leaves_no_call_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "pids")
    program = (
        "from tvm.contrib.popen_pool import PopenWorker\n"
        "from tests.contrib.test_popen_pool import sleep_with_child\n"
        f"worker = PopenWorker()\nworker.send(sleep_with_child, [{path!r}])\nworker.recv()"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        while not Path(path).exists():
            time.sleep(0.05)
        process.kill()
    pids = [int(pid) for pid in Path(path).read_text().split()]
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_running, pids))


def test_a_worker_whose_answer_nobody_reads_ends_silently() -> None:
    child_reads, sends = os.pipe()
    answers, child_writes = os.pipe()
    command = [sys.executable, "-m", "tvm.exec.popen_worker", str(child_reads), str(child_writes)]
    with subprocess.Popen(
        command, pass_fds=(child_reads, child_writes), stderr=subprocess.PIPE
    ) as process:
        for descriptor in (child_reads, child_writes, answers):
            os.close(descriptor)
        write_message(sends, dump_object((abs, (-1,), {})))
        assert process.communicate()[1] == b""
    os.close(sends)
