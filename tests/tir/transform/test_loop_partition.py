from __future__ import annotations

import numpy as np
import pytest

from tvm import tir
from tvm.ir.transform import PassContext
from tvm.script import tir as T
from tvm.tir.interp import interpret
from tvm.tir.stmt import Allocate, AttrStmt, DeclBuffer, For, IfThenElse, SeqStmt, Stmt
from tvm.tir.transform import LoopPartition, LowerOpaqueBlock, Simplify
from tvm.tir.verify import Stage, problems

from .checks import apply, assert_same_results, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((64,), name="A")
B = tir.decl_buffer((64,), name="B")


def guarded(bound: tir.Var, outer: tir.Var) -> Stmt:
    def inner(j: tir.Var) -> Stmt:
        i = outer * 4 + j
        return IfThenElse(tir.likely(i < bound), store(B, i, A[i]))

    return loop(4, inner, name="j")


def test_partition_separates_the_part_without_checks() -> None:
    n = tir.Var("n")
    before = function([A, B, n], loop((n + 3) // 4, lambda i: guarded(n, i)))
    result = apply(Simplify(), apply(LoopPartition(), before))
    assert problems(result, Stage.FLAT) == []
    assert isinstance(result.body, SeqStmt) and len(result.body) == 2
    assert "likely" not in repr(result.body[0]) and "likely" in repr(result.body[1])
    for size in (0, 1, 4, 7, 8, 61):
        a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
        interpret(result, a, b, size)
        np.testing.assert_array_equal(b[:size], a[:size])
        assert not b[size:].any()


def test_partition_leaves_constant_loops_unless_told() -> None:
    before = function([A, B], loop(4, lambda i: loop(4, lambda j: IfThenElse(
        tir.likely(i * 4 + j < 14), store(B, i * 4 + j, A[i * 4 + j])), name="j")))  # fmt: skip
    assert_unchanged(LoopPartition(), before)
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": True}}):
        result = apply(LoopPartition(), before)
    assert isinstance(result.body, SeqStmt)
    assert_same_results(before, result, 64, 64, stage=Stage.FLAT)


@pytest.mark.parametrize("body", [lambda i: store(B, i, A[i])])
def test_partition_without_conditions_changes_nothing(body: object) -> None:
    n = tir.Var("n")
    assert_unchanged(LoopPartition(), function([A, B, n], loop(n, body)))


def test_partition_defines_each_variable_once() -> None:
    n = tir.Var("n")
    before = function([A, B, n], loop((n + 3) // 4, lambda i: guarded(n, i)))
    result = apply(LoopPartition(), before)
    loops: list[tir.Var] = []
    tir.stmt_functor.post_order_visit(
        result.body, lambda s: loops.append(s.loop_var) if isinstance(s, For) else None
    )
    assert len(loops) == len(dict.fromkeys(loops)) == 4


def test_partition_keeps_memory_allocated_inside() -> None:
    n = tir.Var("n")

    def part(i: tir.Var) -> Stmt:
        t = tir.decl_buffer((4,), name="t")
        fill = loop(4, lambda k: store(t, k, A[k] + 1.0), name="k")

        def inner(j: tir.Var) -> Stmt:
            return IfThenElse(tir.likely(i * 4 + j < n), store(B, i * 4 + j, t[j]))

        body = SeqStmt([fill, loop(4, inner, name="j")])
        return Allocate(t.data, "float32", [4], True, DeclBuffer(t, body))

    before = function([A, B, n], loop((n + 3) // 4, part))
    result = apply(LoopPartition(), before)
    assert problems(result, Stage.FLAT) == [] and isinstance(result.body, SeqStmt)
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    interpret(result, a, b, 10)
    np.testing.assert_array_equal(b[:10], [1, 2, 3, 4, 1, 2, 3, 4, 1, 2])


def partitioned(condition: object, hint: bool = False) -> tuple[tir.PrimFunc, tir.PrimFunc]:
    source, target = (tir.decl_buffer((16,), name=name) for name in "ST")
    i, j = tir.Var("i"), tir.Var("j")
    value = tir.if_then_else(tir.likely(condition(i, j)), source[i * 4 + j], 1.0)
    inner = tir.For(j, 0, 4, 0, tir.BufferStore(target, value, [i * 4 + j]))
    nest: tir.Stmt = tir.For(i, 0, 4, 0, inner)
    if hint:
        axis = tir.IterVar((0, 4), i, tir.IterVar.DataPar)
        nest = tir.AttrStmt(axis, "pragma_loop_partition_hint", 1, nest)
    before = function([source, target], nest)
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": not hint}}):
        return before, apply(LoopPartition(), before)


@pytest.mark.parametrize(
    ("condition", "loops"),
    [
        (lambda i, j: i * 4 + j >= 5, [2, 2]),
        (lambda i, j: i * 4 + j > 3, [1, 3]),
        (lambda i, j: tir.all(i * 4 + j >= 3, i * 4 + j < 13), [1, 2, 1]),
        (lambda i, j: tir.all(i * 4 + j >= 8, i * 4 + j < 4), []),
        (lambda i, j: i * 4 + j < 11, [2, 2]),
        (lambda i, j: 30 - i * 4 > j, [4]),
    ],
)
def test_partition_at_both_ends_of_a_condition(condition: object, loops: list[int]) -> None:
    before, after = partitioned(condition)
    parts = after.body.seq if isinstance(after.body, tir.SeqStmt) else [after.body]
    if loops:
        assert [int(part.extent) for part in parts] == loops
    assert_same_results(before, after, 16, 16)


def test_partition_obeys_the_hint_of_a_pragma() -> None:
    before, after = partitioned(lambda i, j: i * 4 + j >= 5, hint=True)
    assert isinstance(after.body, tir.SeqStmt) and "pragma" not in str(after)
    assert_same_results(before, after, 16, 16)


def test_a_hinted_loop_is_split_where_a_choice_settles() -> None:
    def element(i: tir.Var, j: tir.Var) -> tir.PrimExpr:
        at = i * 4 + j
        inside = tir.all(at >= 6, at < 22)
        return tir.if_then_else(inside, A[at], tir.if_then_else(at < 6, A[6], A[21]))

    def body(i: tir.Var) -> Stmt:
        return loop(4, lambda j: store(B, i * 4 + j, element(i, j)), name="j")

    nest = loop(7, body)
    before = function([A, B], nest)
    assert_unchanged(LoopPartition(), before)
    mark = tir.IterVar(None, nest.loop_var, tir.IterVar.DataPar)
    hinted = function([A, B], AttrStmt(mark, "pragma_loop_partition_hint", tir.const(1), nest))
    after = apply(Simplify(), apply(LoopPartition(), hinted))
    assert isinstance(after.body, SeqStmt) and len(after.body) == 3
    edge, middle, other = [str(part) for part in after.body]
    assert "if_then_else" in edge and "if_then_else" in other and "if_then_else" not in middle
    assert_same_results(before, after, 64, 64, stage=Stage.FLAT)


def test_partition_leaves_loops_whose_inner_loops_end_where_they_say() -> None:
    n = tir.Var("n")

    def body(i: tir.Var) -> Stmt:
        def inner(j: tir.Var) -> Stmt:
            return IfThenElse(tir.likely(i + j < n), store(B, i, A[j]))

        return loop(i % 3 + 1, inner, name="j")

    before = function([A, B, n], loop(n, body))
    result = apply(LoopPartition(), before)
    assert problems(result, Stage.FLAT) == []
    assert isinstance(result.body, For)


def test_partition_leaves_conditions_on_threads_inside() -> None:
    n = tir.Var("n")
    thread = tir.IterVar((0, 4), tir.Var("v"), tir.IterVar.ThreadIndex, "vthread")

    def body(i: tir.Var) -> Stmt:
        at = i * 4 + thread.var
        part = IfThenElse(tir.likely(at < n), store(B, at, A[at]))
        return AttrStmt(thread, "virtual_thread", tir.const(4), part)

    before = function([A, B, n], loop((n + 3) // 4, body))
    assert_unchanged(LoopPartition(), before)


def test_parts_at_the_edges_are_not_split_on() -> None:
    n = tir.Var("n")

    def body(i: tir.Var) -> Stmt:
        def inner(j: tir.Var) -> Stmt:
            both = tir.all(i * 2 + 1 < n, j * 2 + 1 < n)
            return IfThenElse(tir.likely(both), store(B, i, A[j]))

        return loop((n + 1) // 2, inner, name="j")

    result = apply(LoopPartition(), function([A, B, n], loop((n + 1) // 2, body)))
    assert repr(result).count("for ") <= 6


@T.prim_func
def annotated_tiles(A: T.Buffer((10, 10), "float32"), B: T.Buffer((10, 10), "float32")):
    for i in T.serial(3, annotations={"pragma_loop_partition_hint": 1}):
        for j in T.serial(3, annotations={"pragma_loop_partition_hint": 1}):
            for x, y in T.grid(4, 4):
                if i * 4 + x < 10 and j * 4 + y < 10:
                    B[i * 4 + x, j * 4 + y] = A[i * 4 + x, j * 4 + y]


def test_annotated_loops_are_split_at_the_edges_too() -> None:
    lowered = apply(LowerOpaqueBlock(), annotated_tiles)
    after = apply(Simplify(), apply(LoopPartition(), lowered))
    text = after.script()
    assert "if x < 2 and y < 2" in text  # the corner, behind rows and columns of whole tiles
    assert text.count(" if ") == 3
    assert "pragma_loop_partition_hint" not in text
    a, b = np.random.default_rng(0).random((10, 10), "float32"), np.zeros((10, 10), "float32")
    interpret(after, a, b)
    np.testing.assert_array_equal(a, b)
