"""Loops that copy one block of memory."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined,untyped-decorator"

from __future__ import annotations

from typing import Any

import pytest

import tvm
import tvm.testing
from tvm import tir
from tvm.ir import structural_equal
from tvm.script import tir as T
from tvm.tir.analysis import identify_memcpy


def answers(func: tir.PrimFunc) -> list[Any]:
    """What is copied, as texts; reasons as they are."""
    return [
        found.value if isinstance(found, tir.StringImm) else " -> ".join(map(str, found))
        for found in identify_memcpy(func.body)
    ]


def test_a_row_and_a_block_of_rows_are_copied() -> None:
    @T.prim_func
    def func(A: T.Buffer((8, 16), "float32"), B: T.Buffer((64,), "float32")):
        for i, j in T.grid(4, 16):
            B[i * 16 + j] = A[i + 2, j]

    assert answers(func) == ["A[2:6, 0:16] -> B[0:64]", "A[i + 2, 0:16] -> B[i * 16:i * 16 + 16]"]


def test_regions_are_found_by_the_classic_global_function() -> None:
    @T.prim_func
    def func(A: T.Buffer((16,), "int8"), B: T.Buffer((32,), "int8")):
        for i in range(16):
            B[i + 8] = A[i]

    a, b = func.buffer_map.values()
    found = tir.analysis._ffi_api._identify_memcpy(func.body)
    assert len(found) == 1
    assert structural_equal(found[0], (a[0:16], b[8:24]))


def test_quotients_and_remainders_of_one_index_are_its_order() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 16), "float32")):
        for i in range(64):
            B[i // 16, i % 16] = A[i]

    assert answers(func) == ["A[0:64] -> B[0:4, 0:16]"]


def test_a_symbolic_extent_is_copied() -> None:
    @T.prim_func
    def func(a: T.handle, b: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i]

    assert answers(func) == ["A[0:n] -> B[0:n]"]


@T.prim_func
def transposed(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        B[i, j] = A[j, i]


@T.prim_func
def strided(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(8):
        B[i * 2] = A[i * 2]


@T.prim_func
def parts_of_rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 6):
        B[i, j] = A[i, j]


@T.prim_func
def one_place(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for _i in range(8):
        B[0] = A[0]


@T.prim_func
def some_twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, j in T.grid(4, 2):
        B[i + j * 4 - j * i] = A[i + j * 4 - j * i]


@T.prim_func
def no_box(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        B[i + 2] = A[(i + 2) // 4, (i + 2) % 4]


@T.prim_func
def computed(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] + 1.0


@T.prim_func
def shifted(A: T.Buffer((8,), "float32")):
    for i in range(7):
        A[i + 1] = A[i]


@T.prim_func
def two_stores(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        B[i] = A[i]
        B[i + 4] = A[i]


@pytest.mark.parametrize(
    ("func", "reason"),
    [
        (transposed, "requires the same order"),
        (strided, "requires elements that are next to each other"),
        (parts_of_rows, "requires elements that are next to each other"),
        (some_twice, "requires elements that are next to each other"),
        (one_place, "requires elements that are next to each other"),
        (no_box, "requires all elements of a region"),
        (computed, "requires a store of what is loaded"),
        (shifted, "requires memory of its own"),
        (two_stores, "requires loops around a store, got SeqStmt"),
    ],
)
def test_other_loops_say_why_they_are_no_copy(func: tir.PrimFunc, reason: str) -> None:
    assert reason in answers(func)[0]


class ScriptsAsFixtures:
    def __init_subclass__(cls) -> None:
        cls.func = tvm.testing.CompareBeforeAfter._normalize_before(cls.func)  # type: ignore[attr-defined]

    def test_identify(self, func: tir.PrimFunc) -> None:
        assert answers(func) == ["A[0:8] -> B[0:8]"]


class TestScriptOfAClass(ScriptsAsFixtures):
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i]
