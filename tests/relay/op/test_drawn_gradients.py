"""Gradients of drawn calls, against finite differences along a direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import tvm
from tests.executors import flat_arrays
from tvm import relay

from .drawing import Array, Draw
from .test_drawn_calls import FAMILIES, few

STEP = 1e-6
# families of which no member has a gradient
WITHOUT = {
    "nn.pool_gradients", "searching.uniques", "vision.anchored_boxes", "vision.anchors",
    "vision.crops", "vision.dilations", "vision.suppressions", "vision.valid_boxes",
}  # fmt: skip
# families of which some have none: scatter's extrema, roi_pool, correlation, dilated windows
PARTLY = {
    "shaping.scatters", "shaping.scatters_of_slices", "vision.regions", "nn.moved_windows",
    "nn.transposed_convolutions",
}  # fmt: skip
# float32 stands in their attributes; special ones have none
NAMED = [
    name
    for name in FAMILIES
    if not name.startswith(("qnn", "special")) and name not in WITHOUT | {"shaping.repeats"}
]


def _weighted_sum(build: Any, arrays: list[Array], rng: np.random.Generator) -> Any:
    """Of the floats among the results; None if there are none."""
    params = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    body = build(*params)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function(params, body)))
    ty = mod["main"].body.checked_type
    is_tuple = isinstance(ty, relay.TupleType)
    terms = [
        relay.sum((relay.TupleGetItem(body, i) if is_tuple else body) * relay.const(rng.uniform(-1, 1, t.concrete_shape)))
        for i, t in enumerate(ty.fields if is_tuple else [ty])
        if t.dtype == "float64"
    ]  # fmt: skip
    if not terms:
        return None
    func = relay.Function(params, sum(terms[1:], terms[0]))
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]


@pytest.mark.parametrize("name", NAMED)
@settings(few, max_examples=2)
@given(data=st.data())
def test_gradients_of_drawn_calls_agree_with_finite_differences(
    name: str, data: st.DataObject
) -> None:
    build, given_arrays, _ = FAMILIES[name](Draw(data.draw))
    arrays = [a.astype("float64") if a.dtype.kind == "f" else a for a in given_arrays]
    rng = np.random.default_rng(1)
    func = _weighted_sum(build, arrays, rng)
    if func is None or not any(a.dtype == "float64" and a.size for a in arrays):
        return
    try:
        gradient = relay.transform.gradient(func, mode="first_order")
    except tvm.error.OpNotImplemented:
        assert name in PARTLY
        reject()
    _, *slopes = flat_arrays(relay.create_executor("debug").evaluate(gradient)(*arrays))
    ways = [rng.uniform(-1, 1, a.shape) if a.dtype == "float64" else None for a in arrays]
    assert [s.shape for s in slopes] == [a.shape for a in arrays]
    pairs = zip(slopes, ways, strict=True)
    predicted = sum(float(np.sum(s * w)) for s, w in pairs if w is not None)
    evaluate = relay.create_executor("debug").evaluate(func)

    def value(step: float) -> float:
        moved = [a if w is None else a + step * w for a, w in zip(arrays, ways, strict=True)]
        return float(evaluate(*moved).numpy())

    if not np.isfinite(value(0)):
        return  # a window of nothing but padding: it has no slope
    wanted = (value(STEP) - value(-STEP)) / (2 * STEP)
    assert predicted == pytest.approx(wanted, rel=1e-4, abs=1e-4)
