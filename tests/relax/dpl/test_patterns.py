"""Patterns of expressions, and of several bindings with constraints between them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.ir import assert_structural_equal
from tvm.relax.dpl import (
    PatternContext,
    PatternMatchingRewriter,
    SameShapeConstraint,
    TupleRewriter,
    has_attr,
    is_call_dps_packed,
    is_const,
    is_op,
    is_shape,
    is_tuple,
    reject,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from tvm.script import relax as R


@R.function(private=True)
def diamond(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.exp(a)
        c = R.nn.relu(a)
        d = R.add(b, c)
        R.output(d)
    return d


BLOCK = diamond.body.blocks[0]
VALUES = {b.var: b.value for b in BLOCK.bindings}
RESULT = BLOCK.bindings[-1].value


def test_what_parts_stand_for() -> None:
    left, right = wildcard(), wildcard()
    product = is_op("relax.matmul")(left, right)
    pattern = is_op("relax.add")(is_op("relax.nn.relu")(product), is_op("relax.exp")(product))
    # add is commutative, and the product one and the same
    found = pattern.extract_matched_expr(RESULT, VALUES)
    assert found is not None
    assert found[left] is diamond.params[0]
    assert found[right] is diamond.params[1]
    assert found[product] is BLOCK.bindings[0].var
    assert pattern.extract_matched_expr(RESULT) is None


def test_a_failed_alternative_leaves_no_trace() -> None:
    first, second = is_op("relax.exp")(wildcard()), is_op("relax.nn.relu")(wildcard())
    found = (is_op("relax.add")(second, first) | is_op("relax.multiply")(first, first)).match
    assert found(RESULT, VALUES)
    assert not (is_op("relax.add")(first, first)).match(RESULT, VALUES)
    assert reject(is_op("relax.add")(first, first)).match(RESULT, VALUES)


def test_attributes_and_shapes() -> None:
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    softmax = relax.op.nn.softmax(x, axis=1)
    assert is_op("relax.nn.softmax")(wildcard()).has_attr({"axis": 1}).match(softmax)
    assert not has_attr({"axis": 0}).match(softmax)
    assert wildcard().has_shape([2, 3]).has_dtype("float32").match(x)
    assert is_op("relax.reshape")(wildcard(), is_shape([6])).match(relax.op.reshape(x, (6,)))
    n = tvm.tir.Var("n", "int64")
    pair = wildcard().has_struct_info(R.Tensor((n, n + 1), "float32"))
    assert pair.match(x)
    assert not pair.match(relax.Var("y", R.Tensor((2, 4), "float32")))


def test_copies_stand_for_other_expressions() -> None:
    arg = wildcard()
    pattern = is_op("relax.add")(arg, arg)
    copy = pattern.dup()
    assert copy is not pattern
    assert copy.args[0] is copy.args[1]
    assert copy.args[0] is not arg


def test_constraints_require_a_context() -> None:
    with pytest.raises(tvm.TVMError, match="requires a context"):
        wildcard() >> wildcard()


def test_uses() -> None:
    def is_found(only: bool) -> bool:
        with PatternContext() as ctx:
            product = is_op("relax.matmul")(wildcard(), wildcard())
            exp = is_op("relax.exp")(product)
            if only:
                product >> exp
            else:
                product ^ exp
        return ctx.match_dfb(BLOCK) is not None

    assert is_found(only=False)
    assert not is_found(only=True)


def test_positions_of_arguments() -> None:
    def is_found(index: int) -> bool:
        with PatternContext() as ctx:
            add = is_op("relax.add")(wildcard(), wildcard(), add_constraint=False)
            is_op("relax.exp")(wildcard()).used_by(add, index)
        return ctx.match_dfb(BLOCK) is not None

    assert [is_found(i) for i in range(3)] == [True, False, False]


def test_constants_and_tuples_are_arguments() -> None:
    @R.function(private=True)
    def func(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.concat((x, y))
            b = R.multiply(a, R.const(2.0, "float32"))
            R.output(b)
        return b

    with PatternContext() as ctx:
        x, y, two = wildcard(), wildcard(), is_const()
        joined = is_op("relax.concat")(is_tuple([x, y]))
        product = is_op("relax.multiply")(joined, two)
    found = ctx.match_dfb(func.body.blocks[0])
    assert found is not None
    assert [found[p] for p in (x, y)] == list(func.params)
    assert found[product] is func.body.body
    assert found[two].data.numpy() == np.float32(2)


def test_same_shape() -> None:
    with PatternContext() as ctx:
        b = is_op("relax.matmul")(wildcard(), wildcard())
        a = is_op("relax.exp")(b)
        SameShapeConstraint(a, b)
        a ^ is_op("relax.add")(a, wildcard())
    assert ctx.match_dfb(BLOCK) is not None


def test_bindings_are_rewritten_until_nothing_matches() -> None:
    @R.function(private=True)
    def func(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.negative(x)
            b = R.negative(a)
            c = R.negative(b)
            d = R.negative(c)
            e = R.exp(d)
            R.output(e)
        return e

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            e = R.exp(x)
            R.output(e)
        return e

    with PatternContext() as ctx:
        source = wildcard()
        inner = is_op("relax.negative")(source)
        outer = is_op("relax.negative")(inner)
        user = is_op("relax.exp")(outer)

    def rewriter(matches: dict, bindings: dict) -> dict:
        return {matches[user]: R.exp(matches[source])}

    assert_structural_equal(rewrite_bindings(ctx, rewriter, func), expected)


def test_packed_functions() -> None:
    @R.function(private=True)
    def func(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.call_dps_packed("f", (x,), R.Tensor((4,), "float32"))
            b = R.call_dps_packed("g", (a,), R.Tensor((4,), "float32"))
            R.output(b)
        return b

    with PatternContext() as ctx:
        is_call_dps_packed("f") >> is_call_dps_packed("g")
    assert ctx.match_dfb(func.body.blocks[0]) is not None


def test_callbacks_may_reject_a_match() -> None:
    pattern = is_op("relax.exp")(wildcard())
    assert rewrite_call(pattern, lambda expr, _: expr, diamond) is diamond


def test_rewriting_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tvm.relax.dpl.rounds._MOST_ROUNDS", 5)
    arg = wildcard()
    pattern = is_op("relax.exp")(arg)
    with pytest.raises(tvm.TVMError, match="did not come to an end"):
        rewrite_call(pattern, lambda _, matches: R.exp(R.negative(matches[arg])), diamond)


def test_callbacks_of_tuples() -> None:
    x = wildcard()
    fields = [is_op("relax.exp")(x), is_op("relax.nn.relu")(x)]
    seen = []

    def callback(expr: relax.Expr, matches: dict) -> relax.Expr:
        seen.append([matches[p].op.name for p in fields])
        return relax.Tuple([R.log(matches[x]), R.abs(matches[x])])

    for rewriter in (
        TupleRewriter(fields, callback),
        PatternMatchingRewriter.from_pattern(is_tuple(fields), callback),
    ):
        new = rewriter(diamond)
        names = [b.value.op.name for b in new.body.blocks[0].bindings]
        assert names == ["relax.matmul", "relax.log", "relax.abs", "relax.add"]
    assert seen[0] == ["relax.exp", "relax.nn.relu"]
