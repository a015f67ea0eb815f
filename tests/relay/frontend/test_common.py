from __future__ import annotations

import numpy as np

from tvm import relay
from tvm.relay.frontend.common import fold_constant, infer_shape


def test_folding_looks_at_a_shared_expression_once() -> None:
    x = relay.var("x", shape=(2,))
    expr = x * (relay.const(np.ones(2, "float32")) + relay.const(1.0))
    for _ in range(100):  # 2 ** 100 paths
        expr = expr + expr
    assert infer_shape(fold_constant(expr)) == (2,)


def test_deep_expressions_are_folded() -> None:
    x = relay.var("x", shape=(2,))
    expr = x
    for _ in range(3000):
        expr = relay.tanh(expr)
    assert fold_constant(expr) is expr
