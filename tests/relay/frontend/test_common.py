from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay.frontend import common
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


def test_infer_type_returns_the_expression_with_its_type() -> None:
    x = relay.var("x", shape=(2, 3))
    total = common.infer_type(relay.add(x, x))
    assert total.checked_type == relay.TensorType((2, 3))
    func = common.infer_type(relay.Function([x], relay.nn.relu(x)))
    assert func.ret_type == relay.TensorType((2, 3))
    program = tvm.IRModule({"relu": func})
    called = common.infer_type(program.get_global_var("relu")(x), program)
    assert called.checked_type == func.ret_type
