"""Element-wise PyTorch operators, comparisons, logic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.formulas import expm1, log1p, log1p_of_small
from tvm.relay.frontend.onnx.math import elu, gelu, softplus

from .registry import (
    CONVERTERS,
    as_dtype,
    as_float,
    as_number,
    category,
    is_tensor,
    promoted,
    promoted_floats,
    result_dtype,
    torch_op,
)

# operators whose results are floats whatever the input
_FLOAT_UNARY = {
    "exp": _op.exp, "log": _op.log, "log2": _op.log2, "log10": _op.log10, "sqrt": _op.sqrt,
    "rsqrt": _op.rsqrt, "sin": _op.sin, "cos": _op.cos, "tan": _op.tan, "sinh": _op.sinh,
    "cosh": _op.cosh, "tanh": _op.tanh, "asin": _op.asin, "acos": _op.acos, "atan": _op.atan,
    "asinh": _op.asinh, "acosh": _op.acosh, "atanh": _op.atanh, "erf": _op.erf,
    "sigmoid": _op.sigmoid,
}  # fmt: skip
_UNARY = {
    "abs": _op.abs, "neg": _op.negative, "floor": _op.floor, "ceil": _op.ceil,
    "trunc": _op.trunc, "relu": _op.nn.relu,
    "isnan": _op.isnan, "isinf": _op.isinf, "isfinite": _op.isfinite,
}  # fmt: skip
_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "abs": abs, "neg": operator.neg,
    "floor": math.floor, "ceil": math.ceil, "round": round,
}  # fmt: skip


def _unary(name: str, apply: Callable[..., RelayExpr], floats: bool) -> Callable[..., Any]:
    def convert(x: Any, *_: Any) -> Any:
        if not is_tensor(x):
            return _ON_NUMBERS[name](x)
        return apply(as_float(x) if floats else x)

    return convert


for _name, _function in _FLOAT_UNARY.items():
    CONVERTERS[f"aten::{_name}"] = _unary(_name, _function, floats=True)
for _name, _function in _UNARY.items():
    CONVERTERS[f"aten::{_name}"] = _unary(_name, _function, floats=False)


def _binary(
    apply: Callable[..., RelayExpr], on_numbers: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    def convert(a: Any, b: Any, *_: Any) -> Any:
        if not is_tensor(a) and not is_tensor(b):
            return on_numbers(a, b)
        return apply(*promoted(a, b))

    return convert


for _names, _function, _python in (
    ("eq", _op.equal, operator.eq), ("ne", _op.not_equal, operator.ne),
    ("lt", _op.less, operator.lt), ("le", _op.less_equal, operator.le),
    ("gt", _op.greater, operator.gt), ("ge", _op.greater_equal, operator.ge),
    ("mul multiply", _op.multiply, operator.mul),
    ("maximum max.other", _op.maximum, max), ("minimum min.other", _op.minimum, min),
    ("remainder", _op.floor_mod, operator.mod), ("fmod", _op.mod, math.fmod),
    ("__xor__ bitwise_xor", _op.bitwise_xor, operator.xor),
    ("__lshift__ bitwise_left_shift", _op.left_shift, operator.lshift),
    ("__rshift__ bitwise_right_shift", _op.right_shift, operator.rshift),
):  # fmt: skip
    for _name in _names.split():
        CONVERTERS[f"aten::{_name}"] = _binary(_function, _python)


@torch_op("round")
def _round(x: Any, decimals: Any = 0) -> Any:
    if not is_tensor(x):
        return round(x)
    places = as_number(decimals)
    if not places:
        return _op.round(x)
    factor = scalar_like(10.0 ** abs(places), x)
    if places > 0:
        return _op.round(x * factor) / factor
    return _op.round(x / factor) * factor


def _scaled(x: Any, alpha: Any) -> Any:
    alpha = as_number(alpha)
    if alpha in (None, 1):
        return x
    return x * alpha if not is_tensor(x) else _op.multiply(*promoted(x, alpha))


@torch_op("add")
def _add(a: Any, b: Any, alpha: Any = 1) -> Any:
    if isinstance(a, list):
        return a + b
    if not is_tensor(a) and not is_tensor(b):
        return a + _scaled(b, alpha)
    return _op.add(*promoted(a, _scaled(b, alpha)))


@torch_op("sub", "subtract")
def _sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    if not is_tensor(a) and not is_tensor(b):
        return a - _scaled(b, alpha)
    return _op.subtract(*promoted(a, _scaled(b, alpha)))


@torch_op("rsub")
def _rsub(a: Any, b: Any, alpha: Any = 1) -> Any:
    return _sub(b, a, alpha)


@torch_op("div", "divide", "true_divide")
def _div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if not is_tensor(a) and not is_tensor(b):
        return {None: operator.truediv, "floor": operator.floordiv}.get(
            rounding_mode, lambda p, q: math.trunc(p / q)
        )(a, b)
    if rounding_mode == "floor":
        return _op.floor_divide(*promoted(a, b))
    left, right = promoted(a, b)
    if rounding_mode == "trunc" and category(infer_dtype(left)) < 2:
        return _op.divide(left, right)
    quotient = _op.divide(*promoted_floats(a, b))
    return _op.trunc(quotient) if rounding_mode == "trunc" else quotient


@torch_op("floor_divide", "floordiv", "__floordiv__")
def _floor_divide(a: Any, b: Any) -> Any:
    return _div(a, b, "floor")


@torch_op("pow")
def _pow(base: Any, exponent: Any) -> Any:
    exponent = as_number(exponent)
    if not is_tensor(base) and not is_tensor(exponent):
        return base**exponent
    if exponent == 2 and is_tensor(base):
        return base * base
    dtype = result_dtype(base, exponent)
    if category(dtype) < 2:
        wide = [as_dtype(x, "float64") for x in (base, exponent)]
        return _op.power(*wide).astype(dtype)
    return _op.power(as_dtype(base, dtype), as_dtype(exponent, dtype))


@torch_op("sign", "sgn")
def _sign(x: RelayExpr) -> RelayExpr:
    return x if infer_dtype(x) == "bool" else _op.sign(x)


@torch_op("square")
def _square(x: RelayExpr) -> RelayExpr:
    whole = _op.cast(x, "int64") if infer_dtype(x) == "bool" else x
    return whole * whole


@torch_op("reciprocal")
def _reciprocal(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    return scalar_like(1.0, value) / value


@torch_op("expm1")
def _expm1(x: RelayExpr) -> RelayExpr:
    return expm1(as_float(x))


@torch_op("log1p")
def _log1p(x: RelayExpr) -> RelayExpr:
    return log1p(as_float(x))


@torch_op("exp2")
def _exp2(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    return _op.power(scalar_like(2.0, value), value)


@torch_op("erfc")
def _erfc(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    return scalar_like(1.0, value) - _op.erf(value)


@torch_op("logaddexp")
def _logaddexp(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = promoted(a, b)
    same = _op.equal(left, right)  # also two infinities, whose difference is no number
    gap = _op.where(same, _op.zeros_like(left - right), left - right)
    spread = _op.exp(_op.negative(_op.abs(gap)))
    return _op.maximum(left, right) + log1p_of_small(spread)


@torch_op("frac")
def _frac(x: RelayExpr) -> RelayExpr:
    return x - _op.trunc(x)


@torch_op("logit")
def _logit(x: RelayExpr, eps: Any = None) -> RelayExpr:
    value = as_float(x)
    if eps is not None:
        value = _op.clip(value, float(eps), 1 - float(eps))
    return _op.log(value / (scalar_like(1.0, value) - value))


@torch_op("deg2rad")
def _deg2rad(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    return value * scalar_like(math.pi / 180, value)


@torch_op("rad2deg")
def _rad2deg(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    return value * scalar_like(180 / math.pi, value)


@torch_op("hypot")
def _hypot(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = promoted(a, b)
    return _op.sqrt(left * left + right * right)


@torch_op("nan_to_num")
def _nan_to_num(x: RelayExpr, nan: Any = None, high: Any = None, low: Any = None) -> RelayExpr:
    if category(infer_dtype(x)) < 2:
        return x
    limits = np.finfo(infer_dtype(x))
    result = _op.where(_op.isnan(x), scalar_like(nan or 0.0, x), x)
    top = float(limits.max) if high is None else high
    result = _op.where(_op.equal(x, scalar_like(math.inf, x)), scalar_like(top, x), result)
    bottom = float(limits.min) if low is None else low
    return _op.where(_op.equal(x, scalar_like(-math.inf, x)), scalar_like(bottom, x), result)


@torch_op("isclose")
def _isclose(
    a: RelayExpr, b: RelayExpr, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> RelayExpr:
    left, right = promoted_floats(a, b)
    bound = scalar_like(atol, right) + scalar_like(rtol, right) * _op.abs(right)
    close = _op.logical_or(_op.equal(left, right), _op.less_equal(_op.abs(left - right), bound))
    if not equal_nan:
        return close
    return _op.logical_or(close, _op.logical_and(_op.isnan(left), _op.isnan(right)))


@torch_op("allclose")
def _allclose(*args: Any) -> RelayExpr:
    return _op.all(_isclose(*args))


@torch_op("addcmul")
def _addcmul(x: RelayExpr, a: RelayExpr, b: RelayExpr, value: Any = 1) -> RelayExpr:
    return _add(x, a * b, value)


@torch_op("addcdiv")
def _addcdiv(x: RelayExpr, a: RelayExpr, b: RelayExpr, value: Any = 1) -> RelayExpr:
    return _add(x, a / b, value)


@torch_op("lerp")
def _lerp(a: RelayExpr, b: RelayExpr, weight: Any) -> RelayExpr:
    return _add(a, _op.multiply(*promoted(b - a, weight)))


# ---- logic


def _as_bool(x: Any) -> RelayExpr:
    return as_dtype(x, "bool")


@torch_op("logical_and")
def _logical_and(a: Any, b: Any) -> RelayExpr:
    return _op.logical_and(_truth(a), _truth(b))


@torch_op("logical_or")
def _logical_or(a: Any, b: Any) -> RelayExpr:
    return _op.logical_or(_truth(a), _truth(b))


@torch_op("logical_xor")
def _logical_xor(a: Any, b: Any) -> RelayExpr:
    return _op.not_equal(_truth(a), _truth(b))


@torch_op("logical_not")
def _logical_not(x: Any) -> RelayExpr:
    return _op.logical_not(_truth(x))


def _truth(x: Any) -> RelayExpr:
    """Whether elements are not zero; NaN is true."""
    if not is_tensor(x):
        return as_dtype(bool(x), "bool")
    return x if infer_dtype(x) == "bool" else _op.not_equal(x, scalar_like(0, x))


@torch_op("__and__", "bitwise_and")
def _and(a: Any, b: Any) -> Any:
    if not is_tensor(a) and not is_tensor(b):
        return a and b if isinstance(a, bool) else a & b
    left, right = promoted(a, b)
    both = _op.logical_and if infer_dtype(left) == "bool" else _op.bitwise_and
    return both(left, right)


@torch_op("__or__", "bitwise_or")
def _or(a: Any, b: Any) -> Any:
    if not is_tensor(a) and not is_tensor(b):
        return a or b if isinstance(a, bool) else a | b
    left, right = promoted(a, b)
    either = _op.logical_or if infer_dtype(left) == "bool" else _op.bitwise_or
    return either(left, right)


@torch_op("bitwise_not", "__not__")
def _not(x: Any) -> Any:
    if not is_tensor(x):
        return not x
    return _op.logical_not(x) if infer_dtype(x) == "bool" else _op.bitwise_not(x)


@torch_op("__is__")
def _is(a: Any, b: Any) -> bool:
    return a is b


@torch_op("__isnot__")
def _is_not(a: Any, b: Any) -> bool:
    return a is not b


@torch_op("where")
def _where(condition: RelayExpr, a: Any = None, b: Any = None) -> Any:
    """A choice of each element; of a condition alone, the places where it holds."""
    if a is None and b is None:
        return CONVERTERS["aten::nonzero_numpy"](condition)
    return _op.where(_as_bool(condition), *promoted(a, b))


@torch_op("masked_fill")
def _masked_fill(x: RelayExpr, mask: RelayExpr, value: Any) -> RelayExpr:
    return _op.where(_as_bool(mask), as_dtype(as_number(value), infer_dtype(x)), x)


# ---- activations


@torch_op("clamp", "clip")
def _clamp(x: RelayExpr, low: Any = None, high: Any = None) -> RelayExpr:
    low, high = as_number(low), as_number(high)
    if is_tensor(low) or is_tensor(high):
        result = x if low is None else _op.maximum(*promoted(x, low))
        return result if high is None else _op.minimum(*promoted(result, high))
    dtype = result_dtype(x, *[bound for bound in (low, high) if bound is not None])
    limits: Any = np.finfo(dtype) if category(dtype) == 2 else np.iinfo(dtype)
    first = float(limits.min) if low is None else float(low)
    return _op.clip(as_dtype(x, dtype), first, float(limits.max) if high is None else float(high))


@torch_op("clamp_min")
def _clamp_min(x: RelayExpr, low: Any) -> RelayExpr:
    return _clamp(x, low)


@torch_op("clamp_max")
def _clamp_max(x: RelayExpr, high: Any) -> RelayExpr:
    return _clamp(x, None, high)


@torch_op("hardtanh")
def _hardtanh(x: RelayExpr, low: Any = -1.0, high: Any = 1.0) -> RelayExpr:
    return _op.clip(x, float(low), float(high))


@torch_op("relu6")
def _relu6(x: RelayExpr) -> RelayExpr:
    return _op.clip(x, 0.0, 6.0)


@torch_op("leaky_relu")
def _leaky_relu(x: RelayExpr, slope: float = 0.01) -> RelayExpr:
    return _op.nn.leaky_relu(x, float(slope))


@torch_op("prelu")
def _prelu(x: RelayExpr, weight: RelayExpr) -> RelayExpr:
    rank, count = len(infer_shape(x)), int(np.prod(infer_shape(weight)))
    if count > 1 and rank > 2:
        weight = _op.reshape(weight, (count, *[1] * (rank - 2)))
    elif not rank:
        weight = _op.reshape(weight, ())
    return _op.where(_op.less(x, scalar_like(0.0, x)), x * weight, x)


@torch_op("elu")
def _elu(
    x: RelayExpr, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> RelayExpr:
    value = x if input_scale == 1 else x * scalar_like(input_scale, x)
    result = elu(value, float(alpha))
    return result if scale == 1 else result * scalar_like(scale, x)


@torch_op("selu")
def _selu(x: RelayExpr) -> RelayExpr:
    return _elu(x, 1.6732632423543772, 1.0507009873554805)


@torch_op("celu")
def _celu(x: RelayExpr, alpha: float = 1.0) -> RelayExpr:
    return elu(x / scalar_like(alpha, x), 1.0) * scalar_like(alpha, x) if alpha != 1 else elu(x)


@torch_op("gelu")
def _gelu(x: RelayExpr, approximate: str = "none") -> RelayExpr:
    return gelu(x, approximate)


@torch_op("silu")
def _silu(x: RelayExpr) -> RelayExpr:
    return x * _op.sigmoid(x)


@torch_op("mish")
def _mish(x: RelayExpr) -> RelayExpr:
    return x * _op.tanh(softplus(x))


@torch_op("softplus")
def _softplus(x: RelayExpr, beta: Any = 1, threshold: Any = 20) -> RelayExpr:
    scale = scalar_like(float(beta), x)
    smooth = softplus(x * scale) / scale
    return _op.where(_op.greater(x * scale, scalar_like(float(threshold), x)), x, smooth)


@torch_op("log_sigmoid")
def _log_sigmoid(x: RelayExpr) -> RelayExpr:
    return _op.negative(softplus(_op.negative(x)))


@torch_op("hardsigmoid")
def _hardsigmoid(x: RelayExpr) -> RelayExpr:
    return _op.clip(x / scalar_like(6.0, x) + scalar_like(0.5, x), 0.0, 1.0)


@torch_op("hardswish")
def _hardswish(x: RelayExpr) -> RelayExpr:
    return x * _hardsigmoid(x)


@torch_op("threshold")
def _threshold(x: RelayExpr, limit: Any, value: Any) -> RelayExpr:
    return _op.where(_op.greater(x, scalar_like(limit, x)), x, scalar_like(value, x))


@torch_op("softshrink")
def _softshrink(x: RelayExpr, limit: Any = 0.5) -> RelayExpr:
    bound = scalar_like(as_number(limit), x)
    return _op.nn.relu(x - bound) - _op.nn.relu(_op.negative(x) - bound)


@torch_op("hardshrink")
def _hardshrink(x: RelayExpr, limit: Any = 0.5) -> RelayExpr:
    inside = _op.less_equal(_op.abs(x), scalar_like(as_number(limit), x))
    return _op.where(inside, scalar_like(0.0, x), x)


@torch_op("glu")
def _glu(x: RelayExpr, dim: int = -1) -> RelayExpr:
    first, second = _op.split(x, 2, dim)
    return first * _op.sigmoid(second)
