from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import LoweringError, ScheduleError
from tvm.tir.interp import interpret

from ..outline import expect, outline


def pooled(rows: int = 9, step: int = 1) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A -> B = A * 2 -> C = the sums of three rows of B."""
    a = te.placeholder((rows, 4), name="A")
    b = te.compute((rows, 4), lambda i, j: a[i, j] * 2, name="B")
    k = te.reduce_axis((0, 3), name="k")
    count = (rows - 3) // step + 1
    c = te.compute((count, 4), lambda y, x: te.sum(b[y * step + k, x], axis=k), name="C")
    return a, b, c


def rolling(step: int = 1) -> tuple[te.Schedule, te.Tensor, te.Tensor, te.Tensor]:
    a, b, c = pooled(step=step)
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].rolling_buffer()
    return s, a, b, c


def check(s: te.Schedule, a: te.Tensor, c: te.Tensor, step: int = 1) -> tvm.IRModule:
    x = np.random.default_rng(0).random([int(d) for d in a.shape], "float32")
    rows = range(int(c.shape[0]))
    expected = np.stack([2 * x[y * step : y * step + 3].sum(0) for y in rows])
    module = tvm.lower(s, [a, c])
    out = np.zeros_like(expected)
    interpret(module["main"], x, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    compiled = tvm.nd.empty(expected.shape)
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(x), compiled)
    np.testing.assert_allclose(compiled.numpy(), expected, rtol=1e-5)
    return module


def test_each_iteration_computes_what_is_new() -> None:
    s, a, _, c = rolling()
    func = te.schedule.lower_schedule(s, [a, c])
    rolled = tvm.tir.transform.InjectRollingBuffer()(tvm.IRModule({"main": func}))["main"]
    assert outline(rolled) == expect("""
        realize B[3, 4]
          for y in serial(7)
            for i in serial(3)
              for j in serial(4)
                if likely
                  store B
            for x in serial(4)
              store C
              for k in serial(3)
                store C
    """)
    text = str(rolled)
    assert "% 3" in text and "T.likely(y < 1 or i >= 2)" in text
    check(s, a, c)


def test_a_row_is_computed_once() -> None:
    seen: list[int] = []
    a = te.placeholder((9,), name="A")
    note = "tests.te.rolling_row"
    tvm.register_func(note, lambda i: seen.append(int(i)) or 0, override=True)
    b = te.compute((9,), lambda i: a[i] + tvm.tir.call_packed(note, i).astype("float32"), name="B")
    c = te.compute((7,), lambda y: b[y] + b[y + 2], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].rolling_buffer()
    out = tvm.nd.empty((7,))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(np.ones(9, "float32")), out)
    np.testing.assert_array_equal(out.numpy(), np.full(7, 2, "float32"))
    assert seen == list(range(9))


@pytest.mark.parametrize("step", [2, 3])
def test_steps_of_several_rows(step: int) -> None:
    s, a, _, c = rolling(step)
    check(s, a, c, step)


def test_steps_may_differ() -> None:
    a = te.placeholder((14,), name="A")
    b = te.compute((14,), lambda i: a[i] * 2, name="B")
    c = te.compute((12,), lambda i: b[i] + b[i + 2], name="C")
    d = te.compute((20,), lambda i: c[i // 2] + c[i // 2 + 1], name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=5)  # rows from outer*5 // 2: 0, 2, 5, 7
    for stage in (b, c):
        s[stage].compute_at(s[d], outer)
        s[stage].rolling_buffer()
    module = tvm.lower(s, [a, d])
    assert str(module).count("% ") >= 4
    x = np.arange(14, dtype="float32") ** 2
    sums = 2 * (x[:12] + x[2:])
    expected = np.repeat(sums[:10] + sums[1:11], 2)
    out = np.zeros(20, "float32")
    interpret(module["main"], x, out)
    np.testing.assert_array_equal(out, expected)
    compiled = tvm.nd.empty((20,))
    tvm.build(s, [a, d], "llvm")(tvm.nd.array(x), compiled)
    np.testing.assert_array_equal(compiled.numpy(), expected)


def test_the_mark_may_name_the_buffer() -> None:
    s, a, _, c = rolling()
    func = te.schedule.lower_schedule(s, [a, c])
    roll = tvm.tir.transform.InjectRollingBuffer()
    by_pointer = roll(tvm.IRModule({"main": func}))
    buffers: dict[tvm.tir.Var, tvm.tir.Buffer] = {}

    def note(node: object) -> None:
        if isinstance(node, tvm.tir.BufferRealize):
            buffers[node.buffer.data] = node.buffer

    def named(node: object) -> tvm.tir.Stmt | None:
        is_mark = isinstance(node, tvm.tir.AttrStmt) and node.attr_key == "rolling_buffer_scope"
        return node.replace(node=buffers[node.node]) if is_mark else None

    tvm.tir.stmt_functor.post_order_visit(func.body, note)
    body = tvm.tir.stmt_functor.ir_transform(func.body, None, named, ["tir.AttrStmt"])
    by_buffer = roll(tvm.IRModule({"main": func.with_body(body)}))
    tvm.ir.assert_structural_equal(by_buffer, by_pointer)


def test_two_stages_roll_one_behind_the_other() -> None:
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] * 2, name="B")
    c = te.compute((10,), lambda i: b[i] + b[i + 2], name="C")
    d = te.compute((8,), lambda i: c[i] + c[i + 2], name="D")
    s = te.create_schedule(d.op)
    for stage in (b, c):
        s[stage].compute_at(s[d], d.op.axis[0])
        s[stage].rolling_buffer()
    x = np.arange(12, dtype="float32")
    out = tvm.nd.empty((8,))
    tvm.build(s, [a, d], "llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), 2 * (x[:8] + 2 * x[2:10] + x[4:]))


def rejected(change: Any) -> str:
    a, b, c = pooled()
    s = te.create_schedule(c.op)
    with pytest.raises((ScheduleError, LoweringError)) as info:
        change(s, b, c)
        tvm.lower(s, [a, c])
    return str(info.value).splitlines()[0]


def test_misuse_is_rejected() -> None:
    assert rejected(lambda s, b, c: s[c].rolling_buffer()) == (
        "rolling_buffer requires a stage that is kept inside, got output C"
    )
    assert rejected(lambda s, b, c: s[b].rolling_buffer()) == (
        "rolling_buffer requires a stage inside a loop, got B outside"
    )

    def in_parallel(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
        s[b].compute_at(s[c], c.op.axis[0])
        s[b].rolling_buffer()
        s[c].parallel(c.op.axis[0])

    assert rejected(in_parallel) == (
        "rolling_buffer of B requires a loop that runs in order, got y, PARALLEL"
    )

    def in_threads(s: te.Schedule, b: te.Tensor, c: te.Tensor) -> None:
        outer, inner = s[c].split(c.op.axis[1], factor=1)
        s[b].compute_at(s[c], outer)
        s[b].rolling_buffer()
        s[c].bind(outer, te.thread_axis("vthread"))

    assert rejected(in_threads) == (
        "rolling_buffer of B requires one region for all threads, got vthread"
    )
