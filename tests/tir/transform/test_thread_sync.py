"""Where barriers stand, and where none is needed."""

from __future__ import annotations

import pytest

import tvm
from tvm.error import LoweringError
from tvm.script import tir as T


def synchronized(func: tvm.tir.PrimFunc) -> str:
    mod = tvm.tir.transform.ThreadSync("shared")(tvm.IRModule({"main": func}))
    return str(mod["main"].body)


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
