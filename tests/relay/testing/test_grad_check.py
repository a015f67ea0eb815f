"""`relay.testing.check_grad`."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import relay
from tvm.relay.testing import check_grad


def vec(name: str = "x") -> relay.Var:
    return relay.var(name, shape=(2, 3), dtype="float64")


@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
def test_right_gradients_pass(mode: str) -> None:
    x, y = vec(), vec("y")
    check_grad(relay.Function([x, y], relay.sigmoid(x) * y), mode=mode)


def test_a_jump_is_found() -> None:
    x = vec()
    func = relay.Function([x], relay.nn.relu(x))
    with pytest.raises(AssertionError):
        check_grad(func, inputs=[np.zeros((2, 3))])


def test_only_chosen_inputs_are_compared() -> None:
    x, y = vec(), vec("y")
    jump, smooth = np.zeros((2, 3)), np.ones((2, 3))
    func = relay.Function([x, y], relay.nn.relu(x) + relay.exp(y))
    check_grad(
        func, inputs=[jump, smooth], test_inputs=[smooth], executor_kind="graph", mode="first_order"
    )


def test_integers_must_be_given() -> None:
    x = relay.var("x", shape=(2,), dtype="int32")
    with pytest.raises(ValueError, match="pass inputs"):
        check_grad(relay.Function([x], relay.cast(x, "float64")))
