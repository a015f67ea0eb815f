"""Reshapes move behind element-wise operators."""

from __future__ import annotations

import numpy as np

from tvm import relay, tir
from tvm.relay.transform import FoldConstant, SimplifyExpr, SinkReshapes

from .common import assert_transforms, assert_unchanged


def dense() -> tuple[list[relay.Var], relay.Expr]:
    x, w = relay.var("x", shape=(8, 3)), relay.var("w", shape=(4, 3))
    return [x, w], relay.nn.dense(x, w)


def test_residual_addition() -> None:
    y = relay.var("y", shape=(1, 8, 4))
    params, layer = dense()
    before = relay.Function([*params, y], relay.reshape(layer, (1, 8, 4)) + y)
    y = relay.var("y", shape=(1, 8, 4))
    params, layer = dense()
    after = relay.Function([*params, y], relay.reshape(layer + relay.reshape(y, (8, 4)), (1, 8, 4)))
    assert_transforms(before, after, SinkReshapes())


def test_activation_with_scalars_and_bias() -> None:
    bias = np.arange(4, dtype="float32")
    params, layer = dense()
    x = relay.reshape(layer, (2, 4, 4)) + relay.const(bias.reshape(1, 1, 4))
    before = relay.Function(params, x * relay.erf(x * relay.const(0.5)))
    params, layer = dense()
    x = layer + relay.const(bias)
    after = relay.Function(params, relay.reshape(x * relay.erf(x * relay.const(0.5)), (2, 4, 4)))
    assert_transforms(before, after, SinkReshapes(), FoldConstant(), SimplifyExpr())


def test_symbolic_rows() -> None:
    def function(sunk: bool) -> relay.Function:
        rows = [tir.SizeVar(name, "int32") for name in "bs"]
        x, y = relay.var("x", shape=(*rows, 3)), relay.var("y", shape=(*rows, 4))
        w = relay.var("w", shape=(4, 3))
        layer = relay.nn.dense(relay.reshape(x, [-3, 0]), w)
        body = (
            relay.reshape_like(layer + relay.reshape(y, [-1, 4]), x, 0, 1, 0, 2)
            if sunk
            else relay.reshape_like(layer, x, 0, 1, 0, 2) + y
        )
        return relay.Function([x, w, y], body)

    assert_transforms(function(False), function(True), SinkReshapes())


def test_broadcast_along_other_axes_stays() -> None:
    params, layer = dense()
    mask = relay.var("mask", shape=(2, 1, 1))
    assert_unchanged(
        relay.Function([*params, mask], relay.reshape(layer, (2, 4, 4)) + mask), SinkReshapes()
    )


def test_vector_stays_if_the_last_axis_changes() -> None:
    params, layer = dense()
    vector = relay.var("vector", shape=(2,))
    body = relay.reshape(layer, (8, 2, 2)) + vector
    assert_unchanged(relay.Function([*params, vector], body), SinkReshapes())


def test_reshape_of_other_values_stays() -> None:
    x = relay.var("x", shape=(8, 4))
    body = relay.exp(relay.reshape(relay.exp(x), (32,)))
    assert_unchanged(relay.Function([x], body), SinkReshapes())


def test_matrix_beside_a_batch_of_them() -> None:
    def layer() -> tuple[list[relay.Var], relay.Expr]:
        a, b = relay.var("a", shape=(4, 8, 3)), relay.var("b", shape=(4, 8, 3))
        return [a, b], relay.nn.batch_matmul(a, b)

    mask = relay.var("mask", shape=(1, 1, 8, 8))
    params, scores = layer()
    before = relay.Function([*params, mask], relay.reshape(scores, (2, 2, 8, 8)) + mask)
    mask = relay.var("mask", shape=(1, 1, 8, 8))
    params, scores = layer()
    moved = relay.reshape(scores + relay.reshape(mask, (8, 8)), (2, 2, 8, 8))
    assert_transforms(before, relay.Function([*params, mask], moved), SinkReshapes())
