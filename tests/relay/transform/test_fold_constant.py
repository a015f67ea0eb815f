"""Folding of constants."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import FoldConstant
from tvm.relay.ty import is_dynamic

from .common import assert_transforms, assert_unchanged, run


def constant(*values: float) -> relay.Constant:
    return relay.const(np.array(values, "float32"))


def test_calls_of_constants_become_constants() -> None:
    x = relay.var("x", shape=(2,))
    before = relay.Function([x], x + relay.exp(constant(0, 1) * relay.const(2.0)))
    x = relay.var("x", shape=(2,))
    after = relay.Function([x], x + relay.const(np.exp(np.array([0, 2], "float32"))))
    assert_transforms(before, after, FoldConstant())


def test_nothing_to_fold_returns_the_same_module() -> None:
    x = relay.var("x", shape=(2,))
    assert_unchanged(relay.Function([x], relay.exp(x) + relay.const(1.0)), FoldConstant())


def test_tuples_and_items() -> None:
    a, b = relay.split(constant(1, 2, 3, 4), 2)
    func = relay.Function([], relay.concatenate([b, a], axis=0))
    folded = run(func, FoldConstant()).body
    np.testing.assert_array_equal(folded.data.numpy(), [3, 4, 1, 2])


def test_operator_without_host_rule_is_compiled() -> None:
    data = relay.const(np.random.default_rng(0).random((1, 4, 8, 8), "float32"))
    pooled = relay.nn.max_pool2d(data, pool_size=(2, 2), strides=(2, 2))
    assert tvm.ir.Op.get("nn.max_pool2d").fold is None
    folded = run(relay.Function([], pooled), FoldConstant()).body
    expected = data.data.numpy().reshape(1, 4, 4, 2, 4, 2).max((3, 5))
    np.testing.assert_array_equal(folded.data.numpy(), expected)


def test_equal_work_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    op = tvm.ir.Op.get("exp")
    fold, count = op.fold, []

    def counting(*args: object) -> list[np.ndarray]:
        count.append(1)
        return fold(*args)

    monkeypatch.setattr(op, "fold", counting)
    c = constant(1, 2)
    run(relay.Function([], relay.Tuple([relay.exp(c), relay.exp(c)])), FoldConstant())
    assert len(count) == 1


def test_shape_of_a_static_tensor_is_known() -> None:
    x = relay.var("x", shape=(2, 3))
    folded = run(relay.Function([x], relay.shape_of(x)), FoldConstant()).body
    assert folded.data.numpy().tolist() == [2, 3]


def test_known_condition_chooses_its_branch() -> None:
    x = relay.var("x", shape=(2,))
    body = relay.If(relay.const(True), relay.exp(x), x)
    assert run(relay.Function([x], body), FoldConstant()).body.op.name == "exp"


def test_let_of_a_constant_is_substituted() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    body = relay.Let(y, constant(1, 1) + constant(1, 1), x + y)
    folded = run(relay.Function([x], body), FoldConstant()).body
    np.testing.assert_array_equal(folded.args[1].data.numpy(), [2, 2])


def test_creation_from_nothing_stays() -> None:
    func = relay.Function([], relay.zeros((2, 2), "float32"))
    assert isinstance(run(func, FoldConstant()).body, relay.Call)


def test_fold_constant_expr() -> None:
    expr = relay.transform.FoldConstantExpr(constant(1) + constant(2), tvm.IRModule())
    np.testing.assert_array_equal(expr.data.numpy(), [3])


def test_kernel_of_constants_alone_becomes_its_value() -> None:
    text = "def @main() { %0 = fn (Primitive=1) { reshape(0.5f, newshape=[1, 1]) }; %0() }"
    assert isinstance(FoldConstant()(relay.parse(text))["main"].body, relay.Constant)


def test_operators_of_computed_shapes_are_folded_as_static_ones() -> None:
    shape = relay.add(relay.const(np.array([2, 3], "int32")), relay.const(1))
    padded = relay.nn.pad(relay.const([1.0, 2.0]), relay.reshape(shape, (1, 2)), 1.0)
    for body in (relay.broadcast_to(relay.const(2.0), shape), relay.nn.relu(padded)):
        mod = FoldConstant()(tvm.IRModule.from_expr(relay.Function([], body)))
        assert not is_dynamic(relay.transform.InferType()(mod)["main"].checked_type)


def test_transposition_of_a_transposition_is_one() -> None:
    weight = relay.const(np.arange(24, dtype="float32").reshape(2, 3, 4))
    once = relay.transpose(weight, (2, 0, 1))
    folder = relay.frontend.common.ExprFolder()
    assert folder.fold(relay.transpose(folder.fold(once), (1, 2, 0))) is weight
    again = folder.fold(relay.transpose(folder.fold(once)))
    expected = weight.data.numpy().transpose(2, 0, 1).transpose()
    np.testing.assert_array_equal(again.data.numpy(), expected)
    assert folder.fold(relay.transpose(weight, (0, 1, 2))) is weight


@pytest.mark.parametrize("at", [[[0, -1]], [[0, 7]], [[1, 1]]], ids=["both", "outside", "twice"])
def test_scattered_constants(at: list[list[int]]) -> None:
    indices = np.array(at, "int32")
    updates = np.array([[5, 6], [7, 8]], "float32")
    data = np.arange(6, dtype="float32").reshape(3, 2)
    call = relay.scatter_nd(*[relay.const(a) for a in (data, indices, updates)])
    folded = run(relay.Function([], call), FoldConstant()).body
    expected = data.copy()
    for place, update in zip(indices[0], updates, strict=True):
        if place < 3:
            expected[place] = update
    np.testing.assert_array_equal(folded.data.numpy(), expected)
