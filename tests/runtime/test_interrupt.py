"""Ctrl-C ends what the runtime does, and the executor is usable afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

# a child is interrupted once it says so, and tells how it ended
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import VirtualMachine
from tests.runtime.interrupted import {case} as make

call, check = make()
started = []
def interrupt():
    time.sleep({delay})
    started.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=interrupt)
thread.start()
try:
    call()
    print("ended by itself")
except KeyboardInterrupt:
    print("interrupted after", time.perf_counter() - started[0])
thread.join()
check()
print("usable")
"""


@pytest.mark.parametrize(
    "case",
    [
        "graph_run",
        "aot_run",
        "machine_loop",
        "evaluator",
        "pause",
        "waiting",
        "long_loops",
        "serial_loop",
        "unknown_parallel_loop",
    ],
)
def test_ctrl_c_ends_a_call_and_leaves_the_executor_usable(case: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(case=case, delay=0.3)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "interrupted after" in found.stdout and "usable" in found.stdout, (
        found.stdout + found.stderr
    )
