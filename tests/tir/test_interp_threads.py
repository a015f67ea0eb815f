"""Kernels in the interpreter: results, and what threads must not do."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.codegen.gpu.programs import PROGRAMS, matmul
from tvm.error import TVMError
from tvm.script import tir as T
from tvm.tir.interp import interpret
from tvm.tir.pipeline import THREADS

SHARED = {
    "matmul": lambda: matmul(32),
    "matmul_dynamic": lambda: matmul(32, dynamic=True),
    **{name: PROGRAMS[name] for name in ("rfactor_sum", "cross_thread_max", "stencil")},
}


@pytest.mark.parametrize("name", SHARED)
def test_programs_with_barriers(name: str) -> None:
    program = SHARED[name]()
    mod = tvm.lower(program.schedule, program.args)
    with_target = tvm.tir.transform.BindTarget(tvm.target.Target("cuda", host="llvm"))
    mod = tvm.transform.Sequential([with_target, *THREADS])(mod)
    result = np.zeros(program.expected.shape, program.args[-1].dtype)
    interpret(mod["main"], *program.inputs, result)
    np.testing.assert_allclose(result, program.expected, rtol=1e-5, atol=1e-5)


def reversed_by_threads(with_barrier: bool) -> tvm.tir.PrimFunc:
    @T.prim_func
    def func(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")) -> None:
        bx = T.launch_thread("blockIdx.x", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((32,), "int32", scope="shared")
        S[tx] = A[bx * 32 + tx]
        if T.bool(with_barrier):
            T.tvm_storage_sync("shared")
        B[bx * 32 + tx] = S[31 - tx]

    return func


def test_shared_memory_is_of_a_block() -> None:
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    interpret(reversed_by_threads(True), a, b)
    np.testing.assert_array_equal(b, a.reshape(2, 32)[:, ::-1].reshape(-1))


def test_a_missing_barrier() -> None:
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    with pytest.raises(
        TVMError, match=r"element \d+ of S needs a barrier .* thread \d+ (reads|writes) it"
    ):
        interpret(reversed_by_threads(False), a, b)


def test_threads_that_write_one_element() -> None:
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")) -> None:
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.decl_buffer((1,), "int32", scope="shared")
        S[0] = tx
        A[tx] = tx

    with pytest.raises(
        TVMError, match="element 0 of S needs a barrier .* thread 1 writes it, thread 0 wrote"
    ):
        interpret(func, np.zeros(8, "int32"))


def test_a_barrier_that_some_threads_miss() -> None:
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")) -> None:
        tx = T.launch_thread("threadIdx.x", 8)
        if tx < 4:
            T.tvm_storage_sync("shared")
        A[tx] = tx

    with pytest.raises(
        TVMError,
        match="a barrier needs all threads of the block: thread 0 waits, thread 4 has ended",
    ):
        interpret(func, np.zeros(8, "int32"))


def test_shuffles_and_atomics() -> None:
    @T.prim_func
    def func(
        A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), C: T.Buffer((1,), "int32")
    ) -> None:
        tx = T.launch_thread("threadIdx.x", 32)
        mask = T.tvm_warp_activemask()
        B[tx] = (
            T.tvm_warp_shuffle_down(mask, A[tx], 1, 32, 32, dtype="int32")
            + T.tvm_warp_shuffle_up(mask, A[tx], 2, 32, 32, dtype="int32") * 100
            + T.tvm_warp_shuffle(mask, A[tx], 5, 32, 32, dtype="int32") * 10000
        )
        T.evaluate(T.call_intrin("int32", "tir.atomic_add", T.address_of(C[0]), A[tx]))

    a, b, c = np.arange(32, dtype="int32"), np.zeros(32, "int32"), np.zeros(1, "int32")
    interpret(func, a, b, c)
    down, up = np.minimum(a + 1, 31), np.where(a < 2, a, a - 2)
    np.testing.assert_array_equal(b, down + 100 * up + 50000)
    assert c[0] == a.sum()


def test_shared_memory_of_a_region_that_moves() -> None:
    """Each iteration has the same elements under other indices."""

    @T.prim_func
    def func(A: T.Buffer((2,), "int32"), B: T.Buffer((2, 4), "int32")) -> None:
        tx = T.launch_thread("threadIdx.x", 2)
        for k in range(4):
            S = T.Buffer((8,), "int32", scope="shared")
            T.realize(S[k * 2 : k * 2 + 2])
            T.tvm_storage_sync("shared")
            S[k * 2 + tx] = A[tx] + k
            T.tvm_storage_sync("shared")
            B[tx, k] = S[k * 2 + 1 - tx]

    a, b = np.array([10, 20], "int32"), np.zeros((2, 4), "int32")
    interpret(func, a, b)
    np.testing.assert_array_equal(b, a[::-1, None] + np.arange(4))
