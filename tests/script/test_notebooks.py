"""What notebooks show of programs, schedules and reports."""

from __future__ import annotations

import re
from html import unescape

import numpy as np

import tvm
from tvm import relay, te, tir
from tvm.contrib.debugger import debug_executor
from tvm.ir import script_printer
from tvm.script import tir as T


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
