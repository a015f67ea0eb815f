"""Formulas keep their relative precision where plain ones round everything away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.frontend.composites import expm1, log1p, softplus

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
