"""Random expressions, built node by node so that nothing folds, survive printing and reading."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import tir
from tvm.ir import assert_structural_equal
from tvm.script import from_source
from tvm.tir.expr import const

N = tir.Var("n", "int32")
M = tir.Var("m", "int32")
W = tir.Var("w", "int64")
F = tir.Var("f", "float32")
C = tir.Var("c", "bool")
A = tir.decl_buffer((64,), "int32", "A")
B = tir.decl_buffer((8, 8), "float32", "B")

ARITHMETIC = [tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max]
DIVISIONS = [tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod]
COMPARISONS = [tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE]


def integers() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from([N, M]) | st.integers(-20, 20).map(lambda v: const(v, "int32"))
    return st.recursive(leaves, _more_integers, max_leaves=12)


def _more_integers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    operands = st.tuples(inner, inner)
    conditions = _conditions(inner)
    return st.one_of(
        st.builds(lambda op, ab: op(*ab), st.sampled_from(ARITHMETIC + DIVISIONS), operands),
        inner.map(lambda i: tir.BufferLoad(A, [i])),
        inner.map(lambda i: tir.Cast("int32", tir.Cast("int64", i))),
        st.builds(lambda c, ab: tir.Select(c, *ab), conditions, operands),
        st.builds(lambda c, ab: tir.if_then_else(c, *ab), conditions, operands),
        operands.map(lambda ab: tir.bitwise_xor(*ab)),
        operands.map(lambda ab: tir.call_extern("int32", "f", *ab)),
        operands.map(lambda ab: tir.Let(tir.Var("t", "int32"), *ab)),
    )


def _conditions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    leaves = st.builds(lambda op, a, b: op(a, b), st.sampled_from(COMPARISONS), inner, inner)
    leaves |= st.sampled_from([C, const(True), const(False)])
    return st.recursive(
        leaves,
        lambda c: (
            st.builds(lambda op, a, b: op(a, b), st.sampled_from([tir.And, tir.Or]), c, c)
            | c.map(tir.Not)
        ),
        max_leaves=4,
    )


def floats() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.just(F),
        st.floats(width=32).map(lambda v: const(v, "float32")),
        st.tuples(integers(), integers()).map(lambda ij: tir.BufferLoad(B, ij)),
        integers().map(lambda i: tir.Cast("float32", i)),
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.builds(
                lambda op, a, b: op(a, b), st.sampled_from([*ARITHMETIC, tir.Div]), inner, inner
            )
            | inner.map(tir.exp)
            | inner.map(lambda x: tir.call_intrin("float32", "tir.sqrt", x))
        ),
        max_leaves=8,
    )


def check(*stmts: tir.Stmt) -> None:
    func = tir.PrimFunc([N, M, W, F, C, A, B], tir.stmt_seq(*stmts))
    text = func.script()
    again = from_source(text)
    assert_structural_equal(func, again)
    assert again.script() == text


@settings(max_examples=150)
@given(integers(), integers())
def test_integers(index: Any, value: Any) -> None:
    check(tir.BufferStore(A, value, [index]), tir.Evaluate(index))


@settings(max_examples=100)
@given(_conditions(integers()), floats())
def test_conditions_and_floats(condition: Any, value: Any) -> None:
    check(tir.IfThenElse(condition, tir.BufferStore(B, value, [N, M]), None), tir.Evaluate(1))


@settings(max_examples=100)
@given(integers(), integers(), st.integers(2, 8), st.integers(-2, 3))
def test_vectors(base: Any, value: Any, lanes: int, stride: int) -> None:
    index = tir.Ramp(base, stride, lanes)
    load = tir.BufferLoad(A, [index])
    check(tir.BufferStore(A, tir.Add(load, tir.Broadcast(value, lanes)), [index]))


@settings(max_examples=100)
@given(integers(), integers(), st.sampled_from(list(tir.ForKind)[:4]))
def test_loops(start: Any, extent: Any, kind: tir.ForKind) -> None:
    loop_var = tir.Var("i", "int32")
    body = tir.BufferStore(A, loop_var, [loop_var])
    region = tir.BufferRegion(A, [tir.Range.from_min_extent(start, extent)])
    realize = tir.BlockRealize([], True, tir.Block([], [region], [region], "b", body))
    loop = tir.For(loop_var, start, extent, kind, realize)
    check(tir.BlockRealize([], True, tir.Block([], [], [], "root", loop)))
