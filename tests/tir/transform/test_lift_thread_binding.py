from __future__ import annotations

from collections.abc import Callable

import pytest

from tvm import tir
from tvm.error import LoweringError
from tvm.tir.stmt import For, ForKind, SeqStmt, Stmt
from tvm.tir.transform import LiftThreadBinding

from .checks import apply, assert_same_results, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((4, 8), name="A")
B = tir.decl_buffer((4, 8), name="B")


def threads(tag: str, extent: int, body: Callable[[tir.Var], Stmt]) -> For:
    axis = tir.IterVar((0, extent), tag, tir.IterVar.ThreadIndex, tag)
    plain = loop(extent, body, name=tag[-1])
    return plain.replace(kind=ForKind.THREAD_BINDING, thread_binding=axis)


def kernel(*parts: Stmt) -> tir.PrimFunc:
    return function([A, B], threads("blockIdx.x", 1, lambda bx: SeqStmt(parts)))


def row(extent: int = 8) -> Stmt:
    return loop(4, lambda k: threads("threadIdx.x", extent, lambda tx: store(B, [k, tx], A[k, tx])))


def last_row(extent: int = 8) -> Stmt:
    return threads("threadIdx.x", extent, lambda tx: store(B, [3, tx], A[0, tx] * 2.0))


def test_loops_over_the_same_threads_become_one() -> None:
    before = kernel(row(), last_row())
    after = apply(LiftThreadBinding(), before)
    inner = after.body.body
    assert inner.thread_binding.thread_tag == "threadIdx.x" and isinstance(inner.body, SeqStmt)
    assert repr(after).count("threadIdx.x") == 1
    assert_same_results(before, after, (4, 8), (4, 8))
    assert_unchanged(LiftThreadBinding(), after)


def test_kernels_keep_threads_of_their_own() -> None:
    assert_unchanged(LiftThreadBinding(), function([A, B], SeqStmt([last_row(), last_row()])))
    assert_unchanged(LiftThreadBinding(), kernel(row()))


def test_threads_of_two_extents_are_rejected() -> None:
    with pytest.raises(LoweringError, match="needs one extent in a kernel, got 8 and 4"):
        apply(LiftThreadBinding(), kernel(row(), last_row(4)))


def test_statements_of_no_thread_are_rejected() -> None:
    with pytest.raises(LoweringError, match="a loop around every statement of its kernel"):
        apply(LiftThreadBinding(), kernel(row(), store(B, [0, 0], 1.0), last_row()))
