from __future__ import annotations

import pytest

from tvm import te, tir
from tvm.error import LoweringError
from tvm.tir.stmt import AttrStmt, Evaluate, IfThenElse, SeqStmt
from tvm.tir.transform import (
    LegalizePackedCalls,
    PointerValueTypeRewrite,
    ReduceBranchingThroughOvercompute,
    RemoveWeightLayoutRewriteBlock,
    ThreadSync,
    UseAssumeToReduceBranches,
)

from .checks import apply, assert_transforms, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")
POINTER = tir.Var("S", tir.expr.pointer_type("float32", "shared"))
S = tir.decl_buffer((8,), name="S", data=POINTER)


def threads(body: object) -> tir.PrimFunc:
    axis = tir.IterVar((0, 8), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    inside = tir.Allocate(POINTER, "float32", [8], True, body(axis.var))
    return function([A, B], AttrStmt(axis, "thread_extent", 8, inside))


def barriers(body: object) -> int:
    return str(apply(ThreadSync("shared"), threads(body))).count("tvm_storage_sync")


def test_a_barrier_is_between_a_write_and_a_read() -> None:
    assert barriers(lambda tx: SeqStmt([store(S, tx, A[tx]), store(B, tx, S[7 - tx])])) == 1
    assert barriers(lambda tx: SeqStmt([store(B, tx, S[tx]), store(A, tx, S[7 - tx])])) == 0


def test_iterations_of_a_loop_wait_for_each_other() -> None:
    def iteration(tx: tir.Var) -> tir.Stmt:
        return loop(4, lambda i: SeqStmt([store(S, tx, A[tx]), store(B, tx, S[7 - tx])]))

    assert barriers(iteration) == 2


def test_a_barrier_that_is_there_is_enough() -> None:
    sync = Evaluate(tir.tvm_storage_sync("shared"))
    assert barriers(lambda tx: SeqStmt([store(S, tx, A[tx]), sync, store(B, tx, S[7 - tx])])) == 1


def test_threads_cannot_wait_in_a_branch_of_some() -> None:
    def branch(tx: tir.Var) -> tir.Stmt:
        return IfThenElse(tx < 4, SeqStmt([store(S, tx, A[tx]), store(B, tx, S[3 - tx])]))

    with pytest.raises(LoweringError, match="cannot wait for each other in a branch of some"):
        barriers(branch)
    assert (
        barriers(lambda tx: SeqStmt([store(S, tx, A[tx]), IfThenElse(tx < 4, store(B, tx, S[7]))]))
        == 1
    )


def test_other_memory_needs_no_barrier() -> None:
    func = threads(lambda tx: SeqStmt([store(S, tx, A[tx]), store(B, tx, S[7 - tx])]))
    assert_unchanged(ThreadSync("warp"), func)


def test_assumptions_decide_branches() -> None:
    n = tir.Var("n")
    assumed = Evaluate(tir.assume(n > 4))
    before = function(
        [B, n], SeqStmt([assumed, IfThenElse(n > 2, store(B, 0, 1.0), store(B, 0, 2.0))])
    )
    after = function([B, n], SeqStmt([assumed, store(B, 0, 1.0)]))
    assert_transforms(UseAssumeToReduceBranches(), before, after)


def test_an_assumption_holds_behind_it_only() -> None:
    n = tir.Var("n")
    branch = IfThenElse(tir.const(3) <= n, store(B, 0, 1.0), store(B, 0, 2.0))
    func = function([B, n], SeqStmt([branch, Evaluate(tir.assume(n > 4))]))
    assert_unchanged(UseAssumeToReduceBranches(), func)


def test_a_branch_whose_other_side_is_undefined_is_taken_always() -> None:
    ints = [tir.decl_buffer((8,), "int32", name) for name in "XY"]
    x, y = ints

    def body(i: tir.Var) -> tir.Stmt:
        return IfThenElse(i < 6, store(y, i, x[i] * 2), store(y, i, tir.undef()))

    after = function(ints, loop(8, lambda i: store(y, i, x[i] * 2)))
    assert_transforms(ReduceBranchingThroughOvercompute(), function(ints, loop(8, body)), after)


def test_what_would_be_read_out_of_bounds_stays_guarded() -> None:
    x, y = [tir.decl_buffer((8,), "int32", name) for name in "XY"]

    def body(i: tir.Var) -> tir.Stmt:
        return IfThenElse(i < 6, store(y, i, x[i + 2]), store(y, i, tir.undef()))

    assert_unchanged(ReduceBranchingThroughOvercompute(), function([x, y], loop(8, body)))


def vectors(base: object) -> tir.PrimFunc:
    pointer = tir.Var("T", tir.expr.pointer_type("float32"))
    t = tir.decl_buffer((8,), name="T", data=pointer)

    def body(i: tir.Var) -> tir.Stmt:
        at = tir.Ramp(base(i), 1, 4)
        ramp = tir.Ramp(i * 4, 1, 4)
        return SeqStmt(
            [store(t, at, A[ramp]), store(B, ramp, t[at] + tir.Broadcast(tir.const(1.0), 4))]
        )

    stmt = tir.DeclBuffer(t, loop(2, body))
    return function([A, B], tir.Allocate(pointer, "float32", [8], True, stmt))


def test_memory_of_full_vectors_is_typed_by_them() -> None:
    before = vectors(lambda i: i * 4)
    after = apply(PointerValueTypeRewrite(), before)
    assert str(after.body.dtype) == "float32x4" and int(after.body.extents[0]) == 2
    assert [str(buffer.dtype) for buffer in after.buffer_map.values()] == ["float32x4"] * 2
    other = apply(PointerValueTypeRewrite(), vectors(lambda i: i * 2))
    assert str(other.body.dtype) == "float32" and int(other.body.extents[0]) == 8


def test_packed_functions_of_c_get_arrays() -> None:
    func = function([A], Evaluate(tir.call_cpacked("f", A.data)))
    result = apply(LegalizePackedCalls(), func)
    assert "tvm_stack_make_array" in str(result)
    assert_unchanged(LegalizePackedCalls(), result)


def test_weights_are_taken_in_the_layout_they_are_brought_to() -> None:
    w = te.placeholder((4, 8), name="w")
    turned = te.compute((8, 4), lambda i, j: w[j, i], name="turned")
    total = te.compute((8, 4), lambda i, j: turned[i, j] + 1.0, name="total")
    func = te.create_prim_func([w, total])

    def mark(node: object) -> object:
        if isinstance(node, tir.Block) and node.name_hint == "turned":
            return node.replace(annotations={"meta_schedule.layout_rewrite_preproc": tir.const(1)})
        return None

    marked = func.with_body(tir.stmt_functor.ir_transform(func.body, None, mark, ["tir.Block"]))
    result = apply(RemoveWeightLayoutRewriteBlock(), marked)
    shape = [int(extent) for extent in result.buffer_map[result.params[0]].shape]
    assert shape == [8, 4]
    (left,) = blocks_called("turned", result.body)
    assert isinstance(left.body, tir.Evaluate) and not left.reads and not left.writes
    assert_unchanged(RemoveWeightLayoutRewriteBlock(), func)


def blocks_called(name: str, body: tir.Stmt) -> list[tir.Block]:
    found: list[tir.Block] = []

    def note(node: object) -> None:
        if isinstance(node, tir.Block) and node.name_hint == name:
            found.append(node)

    tir.stmt_functor.post_order_visit(body, note)
    return found
