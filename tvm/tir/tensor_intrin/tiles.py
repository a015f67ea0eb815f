"""What intrinsics of matrix units do: fill a tile, copy one, multiply two and add to a third.

`filled`, `copied` and `multiplied` tell it in loops, `filled_by` and its like do it by one instruction, written by
a function of the buffers, each with the elements from one row to the next.

An operand is told by the function that declares the buffer of its handle. Where the elements of a tile lie in
the buffer, such as in the registers of threads, is told by a function of the tile's row and column.
"""

# mypy: disable-error-code="untyped-decorator,no-any-return,valid-type,no-untyped-def,name-defined,misc"

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm.script import tir as T
from tvm.tir.expr import const
from tvm.tir.function import PrimFunc
from tvm.tir.tensor_intrin.common import converted, match_tile

Operand = Callable[..., Any]  # the buffer of a handle, with strides if they are given
Layout = Callable[[Any, Any], tuple[Any, Any]]  # from a row and a column of a tile


def tile(shape: tuple[int, int], dtype: str, scope: str) -> Operand:
    """An operand that is a tile for matrix units."""
    return partial(match_tile, shape=shape, dtype=dtype, scope=scope)


def by_rows(row: Any, column: Any) -> tuple[Any, Any]:
    """The tile itself is the buffer."""
    return row, column


def by_columns(row: Any, column: Any) -> tuple[Any, Any]:
    """The buffer is the tile transposed."""
    return column, row


def rows_or_columns(transposed: bool) -> Layout:
    """`by_columns` or `by_rows`."""
    return by_columns if transposed else by_rows


def filled(target: Operand, extents: tuple[int, int], at: Layout = by_rows) -> PrimFunc:
    """The tile is filled with zeros."""
    rows, columns = extents

    @T.prim_func
    def fill(c: T.handle) -> None:
        C = target(c)
        with T.block("root"):
            T.reads()
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            for i, j in T.grid(rows, columns):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads()
                    T.writes(C[at(vi, vj)])
                    C[at(vi, vj)] = const(0, C.dtype)

    return fill


def copied(
    source: Operand,
    target: Operand,
    extents: tuple[int, int],
    source_at: Layout = by_rows,
    target_at: Layout = by_rows,
) -> PrimFunc:
    """The tile is copied; the source is the first parameter."""
    rows, columns = extents

    @T.prim_func
    def copy(a: T.handle, c: T.handle) -> None:
        A = source(a)
        C = target(c)
        with T.block("root"):
            T.reads(A[0 : A.shape[0], 0 : A.shape[1]])
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            for i, j in T.grid(rows, columns):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[source_at(vi, vj)])
                    T.writes(C[target_at(vi, vj)])
                    C[target_at(vi, vj)] = A[source_at(vi, vj)]

    return copy


def loaded(
    target: Operand, source: Operand, extents: tuple[int, int], target_at: Layout
) -> PrimFunc:
    """The tile is copied to registers, which are the first parameter."""
    rows, columns = extents

    @T.prim_func
    def load(c: T.handle, a: T.handle) -> None:
        A = source(a)
        C = target(c)
        with T.block("root"):
            T.reads(A[0 : A.shape[0], 0 : A.shape[1]])
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            for i, j in T.grid(rows, columns):
                with T.block("load"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(C[target_at(vi, vj)])
                    C[target_at(vi, vj)] = A[vi, vj]

    return load


def multiplied(
    operands: tuple[Operand, Operand, Operand],
    extents: tuple[int, int, int],
    a_at: Layout = by_rows,
    b_at: Layout = by_rows,
    c_at: Layout = by_rows,
) -> PrimFunc:
    """The product of two tiles, of rows, columns and products summed, is added to a third one."""
    first, second, sums = operands
    rows, columns, depth = extents

    @T.prim_func
    def multiply(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = first(a)
        B = second(b)
        C = sums(c)
        with T.block("root"):
            T.reads(
                C[0 : C.shape[0], 0 : C.shape[1]],
                A[0 : A.shape[0], 0 : A.shape[1]],
                B[0 : B.shape[0], 0 : B.shape[1]],
            )
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            for i, j, k in T.grid(rows, columns, depth):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    T.reads(C[c_at(vi, vj)], A[a_at(vi, vk)], B[b_at(vk, vj)])
                    T.writes(C[c_at(vi, vj)])
                    C[c_at(vi, vj)] += converted(A[a_at(vi, vk)], C.dtype) * converted(
                        B[b_at(vk, vj)], C.dtype
                    )

    return multiply


def filled_by(target: Operand, instruction: Callable[[Any, Any], Any]) -> PrimFunc:
    """The tile is filled by an instruction."""

    @T.prim_func
    def fill(c: T.handle) -> None:
        d1 = T.int32()
        d0 = T.int32()
        C = target(c, strides=[d1, d0])
        with T.block("root"):
            T.reads()
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            T.evaluate(instruction(C, d1))

    return fill


def copied_by(
    source: Operand, target: Operand, instruction: Callable[[Any, Any, Any, Any], Any]
) -> PrimFunc:
    """The tile is copied by an instruction."""

    @T.prim_func
    def copy(a: T.handle, c: T.handle) -> None:
        s1 = T.int32()
        s0 = T.int32()
        d1 = T.int32()
        d0 = T.int32()
        A = source(a, strides=[s1, s0])
        C = target(c, strides=[d1, d0])
        with T.block("root"):
            T.reads(A[0 : A.shape[0], 0 : A.shape[1]])
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            T.evaluate(instruction(A, s1, C, d1))

    return copy


def multiplied_by(
    operands: tuple[Operand, Operand, Operand], instruction: Callable[..., Any]
) -> PrimFunc:
    """The product of two tiles is added to a third one by an instruction."""
    first, second, sums = operands

    @T.prim_func
    def multiply(a: T.handle, b: T.handle, c: T.handle) -> None:
        a1 = T.int32()
        a0 = T.int32()
        b1 = T.int32()
        b0 = T.int32()
        c1 = T.int32()
        c0 = T.int32()
        A = first(a, strides=[a1, a0])
        B = second(b, strides=[b1, b0])
        C = sums(c, strides=[c1, c0])
        with T.block("root"):
            T.reads(
                C[0 : C.shape[0], 0 : C.shape[1]],
                A[0 : A.shape[0], 0 : A.shape[1]],
                B[0 : B.shape[0], 0 : B.shape[1]],
            )
            T.writes(C[0 : C.shape[0], 0 : C.shape[1]])
            T.evaluate(instruction(A, a1, B, b1, C, c1))

    return multiply
