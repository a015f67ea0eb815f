"""tvm.testing.CompareBeforeAfter: programs written beside the pass that they are for."""

from __future__ import annotations

from typing import Any

import pytest

import tvm
import tvm.testing
from tvm import arith, tir
from tvm.script import ir as I
from tvm.script import tir as T


class TestFunctionsOfScripts(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()

    def before(A: T.Buffer((16,), "int32")):  # type: ignore[no-untyped-def]
        for i in range(16):
            if i < 20:
                A[i] = i + 0

    def expected(A: T.Buffer((16,), "int32")):  # type: ignore[no-untyped-def]
        for i in range(16):
            A[i] = i


class TestMethodsAndFixtures(tvm.testing.CompareBeforeAfter):
    limit = tvm.testing.parameter(16, 32)

    def transform(self) -> Any:
        return tvm.tir.transform.Simplify()

    def before(self, limit: int) -> tir.PrimFunc:
        @T.prim_func
        def func(A: T.Buffer((16,), "int32")) -> None:
            for i in range(16):
                if i < limit:
                    A[i] = i

        return func

    def expected(self, limit: int) -> tir.PrimFunc:
        @T.prim_func
        def func(A: T.Buffer((16,), "int32")) -> None:
            for i in range(16):
                A[i] = i

        return func


class TestModules(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()

    @I.ir_module
    class before:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")) -> None:
            A[0] = 1 + 1

    def expected(self) -> Any:
        return lambda after: "A[0] = 2" in str(after)


class TestErrors(tvm.testing.CompareBeforeAfter):
    expected = tvm.TVMError

    def transform(self) -> Any:
        @tvm.tir.transform.prim_func_pass(opt_level=0)
        def rejects(func: Any, mod: Any, ctx: Any) -> Any:
            raise tvm.TVMError("no function passes")

        return rejects

    def before(A: T.Buffer((16,), "int32")):  # type: ignore[no-untyped-def]
        A[0] = 1


def test_a_difference_fails() -> None:
    class Wrong(tvm.testing.CompareBeforeAfter):
        pass

    func = tir.PrimFunc([], tir.Evaluate(1))
    with pytest.raises(ValueError):
        Wrong().test_compare(func, tir.PrimFunc([], tir.Evaluate(2)), lambda program: program)


def test_systems_of_equal_solutions_are_told_from_others() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    ranges = {x: tvm.ir.Range(0, 9), y: tvm.ir.Range(0, 9)}
    found = arith.solve_linear_equations([tir.EQ(x + y, 8)], [x, y], ranges)
    tvm.testing.check_int_constraints_trans_consistency(found)
    wrong = {x: found.src_to_dst[x] + 1, y: found.src_to_dst[y]}
    broken = arith.IntConstraintsTransform(found.src, found.dst, wrong, found.dst_to_src)
    with pytest.raises(AssertionError, match="is false for"):
        tvm.testing.check_int_constraints_trans_consistency(broken)


def test_conditions_of_many_values_are_compiled() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    ranges = {x: tvm.ir.Range(-50, 51), y: tvm.ir.Range(3, 103)}
    below = tir.floordiv(x, y) <= x
    tvm.testing.check_bool_expr_is_true(below, ranges, x >= 0)
    with pytest.raises(AssertionError, match="is false for x = -50, y = 3"):
        tvm.testing.check_bool_expr_is_true(below, ranges, x < 0)
