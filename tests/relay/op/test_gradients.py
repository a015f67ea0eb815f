"""The gradient of every operator that has one, against finite differences of what it computes.

With a loss L = sum(g * f(x)), the derivative of L along a direction d is sum(gradient(x, g) * d).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tests.executors import flat_arrays
from tvm import relay
from tvm.ir.op import Op
from tvm.relay.op.registry import all_ops
from tvm.relay.transform.first_order_gradient import operator_gradients

from .cases import Array, Case, floats
from .hint_cases import marks
from .test_all_ops import CASES

STEP = 1e-6
# of no argument, or of arguments that are no floats: the gradients are zeros
WITHOUT_CASE = {"zeros", "ones", "dyn.zeros", "dyn.ones", "dyn.reshape"}
_REGIONS = np.array([[1, 1, 2, 9, 12], [0, -1, 3, 7.5, 10]], "float64")
# the cases of all operators have these arguments as constants
MORE_CASES = [
    Case("arange", lambda a, b, c: Op.get("arange")(a, b, c, start=1.0, stop=4.2, step=0.5, dtype="float64"), tuple([np.array(v, "float32") for v in (1.0, 4.2, 0.5)]), None),
    Case("variance", lambda x, m: Op.get("variance")(x, m, axis=(1,), keepdims=True, unbiased=True), (floats(3, 4), floats(3, 1)), None),
    Case("nn.pad", lambda x, v: relay.nn.pad(x, ((1, 0), (2, 3)), v), (floats(2, 3), floats()), None),
    Case("one_hot", lambda i, a, b: relay.one_hot(i, a, b, 4, -1, "float64"), (np.array([0, 3, 5]), np.array(2, "float32"), np.array(1, "float32")), None),
    Case("vision.roi_align", lambda x: relay.vision.roi_align(x, relay.const(_REGIONS), 2, 0.5, 2, aligned=True), (floats(2, 3, 5, 6),), None),
    Case("nn.matmul", lambda a, b: relay.nn.matmul(a, b, transpose_a=True), (floats(4, 2), floats(4, 3)), None),
    Case("nn.batch_matmul", lambda a, b: relay.nn.batch_matmul(a, b, transpose_a=True), (floats(2, 4, 3), floats(1, 5, 4)), None),
    Case("full_like", relay.full_like, (floats(2, 3), floats()), None),
    Case("trilu", lambda x, k: relay.trilu(x, k, False), (floats(4, 3), np.array(-1, "int32")), None),
    *[Case(name, build, (floats(2, 3),), None) for name, build in marks()],
]  # fmt: skip
# the value does not depend on its arguments continuously
FLAT = {
    "floor", "ceil", "trunc", "round", "sign", "zeros_like", "ones_like", "shape_of",
    "floor_divide", "left_shift", "right_shift", "logical_and", "logical_or", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal", "trunc_divide", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "all", "any", "argmax", "argmin", "argsort", "bitwise_not",
    "invert_permutation", "isfinite", "isinf", "isnan", "logical_not", "ndarray_size",
    "searchsorted", "unravel_index",
}  # fmt: skip
DIFFERENTIABLE = [op.name for op in all_ops() if op.gradient or op.composition]
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
        _gradients(made[1], _zeros(made[1]))
    except tvm.error.OpNotImplemented:
        return False
    return True


def _zeros(call: relay.Call) -> relay.Expr:
    ty = call.checked_type
    if not isinstance(ty, relay.TupleType):
        return relay.zeros_like(call)
    return relay.Tuple(
        [relay.zeros_like(relay.TupleGetItem(call, i)) for i in range(len(ty.fields))]
    )


def _gradients(call: relay.Call, grad: relay.Expr) -> relay.Tuple:
    """Of the arguments that are no constants."""
    pairs = zip(call.args, operator_gradients(call, grad), strict=True)
    return relay.Tuple([g for arg, g in pairs if not isinstance(arg, relay.Constant)])


def _evaluate(params: list[relay.Var], body: relay.Expr, inputs: list[Array]) -> list[Array]:
    found = relay.create_executor("debug").evaluate(relay.Function(params, body))(*inputs)
    return flat_arrays(found)


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
    gradients = _gradients(call, _as_expression(grads, call))
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
    slopes = _gradients(call, _zeros(call))
    arrays = [a.astype(p.type_annotation.dtype) for a, p in zip(case.inputs, params, strict=True)]
    for slope, array in zip(_evaluate(params, slopes, arrays), arrays, strict=True):
        assert slope.shape == array.shape
        assert not slope.any()


def _total(build: Any, arrays: list[Array]) -> relay.Function:
    """The sum of what a call gives, as a function."""
    params = [relay.var(f"p{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    func = relay.Function(params, relay.sum(build(*params)))
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]


def _gradient_function(func: relay.Function) -> relay.Function:
    found = relay.transform.gradient(func, mode="first_order")
    return relay.transform.InferType()(tvm.IRModule.from_expr(found))["main"]


def _values(func: relay.Function, arrays: list[Array]) -> list[Array]:
    return flat_arrays(relay.create_executor("debug").evaluate(func)(*arrays))


def _doubles(*shape: int) -> Array:
    return RNG.uniform(0.5, 1.5, shape)


# a call, its arguments: those whose second derivatives are checked are the floats
TWICE: dict[str, tuple[Any, list[Array]]] = {
    "conv2d": (lambda x, w: relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 1), groups=2), [_doubles(1, 4, 5, 4), _doubles(4, 2, 3, 3)]),
    "conv2d NHWC": (lambda x, w: relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO"), [_doubles(1, 4, 4, 2), _doubles(3, 3, 2, 3)]),
    "conv2d_transpose": (lambda x, w: relay.nn.conv2d_transpose(x, w, strides=(2, 2), output_padding=(1, 1)), [_doubles(1, 2, 3, 3), _doubles(2, 3, 3, 3)]),
    "conv1d": (lambda x, w: relay.nn.conv1d(x, w, padding=(1, 1)), [_doubles(1, 2, 5), _doubles(3, 2, 3)]),
    "softmax": (relay.nn.softmax, [_doubles(2, 4)]),
    "layer_norm": (lambda x, g, b: relay.nn.layer_norm(x, g, b, -1), [_doubles(2, 4), _doubles(4), _doubles(4)]),
    "batch_norm": (lambda *a: relay.nn.batch_norm(*a)[0], [_doubles(1, 3, 2), *[_doubles(3) for _ in range(4)]]),
    "l2_normalize": (lambda x: relay.nn.l2_normalize(x, 1e-5, [1]), [_doubles(2, 3)]),
    "avg_pool2d": (lambda x: relay.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1)), [_doubles(1, 1, 5, 5)]),
    "strided_slice": (lambda x: relay.strided_slice(x, [0, 1], [2, 5], [1, 2]), [_doubles(3, 5)]),
    "take": (lambda x, i: relay.take(x, i, axis=1), [_doubles(2, 3), np.array([0, 2, 0])]),
    "gather": (lambda x, i: relay.gather(x, 1, i), [_doubles(2, 3), np.array([[0, 2], [1, 1]])]),
    "scatter_elements": (lambda x, i, u: relay.scatter_elements(x, i, u, 1, "add"), [_doubles(2, 3), np.array([[0, -1], [1, 1]]), _doubles(2, 2)]),
    "nll_loss": (relay.nn.nll_loss, [_doubles(4, 3), np.array([0, 1, 2, 0]), _doubles(3)]),
    "depth_to_space": (lambda x: relay.nn.depth_to_space(x, 2), [_doubles(1, 4, 2, 2)]),
    "tile": (lambda x: relay.tile(x, (2, 1, 3)), [_doubles(2, 3)]),
    "cumsum": (lambda x: relay.cumsum(x, 1, exclusive=True), [_doubles(2, 3)]),
    "prelu": (lambda x, a: relay.nn.prelu(relay.negative(x), a), [_doubles(2, 3), _doubles(3)]),
    "auto_scheduler_layout_transform": (lambda x: relay.op.transform.auto_scheduler_layout_transform(x, "4k6j", "3j4k2j"), [_doubles(4, 6)]),
    "layout_transform": (lambda x: relay.layout_transform(x, "NCHW", "NCHW2c"), [_doubles(1, 4, 2, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients_agree_with_finite_differences(name: str) -> None:
    build, arrays = TWICE[name]
    # a square makes second derivatives of what is linear
    first = _gradient_function(_total(lambda *a: (value := build(*a)) * value, arrays))
    ways = [RNG.uniform(-1, 1, a.shape) if a.dtype == "float64" else None for a in arrays]
    where = [i for i, w in enumerate(ways) if w is not None]

    def slope(*params: relay.Var) -> relay.Expr:
        gradients = relay.TupleGetItem(relay.Call(first, list(params)), 1)
        parts = [relay.sum(relay.TupleGetItem(gradients, i) * relay.const(ways[i])) for i in where]
        return sum(parts[1:], parts[0])

    inlined = relay.transform.Inline()(tvm.IRModule.from_expr(_total(slope, arrays)))["main"]
    second = relay.transform.gradient(inlined, mode="higher_order")
    found = flat_arrays(relay.create_executor("debug").evaluate(second)(*arrays))
    predicted = sum(float(np.sum(found[1 + i] * ways[i])) for i in where)

    def value(sign: int) -> float:
        moved = [a if w is None else a + sign * 1e-5 * w for a, w in zip(arrays, ways, strict=True)]
        slopes = _values(first, moved)[1:]
        return sum(float(np.sum(slopes[i] * ways[i])) for i in where)

    assert predicted == pytest.approx((value(1) - value(-1)) / 2e-5, rel=1e-4, abs=1e-5)


def test_gradient_of_a_border_has_the_dtype_of_its_value() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float64")
    func = relay.Function([x], relay.nn.pad(x, ((1, 0), (0, 2)), relay.const(1.0, "float32")))
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.transform.gradient(typed)))
    assert mod["main"].ret_type.fields[1].fields[0].dtype == "float64"
    relay.testing.check_grad(typed)
