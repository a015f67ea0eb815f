from __future__ import annotations

import numpy as np

import tvm
from tvm import te, tir
from tvm.ir.transform import PassContext
from tvm.tir.stmt import LetStmt, SeqStmt
from tvm.tir.transform import CommonSubexprElimTIR

from .checks import apply, assert_same_results, assert_transforms, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((64,), name="A")
B = tir.decl_buffer((64,), name="B")
x, y, z = (tir.Var(name) for name in "xyz")


def test_a_repeated_index_is_computed_once() -> None:
    def nest(at: object) -> object:
        return lambda i: loop(8, lambda j: at(i, j), name="j")

    before = function([A, B], loop(8, nest(lambda i, j: store(B, i * 8 + j, A[i * 8 + j]))))
    row, at = tir.Var("row"), tir.Var("at")

    def inner(i: tir.Var) -> tir.Stmt:
        body = loop(8, lambda j: LetStmt(at, row + j, store(B, at, A[at])), name="j")
        return LetStmt(row, i * 8, body)

    after = function([A, B], loop(8, inner))
    assert_transforms(CommonSubexprElimTIR(), before, after)
    assert_same_results(before, after, 64, 64)


def test_what_a_loop_does_not_change_is_bound_outside_it() -> None:
    before = function([A, B, x, y], loop(8, lambda i: store(B, i + x * y, A[x * y])))
    body = apply(CommonSubexprElimTIR(), before).body
    assert isinstance(body, LetStmt) and body.var.name == "cse_var_1"


def test_larger_expressions_come_first_and_their_parts_follow() -> None:
    whole = (x + y) * z
    before = function(
        [A, x, y, z],
        SeqStmt([store(A, whole, 1.0), store(A, whole + 1, 2.0), store(A, x + y, 3.0)]),
    )
    body = apply(CommonSubexprElimTIR(), before).body
    assert isinstance(body, LetStmt) and isinstance(body.value, tir.Add)
    assert isinstance(body.body, LetStmt) and isinstance(body.body.value, tir.Mul)
    assert body.body.value.a is body.var


def test_single_expressions_loads_and_calls_stay() -> None:
    assert_unchanged(CommonSubexprElimTIR(), function([A, B, x, y], store(B, x, A[y + 1])))
    twice = store(B, x, A[0] * 2.0 + A[0] * 2.0)
    assert_unchanged(CommonSubexprElimTIR(), function([A, B, x], twice))


def test_equivalent_terms_are_found_when_asked_for() -> None:
    func = function([A, B, x, y], SeqStmt([store(B, x + y, 1.0), store(A, y + x, 2.0)]))
    assert_unchanged(CommonSubexprElimTIR(), func)
    assert isinstance(apply(CommonSubexprElimTIR(True, True), func).body, LetStmt)
    assert_unchanged(CommonSubexprElimTIR(False, True), func)


def test_lower_binds_common_subexpressions_when_told_to() -> None:
    a = te.placeholder((8, 8), name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="b")
    s = te.create_schedule(b.op)
    assert "cse_var" not in str(tvm.lower(s, [a, b]))
    for config in ({"tir.disable_cse_tir": False}, {"tir.enable_equiv_terms_in_cse_tir": True}):
        with PassContext(config=config):
            assert "cse_var_1" in str(tvm.lower(s, [a, b]))
            f = tvm.build(s, [a, b], "llvm")
        out = tvm.nd.empty((8, 8))
        f(tvm.nd.array(np.ones((8, 8), "float32")), out)
        np.testing.assert_array_equal(out.numpy(), np.full((8, 8), 2, "float32"))
