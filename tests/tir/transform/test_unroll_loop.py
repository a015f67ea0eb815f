from __future__ import annotations

import pytest

from tvm import tir
from tvm.error import ScheduleError
from tvm.ir.transform import PassContext
from tvm.script import tir as T
from tvm.tir.analysis import verify_ssa
from tvm.tir.stmt import AttrStmt, For, ForKind, SeqStmt
from tvm.tir.transform import UnrollLoop

from .checks import apply, assert_same_results, assert_transforms, assert_unchanged
from .programs import UNROLLED, function, loop, store

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")


def test_unroll_expands_marked_loop() -> None:
    before = function([A, B], loop(2, lambda i: store(B, i, A[i]), UNROLLED))
    after = function([A, B], SeqStmt([store(B, 0, A[0]), store(B, 1, A[1])]))
    assert_transforms(UnrollLoop(), before, after)


def test_unroll_leaves_serial_loop_as_it_is() -> None:
    assert_unchanged(UnrollLoop(), function([A, B], loop(2, lambda i: store(B, i, A[i]))))


def test_unroll_starts_at_the_minimum() -> None:
    i = tir.Var("i")
    before = function([A, B], For(i, 3, 2, UNROLLED, store(B, i, A[i])))
    after = function([A, B], SeqStmt([store(B, 3, A[3]), store(B, 4, A[4])]))
    assert_transforms(UnrollLoop(), before, after)


def test_unroll_takes_small_serial_loops_when_told_to() -> None:
    before = function([A, B], loop(2, lambda i: store(B, i, A[i])))
    after = function([A, B], SeqStmt([store(B, 0, A[0]), store(B, 1, A[1])]))
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 2}}):
        assert_transforms(UnrollLoop(), before, after)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 1}}):
        assert_unchanged(UnrollLoop(), before)


def test_unroll_counts_the_steps_of_nested_loops() -> None:
    nest = function([A, B], loop(2, lambda i: loop(4, lambda j: store(B, i * 4 + j, A[j]))))
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 4}}):
        result = apply(UnrollLoop(), nest)
    assert isinstance(result.body, For) and isinstance(result.body.body, SeqStmt)
    assert_same_results(nest, result, 8, 8)


def test_unroll_obeys_pragma_and_removes_it() -> None:
    inner = loop(2, lambda i: store(B, i, A[i]))
    marked = AttrStmt(tir.Var("i"), "pragma_auto_unroll_max_step", 16, inner)
    after = function([A, B], SeqStmt([store(B, 0, A[0]), store(B, 1, A[1])]))
    assert_transforms(UnrollLoop(), function([A, B], marked), after)


def test_unroll_annotates_the_loop_if_not_explicit() -> None:
    before = function([A, B], loop(2, lambda i: store(B, i, A[i])))
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 2, "explicit_unroll": False}}):
        result = apply(UnrollLoop(), before)
    assert isinstance(result.body, For) and result.body.kind is ForKind.UNROLLED


def test_unroll_rejects_variable_extent() -> None:
    n = tir.Var("n")
    before = function([A, B, n], loop(n, lambda i: store(B, i, A[i]), UNROLLED))
    with pytest.raises(ScheduleError, match="unroll needs a constant extent"):
        apply(UnrollLoop(), before)


def test_unroll_rejects_unknown_option() -> None:
    with pytest.raises(TypeError, match="auto_max_steps"):
        UnrollLoop(auto_max_steps=2)


def test_copies_of_a_body_define_their_own_memory() -> None:
    def body(i: tir.Var) -> tir.Stmt:
        cache = tir.decl_buffer((1,), name="cache")
        parts = tir.stmt.seq([store(cache, 0, A[i]), store(B, i, cache[0])])
        return tir.Allocate(cache.data, "float32", [1], tir.const(True, "bool"), parts)

    result = apply(UnrollLoop(), function([A, B], loop(3, body, ForKind.UNROLLED)))
    assert isinstance(result.body, SeqStmt) and len(result.body) == 3
    assert verify_ssa(result)


def test_extents_are_simplified_first() -> None:
    n, i = tir.Var("n"), tir.Var("i")
    two = tir.Sub(tir.Add(n, 2), n)
    loop_of_two = For(i, n, two, ForKind.SERIAL, store(B, i, 1.0))
    func = function([B, n], loop_of_two)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 2}}):
        assert not isinstance(apply(UnrollLoop(), func).body, For)


def test_loops_over_local_memory_are_unrolled_when_told_to() -> None:
    @T.prim_func
    def before(A: T.Buffer((4,), "float32")):
        t = T.decl_buffer((4,), scope="local")
        for i in range(4):
            t[i] = A[0]
        for i in range(4):
            A[i] = A[i] + T.float32(1)

    with PassContext(config={"tir.UnrollLoop": {"unroll_local_access": True}}):
        after = apply(UnrollLoop(), before)
    kinds: list[type] = []
    tir.stmt_functor.post_order_visit(after.body, lambda n: kinds.append(type(n)))
    assert kinds.count(tir.For) == 1 and kinds.count(tir.BufferStore) == 5


def test_loops_of_one_iteration_open_whatever_is_in_them() -> None:
    before = function([A, B], loop(1, lambda i: loop(8, lambda j: store(B, i + j, A[j]))))
    with PassContext(config={"tir.UnrollLoop": {"auto_max_extent": 1}}):
        after = apply(UnrollLoop(), before)
    assert isinstance(after.body, tir.For) and int(after.body.extent) == 8
