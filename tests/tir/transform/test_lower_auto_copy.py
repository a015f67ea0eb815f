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


@T.prim_func
def accumulators_to_global(A: T.Buffer((64, 24), "float32"), C: T.Buffer((64, 24), "float32")):
    T.func_attr({"global_symbol": "main"})
    with T.block("root"):
        T.block_attr({"warp_execution": True})
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for _tx in T.thread_binding(32, thread="threadIdx.x"):
                with T.block():
                    F = T.alloc_buffer((16, 24), scope="m16n8k8.matrixC")
                    for i, j in T.grid(16, 24):
                        F[i, j] = A[ty * 16 + i, j]
                    with T.block("back"):
                        T.block_attr({"auto_copy": 1, "vector_bytes": 16})
                        for i, j in T.grid(16, 24):
                            C[ty * 16 + i, j] = F[i, j] * T.float32(2) + T.Cast("float32", j)


def test_fragments_of_all_warps_reach_global_memory() -> None:
    lower = Sequential([
        transform.LowerAutoCopy(),
        transform.LowerMatchBuffer(),
        transform.UnifyThreadBinding(),
        transform.LowerOpaqueBlock(),
        transform.FlattenBuffer(),
        transform.ThreadSync("shared.dyn"),
    ])  # fmt: skip
    a, c = np.random.default_rng(0).random((64, 24), "float32"), np.zeros((64, 24), "float32")
    run_block(apply(lower, accumulators_to_global), {"threadIdx.x": 32, "threadIdx.y": 4}, a, c)
    np.testing.assert_array_equal(c, a * 2 + np.arange(24, dtype="float32"))


def between_shared_memory_and_fragments(columns: int, scope: str, is_transposed: bool) -> str:
    shape = (columns, 32) if is_transposed else (32, columns)

    @T.prim_func
    def copied():
        T.func_attr({"global_symbol": "main"})
        with T.block("root"):
            T.block_attr({"warp_execution": True})
            for _ty in T.thread_binding(2, thread="threadIdx.y"):
                with T.block():
                    S = T.alloc_buffer(shape, "float16", scope="shared")
                    F = T.alloc_buffer((32, columns), "float16", scope=scope)
                    with T.block("copy"):
                        T.block_attr({"auto_copy": 1})
                        for i, j in T.grid(32, columns):
                            F[i, j] = S[(j, i) if is_transposed else (i, j)]

    return str(apply(transform.LowerAutoCopy(), copied))


@pytest.mark.parametrize("is_transposed", [False, True])
def test_tiles_are_loaded_into_fragments(is_transposed: bool) -> None:
    text = between_shared_memory_and_fragments(128, "wmma.matrix_b", is_transposed)
    layout = "col_major" if is_transposed else "row_major"
    assert text.count("T.tvm_load_matrix_sync(") == 1
    assert f'"{layout}"' in text
    assert "T.grid(2, 8)" in text
    assert "tgt.elem_offset // 256 + tgt.elem_offset % 256 // 16" in text
    assert f"strides=({40 if is_transposed else 136}, 1)" in text  # rows in other banks


def test_long_rows_of_tiles_are_numbered() -> None:
    text = between_shared_memory_and_fragments(512, "wmma.matrix_a", False)
    assert "tgt.elem_offset // 8192 * 32 + tgt.elem_offset % 512 // 16" in text


@pytest.mark.parametrize(
    ("columns", "scope", "message"),
    [(24, "wmma.matrix_a", "whole tiles of 16 by 16"), (32, "wmma.accumulator", "accumulators")],
)
def test_other_copies_of_fragments_are_rejected(columns: int, scope: str, message: str) -> None:
    with pytest.raises(tvm.error.LoweringError, match=message):
        between_shared_memory_and_fragments(columns, scope, False)
