"""Virtual threads become loops."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

import tvm
from tests.codegen.gpu.programs import matmul
from tvm import te, tir
from tvm.ir import PointerType, PrimType
from tvm.script import tir as T
from tvm.tir.interp import interpret
from tvm.tir.stmt import AttrStmt
from tvm.tir.transform import InjectVirtualThread

from .checks import apply, assert_transforms
from .programs import UNROLLED, function, loop, store

A = tir.decl_buffer((8,), name="A")


def threads(var: tir.Var, first: int) -> AttrStmt:
    axis = tir.IterVar(None, var, tir.IterVar.ThreadIndex, "vthread")
    return AttrStmt(axis, "virtual_thread", 2, store(A, var + first, 1.0))


def test_virtual_threads_run_one_after_the_other() -> None:
    before = function([A], threads(tir.Var("v", "int32"), 0))
    after = function([A], loop(2, lambda v: store(A, v, 1.0), UNROLLED, "v"))
    assert_transforms(InjectVirtualThread(), before, after)


def test_threads_in_two_regions_get_a_variable_each() -> None:
    var = tir.Var("v", "int32")
    func = function([A], tir.SeqStmt([threads(var, 0), threads(var, 2)]))
    assert tir.analysis.verify_ssa(apply(InjectVirtualThread(), func))


def test_threads_in_both_parts_of_a_loop_are_lowered() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    _, threads = s[b].split(inner, factor=2)
    s[b].bind(threads, te.thread_axis("vthread"))
    module = tvm.lower(s, [a, b])
    assert tir.analysis.verify_ssa(module["main"])
    assert outer.var.name == "i.outer"


def test_only_what_depends_on_the_thread_is_repeated() -> None:
    """Shared memory is filled once; each virtual thread has a part of the local memory of its own."""
    program = matmul()
    text = str(tvm.lower(program.schedule, program.args))
    assert text.count("A_shared_1[") == 1 + 4 and text.count("B_shared_1[") == 1 + 4
    assert 'C_local = T.decl_buffer((16,), scope="local")' in text


def agrees(before: tir.PrimFunc, *args: Any) -> str:
    """The text after the pass, which computes with ``args`` what the threads do one after the other."""
    after = apply(InjectVirtualThread(), before)
    assert tir.analysis.verify_ssa(after)
    expected, actual = deepcopy(args), deepcopy(args)
    interpret(before, *expected)
    interpret(after, *actual)
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    return str(after)


def test_memory_of_unknown_size_has_a_part_for_each_thread() -> None:
    @T.prim_func
    def func(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32"), n: T.int32) -> None:
        v = T.launch_thread("vthread", 2)
        L = T.decl_buffer((n,), "int32", scope="local")
        L[n - 1] = A[v]
        B[v] = L[n - 1]

    text = agrees(func, np.array([3, 4], "int32"), np.zeros(2, "int32"), 3)
    assert "n * 2" in text


def test_memory_whose_size_depends_on_the_thread_is_allocated_by_each() -> None:
    @T.prim_func
    def func(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32")) -> None:
        v = T.launch_thread("vthread", 2)
        L = T.decl_buffer((v + 1,), "int32", scope="local")
        L[v] = A[v]
        B[v] = L[v]

    agrees(func, np.array([3, 4], "int32"), np.zeros(2, "int32"))


def test_what_a_value_of_the_thread_is_defined_for_is_repeated_as_a_whole() -> None:
    """A sum inside that does not mention the thread belongs to it all the same."""

    @T.prim_func
    def func(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32")) -> None:
        v = T.launch_thread("vthread", 2)
        L = T.decl_buffer((1,), "int32", scope="local")
        L[0] = 0
        with T.LetStmt(A[v]) as x:
            L[0] = L[0] + 1
            B[v] = L[0] + x

    agrees(func, np.array([3, 4], "int32"), np.zeros(2, "int32"))


def test_memory_that_a_function_takes_as_it_is_is_allocated_by_each_thread() -> None:
    @T.prim_func
    def func(A: T.Buffer((2,), "int32")) -> None:
        v = T.launch_thread("vthread", 2)
        L = T.decl_buffer((1,), "int32", scope="local")
        T.evaluate(T.call_extern("int32", "fill", L.data, A[v]))
        T.evaluate(T.call_extern("int32", "use", L.data))

    after = apply(InjectVirtualThread(), func)
    assert str(after).index("for v in T.unroll(2)") < str(after).index("decl_buffer((1,)")


def test_memory_of_two_dimensions_has_rows_for_each_thread() -> None:
    data = tir.Var("L", PointerType(PrimType("int32"), "local"))
    rows = tir.decl_buffer((2, 3), "int32", "L", data=data, scope="local", axis_separators=[1])
    a, b = tir.decl_buffer((2,), "int32", "A"), tir.decl_buffer((2,), "int32", "B")
    v = tir.Var("v", "int32")
    uses = tir.SeqStmt([store(rows, [1, 2], a[v]), store(b, v, rows[1, 2])])
    axis = tir.IterVar(None, v, tir.IterVar.ThreadIndex, "vthread")
    body = AttrStmt(axis, "virtual_thread", 2, tir.Allocate(data, "int32", [2, 3], True, uses))
    text = agrees(function([a, b], body), np.array([3, 4], "int32"), np.zeros(2, "int32"))
    assert "T.allocate([4, 3]" in text
