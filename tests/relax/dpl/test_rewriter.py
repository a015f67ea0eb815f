"""Rewriters that are given as functions: what they replace, and what they leave."""

from __future__ import annotations

import pytest

import tvm
from tvm.ir import assert_structural_equal
from tvm.ir.transform import Sequential
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@R.rewriter
class AddIsPacked:
    @R.function
    def pattern(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        return R.add(A, B)

    @R.function
    def replacement(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        return R.call_pure_packed("my_add", A, B, sinfo_args=R.Tensor([16], "float32"))


@R.rewriter
class MultiplyIsPacked:
    @R.function
    def pattern(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        return R.multiply(A, B)

    @R.function
    def replacement(A: R.Tensor([16], "float32"), B: R.Tensor([16], "float32")):
        return R.call_pure_packed("my_multiply", A, B, sinfo_args=R.Tensor([16], "float32"))


@R.rewriter
class ProductsAreOne:
    @R.function
    def pattern(
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
        x: R.Tensor([16], "float32"),
    ):
        first = R.matmul(A, x)
        second = R.matmul(B, x)
        return (first, second)

    @R.function
    def replacement(
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
        x: R.Tensor([16], "float32"),
    ):
        weights = R.concat([A, B])
        product = R.matmul(weights, x)
        return R.split(product, 2)


def test_functions_and_modules_are_rewritten() -> None:
    @R.function
    def main(x: R.Tensor([32], "float32")):
        parts = R.split(x, 2)
        a = parts[0]
        b = parts[1]
        return a + b

    @R.function
    def expected(x: R.Tensor([32], "float32")):
        parts = R.split(x, 2)
        a = parts[0]
        b = parts[1]
        return R.call_pure_packed("my_add", a, b, sinfo_args=R.Tensor([16], "float32"))

    expected = expected.with_attr("global_symbol", "main")
    assert_structural_equal(AddIsPacked(main), expected)
    module = tvm.IRModule({"main": main})
    for rewriter in (AddIsPacked, Sequential([AddIsPacked])):
        assert_structural_equal(rewriter(module)["main"], expected)


def test_what_does_not_match_is_the_same_object() -> None:
    @R.function
    def main(x: R.Tensor([17], "float32")):
        return x + x

    assert AddIsPacked(main) is main


def test_both_of_two_rewriters() -> None:
    @R.function(private=True)
    def before(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        with R.dataflow():
            a = x + y
            b = a * y
            R.output(b)
        return b

    @R.function(private=True)
    def expected(x: R.Tensor([16], "float32"), y: R.Tensor([16], "float32")):
        with R.dataflow():
            a = R.call_pure_packed("my_add", x, y, sinfo_args=R.Tensor([16], "float32"))
            b = R.call_pure_packed("my_multiply", a, y, sinfo_args=R.Tensor([16], "float32"))
            R.output(b)
        return b

    assert_structural_equal((AddIsPacked | MultiplyIsPacked)(before), expected)


def test_results_of_rewriting_are_rewritten() -> None:
    @R.rewriter
    class AddIsMultiply:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            return A + A

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            return A * R.const(2.0, "float32")

    @R.rewriter
    class DoubleIsPacked:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            return A * R.const(2.0, "float32")

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            return R.call_pure_packed("double", A, sinfo_args=R.Tensor([16], "float32"))

    @R.function(private=True)
    def before(x: R.Tensor([16], "float32")):
        return x + x

    @R.function(private=True)
    def expected(x: R.Tensor([16], "float32")):
        return R.call_pure_packed("double", x, sinfo_args=R.Tensor([16], "float32"))

    assert_structural_equal((AddIsMultiply | DoubleIsPacked)(before), expected)


def test_replacements_may_say_less_of_the_result() -> None:
    @R.rewriter
    class AnyAdd:
        @R.function
        def pattern(A: R.Tensor([16]), B: R.Tensor([16])):
            return R.add(A, B)

        @R.function
        def replacement(A: R.Tensor([16]), B: R.Tensor([16])):
            return R.call_pure_packed("my_add", A, B, sinfo_args=R.Tensor([16]))

    @R.function(private=True)
    def before(x: R.Tensor([16], "float32")):
        y = x + x
        return R.add(y, x)

    @R.function(private=True)
    def expected(x: R.Tensor([16], "float32")):
        y = R.call_pure_packed("my_add", x, x, sinfo_args=R.Tensor([16]))
        return R.call_pure_packed("my_add", y, x, sinfo_args=R.Tensor([16]))

    assert_structural_equal(AnyAdd(before), expected)


def _with_functions() -> tuple[tvm.transform.Pass, tvm.transform.Pass]:
    @R.rewriter
    class Add:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            return A + A

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            return Add.inner(A)

        @R.function(private=True)
        def inner(A: R.Tensor([16], "float32")):
            return A * R.const(2.0, "float32")

    @R.rewriter
    class Power:
        @R.function
        def pattern(A: R.Tensor([16], "float32")):
            return R.power(A, A)

        @R.function
        def replacement(A: R.Tensor([16], "float32")):
            return Power.inner(A)

        @R.function(private=True)
        def inner(A: R.Tensor([16], "float32")):
            return R.exp(A * R.log(A))

    return Add, Power


def test_functions_that_replacements_call_come_along() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor([16], "float32")):
            y = x + x
            return R.power(y, y)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor([16], "float32")):
            y = Expected.inner(x)
            return Expected.inner_1(y)

        @R.function(private=True)
        def inner(A: R.Tensor([16], "float32")) -> R.Tensor([16], "float32"):
            return A * R.const(2.0, "float32")

        @R.function(private=True)
        def inner_1(A: R.Tensor([16], "float32")) -> R.Tensor([16], "float32"):
            return R.exp(A * R.log(A))

    add, power = _with_functions()
    assert_structural_equal((add | power)(Before), Expected)
    only = add(Before)
    assert sorted(g.name_hint for g in only.functions) == ["inner", "main"]
    with pytest.raises(tvm.TVMError, match="requires a module"):
        add(Before["main"])


def test_fields_of_a_tuple_need_not_be_in_one() -> None:
    @R.function(private=True)
    def before(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        first = R.matmul(A, x)
        second = R.matmul(B, x)
        return first + second

    @R.function(private=True)
    def expected(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        weights = R.concat([A, B])
        product = R.matmul(weights, x)
        both = R.split(product, 2)
        first = both[0]
        second = both[1]
        return first + second

    assert_structural_equal(ProductsAreOne(before), expected)


def test_tuples_that_are_returned_or_taken_apart() -> None:
    @R.function(private=True)
    def returned(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        first = R.matmul(A, x)
        second = R.matmul(B, x)
        return (first, second)

    @R.function(private=True)
    def expected(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        weights = R.concat([A, B])
        product = R.matmul(weights, x)
        return R.split(product, 2)

    @R.function(private=True)
    def taken_apart(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        first = R.matmul(A, x)
        second = R.matmul(B, x)
        both = (first, second)
        return both[0] + both[1]

    assert_structural_equal(ProductsAreOne(returned), expected)
    values = [b.value for b in ProductsAreOne(taken_apart).body.blocks[0].bindings]
    names = [v.op.name for v in values if isinstance(v, tvm.relax.Call)]
    assert names == ["relax.concat", "relax.matmul", "relax.split", "relax.add"]


def test_fields_must_match_together() -> None:
    @R.function(private=True)
    def others(
        x: R.Tensor([16], "float32"),
        y: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        first = R.matmul(A, x)
        second = R.matmul(B, y)
        return first + second

    @R.function(private=True)
    def dependent(x: R.Tensor([16], "float32"), A: R.Tensor([16, 16], "float32")):
        first = R.matmul(A, x)
        B = R.broadcast_to(first, (16, 16))
        second = R.matmul(B, x)
        return first + second

    assert ProductsAreOne(others) is others
    assert ProductsAreOne(dependent) is dependent


def test_nothing_moves_across_side_effects() -> None:
    @R.function(private=True, pure=False)
    def before(
        x: R.Tensor([16], "float32"),
        A: R.Tensor([16, 16], "float32"),
        B: R.Tensor([16, 16], "float32"),
    ):
        first = R.matmul(A, x)
        _ = R.print(format="between")
        second = R.matmul(B, x)
        return first + second

    assert ProductsAreOne(before) is before


def test_branches_are_rewritten() -> None:
    @R.function(private=True)
    def before(x: R.Tensor([16], "float32"), cond: R.Prim("bool")):
        if cond:
            y = x + x
        else:
            y = x * x
        return y

    @R.function(private=True)
    def expected(x: R.Tensor([16], "float32"), cond: R.Prim("bool")):
        if cond:
            y = R.call_pure_packed("my_add", x, x, sinfo_args=R.Tensor([16], "float32"))
        else:
            y = x * x
        return y

    assert_structural_equal(AddIsPacked(before), expected)


def test_symbolic_shapes() -> None:
    @R.rewriter
    class Halves:
        @R.function
        def pattern(A: R.Tensor(["N"], "float32"), B: R.Tensor(["N"], "float32")):
            return R.add(A, B)

        @R.function
        def replacement(A: R.Tensor(["N"], "float32"), B: R.Tensor(["N"], "float32")):
            N = T.int64()
            return R.call_pure_packed("my_add", A, B, sinfo_args=R.Tensor([N], "float32"))

    @R.function(private=True)
    def before(
        x: R.Tensor([16], "float32"), y: R.Tensor(["m"], "float32"), z: R.Tensor(["n"], "float32")
    ):
        a = x + x
        b = y + y
        c = R.add(z, y)
        return (a, b, c)

    @R.function(private=True)
    def expected(
        x: R.Tensor([16], "float32"), y: R.Tensor(["m"], "float32"), z: R.Tensor(["n"], "float32")
    ):
        m = T.int64()
        a = R.call_pure_packed("my_add", x, x, sinfo_args=R.Tensor([16], "float32"))
        b = R.call_pure_packed("my_add", y, y, sinfo_args=R.Tensor([m], "float32"))
        c = R.add(z, y)
        return (a, b, c)

    assert_structural_equal(Halves(before), expected)


def test_definitions_that_are_rejected() -> None:
    with pytest.raises(KeyError, match="pattern"):

        @R.rewriter
        class NoPattern:
            @R.function
            def replacement():
                return R.tuple()

    with pytest.raises(KeyError, match="replacement"):

        @R.rewriter
        class NoReplacement:
            @R.function
            def pattern():
                return R.tuple()

    with pytest.raises(TypeError, match="pattern"):

        @R.rewriter
        class LoopProgram:
            @T.prim_func
            def pattern():
                pass

            @R.function
            def replacement():
                return R.tuple()

    with pytest.raises(ValueError, match="must have the same signature"):

        @R.rewriter
        class OtherSignature:
            @R.function
            def pattern(A: R.Tensor([32])):
                return A

            @R.function
            def replacement(A: R.Tensor([16])):
                return A

    with pytest.raises(ValueError, match="is publicly exposed"):

        @R.rewriter
        class Public:
            @R.function
            def pattern(A: R.Tensor([16])):
                return A + A

            @R.function
            def replacement(A: R.Tensor([16])):
                return Public.inner(A)

            @R.function
            def inner(A: R.Tensor([16])):
                return A * R.const(2.0)
