"""The gradient of every operator that has one, against finite differences of what it computes.

With a loss L = sum(g * f(x)), the derivative of L along a direction d is sum(gradient(x, g) * d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.ir.op import Op
from tvm.relay.op.registry import all_ops

from .cases import Array, Case, floats
from .mark_cases import marks
from .test_all_ops import CASES

STEP = 1e-6
# of no argument, or of arguments that are no floats: the gradients are zeros
WITHOUT_CASE = {"zeros", "ones", "dyn.zeros", "dyn.ones", "dyn.reshape"}
# the cases of all operators have these arguments as constants
MORE_CASES = [
    Case("arange", lambda a, b, c: Op.get("arange")(a, b, c, start=1.0, stop=4.2, step=0.5, dtype="float64"), tuple([np.array(v, "float32") for v in (1.0, 4.2, 0.5)]), None),
    Case("variance", lambda x, m: Op.get("variance")(x, m, axis=(1,), keepdims=True, unbiased=True), (floats(3, 4), floats(3, 1)), None),
    Case("nn.pad", lambda x, v: relay.nn.pad(x, ((1, 0), (2, 3)), v), (floats(2, 3), floats()), None),
    Case("one_hot", lambda i, a, b: relay.one_hot(i, a, b, 4, -1, "float64"), (np.array([0, 3, 5]), np.array(2, "float32"), np.array(1, "float32")), None),
    *[Case(name, build, (floats(2, 3),), None) for name, build in marks()],
]  # fmt: skip
# the value does not depend on its arguments continuously
FLAT = {
    "floor", "ceil", "trunc", "round", "sign", "zeros_like", "ones_like", "shape_of",
    "floor_divide", "left_shift", "right_shift", "logical_and", "logical_or", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal",
}  # fmt: skip
DIFFERENTIABLE = [op.name for op in all_ops() if op.gradient is not None]
RNG = np.random.default_rng(3)


def _case_of(name: str) -> Case | None:
    """The smallest case whose call is one of the operator itself."""
    more = [c for c in MORE_CASES if c.name == name]
    found = more or [c for c in CASES if c.name == name and _has_gradient(c)]
    floating = [c for c in found if any(a.dtype == "float32" and a.size for a in c.inputs)]
    return min(floating, key=lambda c: sum(a.size for a in c.inputs), default=None)


def _params(case: Case) -> list[relay.Var]:
    return [
        relay.var(f"p{i}", shape=a.shape, dtype="float64" if a.dtype == "float32" else str(a.dtype))
        for i, a in enumerate(case.inputs)
    ]


def _call(case: Case) -> tuple[list[relay.Var], relay.Call] | None:
    params = _params(case)
    try:
        body = case.build(*params)
        func = relay.Function(params, body.astuple() if hasattr(body, "astuple") else body)
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    except (tvm.error.DiagnosticError, TypeError):
        return None  # a case of constants of float32
    body = mod["main"].body
    if isinstance(body, relay.Tuple):
        body = body.fields[0].tuple_value
    is_own = isinstance(body, relay.Call) and body.op.name == case.name
    return (list(mod["main"].params), body) if is_own else None


def _has_gradient(case: Case) -> bool:
    """Whether it is a call of the operator itself, in a form that has a gradient."""
    made = _call(case)
    if made is None:
        return False
    try:
        made[1].op.gradient(made[1], relay.zeros_like(made[1]))
    except tvm.error.OpNotImplemented:
        return False
    return True


def _evaluate(params: list[relay.Var], body: relay.Expr, inputs: list[Array]) -> list[Array]:
    found = relay.create_executor("debug").evaluate(relay.Function(params, body))(*inputs)
    return _flat(found)


def _flat(value: Any) -> list[Array]:
    return [a for v in value for a in _flat(v)] if isinstance(value, list) else [value.numpy()]


def _as_expression(grads: list[relay.Var], call: relay.Call) -> relay.Expr:
    is_tuple = isinstance(call.checked_type, relay.TupleType)
    return relay.Tuple(grads) if is_tuple else grads[0]


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in WITHOUT_CASE | FLAT])
def test_gradient_agrees_with_finite_differences(name: str) -> None:
    case = _case_of(name)
    assert case is not None, f"{name} has no case of floats"
    made = _call(case)
    assert made is not None
    params, call = made
    inputs = [a.astype("float64") if a.dtype == "float32" else a for a in case.inputs]
    outputs = _evaluate(params, call, inputs)
    weights = [RNG.uniform(-1, 1, o.shape).astype(o.dtype) for o in outputs]
    grads = [relay.var(f"g{i}", shape=w.shape, dtype=str(w.dtype)) for i, w in enumerate(weights)]
    gradients = relay.Tuple(call.op.gradient(call, _as_expression(grads, call)))
    slopes = _evaluate([*params, *grads], gradients, [*inputs, *weights])

    # arguments that are tuples have gradients that are tuples: flat, there is one for each input
    ways = [RNG.uniform(-1, 1, a.shape) if a.dtype == "float64" else None for a in inputs]
    assert [s.shape for s in slopes] == [a.shape for a in inputs]
    predicted = sum(
        float(np.sum(s * w)) for s, w in zip(slopes, ways, strict=True) if w is not None
    )

    def loss(sign: int) -> float:
        moved = [a if w is None else a + sign * STEP * w for a, w in zip(inputs, ways, strict=True)]
        found = _evaluate(params, call, [np.asarray(m, a.dtype) for m, a in zip(moved, inputs, strict=True)])  # fmt: skip
        return sum(float(np.sum(w * f)) for w, f in zip(weights, found, strict=True))

    assert predicted == pytest.approx((loss(1) - loss(-1)) / (2 * STEP), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n in FLAT])
def test_gradient_of_steps_is_zero(name: str) -> None:
    case = min((c for c in CASES if c.name == name), key=lambda c: sum(a.size for a in c.inputs))
    made = _call(case)
    assert made is not None
    params, call = made
    grad = relay.zeros_like(call)
    slopes = relay.Tuple(call.op.gradient(call, grad))
    arrays = [a.astype(p.type_annotation.dtype) for a, p in zip(case.inputs, params, strict=True)]
    for slope, array in zip(_evaluate(params, slopes, arrays), arrays, strict=True):
        assert slope.shape == array.shape
        assert not slope.any()
