from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import tvm
from tvm import tir
from tvm.error import InternalError, VectorizeError
from tvm.script import tir as T
from tvm.tir.expr import Broadcast, BufferLoad, Let, Ramp, Select
from tvm.tir.stmt import (
    Allocate,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from tvm.tir.transform import VectorizeLoop

from .checks import apply, assert_same_results, assert_transforms, assert_unchanged
from .programs import VECTORIZED, function, loop, store

A = tir.decl_buffer((64,), name="A")
B = tir.decl_buffer((64,), name="B")
LANES = Ramp(0, 1, 4)


def vectorized(body: Callable[[tir.Var], Stmt], lanes: int = 4) -> tir.PrimFunc:
    """The function of A and B with a vectorized loop."""
    return function([A, B], loop(lanes, body, VECTORIZED))


def loops_of(func: tir.PrimFunc) -> list[For]:
    """All loops."""
    found: list[For] = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda node: found.append(node) if isinstance(node, For) else None
    )
    return found


def test_vectorize_makes_ramps_and_broadcasts() -> None:
    before = vectorized(lambda i: store(B, i, A[i] + 1.0))
    one = Broadcast(tir.FloatImm("float32", 1.0), 4)
    after = function([A, B], store(B, LANES, tir.Add(BufferLoad(A, [LANES]), one)))
    assert_transforms(VectorizeLoop(), before, after)


def test_vectorize_keeps_strides_in_the_ramp() -> None:
    before = vectorized(lambda i: store(B, i * 2 + 1, A[3]))
    value = Broadcast(BufferLoad(A, [3]), 4)
    after = function([A, B], store(B, Ramp(1, 2, 4), value))
    assert_transforms(VectorizeLoop(), before, after)


def test_vectorize_leaves_other_loops() -> None:
    assert_unchanged(VectorizeLoop(), function([A, B], loop(4, lambda i: store(B, i, A[i]))))


def test_vectorize_can_be_switched_off() -> None:
    result = apply(VectorizeLoop(False), vectorized(lambda i: store(B, i, A[i])))
    assert isinstance(result.body, For) and result.body.kind is ForKind.SERIAL


def test_vectorize_rejects_variable_extent() -> None:
    n = tir.Var("n")
    with pytest.raises(InternalError, match="Failed to vectorize loop with extent n"):
        apply(
            VectorizeLoop(), function([A, B, n], loop(n, lambda i: store(B, i, A[i]), VECTORIZED))
        )


def scalar_temporary(i: tir.Var) -> Stmt:
    t = tir.decl_buffer((2,), name="t")
    body = SeqStmt([store(t, 0, A[i]), store(t, 1, A[i] * 2.0), store(B, i, t[0] + t[1])])
    return Allocate(t.data, "float32", [2], True, DeclBuffer(t, body))


def bound_value(i: tir.Var) -> Stmt:
    x = tir.Var("x", "float32")
    return LetStmt(x, A[i] * 2.0, store(B, i, x + x))


def bound_in_expression(i: tir.Var) -> Stmt:
    x = tir.Var("x", "float32")
    return store(B, i, Let(x, A[i] * 2.0, x + x))


BODIES: dict[str, Callable[[tir.Var], Stmt]] = {
    "invariant": lambda i: store(B, 0, A[5]),
    "reduction": lambda i: store(B, 0, B[0] + A[i]),
    "counting": lambda i: store(B, 0, B[0] + 1.0),
    "last value": lambda i: store(B, 0, A[i]),
    "gather": lambda i: store(B, i, A[i * 3]),
    "reversed": lambda i: store(B, i, A[7 - i]),
    "division": lambda i: store(B, i, A[i // 2] + A[i % 2]),
    "intrinsic": lambda i: store(B, i, tir.exp(A[i])),
    "select": lambda i: store(B, i, Select(i < 2, A[i], A[0])),
    "scalar choice": lambda i: store(B, i, tir.if_then_else(A[9] > 0.0, A[i], A[0])),
    "guarded": lambda i: store(B, i, tir.if_then_else(i >= 1, A[i - 1], tir.const(0.0, "float32"))),
    "padded": lambda i: store(
        B, i, tir.if_then_else(tir.all(i >= 1, i < 3), A[i - 1], tir.const(0.0, "float32"))
    ),
    "tail": lambda i: IfThenElse(i + 61 < 64, store(B, i + 61, A[i + 61])),
    "head": lambda i: IfThenElse(i >= 1, store(B, i - 1, A[i - 1])),
    "likely": lambda i: IfThenElse(tir.likely(i + 61 < 64), store(B, i + 61, A[i + 61] + A[0])),
    "two sides": lambda i: IfThenElse(i < 2, store(B, i, A[i]), store(B, i, A[i + 1])),
    "nothing to do": lambda i: IfThenElse(i > 10, store(B, i + 100, A[i + 100])),
    "odd lanes": lambda i: IfThenElse((i % 2).equal(0), store(B, i, A[i])),
    "cast": lambda i: store(B, i, i.astype("float32")),
    "inner loop": lambda i: loop(3, lambda j: store(B, i * 3 + j, A[i * 3 + j]), name="j"),
    "inner extent": lambda i: loop(i + 1, lambda j: store(B, i * 4 + j, A[j]), name="j"),
    "temporary": scalar_temporary,
    "let": bound_value,
    "let expression": bound_in_expression,
}  # fmt: skip


MASKED = VectorizeLoop(masked=True)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("masked", [False, True])
def test_vectorize_gives_the_same_results(name: str, masked: bool) -> None:
    before = vectorized(BODIES[name])
    result = apply(VectorizeLoop(masked=masked), before)
    assert_same_results(before, result, 64, 64)
    assert apply(VectorizeLoop(masked=masked), result) is result


@pytest.mark.parametrize("name", ["guarded", "padded", "tail", "likely"])
def test_without_masks_conditions_of_lanes_leave_a_loop(name: str) -> None:
    (found,) = loops_of(apply(VectorizeLoop(), vectorized(BODIES[name])))
    assert found.kind is ForKind.SERIAL


@pytest.mark.parametrize(
    "name",
    ["gather", "intrinsic", "guarded", "padded", "tail", "likely", "temporary", "let", "cast"],
)
def test_vectorize_leaves_no_loop(name: str) -> None:
    assert loops_of(apply(MASKED, vectorized(BODIES[name]))) == []


def test_vectorize_masks_a_tail_behind_a_guard() -> None:
    result = apply(MASKED, vectorized(BODIES["tail"]))
    assert isinstance(result.body, IfThenElse)
    assert result.body.condition.dtype == "bool"
    assert isinstance(result.body.then_case, BufferStore)
    assert result.body.then_case.predicate is not None


def test_vectorize_of_nested_loops_keeps_the_inner_one() -> None:
    def outer(i: tir.Var) -> Any:
        return loop(4, lambda j: store(B, i * 4 + j, A[i * 4 + j]), VECTORIZED, "j")

    before = vectorized(outer)
    result = apply(VectorizeLoop(), before)
    assert_same_results(before, result, 64, 64)
    assert len(loops_of(result)) == 1


def test_lanes_of_two_loops_do_not_meet() -> None:
    def outer(i: tir.Var) -> Stmt:
        return loop(4, lambda j: store(B, i * 4 + j, A[i * 4 + j]), VECTORIZED)

    before = vectorized(outer)
    after = apply(VectorizeLoop(), before)
    assert [found.kind for found in loops_of(after)] == [ForKind.SERIAL]
    assert_same_results(before, after, (64,), (64,))


@pytest.mark.parametrize(
    ("target", "is_taken"),
    [
        ("llvm -mtriple=x86_64-linux-gnu", False),
        ("llvm -mtriple=aarch64-linux-gnu", False),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+sve", True),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v", True),
    ],
)
@pytest.mark.parametrize("is_attribute", [False, True])
def test_scalable_vectors_need_a_target_that_has_them(
    target: str, is_taken: bool, is_attribute: bool
) -> None:
    @T.prim_func
    def filled(A: T.Buffer((16,), "float32")):
        for j in T.vectorized(4 * T.vscale()):
            A[j] = T.float32(13)

    scope = contextlib.nullcontext() if is_attribute else tvm.target.Target(target)
    func = filled.with_attr("target", tvm.target.Target(target)) if is_attribute else filled
    with scope:
        if is_taken:
            assert "T.vectorized" not in str(apply(VectorizeLoop(), func))
            return
        with pytest.raises(VectorizeError, match="vectors of scalable length"):
            apply(VectorizeLoop(), func)
