"""Where barriers stand, and where none is needed."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm.error import LoweringError, TVMError
from tvm.script import tir as T
from tvm.tir.interp import interpret


def with_barriers(func: tvm.tir.PrimFunc) -> tvm.tir.PrimFunc:
    return tvm.tir.transform.ThreadSync("shared")(tvm.IRModule({"main": func}))["main"]


def synchronized(func: tvm.tir.PrimFunc) -> str:
    return str(with_barriers(func).body)


def test_one_barrier_in_front_of_a_loop_of_reads() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.decl_buffer((64,), scope="shared")
        S[tx] = A[tx]
        for k in range(64):
            B[tx] = B[tx] + S[k]

    lines = [line.strip() for line in synchronized(func).splitlines()]
    [barrier] = [i for i, line in enumerate(lines) if "storage_sync" in line]
    assert lines[barrier + 1].startswith("for k in range(64)")


def test_two_barriers_where_a_loop_fills_and_reads() -> None:
    @T.prim_func
    def func(A: T.Buffer((640,)), B: T.Buffer((64,))) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.decl_buffer((64,), scope="shared")
        for k in range(10):
            S[tx] = A[k * 64 + tx]
            B[tx] = B[tx] + S[63 - tx]

    assert synchronized(func).count("storage_sync") == 2


def test_no_barrier_for_elements_of_the_thread_itself() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))) -> None:
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((64,), scope="shared")
        S[ty * 32 + tx] = A[ty * 32 + tx]
        B[ty * 32 + tx] = S[ty * 32 + tx]

    assert "storage_sync" not in synchronized(func)


def test_a_barrier_where_threads_share_an_element() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))) -> None:
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((64,), scope="shared")
        S[ty * 16 + tx] = A[ty * 16 + tx]
        B[ty * 32 + tx] = S[ty * 16 + tx]

    assert synchronized(func).count("storage_sync") == 1


def test_a_barrier_of_the_program_counts() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.decl_buffer((64,), scope="shared")
        S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        B[tx] = S[63 - tx]

    assert synchronized(func).count("storage_sync") == 1


def test_a_barrier_that_some_threads_would_miss() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,)), B: T.Buffer((64,))) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.decl_buffer((64,), scope="shared")
        if tx < 32:
            S[tx] = A[tx]
            B[tx] = S[31 - tx]

    with pytest.raises(LoweringError, match="cannot wait for each other in a branch of some"):
        synchronized(func)


def test_statements_outside_of_the_axis_are_run_by_all_of_its_threads() -> None:
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((64,))) -> None:
        bx = T.launch_thread("blockIdx.x", 1)
        L = T.decl_buffer((8,), scope="local")
        S = T.decl_buffer((1,), scope="shared")
        for k in range(8):
            S[0] = A[k]
            L[k] = S[0]
        tx = T.launch_thread("threadIdx.x", 64)
        B[bx * 64 + tx] = L[tx // 8]

    assert "storage_sync" not in str(func)
    assert synchronized(func).count("storage_sync") == 2
    a, b = np.arange(8, dtype="float32"), np.zeros(64, "float32")
    interpret(with_barriers(func), a, b)
    np.testing.assert_array_equal(b, np.repeat(a, 8))


def test_all_threads_read_a_sum_before_one_adds_to_it() -> None:
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((2,))) -> None:
        bx = T.launch_thread("blockIdx.x", 1)
        S = T.decl_buffer((1,), scope="shared")
        S[0] = T.float32(0)
        for k in range(8):
            if T.likely(bx + k < 8):
                S[0] = S[0] + A[k]
        tx = T.launch_thread("threadIdx.x", 2)
        B[tx] = S[0]

    a, b = np.arange(8, dtype="float32"), np.zeros(2, "float32")
    with pytest.raises(TVMError, match="needs a barrier between threads"):
        interpret(func, a, b)
    interpret(with_barriers(func), a, b)
    np.testing.assert_array_equal(b, [28, 28])


def test_all_threads_read_what_a_value_is_defined_by_before_one_writes() -> None:
    @T.prim_func
    def func(A: T.Buffer((8,)), B: T.Buffer((2,))) -> None:
        T.launch_thread("blockIdx.x", 1)
        S = T.decl_buffer((1,), scope="shared")
        S[0] = T.float32(0)
        for k in range(8):
            with T.LetStmt(S[0]) as x:
                S[0] = x + A[k]
        tx = T.launch_thread("threadIdx.x", 2)
        B[tx] = S[0]

    a, b = np.arange(8, dtype="float32"), np.zeros(2, "float32")
    interpret(with_barriers(func), a, b)
    np.testing.assert_array_equal(b, [28, 28])


def test_no_barrier_within_a_sum_of_some_threads() -> None:
    """Neither where the thread is named, nor where a value or memory may differ between threads."""

    @T.prim_func
    def func(A: T.Buffer((64,), "int32")) -> None:
        tx = T.launch_thread("threadIdx.x", 64)
        S = T.decl_buffer((1,), "int32", scope="shared")
        with T.LetStmt(tx // 2) as half:
            if half == 0:
                S[0] = S[0] + 1
            if A[tx] == 0:
                S[0] = S[0] + 1

    assert "value" not in synchronized(func)


def test_pointers_count_as_what_their_mask_says() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,), "float16")) -> None:
        tx = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((64,), "float16", scope="shared")
        R = T.decl_buffer((8,), "float16", scope="local")
        S[tx] = A[tx]
        for _ in range(4):
            T.ptx_ldmatrix(False, 1, ".b16", R.data, 0, S.access_ptr("r"), tx * 8, dtype="float16")
            T.ptx_ldmatrix(False, 1, ".b16", R.data, 2, S.access_ptr("r"), tx * 8, dtype="float16")

    assert synchronized(func).count("storage_sync") == 1
