from __future__ import annotations

from tvm import tir
from tvm.ir.transform import PassContext
from tvm.tir.stmt import NO_OP, Allocate, DeclBuffer, Evaluate, IfThenElse, LetStmt, SeqStmt
from tvm.tir.transform import RemoveNoOp

from .checks import apply, assert_transforms, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")


def test_empty_loops_and_branches_go() -> None:
    empty = loop(8, lambda i: IfThenElse(i < 4, Evaluate(0)))
    before = function([A, B], SeqStmt([empty, store(B, 0, A[0])]))
    assert_transforms(RemoveNoOp(), before, function([A, B], store(B, 0, A[0])))


def test_an_empty_first_branch_is_negated() -> None:
    before = function([A, B], loop(8, lambda i: IfThenElse(i < 4, NO_OP, store(B, i, A[i]))))
    after = function([A, B], loop(8, lambda i: IfThenElse(tir.Not(i < 4), store(B, i, A[i]))))
    assert_transforms(RemoveNoOp(), before, after)


def test_a_store_of_what_is_there_goes() -> None:
    before = function([A, B], loop(8, lambda i: SeqStmt([store(B, i, B[i]), store(B, i, A[i])])))
    assert_transforms(RemoveNoOp(), before, function([A, B], loop(8, lambda i: store(B, i, A[i]))))


def test_unused_memory_goes() -> None:
    t = tir.decl_buffer((8,), name="t")
    before = function([A], Allocate(t.data, "float32", [8], True, DeclBuffer(t, Evaluate(0))))
    assert apply(RemoveNoOp(), before).body is NO_OP


def test_calls_with_effects_stay() -> None:
    call = tir.call_extern("int32", "print_it", 1)
    assert_unchanged(RemoveNoOp(), function([A], Evaluate(call)))
    before = function([A], LetStmt(tir.Var("x"), call, Evaluate(0)))
    assert_transforms(RemoveNoOp(), before, function([A], Evaluate(call)))


def test_pure_calls_go() -> None:
    before = function([A], Evaluate(tir.exp(tir.const(1.0, "float32"))))
    assert apply(RemoveNoOp(), before).body is NO_OP


def test_a_store_that_is_overwritten_goes_when_told_to() -> None:
    def filled(value: float) -> tir.Stmt:
        return loop(8, lambda i: store(B, i, value))

    before = function([A, B], SeqStmt([filled(1.0), store(A, 0, 2.0), filled(3.0)]))
    after = function([A, B], SeqStmt([store(A, 0, 2.0), filled(3.0)]))
    assert_unchanged(RemoveNoOp(), before)
    with PassContext(config={"tir.RemoveNoOp": {"use_dataflow_analysis": True}}):
        assert_transforms(RemoveNoOp(), before, after)


def test_a_store_that_is_read_in_between_stays() -> None:
    def filled(value: float) -> tir.Stmt:
        return loop(8, lambda i: store(B, i, value))

    between = function([A, B], SeqStmt([filled(1.0), store(A, 0, B[0]), filled(3.0)]))
    shifted = loop(7, lambda i: store(B, i + 1, 3.0))
    with PassContext(config={"tir.RemoveNoOp": {"use_dataflow_analysis": True}}):
        assert_unchanged(RemoveNoOp(), between)
        assert_unchanged(RemoveNoOp(), function([A, B], SeqStmt([filled(1.0), shifted])))
