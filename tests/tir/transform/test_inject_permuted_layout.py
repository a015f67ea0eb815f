"""Columns of shared memory that are permuted within their rows."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined,untyped-decorator"

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from tvm import tir
from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.tir.interp import interpret
from tvm.tir.transform import InjectPermutedLayout

from .checks import apply, assert_transforms, assert_unchanged


@T.prim_func(private=True)
def through_shared(A: T.Buffer((16, 64), "float16"), B: T.Buffer((64, 16), "float16")):
    S = T.alloc_buffer((16, 64), "float16", scope="shared")
    for i, j, k in T.grid(16, 8, 8):
        with T.block("S"):
            T.block_attr({"permuted_layout": 1})
            S[i, j * 8 + k] = A[i, j * 8 + k]
    for i, j in T.grid(64, 16):
        with T.block("B"):
            T.block_attr({"permuted_layout": 1})
            B[i, j] = S[j, i]


def copies(rows: int, columns: int, marks: tuple[int, int] = (1, 1)) -> tir.PrimFunc:
    first, second = marks

    @T.prim_func(private=True)
    def func(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (rows, columns), "float32")
        B = T.match_buffer(b, (rows, columns), "float32")
        S = T.alloc_buffer((rows, columns), "float32", scope="shared.dyn")
        for i, j in T.grid(rows, columns):
            with T.block("S"):
                T.block_attr({"permuted_layout": first})
                S[i, j] = A[i, j]
        for i, j in T.grid(rows, columns):
            with T.block("B"):
                T.block_attr({"permuted_layout": second})
                B[i, j] = S[i, j] + 1.0

    return cast(tir.PrimFunc, func)


def stored_columns(func: tir.PrimFunc) -> list[tir.PrimExpr]:
    found: list[tir.PrimExpr] = []

    def note(node: object) -> None:
        if isinstance(node, tir.BufferStore) and node.buffer.scope().startswith("shared"):
            found.append(node.indices[-1])

    tir.stmt_functor.post_order_visit(func.body, note)
    return found


def test_groups_of_columns_are_permuted_within_the_row() -> None:
    @T.prim_func(private=True)
    def after(A: T.Buffer((16, 64), "float16"), B: T.Buffer((64, 16), "float16")):
        S = T.alloc_buffer((16, 64), "float16", scope="shared")
        for i, j, k in T.grid(16, 8, 8):
            with T.block("S"):
                T.reads(A[i, j * 8 + k])
                T.writes(S[i, j * 8 + k])
                S[i, T.bitwise_xor(j, i % 8) * 8 + k] = A[i, j * 8 + k]
        for i, j in T.grid(64, 16):
            with T.block("B"):
                T.reads(S[j, i])
                T.writes(B[i, j])
                B[i, j] = S[j, T.bitwise_xor(i // 8, j % 8) * 8 + i % 8]

    assert_transforms(InjectPermutedLayout(), through_shared, after)


@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (9, 64), (8, 128), (3, 192)])
def test_each_element_is_found_where_it_was_stored(rows: int, columns: int) -> None:
    before = copies(rows, columns)
    after = apply(InjectPermutedLayout(), before)
    assert [str(c) for c in stored_columns(before)] != [str(c) for c in stored_columns(after)]
    a = np.random.default_rng(0).random((rows, columns), dtype="float32")
    b = np.zeros_like(a)
    interpret(after, a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_pointers_of_ldmatrix_move_with_their_rows() -> None:
    def with_pointer(permuted: bool) -> tir.PrimFunc:
        mark = {} if permuted else {"permuted_layout": "s2l_A"}

        @T.prim_func(private=True)
        def func():
            S = T.alloc_buffer((16, 64), "float16", scope="shared")
            W = T.alloc_buffer((32, 8), "float16", scope="warp")
            for k in range(4):
                for tx in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("W"):
                        T.reads(S[0:16, k * 16 : k * 16 + 16])
                        T.writes(W[0:32, 0:8])
                        T.block_attr(mark)
                        T.ptx_ldmatrix(
                            "float16",
                            T.bool(False),
                            4,
                            ".b16",
                            W.data,
                            tx * 8,
                            T.tvm_access_ptr(
                                T.type_annotation("float16"),
                                S.data,
                                tx % 16 * 64 + T.bitwise_xor(k * 2 + tx // 16, tx % 8) * 8
                                if permuted
                                else k * 16,
                                1024,
                                1,
                            ),
                            0 if permuted else tx % 16 * 64 + tx // 16 * 8,
                        )

        return cast(tir.PrimFunc, func)

    assert_transforms(InjectPermutedLayout(), with_pointer(False), with_pointer(True))


def test_a_mark_of_zero_permutes_nothing() -> None:
    before = copies(4, 64, (0, 0))
    after = apply(InjectPermutedLayout(), before)
    assert [str(c) for c in stored_columns(before)] == [str(c) for c in stored_columns(after)]
    assert_unchanged(InjectPermutedLayout(), after)


def test_accesses_outside_of_marked_blocks_are_rejected() -> None:
    with pytest.raises(LoweringError, match="requires all accesses to S in blocks marked"):
        apply(InjectPermutedLayout(), copies(4, 64, (1, 0)))


def test_rows_that_groups_do_not_fill_are_rejected() -> None:
    with pytest.raises(LoweringError, match="rows of 32 or a multiple of 64 elements"):
        apply(InjectPermutedLayout(), copies(4, 48))
