from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.ir import assert_structural_equal
from tvm.ir.transform import PassContext
from tvm.tir.stmt import NO_OP, AssertStmt, For, ForKind, IfThenElse, LetStmt
from tvm.tir.transform import Simplify

from .checks import apply, assert_transforms, assert_unchanged
from .programs import VECTORIZED, function, loop, store

A = tir.decl_buffer((64,), name="A")
B = tir.decl_buffer((64,), name="B")


def test_index_expressions_become_simple() -> None:
    before = function(
        [A, B], loop(8, lambda i: store(B, tir.Add(i, tir.IntImm("int32", 0)), A[i * 8 // 8]))
    )
    assert_transforms(Simplify(), before, function([A, B], loop(8, lambda i: store(B, i, A[i]))))


def test_conditions_known_from_the_loop_go() -> None:
    before = function([A, B], loop(8, lambda i: IfThenElse(tir.likely(i < 8), store(B, i, A[i]))))
    assert_transforms(Simplify(), before, function([A, B], loop(8, lambda i: store(B, i, A[i]))))


def test_conditions_known_from_a_guard_go() -> None:
    n = tir.Var("n")

    def nested(i: tir.Var) -> tir.stmt.Stmt:
        return IfThenElse(i < n, IfThenElse(i < n + 1, store(B, i, A[i])))

    before = function([A, B, n], loop(8, nested))
    after = function([A, B, n], loop(8, lambda i: IfThenElse(i < n, store(B, i, A[i]))))
    assert_transforms(Simplify(), before, after)


def test_a_branch_that_never_happens_goes() -> None:
    before = function([A, B], loop(8, lambda i: IfThenElse(i > 8, store(B, i, A[i]))))
    result = apply(Simplify(), before)
    assert isinstance(result.body, For) and result.body.body is NO_OP


def test_loops_of_one_iteration_go() -> None:
    before = function([A, B], loop(4, lambda i: loop(1, lambda j: store(B, i + j, A[i]), name="j")))
    after = function([A, B], loop(4, lambda i: store(B, i, A[i])))
    assert_transforms(Simplify(), before, after)


def test_constants_bound_to_names_are_inlined() -> None:
    x = tir.Var("x")
    before = function([A, B], LetStmt(x, tir.IntImm("int32", 3), store(B, x, A[x + 1])))
    assert_transforms(Simplify(), before, function([A, B], store(B, 3, A[4])))


def test_assertions_that_hold_go() -> None:
    message = tir.StringImm("too large")
    before = function([A, B], loop(8, lambda i: AssertStmt(i < 9, message, store(B, i, A[i]))))
    assert_transforms(Simplify(), before, function([A, B], loop(8, lambda i: store(B, i, A[i]))))


def test_nothing_to_simplify_is_the_same_object() -> None:
    assert_unchanged(Simplify(), function([A, B], loop(8, lambda i: store(B, i, A[i] + 1.0))))


def test_marks_of_loops_stay() -> None:
    before = function([A, B], loop(8, lambda i: store(B, i + 0, A[i * 1]), VECTORIZED))
    result = apply(Simplify(), before)
    assert isinstance(result.body, For) and result.body.kind is ForKind.VECTORIZED


def test_the_second_operand_is_simplified_where_the_first_holds_when_told_to() -> None:
    x, y = tir.Var("x"), tir.Var("y")
    target = tir.decl_buffer((8,), name="T")
    condition = tir.all(x < 5, tir.any(x < 6, y < 2))
    func = function([target, x, y], IfThenElse(condition, store(target, 0, 1.0)))
    assert_unchanged(Simplify(), func)
    with PassContext(config={"tir.Simplify": {"apply_constraints_to_boolean_branches": True}}):
        result = apply(Simplify(), func)
    assert_structural_equal(result.body.condition, x < 5, True)


def test_conditions_become_conjunctions_if_wanted() -> None:
    n, m = tir.Var("n"), tir.Var("m")
    condition = tir.any(tir.all(n < 5, m < 3), n > 8)
    func = function([A, n, m], tir.IfThenElse(condition, store(A, 0, 1.0), None))
    with PassContext(config={"tir.Simplify": {"convert_boolean_to_and_of_ors": True}}):
        result = apply(Simplify(), func)
    assert str(result.body.condition) == "(n < 5 or 8 < n) and (m < 3 or 8 < n)"


def test_indices_of_alternatives_are_simple_and_quotients_as_simple_as_their_condition_allows() -> (
    None
):
    def alternatives(i: tir.Var, first: tir.PrimExpr, second: tir.PrimExpr) -> tir.PrimExpr:
        return tir.if_then_else(i < 16, A[first], A[second])

    before = function(
        [A, B],
        loop(64, lambda i: store(B, i, alternatives(i, i // 8 * 8 + i % 8, i // 16 * 7 + 1))),
    )
    after = function([A, B], loop(64, lambda i: store(B, i, alternatives(i, i, i // 16 * 7 + 1))))
    assert_transforms(Simplify(), before, after)
    before = function([A, B], loop(64, lambda i: store(B, i, alternatives(i, i // 16 * 7 + 1, i))))
    after = function(
        [A, B], loop(64, lambda i: store(B, i, alternatives(i, tir.IntImm("int32", 1), i)))
    )
    assert_transforms(Simplify(), before, after)


def test_sums_are_multiplied_out() -> None:
    def program(index: Any) -> tir.PrimFunc:
        inner = lambda i: loop(2, lambda j: store(B, index(i, j), A[0]), name="j")  # noqa: E731
        return function([A, B], loop(2, inner))

    before = program(lambda i, j: (i * 2 + j) * 2)
    assert_transforms(Simplify(), before, program(lambda i, j: i * 4 + j * 2))
    assert_unchanged(Simplify(thorough=False), before)


def test_comparisons_are_as_strong_as_what_is_known_allows() -> None:
    n, m = tir.Var("n"), tir.Var("m")
    target = tir.decl_buffer((1,), "bool", name="T")

    def program(known: Any, value: Any) -> tir.PrimFunc:
        return function([target, n, m], IfThenElse(known, store(target, 0, value)))

    assert_transforms(Simplify(), program(n <= m, m <= n), program(n <= m, m.equal(n)))
    assert_transforms(Simplify(), program(n != m, n <= m), program(n != m, n < m))


def test_a_variable_stays_where_it_equals_a_constant() -> None:
    before = function([A, B], loop(8, lambda i: IfThenElse(i.equal(5), store(B, i, A[i + 0]))))
    after = function([A, B], loop(8, lambda i: IfThenElse(i.equal(5), store(B, i, A[i]))))
    assert_transforms(Simplify(), before, after)


def test_extents_are_not_negative() -> None:
    n = tir.Var("n")
    target = tir.decl_buffer((n * 4,), name="T")
    before = function([target], store(target, tir.min(n, 0), 1.0))
    assert_transforms(Simplify(), before, function([target], store(target, 0, 1.0)))


def test_what_equals_unequal_values_is_unequal() -> None:
    i, j, k = [tir.Var(name, "int32") for name in "ijk"]
    C = tir.decl_buffer((1,), "bool", "C")

    def under(condition: tir.PrimExpr, value: tir.PrimExpr) -> tir.PrimFunc:
        return function([C, i, j, k], IfThenElse(condition, store(C, 0, value)))

    equal = tir.all(i.equal(j), j != k)
    assert_transforms(Simplify(), under(equal, i != k), under(equal, tir.IntImm("bool", 1)))
    assert_transforms(Simplify(), under(i != j, j <= i), under(i != j, j < i))
    assert_unchanged(Simplify(), under(j != k, i != k))


def test_rounded_logarithms_of_known_integers_are_numbers() -> None:
    C = tir.decl_buffer((64,), "int32", "C")

    def digits(value: tir.PrimExpr) -> tir.PrimExpr:
        return tir.ceil(tir.log2(value.astype("float64"))).astype("int32")

    for value, expected in ((1, 0), (14, 4), (16, 4), (17, 5), (2**31 - 1, 31)):
        before = function([C], store(C, 0, digits(tir.IntImm("int32", value))))
        assert_transforms(Simplify(), before, function([C], store(C, 0, expected)))
    ranges = function([C], loop(16, lambda i: store(C, i, digits(i + 1025))))
    assert_transforms(Simplify(), ranges, function([C], loop(16, lambda i: store(C, i, 11))))
    assert_unchanged(Simplify(), function([C], loop(16, lambda i: store(C, i, digits(i + 1)))))


def test_parts_of_an_index_by_open_extents_meet() -> None:
    n, i = tir.Var("n", "int32"), tir.Var("i", "int32")
    C = tir.decl_buffer((64,), "int32", "C")
    square = n * n
    parts = i // square * square + i % square // n * n + i % n
    before = function([C, n, i], store(C, 0, parts))
    assert_transforms(Simplify(), before, function([C, n, i], store(C, 0, i)))
