from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.ir.transform import PassContext
from tvm.tir.stmt import Allocate, AttrStmt, For, SeqStmt
from tvm.tir.transform import InjectDoubleBuffer

from .checks import apply, assert_same_results
from .programs import function, loop, store

A = tir.decl_buffer((64,), name="A")
B = tir.decl_buffer((64,), name="B")
POINTER = tir.Var("T", tir.expr.pointer_type("float32"))
T = tir.decl_buffer((8,), name="T", data=POINTER)


def program(fill: object = None, extra: object = None) -> tir.PrimFunc:
    def iteration(i: tir.Var) -> tir.Stmt:
        value = fill or (lambda i, j: A[i * 8 + j])
        filling = loop(8, lambda j: store(T, j, value(i, j)), name="j")
        use = loop(8, lambda j: store(B, i * 8 + j, T[j] + 1.0), name="j")
        stmts = [AttrStmt(POINTER, "double_buffer_scope", 1, filling), use]
        if extra is not None:
            stmts.append(extra(i))
        body = tir.DeclBuffer(T, SeqStmt(stmts))
        return Allocate(POINTER, "float32", [8], True, body)

    return function([A, B], loop(8, iteration))


def test_the_buffer_has_two_halves_and_lives_outside_the_loop() -> None:
    result = apply(InjectDoubleBuffer(), program())
    assert isinstance(result.body, Allocate) and int(result.body.extents[0]) == 16
    assert "double_buffer_write" in str(result) and "double_buffer_scope" not in str(result)
    assert_same_results(program(), result, 64, 64)


@pytest.mark.parametrize("split", [0, 1, 2, 3, 16])
def test_split_loops_give_the_same_results(split: int) -> None:
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        result = apply(InjectDoubleBuffer(), program())
    assert_same_results(program(), result, 64, 64)
    assert ("if" in str(result)) is (split == 0)


def test_a_filling_that_reads_what_the_iteration_writes_is_not_run_ahead() -> None:
    func = program(lambda i, j: A[i * 8 + j], lambda i: store(A, i + 8, 0.0))
    result = apply(InjectDoubleBuffer(), func)
    assert isinstance(result.body, For) and "double_buffer" not in str(result)
    assert_same_results(func, result, 64, 64)


@pytest.mark.parametrize("size", [5, 8, 64, 0])
def test_two_double_buffers_of_a_schedule_of_symbolic_size(size: int) -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    left = te.compute((n,), lambda i: a[i] * 2, name="left")
    right = te.compute((n,), lambda i: a[i] * 3, name="right")
    total = te.compute((n,), lambda i: left[i] + right[i], name="total")
    s = te.create_schedule(total.op)
    outer, _ = s[total].split(total.op.axis[0], 8)
    for stage in (left, right):
        s[stage].compute_at(s[total], outer)
        s[stage].double_buffer()
    f = tvm.build(s, [a, total], "llvm")
    values = np.arange(size, dtype="float32")
    out = tvm.nd.empty((size,))
    f(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), values * 5)


def test_a_filling_by_threads_that_begin_inside_the_loop_is_not_run_ahead() -> None:
    """Ahead of the loop there would be no thread to fill the buffer for."""
    func = program(lambda i, j: A[i * 8 + j])
    assert isinstance(func.body, For)
    thread = tir.Var("threadIdx.x", "int32")
    axis = tir.IterVar(None, thread, tir.IterVar.ThreadIndex, "threadIdx.x")
    inside = AttrStmt(axis, "thread_extent", 1, func.body.body)
    result = apply(InjectDoubleBuffer(), function([A, B], func.body.replace(body=inside)))
    assert isinstance(result.body, For) and "double_buffer" not in str(result)
