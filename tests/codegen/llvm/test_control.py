"""Loops, branches, parallel regions, deep nests."""

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import TVMError
from tvm.tir import ForKind

from .helpers import flat_function, run

A = tir.decl_buffer((256,), "float32", "A")
B = tir.decl_buffer((256,), "float32", "B")


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000])
def test_parallel_loop_covers_each_iteration_once(size: int) -> None:
    data = te.placeholder((size, 8), name="A")
    scale = te.var("scale", "float32")
    out = te.compute((size, 8), lambda i, j: data[i, j] * scale + 1.0, name="out")
    schedule = te.create_schedule(out.op)
    schedule[out].parallel(out.op.axis[0])
    func = tvm.build(schedule, [data, scale, out], "llvm")
    x = np.random.rand(size, 8).astype("float32")
    np.testing.assert_allclose(run(func, x, 2.5, x * 0)[2], x * 2.5 + 1, rtol=1e-6)


def test_parallel_loop_inside_another_runs_serially() -> None:
    data = te.placeholder((8, 16), name="A")
    out = te.compute((8, 16), lambda i, j: data[i, j] + 1.0, name="out")
    schedule = te.create_schedule(out.op)
    for axis in out.op.axis:
        schedule[out].parallel(axis)
    func = tvm.build(schedule, [data, out], "llvm")
    x = np.random.rand(8, 16).astype("float32")
    np.testing.assert_array_equal(run(func, x, x * 0)[1], x + 1)


def test_parallel_reduction_with_private_accumulators() -> None:
    data = te.placeholder((64, 100), name="A")
    k = te.reduce_axis((0, 100), name="k")
    out = te.compute((64,), lambda i: te.sum(data[i, k], axis=k), name="out")
    schedule = te.create_schedule(out.op)
    local = schedule.cache_write(out, "local")
    schedule[out].parallel(out.op.axis[0])
    schedule[local].compute_at(schedule[out], out.op.axis[0])
    func = tvm.build(schedule, [data, out], "llvm")
    x = np.random.rand(64, 100).astype("float32")
    np.testing.assert_allclose(run(func, x, np.zeros(64, "float32"))[1], x.sum(1), rtol=1e-5)


@pytest.mark.parametrize("pragma", [False, True])
def test_parallel_launch_point_spans_several_loops(pragma: bool) -> None:
    data = te.placeholder((64,), name="A")
    out = te.compute((64,), lambda i: data[i] + 1.0, name="out")
    schedule = te.create_schedule(out.op)
    outer, inner = schedule[out].split(out.op.axis[0], nparts=1)
    schedule[out].pragma(outer, "parallel_launch_point")
    if pragma:
        schedule[out].pragma(inner, "parallel_stride_pattern")
    schedule[out].parallel(inner)
    func = tvm.build(schedule, [data, out], "llvm")
    x = np.random.rand(64).astype("float32")
    np.testing.assert_array_equal(run(func, x, x * 0)[1], x + 1)


def test_loop_with_symbolic_bounds() -> None:
    i, low, count = (tir.Var(n, "int32") for n in ("i", "low", "count"))
    body = tir.For(i, low, count, ForKind.SERIAL, tir.BufferStore(B, A[i] + 1.0, [i]))
    func = tvm.build(tir.PrimFunc([A, B, low, count], body), target="llvm")
    x = np.random.rand(256).astype("float32")
    for start, number in ((0, 0), (3, 10), (0, 256), (5, -2)):
        expected = np.zeros(256, "float32")
        expected[start : start + max(number, 0)] = x[start : start + max(number, 0)] + 1
        np.testing.assert_array_equal(run(func, x, x * 0, start, number)[1], expected)


def test_while_loop() -> None:
    counter = tir.decl_buffer((1,), "int32", "counter")
    zero = tir.const(0)
    step = tir.BufferStore(counter, counter[zero] + 3, [zero])
    body = tir.While(counter[zero] < 100, step)
    func = tvm.build(flat_function(lambda c: body, counter), target="llvm")
    assert run(func, np.zeros(1, "int32"))[0][0] == 102


def test_branches() -> None:
    i = tir.Var("i", "int32")
    then = tir.BufferStore(B, A[i], [i])
    other = tir.BufferStore(B, -A[i], [i])
    body = tir.For(i, 0, 256, ForKind.SERIAL, tir.IfThenElse(i % 3 < 1, then, other))
    func = tvm.build(flat_function(lambda a, b: body, A, B), target="llvm")
    x = np.random.rand(256).astype("float32")
    expected = np.where(np.arange(256) % 3 < 1, x, -x)
    np.testing.assert_array_equal(run(func, x, x * 0)[1], expected)


def test_second_operand_of_and_is_guarded() -> None:
    """A[i] is read only where i is inside A, though both sides are one condition."""
    small = tir.decl_buffer((4,), "float32", "A")
    i = tir.Var("i", "int32")
    guarded = tir.And(i < 4, tir.BufferLoad(small, [i * 100_000_000]) > 0.5)
    body = tir.For(i, 0, 8, ForKind.SERIAL, tir.IfThenElse(
        tir.And(i < 1, guarded), tir.BufferStore(B, tir.const(1.0, "float32"), [i])))  # fmt: skip
    func = tvm.build(flat_function(lambda a, b: body, small, B), target="llvm")
    result = run(func, np.ones(4, "float32"), np.zeros(256, "float32"))[1]
    assert result[0] == 1 and not result[1:].any()


def test_deep_expression_and_deep_nest() -> None:
    value = A[0]
    for _ in range(3000):
        value = value + A[1]
    store = tir.BufferStore(B, value, [0])
    nest: tir.Stmt = store
    for depth in range(200):
        nest = tir.For(tir.Var(f"i{depth}", "int32"), 0, 1 + depth % 2 * 0, ForKind.SERIAL, nest)
    func = tvm.build(flat_function(lambda a, b: nest, A, B), target="llvm")
    x = np.ones(256, "float32")
    assert run(func, x, x * 0)[1][0] == 3001


def test_gpu_thread_axis_is_rejected_on_a_cpu() -> None:
    data = te.placeholder((64,), name="A")
    out = te.compute((64,), lambda i: data[i] + 1.0, name="out")
    schedule = te.create_schedule(out.op)
    schedule[out].bind(out.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(TVMError):
        tvm.build(schedule, [data, out], "llvm")


def test_short_rows_of_a_block_become_vectors() -> None:
    a = te.placeholder((64, 64), name="a")
    b = te.placeholder((64, 64), name="b")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((64, 64), lambda i, j: te.sum(a[i, k] * b[k, j], k), name="c")
    s = te.create_schedule(c.op)
    io, jo, ii, ji = s[c].tile(*c.op.axis, 32, 32)
    s[c].reorder(io, jo, k, ii, ji)
    assembly = tvm.build(s, [a, b, c], "llvm -mcpu=skylake-avx512").get_source("asm")
    assert "vfmadd" in assembly and "vgather" not in assembly


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_threads_of_a_launch_point_share_what_they_fill(target: str) -> None:
    data = te.placeholder((128,), name="A")
    middle = te.compute((128,), lambda i: data[i] + 1.0, name="middle")
    out = te.compute((128,), lambda i: middle[127 - i] * 2.0, name="out")
    schedule = te.create_schedule(out.op)
    outer, inner = schedule[out].split(out.op.axis[0], nparts=1)
    schedule[middle].compute_at(schedule[out], outer)
    schedule[middle].parallel(middle.op.axis[0])
    schedule[middle].pragma(middle.op.axis[0], "parallel_barrier_when_finish")
    schedule[out].parallel(inner)
    schedule[out].pragma(outer, "parallel_launch_point")
    func = tvm.build(schedule, [data, out], target)
    if target == "c":
        assert func.get_source().count("TVMBackendAllocWorkspace") <= 1
        return
    x = np.random.rand(128).astype("float32")
    np.testing.assert_array_equal(run(func, x, x * 0)[1], (x[::-1] + 1) * 2)
