from __future__ import annotations

import numpy as np
import pytest

from tvm.error import LoweringError
from tvm.ir.transform import Sequential
from tvm.script import tir as T
from tvm.tir import transform
from tvm.tir.transform import LowerCrossThreadReduction

from .checks import apply, assert_unchanged
from .lockstep import run_block

LOWER = Sequential([
    LowerCrossThreadReduction(),
    transform.LowerInitBlock(),
    transform.PlanAndUpdateBufferAllocationLocation(),
    transform.ConvertBlocksToOpaque(),
    transform.LowerOpaqueBlock(),
    transform.FlattenBuffer(),
    transform.LowerThreadAllreduce(),
])  # fmt: skip


@T.prim_func
def row_sums(A: T.Buffer((4, 30), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i in range(4):
        for k in range(4):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("sum"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(30, k * 8 + t)
                    T.where(k * 8 + t < 30)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk] * T.float32(2)


@T.prim_func
def row_maxima(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for y in T.thread_binding(2, thread="threadIdx.y"):
        for i in range(3):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("top"):
                    vi = T.axis.spatial(4, i * 2 + y)
                    vk = T.axis.reduce(8, t)
                    T.where(i * 2 + y < 4)
                    with T.init():
                        B[vi] = T.min_value("float32")
                    B[vi] = T.max(A[vi, vk], B[vi])


@T.prim_func
def serial_sums(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i, k in T.grid(4, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def differences(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for i in range(4):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("difference"):
                vi, vk = T.axis.remap("SR", [i, t])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] - A[vi, vk]


@T.prim_func
def results_inside(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(4):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, t])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]


def test_threads_sum_up_their_parts_of_rows() -> None:
    a, b = np.random.default_rng(0).random((4, 30), "float32"), np.zeros(4, "float32")
    run_block(apply(LOWER, row_sums), {"threadIdx.x": 8}, a, b)
    np.testing.assert_allclose(b, a.sum(1) * 2, rtol=1e-5)
    assert 'T.block("sum_write_back")' in str(apply(LowerCrossThreadReduction(), row_sums))


def test_threads_of_rows_keep_to_them() -> None:
    a, b = np.random.default_rng(0).random((4, 8), "float32"), np.zeros(4, "float32")
    run_block(apply(LOWER, row_maxima), {"threadIdx.x": 8, "threadIdx.y": 2}, a, b)
    np.testing.assert_array_equal(b, a.max(1))


@T.prim_func
def sums_of_parts(A: T.Buffer((4, 8, 6), "float32"), C: T.Buffer((4,), "float32")):
    T.func_attr({"global_symbol": "main"})
    part = T.alloc_buffer((8, 4), scope="local")
    B = T.alloc_buffer((4,), scope="local")
    for i in range(4):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            for u, j in T.grid(2, 6):
                with T.block("part"):
                    vk = T.axis.spatial(8, t * 2 + u)
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        part[vk, vi] = T.float32(0)
                    part[vk, vi] = part[vk, vi] + A[vi, vk, vj]
            for u in range(2):
                with T.block("sum"):
                    vk = T.axis.reduce(8, t * 2 + u)
                    vi = T.axis.spatial(4, i)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + part[vk, vi]
        with T.block("next"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi] + T.float32(1)


@T.prim_func
def row_argmax(
    A: T.Buffer((4, 8), "float32"), at: T.Buffer((4,), "int32"), top: T.Buffer((4,), "float32")
):
    T.func_attr({"global_symbol": "main"})
    for i in range(4):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("argmax"):
                vi, vk = T.axis.remap("SR", [i, t])
                with T.init():
                    at[vi] = -1
                    top[vi] = T.min_value("float32")
                index: T.int32 = T.Select(top[vi] >= A[vi, vk], at[vi], vk)
                value: T.float32 = T.Select(top[vi] >= A[vi, vk], top[vi], A[vi, vk])
                at[vi] = index
                top[vi] = value


def test_a_reduction_is_not_the_only_thing_in_its_loop_over_threads() -> None:
    a, c = np.random.default_rng(0).random((4, 8, 6), "float32"), np.zeros(4, "float32")
    lowered = apply(LowerCrossThreadReduction(), sums_of_parts)
    assert "T.where(tx == 0)" in str(lowered)  # what reads the sum is done by one thread
    run_block(apply(LOWER, sums_of_parts), {"threadIdx.x": 4}, a, c)
    np.testing.assert_allclose(c, a.sum((1, 2)) + 1, rtol=1e-5)


def test_threads_find_an_extremum_and_its_index() -> None:
    a = np.random.default_rng(0).random((4, 8), "float32")
    at, top = np.zeros(4, "int32"), np.zeros(4, "float32")
    run_block(apply(LOWER, row_argmax), {"threadIdx.x": 8}, a, at, top)
    np.testing.assert_array_equal(at, a.argmax(1))
    np.testing.assert_array_equal(top, a.max(1))


def test_serial_reductions_are_left_alone() -> None:
    assert_unchanged(LowerCrossThreadReduction(), serial_sums)


def test_other_combinations_are_rejected() -> None:
    with pytest.raises(LoweringError, match="difference reduces by no known combination"):
        apply(LowerCrossThreadReduction(), differences)
    with pytest.raises(ValueError, match="inside those of its results, got i inside t"):
        apply(LowerCrossThreadReduction(), results_inside)
