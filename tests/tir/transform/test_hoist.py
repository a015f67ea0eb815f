from __future__ import annotations

import pytest

from tvm import tir
from tvm.error import TVMError
from tvm.ir.transform import PassContext
from tvm.script import tir as T
from tvm.tir.analysis import verify_well_formed
from tvm.tir.stmt import For, IfThenElse, LetStmt, SeqStmt
from tvm.tir.transform import (
    HoistedConditionals,
    HoistedLetBindings,
    HoistExpression,
    HoistIfThenElse,
)

from .checks import apply, assert_same_results, assert_transforms, assert_unchanged
from .programs import function, loop, store

A = tir.decl_buffer((8,), name="A")
B = tir.decl_buffer((8,), name="B")
N = tir.decl_buffer((1,), "int32", "N")
n = tir.Var("n")


def guarded(no: bool = False) -> tir.PrimFunc:
    def body(i: tir.Var) -> tir.Stmt:
        return IfThenElse(n > 4, store(B, i, A[i]), store(B, i, 0.0) if no else None)

    return function([A, B, n], loop(8, body))


def test_a_condition_is_hoisted_out_of_its_loop() -> None:
    after = IfThenElse(n > 4, loop(8, lambda i: store(B, i, A[i])))
    assert_transforms(HoistIfThenElse(), guarded(), function([A, B, n], after))


def test_both_branches_get_a_loop() -> None:
    yes, no = loop(8, lambda i: store(B, i, A[i])), loop(8, lambda i: store(B, i, 0.0))
    after = function([A, B, n], IfThenElse(n > 4, yes, no))
    assert_transforms(HoistIfThenElse(), guarded(True), after)
    assert_transforms(HoistIfThenElse("basic"), guarded(True), after)


def test_only_known_variants_are_taken() -> None:
    with pytest.raises(TVMError, match='the variant "basic" or None'):
        HoistIfThenElse("fast")


def bound_to_thread() -> tir.PrimFunc:
    axis = tir.IterVar((0, 8), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    inner = IfThenElse(n > 4, store(B, axis.var, 1.0))
    return function([B, n], tir.AttrStmt(axis, "thread_extent", 8, inner))


def test_conditions_leave_regions_of_threads_only_when_told_to() -> None:
    assert_unchanged(HoistIfThenElse(), bound_to_thread())
    with PassContext(config={"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}):
        assert isinstance(apply(HoistIfThenElse(), bound_to_thread()).body, IfThenElse)
        assert_unchanged(HoistIfThenElse("basic"), bound_to_thread())


def beside() -> tir.PrimFunc:
    return function(
        [A, B, n],
        loop(8, lambda i: SeqStmt([store(A, i, 1.0), IfThenElse(n > 4, store(B, i, A[i]))])),
    )


def test_a_condition_beside_other_statements_is_hoisted() -> None:
    body = apply(HoistExpression(), beside()).body
    assert isinstance(body, IfThenElse)
    assert isinstance(body.then_case, For) and isinstance(body.else_case, For)
    assert isinstance(body.then_case.body, SeqStmt)


def test_nothing_is_hoisted_when_no_kind_is_wanted() -> None:
    nothing = {"hoisted_conditionals": HoistedConditionals.Never.value, "hoisted_let_bindings": 0}
    with PassContext(config={"tir.HoistExpression": nothing}):
        assert_unchanged(HoistExpression(), beside())


@pytest.mark.parametrize("kinds", [HoistedConditionals.IfElseStmt, HoistedConditionals.IfElseExpr])
def test_conditions_of_expressions_are_a_kind_of_their_own(kinds: HoistedConditionals) -> None:
    func = function([A, B, n], loop(8, lambda i: store(B, i, tir.if_then_else(n > 4, A[i], 0.0))))
    with PassContext(config={"tir.HoistExpression": {"hoisted_conditionals": kinds.value}}):
        body = apply(HoistExpression(), func).body
    assert isinstance(body, IfThenElse) is (kinds is HoistedConditionals.IfElseExpr)


def test_bindings_leave_loops_that_do_not_change_them() -> None:
    x = tir.Var("x")
    func = function(
        [B, n], loop(8, lambda i: LetStmt(x, n * 3, store(B, i, tir.Cast("float32", x))))
    )
    assert isinstance(apply(HoistExpression(), func).body, LetStmt)
    with PassContext(config={"tir.HoistExpression": {"hoisted_let_bindings": 0}}):
        assert_unchanged(HoistExpression(), func)


def test_a_binding_that_a_condition_needs_is_hoisted_with_it() -> None:
    x, y = tir.Var("x"), tir.Var("y")

    def body(i: tir.Var) -> tir.Stmt:
        unused = LetStmt(y, n * 5, store(B, i, tir.Cast("float32", y)))
        return LetStmt(x, n * 3, IfThenElse(x > 4, unused))

    required = HoistedLetBindings.RequiredByConditional.value
    with PassContext(config={"tir.HoistExpression": {"hoisted_let_bindings": required}}):
        result = apply(HoistExpression(), function([B, n], loop(8, body))).body
    assert isinstance(result, LetStmt) and isinstance(result.body, IfThenElse)
    assert isinstance(result.body.then_case, For)


def test_hoisting_keeps_results() -> None:
    def body(i: tir.Var) -> tir.Stmt:
        first = IfThenElse(N[0] > 4, store(B, i, A[i]), store(B, i, -A[i]))
        return SeqStmt([first, IfThenElse(i < 4, store(A, i, B[i] * 2.0))])

    func = function([A, B, N], loop(8, body))
    assert_same_results(func, apply(HoistExpression(), func), 8, 8, 1)


def test_conditions_of_threads_stay_unless_told_otherwise() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        with T.launch_thread("threadIdx.x", 8) as tx:
            for _i in range(4):
                if tx + n < 3:
                    A[tx] = A[tx] + T.float32(1)

    assert_unchanged(HoistIfThenElse(), before)
    with PassContext(config={"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}):
        assert isinstance(apply(HoistIfThenElse(), before).body.body, tir.IfThenElse)


def test_conditions_leave_launches_of_threads_where_block_variables_may_be_used() -> None:
    @T.prim_func
    def before(A: T.Buffer((8,), "float32"), n: T.int32):
        with T.launch_thread("threadIdx.x", 8) as tx:
            if n == 0:
                A[tx] = T.float32(1)

    assert_unchanged(HoistExpression(), before)
    flags = HoistedConditionals.All.value
    with PassContext(config={"tir.HoistExpression": {"hoisted_conditionals": flags}}):
        assert isinstance(apply(HoistExpression(), before).body, tir.IfThenElse)


def test_conditions_within_a_condition_move_with_it() -> None:
    m = tir.Var("m")
    inner = loop(8, lambda i: IfThenElse(n > 4, IfThenElse(m > 4, store(B, i, A[i]))))
    after = IfThenElse(n > 4, IfThenElse(m > 4, loop(8, lambda i: store(B, i, A[i]))))
    assert_transforms(
        HoistIfThenElse(), function([A, B, n, m], inner), function([A, B, n, m], after)
    )


def test_parts_of_a_conjunction_are_hoisted_without_empty_branches() -> None:
    before = loop(8, lambda i: IfThenElse(tir.all(i < 3, n > 4), store(B, i, A[i])))
    after = IfThenElse(n > 4, loop(8, lambda i: IfThenElse(i < 3, store(B, i, A[i]))))
    assert_transforms(HoistExpression(), function([A, B, n], before), function([A, B, n], after))


def test_what_a_hoisted_condition_implies_is_known() -> None:
    def body(i: tir.Var) -> tir.Stmt:
        return IfThenElse(
            n < 2, store(B, i, A[i]), IfThenElse(n < 1, store(B, i, 1.0), store(B, i, 2.0))
        )

    after = IfThenElse(
        n < 2, loop(8, lambda i: store(B, i, A[i])), loop(8, lambda i: store(B, i, 2.0))
    )
    before = function([A, B, n], loop(8, body))
    assert_transforms(HoistExpression(), before, function([A, B, n], after))


def test_conditions_of_expressions_stay_where_they_are_not_wanted() -> None:
    before = loop(8, lambda i: store(B, i, tir.if_then_else(n > 4, A[i], 0.0)))
    kinds = HoistedConditionals.All & ~HoistedConditionals.IfElseExpr
    config = {"tir.HoistExpression": {"hoisted_conditionals": kinds.value}}
    with PassContext(config=config):
        assert_unchanged(HoistExpression(), function([A, B, n], before))


def test_conditions_on_axes_stay_in_their_block() -> None:
    @T.prim_func
    def padded(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = T.if_then_else(vi >= 1 and vi < 15, A[vi - 1], T.float32(0))

    after = apply(HoistExpression(), padded)
    verify_well_formed(after)
    assert "if vi" not in str(after)
