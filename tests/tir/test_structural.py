"""Structural equality of loop-level programs: variables, buffers, scopes."""

from __future__ import annotations

from tvm import tir
from tvm.ir import structural_equal


def store(buffer: tir.Buffer, loop_var: tir.Var) -> tir.Stmt:
    return tir.For(loop_var, 0, 4, 0, tir.BufferStore(buffer, loop_var, [loop_var]))


def test_a_loop_that_stands_twice_equals_two_loops() -> None:
    A = tir.decl_buffer((4,), "int32", "A")
    i, j, k = (tir.Var(name, "int32") for name in "ijk")
    twice = tir.SeqStmt([store(A, i), store(A, i)])
    apart = tir.SeqStmt([store(A, j), store(A, k)])
    assert structural_equal(twice, apart)
    assert structural_equal(apart, twice)


def test_a_variable_keeps_its_counterpart_in_its_scope() -> None:
    i, j, k = (tir.Var(name, "int32") for name in "ijk")
    nested = tir.For(i, 0, 4, 0, tir.For(j, 0, 4, 0, tir.Evaluate(i - j)))
    swapped = tir.For(k, 0, 4, 0, tir.For(i, 0, 4, 0, tir.Evaluate(i - k)))
    assert not structural_equal(nested, swapped)


def test_buffers_are_equal_by_what_they_are() -> None:
    A = tir.decl_buffer((4,), "int32", "A")
    B = tir.decl_buffer((4,), "int32", "B")
    C = tir.decl_buffer((5,), "int32", "C")
    one = tir.const(1)
    assert structural_equal(tir.BufferStore(A, one, [0]), tir.BufferStore(B, one, [0]))
    assert not structural_equal(tir.BufferStore(A, one, [0]), tir.BufferStore(C, one, [0]))
    both = tir.SeqStmt([tir.BufferStore(A, one, [0]), tir.BufferStore(B, one, [0])])
    same = tir.SeqStmt([tir.BufferStore(A, one, [0]), tir.BufferStore(A, one, [0])])
    assert not structural_equal(both, same)
    assert not structural_equal(same, both)


def test_views_of_one_allocation_differ_from_views_of_two() -> None:
    def program(shared: bool) -> tir.Stmt:
        p = tir.Var("p", tir.expr.pointer_type("int32"))
        q = p if shared else tir.Var("q", tir.expr.pointer_type("int32"))
        A = tir.decl_buffer((4,), "int32", data=p)
        B = tir.decl_buffer((4,), "int32", data=q)
        body: tir.Stmt = tir.BufferStore(A, B[0], [0])
        body = tir.DeclBuffer(A, tir.DeclBuffer(B, body))
        for pointer in (p, tir.Var("r", tir.expr.pointer_type("int32")) if shared else q):
            body = tir.Allocate(pointer, "int32", [4], True, body)
        return body

    assert structural_equal(program(True), program(True))
    assert structural_equal(program(False), program(False))
    assert not structural_equal(program(True), program(False))
