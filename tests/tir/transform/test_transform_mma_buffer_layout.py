"""Fragments of mma instructions as local memory of threads."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined,untyped-decorator"

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from tvm import tir
from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.tir.interp import interpret
from tvm.tir.transform import TransformMmaBufferLayout

from .checks import apply, assert_transforms, assert_unchanged


@T.prim_func(private=True)
def through_fragment(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("kernel"):
            T.reads(A[0:32, 0:16])
            T.writes(B[0:32, 0:16])
            C = T.alloc_buffer((32, 16), "float32", scope="m16n8k8.matrixC")
            for m, n, k, v in T.grid(2, 2, 2, 2):
                C[m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v] = A[
                    m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v
                ]
            for m, n, k, v in T.grid(2, 2, 2, 2):
                B[m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v] = (
                    C[m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v] + 1.0
                )


def allocating(
    rows: int, columns: int, scope: str, is_indexed: bool = False, is_matched: bool = False
) -> tir.PrimFunc:
    if is_matched:

        @T.prim_func(private=True)
        def matched():
            C = T.alloc_buffer((rows, columns), "float16", scope=scope)
            with T.block("part"):
                T.reads()
                T.writes(C[0:8, 0:8])
                D = T.match_buffer(C[0:8, 0:8], (8, 8), "float16", scope=scope, offset_factor=8)
                D[0, 0] = T.float16(0)

        return cast(tir.PrimFunc, matched)

    @T.prim_func(private=True)
    def func(A: T.Buffer((1,), "float16")):
        C = T.alloc_buffer((rows, columns), "float16", scope=scope)
        if is_indexed:
            A[0] = C[0, 0]
        else:
            T.evaluate(T.call_extern("int32", "load", C.data, 8))

    return cast(tir.PrimFunc, func)


def test_a_thread_has_the_elements_of_its_own() -> None:
    @T.prim_func(private=True)
    def after(A: T.Buffer((32, 16), "float32"), B: T.Buffer((32, 16), "float32")):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("kernel"):
                T.reads(A[0:32, 0:16])
                T.writes(B[0:32, 0:16])
                C = T.alloc_buffer((2, 2, 2, 2), "float32", scope="local")
                for m, n, k, v in T.grid(2, 2, 2, 2):
                    C[m, n, k, v] = A[m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v]
                for m, n, k, v in T.grid(2, 2, 2, 2):
                    B[m * 16 + k * 8 + tx // 4, n * 8 + tx % 4 * 2 + v] = C[m, n, k, v] + 1.0

    assert_transforms(TransformMmaBufferLayout(), through_fragment, after)


def test_the_program_computes_the_same() -> None:
    a = np.random.default_rng(0).random((32, 16), dtype="float32")
    b = np.zeros_like(a)
    interpret(apply(TransformMmaBufferLayout(), through_fragment), a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize(
    ("rows", "columns", "scope", "shape"),
    [
        (64, 16, "m16n8k8.matrixA", [2, 2, 4, 2]),
        (16, 64, "m16n8k8.matrixB", [2, 2, 4, 2]),
        (16, 8, "m16n8k8.matrixC", [1, 1, 2, 2]),
    ],
)
def test_pointers_lead_to_local_memory(
    rows: int, columns: int, scope: str, shape: list[int]
) -> None:
    after = apply(TransformMmaBufferLayout(), allocating(rows, columns, scope))
    block = cast(tir.BlockRealize, after.body).block
    (buffer,) = block.alloc_buffers
    assert buffer.scope() == "local"
    assert [cast(tir.IntImm, extent).value for extent in buffer.shape] == shape
    pointers: list[tir.Var] = []
    tir.stmt_functor.post_order_visit(
        block.body, lambda n: pointers.append(n) if isinstance(n, tir.Var) else None
    )
    assert all(pointer is buffer.data for pointer in pointers) and pointers


def test_what_has_no_layout_is_rejected() -> None:
    with pytest.raises(LoweringError, match="whole tiles of 16 by 8, got C of shape"):
        apply(TransformMmaBufferLayout(), allocating(24, 8, "m16n8k8.matrixC"))
    with pytest.raises(LoweringError, match="operands to be accessed by ptx_ldmatrix"):
        apply(TransformMmaBufferLayout(), allocating(32, 8, "m16n8k8.matrixA", is_indexed=True))
    with pytest.raises(LoweringError, match="got the matched buffer D"):
        apply(TransformMmaBufferLayout(), allocating(16, 8, "m16n8k8.matrixC", is_matched=True))


def test_other_memory_stays() -> None:
    assert_unchanged(TransformMmaBufferLayout(), allocating(16, 8, "wmma.accumulator"))
