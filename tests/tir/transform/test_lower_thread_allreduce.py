from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.tir.transform import LowerThreadAllreduce

from .checks import apply, assert_unchanged
from .lockstep import run_block
from .programs import function, loop, store


def lowered(s: te.Schedule, args: list[Any]) -> tir.PrimFunc:
    before = tvm.lower(s, args)["main"]
    after = apply(LowerThreadAllreduce(), before)
    assert "allreduce" in repr(before) and "allreduce" not in repr(after)
    return after


@pytest.mark.parametrize("count", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("rows", [1, 3])
def test_threads_sum_up_their_parts(count: int, rows: int) -> None:
    A = te.placeholder((rows, count * 3), name="A")
    k = te.reduce_axis((0, count * 3), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(k, factor=count)
    thread = te.thread_axis((0, count), "threadIdx.x")
    s[B].bind(inner, thread)
    s[B].bind(B.op.axis[0], te.thread_axis((0, rows), "threadIdx.y"))
    s[B].set_store_predicate(thread.var.equal(0))
    a = np.random.default_rng(0).random((rows, count * 3), "float32")
    b = np.zeros(rows, "float32")
    run_block(lowered(s, [A, B]), {"threadIdx.x": count, "threadIdx.y": rows}, a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


def test_threads_find_the_place_of_the_largest_number() -> None:
    idx, val = te.placeholder((2, 12), "int32", "idx"), te.placeholder((2, 12), name="val")
    largest = te.comm_reducer(
        lambda x, y: (
            tir.Select(x[1] >= y[1], x[0], y[0]),
            tir.Select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda i, v: (tir.const(-1, i), te.min_value(v)),
    )
    k = te.reduce_axis((0, 12), "k")
    T = te.compute((2,), lambda i: largest((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T[0].op)
    _, inner = s[T[0]].split(k, factor=6)
    thread = te.thread_axis((0, 6), "threadIdx.x")
    s[T[0]].bind(inner, thread)
    s[T[0]].set_store_predicate(thread.var.equal(0))
    values = np.random.default_rng(1).random((2, 12), "float32")
    places = np.tile(np.arange(12, dtype="int32"), (2, 1))
    found, top = np.zeros(2, "int32"), np.zeros(2, "float32")
    run_block(lowered(s, [idx, val, *T]), {"threadIdx.x": 6}, places, values, found, top)
    np.testing.assert_array_equal(found, values.argmax(1))
    np.testing.assert_array_equal(top, values.max(1))


def test_other_kernels_are_left_alone() -> None:
    A = tir.decl_buffer((8,), name="A")
    assert_unchanged(LowerThreadAllreduce(), function([A], loop(8, lambda i: store(A, i, 1.0))))


def test_reductions_need_a_combination() -> None:
    A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((1,), name="B")
    tx = tir.IterVar((0, 8), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    call = tir.op.tvm_thread_allreduce(tir.const(1, "uint32"), A[tx.var], True, B[0], tx.var)
    func = function([A, B], tir.AttrStmt(tx, "thread_extent", 8, tir.Evaluate(call)))
    with pytest.raises(LoweringError, match="needs to know how values combine"):
        apply(LowerThreadAllreduce(), func)
