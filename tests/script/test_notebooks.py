"""What notebooks show of programs, schedules and reports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir
from tvm.contrib.debugger import debug_executor
from tvm.ir import script_printer
from tvm.runtime.benchmark import BenchmarkResult
from tvm.script import tir as T

# a kernel of Jupyter is what IPython and the name of its package tell
SHOWN = """
import sys
import types
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance()
sys.modules["ipykernel"] = types.ModuleType("ipykernel")

def outputs(work):
    with capture_output() as captured:
        work()
    assert not captured.stderr, captured.stderr
    return [(o.update, o.data["text/html"]) for o in captured.outputs]
"""
TUNING = """
from tvm.autotvm.tuner.progress_bar import ProgressBar

def work():
    bar = ProgressBar(4, prefix="<b>task", si_prefix="G")
    bar.show(1, 2e9, 2e9)
    bar.show(3, 1e9, 3e9)
    bar.close()

found = outputs(work)
assert [update for update, _ in found] == [False, True], found
assert "1/4" in found[0][1] and "4/4" in found[1][1], found
assert "best 3.00 GFLOPS, last 1.00" in found[1][1] and "&lt;b&gt;task" in found[1][1], found
"""
BUILDING = """
from tvm.relay import progress

progress.QUIET_SECONDS = progress.NOTEBOOK_SECONDS = 0.0

def work():
    with progress.progress() as step:
        step("optimizing")
        step("lowering <b>", 0.5)

found = outputs(work)
assert [update for update, _ in found] == [False, True, True], found
assert "optimizing" in found[0][1] and "lowering &lt;b&gt;" in found[1][1], found
assert "lowering" not in found[2][1], "the line stays when the build has ended"
"""
FORMATTED = """
import tvm
from tvm import relay, te, tir

x = relay.var("x", shape=(2,))
A = te.placeholder((4,), name="A")
schedule = te.create_schedule(te.compute((4,), lambda i: A[i] + 1, name="B").op)
mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
for shown in (mod, mod["main"], schedule, tvm.lower(schedule, [A])):
    formatted, _ = shell.display_formatter.format(shown)
    assert set(formatted) == {"text/plain", "text/html"}, formatted
"""


@T.prim_func
def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html)).strip()


def test_programs_are_their_texts_in_colour() -> None:
    x = relay.var("x<b>", shape=(2,))
    graph = relay.Function([x], relay.exp(x))
    for shown in (double, tvm.IRModule({"main": double}), graph, tvm.IRModule.from_expr(graph)):
        html = shown._repr_html_()
        assert text_of(html) == str(shown).strip()
        assert '<span style="color' in html
    assert "x<b>" not in graph._repr_html_()


def test_long_programs_are_cut_and_say_so(monkeypatch) -> None:
    monkeypatch.setattr(script_printer, "LAST_LINE_IN_NOTEBOOKS", 3)
    html = double._repr_html_()
    left = len(str(double).splitlines()) - 3
    assert html.endswith(f"<p>{left} more lines, which print shows</p>")
    assert len(text_of(html).splitlines()) <= 4 + 1


def test_a_schedule_of_blocks_is_its_program() -> None:
    schedule = tir.Schedule(double)
    schedule.parallel(schedule.get_loops(schedule.get_block("B"))[0])
    assert "T.parallel(4)" in text_of(schedule._repr_html_())


def test_a_schedule_of_stages_is_a_table_of_loops() -> None:
    A = te.placeholder((8, 8), name="A<i>")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2, name="C")
    schedule = te.create_schedule(C.op)
    outer, inner = schedule[C].split(C.op.axis[1], factor=4)
    schedule[C].vectorize(inner)
    schedule[C].bind(outer, te.thread_axis("threadIdx.x"))
    schedule[B].compute_at(schedule[C], C.op.axis[0])
    rows = re.findall(r"<tr>(.*?)</tr>", schedule._repr_html_())
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows[1:]]
    assert cells == [
        ["A&lt;i&gt;", "an input", ""],
        ["B", "computed at C, axis i", "i, j"],
        ["C", "by itself", "i, j.outer bound to threadIdx.x, vectorized j.inner"],
    ]


def test_a_profile_is_a_table_the_longest_call_first() -> None:
    x = relay.var("x", shape=(64, 64))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(relay.nn.dense(x, x))))
    lib = relay.build(mod, "llvm -mcpu=native")
    debug = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    report = debug.profile(x=np.ones((64, 64), "float32"))
    html = report._repr_html_()
    assert html.count("<tr>") == 1 + len(report.calls)
    titles = re.findall(r"<th>(.*?)</th>", html)
    assert "Name" in titles and "Duration (us)" in titles
    column = titles.index("Duration (us)")
    rows = re.findall(r"<tr>(.*?)</tr>", html)[1:]
    times = [
        float(re.findall(r"<td[^>]*>(.*?)</td>", row)[column].replace(",", "")) for row in rows
    ]
    assert times == sorted(times, reverse=True)


def test_a_trace_is_a_program_in_colour() -> None:
    schedule = tir.Schedule(double)
    schedule.parallel(schedule.get_loops(schedule.get_block("B"))[0])
    html = schedule.trace._repr_html_()
    assert text_of(html) == str(schedule.trace).strip() and '<span style="color' in html


def test_a_measurement_is_a_table_of_milliseconds() -> None:
    html = BenchmarkResult([0.001, 0.003])._repr_html_()
    assert re.findall(r"<th>(.*?)</th>", html)[:3] == ["mean (ms)", "median (ms)", "max (ms)"]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells == ["2.0000", "2.0000", "3.0000", "1.0000", "1.0000"]


@pytest.mark.parametrize("program", [TUNING, BUILDING, FORMATTED], ids=["tuning", "build", "nodes"])
def test_ipython_is_shown_html_which_is_updated_in_place(program: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN + program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
