from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.tir.transform.checks import apply, assert_unchanged
from tests.tir.transform.programs import function, loop, store
from tvm import tir
from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.tir.analysis import undefined_vars, verify_ssa, verify_well_formed
from tvm.tir.analysis.verify_well_formed import scope_problems
from tvm.tir.interp import interpret
from tvm.tir.stmt import Allocate, DeclBuffer, LetStmt, SeqStmt
from tvm.tir.transform import ConvertSSA

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")


def test_a_plain_function_is_well_formed() -> None:
    assert verify_well_formed(function([A, B], loop(8, lambda i: store(B, i, A[i]))))


def test_a_variable_from_nowhere_is_found() -> None:
    broken = function([A, B], store(B, tir.Var("i"), A[0]))
    assert not verify_well_formed(broken, assert_mode=False)
    with pytest.raises(LoweringError, match="undefined variable i at a place where nothing has"):
        verify_well_formed(broken)


def test_a_variable_used_after_its_loop_is_found() -> None:
    first = loop(8, lambda i: store(B, i, A[i]))
    broken = function([A, B], SeqStmt([first, store(B, first.loop_var, A[0])]))
    assert not verify_well_formed(broken, assert_mode=False)


def test_memory_from_nowhere_is_found() -> None:
    with pytest.raises(LoweringError, match="undefined variable B"):
        verify_well_formed(function([A], store(B, 0, A[0])))


def test_a_view_of_memory_in_scope_needs_no_declaration() -> None:
    view = tir.decl_buffer((4, 2), name="view", data=A.data)
    func = function([A], tir.BufferStore(view, 1.0, [0, 1]))
    assert verify_well_formed(func)


def test_a_block_uses_loop_variables_through_its_axes() -> None:
    @T.prim_func(check_well_formed=False)
    def direct(A: T.Buffer(8, "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.Cast("float32", i)

    @T.prim_func
    def through_an_axis(A: T.Buffer(8, "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.Cast("float32", vi)

    with pytest.raises(ValueError, match="loop variable i is used in a block"):
        verify_well_formed(direct)
    assert verify_well_formed(through_an_axis)


def test_variables_belong_to_one_function() -> None:
    first = function([A], loop(8, lambda i: store(A, i, 1.0)))
    assert not verify_well_formed(tvm.IRModule({"one": first, "other": first}), assert_mode=False)


def test_a_definition_inside_itself_is_found() -> None:
    x = tir.Var("x")
    broken = function([A], LetStmt(x, 1, LetStmt(x, 2, store(A, x, 0.0))))
    with pytest.raises(LoweringError, match="nested definitions of variable x"):
        verify_well_formed(broken)


def test_memory_is_defined_where_it_is_allocated() -> None:
    t = tir.decl_buffer((8,), name="t")
    body = Allocate(t.data, "float32", [8], True, DeclBuffer(t, store(t, 0, A[0])))
    assert verify_well_formed(function([A], body))
    assert not verify_well_formed(function([A], DeclBuffer(t, store(t, 0, A[0]))), False)


def test_repeated_definitions_are_not_ssa_until_converted() -> None:
    step = loop(8, lambda i: store(B, i, A[i]))
    twice = function([A, B], SeqStmt([step, step]))
    assert not scope_problems(twice) and not verify_ssa(twice)
    with pytest.raises(ValueError, match="multiple definitions of variable i"):
        verify_well_formed(twice)
    converted = apply(ConvertSSA(), twice)
    assert verify_ssa(converted) and verify_well_formed(converted)
    assert_unchanged(ConvertSSA(), converted)


def test_undefined_variables_are_listed_in_order() -> None:
    n, m = tir.Var("n"), tir.Var("m")
    found = undefined_vars(n + m * n)
    assert found[0] is n and found[1] is m and len(found) == 2
    assert undefined_vars(n + m, [n])[0] is m


def test_a_pragma_stands_around_the_loop_of_its_axis() -> None:
    axis = tir.IterVar((0, 8), "i", tir.IterVar.DataPar)
    buffer = tir.decl_buffer((8,), name="B")
    loop = tir.For(axis.var, 0, 8, 0, tir.BufferStore(buffer, 1.0, [axis.var]))
    func = tir.PrimFunc([buffer], tir.AttrStmt(axis, "pragma_unroll_explicit", 1, loop))
    assert verify_well_formed(func)


def test_functions_of_a_module_get_variables_of_their_own() -> None:
    first = function([A], loop(8, lambda i: store(A, i, 1.0)))
    module = ConvertSSA()(tvm.IRModule({"one": first, "other": first}))
    assert module["one"] is first
    assert verify_well_formed(module)


def row_of_blocks() -> tir.PrimFunc:
    """One statement with all that a block defines."""

    @T.prim_func
    def rows(A: T.Buffer((4, 8), "float32")):
        for i in range(4):
            with T.block("row"):
                vi = T.axis.spatial(4, i)
                t = T.alloc_buffer((8,), "float32")
                step = T.int32()
                view = T.match_buffer(A[vi, 0:8], (8,), strides=(step,), offset_factor=1)
                for j in range(8):
                    with T.block("copy"):
                        vj = T.axis.spatial(8, j)
                        t[vj] = view[vj] * T.float32(2)
                for j in range(8):
                    with T.block("back"):
                        vj = T.axis.spatial(8, j)
                        view[vj] = t[vj] + T.float32(1)

    return rows


def test_repeated_blocks_get_axes_and_buffers_of_their_own() -> None:
    func = row_of_blocks()
    root = func.body.block
    body = SeqStmt([root.body, root.body])
    twice = func.with_body(tir.BlockRealize([], True, root.replace(body=body)))
    assert not verify_well_formed(twice, assert_mode=False)
    converted = apply(ConvertSSA(), twice)
    assert verify_well_formed(converted)
    assert converted.body.block.body.seq[0] is root.body
    numbers = np.arange(32, dtype="float32").reshape(4, 8)
    expected = (numbers * 2 + 1) * 2 + 1
    interpret(converted, numbers)
    np.testing.assert_array_equal(numbers, expected)


def test_extents_that_views_compare_stay() -> None:
    @T.prim_func
    def scaled(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n, 8))
        with T.block("scaled"):
            view = T.match_buffer(A[0:n, 0:8], (n, 8), offset_factor=1)
            for i, j in T.grid(n, 8):
                view[i, j] = view[i, j] * T.float32(2)

    twice = scaled.with_body(SeqStmt([scaled.body, scaled.body]))
    converted = apply(ConvertSSA(), twice)
    assert verify_well_formed(converted)
    for realize in converted.body.seq:
        assert realize.block.match_buffers[0].buffer.shape[0] is scaled.params[1]


def test_what_is_bound_to_a_variable_is_outside_of_its_scope() -> None:
    x = tir.Var("x")
    nested = function([A], LetStmt(x, 1, LetStmt(x, x + 2, store(A, x, 0.0))))
    converted = apply(ConvertSSA(), nested)
    assert verify_well_formed(converted)
    numbers = np.ones(8, "float32")
    interpret(converted, numbers)
    assert list(numbers) == [1, 1, 1, 0, 1, 1, 1, 1]
