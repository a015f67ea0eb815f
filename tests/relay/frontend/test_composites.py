"""Formulas keep their relative precision where plain ones round everything away."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tvm
from tvm import relay
from tvm.relay.frontend.composites import expm1, log1p, softplus, whole_power

from .running import run

SMALL = np.array([0, 1e-30, -1e-30, 3e-8, -1e-4, 0.3, -0.49, 0.51, -0.9, 2.0, 30.0])


@pytest.mark.parametrize(
    "ours, exact, values",
    [(log1p, np.log1p, SMALL), (expm1, np.expm1, SMALL),
     (softplus, lambda x: np.logaddexp(0, x), np.linspace(-80, 40, 61))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_formula_is_precise(
    ours: Callable[[Any], Any], exact: Callable[[Any], Any], values: np.ndarray, dtype: str
) -> None:
    x = relay.var("x", shape=values.shape, dtype=dtype)
    array = values.astype(dtype)
    (found,) = run(tvm.IRModule.from_expr(relay.Function([x], ours(x))), {}, {"x": array})
    wanted = exact(array.astype("float64"))
    np.testing.assert_allclose(found, wanted, rtol=8 * np.finfo(dtype).eps, atol=0)


INTEGERS = np.array([3000, -3001, 7, -1, 0, 2**40 + 1])


@pytest.mark.parametrize("exponent", [1, 2, 5, 6, 63])
def test_powers_of_integers_are_exact_and_wrap_around(exponent: int) -> None:
    x = relay.var("x", shape=INTEGERS.shape, dtype="int64")
    power = relay.Function([x], whole_power(x, exponent, operator.mul))
    (found,) = run(tvm.IRModule.from_expr(power), {}, {"x": INTEGERS})
    np.testing.assert_array_equal(found, INTEGERS**exponent)


def test_importers_keep_powers_of_integers_exact() -> None:
    class Power(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x**5

    info = [("x", (INTEGERS.shape, "int64"))]
    traced = torch.jit.trace(Power(), torch.from_numpy(INTEGERS))
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Pow", ["x", "five"], ["y"])], "power",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT64, INTEGERS.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT64, INTEGERS.shape)],
        [helper.make_tensor("five", onnx.TensorProto.INT64, (), [5])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    for mod, params in (
        relay.frontend.from_pytorch(traced, info),
        relay.frontend.from_onnx(model, {"x": INTEGERS.shape}),
    ):
        (found,) = run(mod, params, {"x": INTEGERS})
        np.testing.assert_array_equal(found, INTEGERS**5)
