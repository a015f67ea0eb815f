from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.tir.interp import interpret
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


def by_warps(count: int, groups: int) -> tir.PrimFunc:
    """Each group of threads sums up a row, on a device with shuffles."""

    @T.prim_func
    def func(A: T.Buffer((groups, count), "float32"), B: T.Buffer((groups,), "float32")):
        T.func_attr({"target": T.target("cuda"), "tir.noalias": True})
        ty = T.launch_thread("threadIdx.y", groups)
        tx = T.launch_thread("threadIdx.x", count)
        total = T.decl_buffer((1,), scope="local")
        with T.attr(
            T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
            "reduce_scope",
            T.reinterpret("handle", T.uint64(0)),
        ):
            T.tvm_thread_allreduce(T.uint32(1), A[ty, tx], T.bool(True), total[0], tx)
        if tx == 0:
            B[ty] = total[0]

    return func


@pytest.mark.parametrize(
    ("count", "groups"),
    [(32, 1), (32, 3), (2, 32), (8, 4), (16, 5), (5, 1), (24, 1), (96, 2), (128, 1)],
)
def test_shuffles_sum_up(count: int, groups: int) -> None:
    after = apply(LowerThreadAllreduce(), by_warps(count, groups))
    assert "tvm_warp_shuffle_down" in repr(after) and "allreduce" not in repr(after)
    assert ("shared" in repr(after)) == (count > 32)
    a = np.random.default_rng(0).integers(-9, 9, (groups, count)).astype("float32")
    b = np.zeros(groups, "float32")
    interpret(after, a, b)
    np.testing.assert_array_equal(b, a.sum(1))


@pytest.mark.parametrize(("count", "groups"), [(48, 1), (5, 2), (1, 4)])
def test_groups_that_warps_do_not_divide_into_use_memory(count: int, groups: int) -> None:
    after = apply(LowerThreadAllreduce(), by_warps(count, groups))
    assert "shuffle" not in repr(after) and "shared" in repr(after)


def test_shuffles_name_the_threads_of_a_group() -> None:
    text = apply(LowerThreadAllreduce(), by_warps(4, 8)).script()
    mask = 'T.shift_left(T.uint32(15), T.uint32(4) * T.Cast("uint32", ty))'
    assert f"mask_1[0] = T.bitwise_and(T.tvm_warp_activemask(), {mask})" in text
    assert "T.tvm_warp_shuffle(mask_1[0], red_buf0[0], ty * 4, 32, 32)" in text
    # where there are more groups than a warp has places for, their number in the warp counts
    assert 'T.Cast("uint32", ty % 8)' in apply(LowerThreadAllreduce(), by_warps(4, 9)).script()
