"""Reductions simplified within their axes' domains."""

from __future__ import annotations

import tvm
from tvm import te, tir
from tvm.arith import Analyzer
from tvm.ir import assert_structural_equal


def _two(values, axis, init=None):
    reducer = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]),
        lambda t0, t1: (tir.const(0, t0), tir.const(1, t1)),
    )
    return reducer(values, axis, init=init)


def test_axis_domain_decides_a_choice() -> None:
    k = te.reduce_axis((0, 10), "k")
    chosen = te.sum(tir.Select(k.var < 12, k.var, 0), k)
    assert_structural_equal(Analyzer().canonical_simplify(chosen), te.sum(k.var, k))


def test_reduction_over_no_axis_is_its_source() -> None:
    A = te.placeholder((4,), name="A")
    assert_structural_equal(Analyzer().canonical_simplify(te.sum(A[3], [])), A[3])
    n = te.var("n")
    guarded = Analyzer().canonical_simplify(te.sum(A[3], [], where=n > 12, init=1.0))
    assert guarded.op.name == "tir.if_then_else"
    assert guarded.args[2].value == 1.0


def test_results_that_are_not_asked_for_leave() -> None:
    k = te.reduce_axis((0, 10), "k")
    A = te.placeholder((10,), name="A")
    total, product = _two((A[k], A[9 - k]), k)
    assert_structural_equal(Analyzer().canonical_simplify(total), te.sum(A[k], k))
    assert len(Analyzer().canonical_simplify(product).source) == 1


def test_sources_with_effects_stay() -> None:
    k = te.reduce_axis((0, 10), "k")
    A = te.placeholder((10,), name="A")
    called = tir.Call("float32", tvm.ir.GlobalVar("f"), [A[k]])
    total, _ = _two((A[k], called), k)
    assert len(Analyzer().canonical_simplify(total).source) == 2
