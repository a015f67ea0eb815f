"""Copies that all threads of a block make together."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.tir.schedule.programs import matmul
from tvm import tir
from tvm.ir.transform import Sequential
from tvm.script import tir as T
from tvm.tir import transform

from .checks import apply
from .lockstep import run_block

LOWER = Sequential([
    transform.LowerAutoCopy(),
    transform.LowerOpaqueBlock(),
    transform.FlattenBuffer(),
    transform.ThreadSync("shared"),
])  # fmt: skip


def transposition(rows: int, columns: int, annotations: dict[str, object]) -> tir.PrimFunc:
    @T.prim_func
    def transposed(
        A: T.Buffer((rows, columns), "float32"), B: T.Buffer((columns, rows), "float32")
    ):
        T.func_attr({"global_symbol": "main"})
        with T.block("root"):
            for _ty in T.thread_binding(2, thread="threadIdx.y"):
                for _tx in T.thread_binding(8, thread="threadIdx.x"):
                    with T.block():
                        S = T.alloc_buffer((columns, rows), scope="shared")
                        with T.block("there"):
                            T.block_attr(annotations)
                            for i, j in T.grid(rows, columns):
                                S[j, i] = A[i, j] * T.float32(2)
                        with T.block("back"):
                            T.block_attr(annotations)
                            for i, j in T.grid(rows, columns):
                                B[j, i] = S[j, i]

    return transposed


@pytest.mark.parametrize("shape", [(16, 16), (12, 20), (5, 7)])
@pytest.mark.parametrize("more", [{}, {"vector_bytes": 16}, {"local_stage": True}])
def test_threads_share_a_copy(shape: tuple[int, int], more: dict[str, object]) -> None:
    func = transposition(*shape, {"auto_copy": 1, **more})
    a, b = np.random.default_rng(0).random(shape, "float32"), np.zeros(shape[::-1], "float32")
    run_block(apply(LOWER, func), {"threadIdx.x": 8, "threadIdx.y": 2}, a, b)
    np.testing.assert_array_equal(b, a.T * 2)


def test_rows_are_padded_where_threads_would_wait() -> None:
    lowered = apply(transform.LowerAutoCopy(), transposition(32, 32, {"auto_copy": 1}))
    assert "strides=(33, 1)" in str(lowered)


def test_copies_without_threads_stay_loops() -> None:
    sch = tir.Schedule(matmul)
    sch.read_at(sch.get_loops("C")[0], "C", 0, "global")
    a, b = [np.random.default_rng(0).random(shape, "float32") for shape in ((12, 8), (8, 10))]
    c = tvm.nd.array(np.zeros((12, 10), "float32"))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)
