"""Sums of float16 keep their digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import WideAccumulation

from .common import assert_transforms, assert_unchanged

RNG = np.random.default_rng(0)


def half(name: str = "x", shape: tuple[int, ...] = (4, 4096)) -> relay.Var:
    return relay.var(name, shape=shape, dtype="float16")


def wide(x: relay.Expr) -> relay.Expr:
    return relay.cast(x, "float32")


def test_a_sum_is_widened() -> None:
    before = relay.Function([x := half()], relay.sum(x, axis=1))
    x = half()
    after = relay.Function([x], relay.cast(relay.sum(wide(x), axis=1), "float16"))
    assert_transforms(before, after, WideAccumulation())


def test_a_product_is_widened() -> None:
    before = relay.Function([x := half(), w := half("w")], relay.nn.dense(x, w))
    x, w = half(), half("w")
    product = relay.nn.dense(wide(x), wide(w), out_dtype="float32")
    assert_transforms(
        before, relay.Function([x, w], relay.cast(product, "float16")), WideAccumulation()
    )


def test_what_adds_nothing_up_stays() -> None:
    assert_unchanged(relay.Function([x := half()], relay.max(relay.exp(x))), WideAccumulation())
    x = half()
    wide_product = relay.nn.dense(x, x, out_dtype="float32")
    assert_unchanged(relay.Function([x], wide_product), WideAccumulation())


X = RNG.uniform(0, 1, (4, 4096)).astype("float16")
W = X.astype("float64")


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: relay.sum(x, axis=1), W.sum(1)),
        (lambda x: relay.mean(x, axis=1), W.mean(1)),
        (lambda x: relay.variance(x, axis=1), W.var(1)),
        (lambda x: relay.cumsum(x, axis=1), W.cumsum(1)),
        (lambda x: relay.nn.softmax(x), np.exp(W) / np.exp(W).sum(1, keepdims=True)),
        (lambda x: relay.nn.dense(x, x), W @ W.T),
        (lambda x: relay.nn.global_avg_pool2d(relay.reshape(x, (1, 4, 64, 64))),
         W.mean(1).reshape(1, 4, 1, 1)),
    ],
)  # fmt: skip
def test_results_are_as_exact_as_float16(
    build: Callable[[relay.Expr], relay.Expr], expected: np.ndarray, opt_level: int
) -> None:
    x = half()
    mod = tvm.IRModule.from_expr(relay.Function([x], build(x)))
    with tvm.transform.PassContext(opt_level=opt_level):
        result = relay.create_executor("graph", mod=mod).evaluate()(X).numpy()
    np.testing.assert_allclose(result, expected, rtol=1.5e-3)


def test_what_a_closure_shares_with_its_surroundings_stays_one() -> None:
    x, y = half(), half("y", (4, 1))
    shared = relay.Let(y, relay.sum(x, axis=1, keepdims=True), relay.nn.relu(y))
    closure = relay.Function([relay.var("i", "int32")], relay.sum(shared, axis=0))
    called = relay.Let(f := relay.var("f"), closure, f(relay.const(1)))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([shared, called])))
    bound: list[relay.Expr] = []
    sums: list[relay.Expr] = []

    def note(node: relay.Expr) -> None:
        if isinstance(node, relay.Let):
            bound.append(node.var)
        elif isinstance(node, relay.Call) and node.op == tvm.ir.Op.get("sum"):
            sums.append(node)

    relay.analysis.post_order_visit(WideAccumulation()(mod)["main"], note)
    assert len(bound) == len(set(bound)) == 2
    assert [str(call.checked_type.dtype) for call in sums] == ["float32", "float32"]


def test_functions_for_external_compilers_stay_as_they_are() -> None:
    inner = half("p")
    composite = relay.Function([inner], relay.sum(inner, axis=1)).with_attr("Composite", "mine.sum")
    assert_unchanged(relay.Function([x := half()], composite(x)), WideAccumulation())
