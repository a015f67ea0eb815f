"""Element-wise PyTorch operators, comparisons, logic."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend import composites
from tvm.relay.frontend.common import infer_dtype, infer_shape, scalar_like

from .registry import (
    CONVERTERS,
    Converter,
    as_dtype,
    as_float,
    as_number,
    category,
    is_tensor,
    promoted,
    promoted_floats,
    result_dtype,
    torch_op,
    torch_ops,
)

Function = Callable[..., RelayExpr]
_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "abs": abs, "neg": operator.neg,
    "floor": math.floor, "ceil": math.ceil, "round": round,
}  # fmt: skip


def _unary(name: str, apply: Function) -> Converter:
    return lambda x, *_: apply(x) if is_tensor(x) else _ON_NUMBERS[name](x)


def _of_float(name: str, apply: Function) -> Converter:
    """Results are floats whatever the input."""
    return lambda x, *_: apply(as_float(x)) if is_tensor(x) else _ON_NUMBERS[name](x)


def _binary(apply: Function, on_numbers: Callable[[Any, Any], Any] | None = None) -> Converter:
    def convert(a: Any, b: Any, *_: Any) -> Any:
        if on_numbers is not None and not is_tensor(a) and not is_tensor(b):
            return on_numbers(a, b)
        return apply(*promoted(a, b))

    return convert


_UNARY: dict[str, Function] = {
    "abs": _op.abs, "neg": _op.negative, "floor": _op.floor, "ceil": _op.ceil,
    "trunc": _op.trunc, "relu": _op.nn.relu,
    "isnan": _op.isnan, "isinf": _op.isinf, "isfinite": _op.isfinite,
}  # fmt: skip
_OF_FLOAT: dict[str, Function] = {
    "exp": _op.exp, "log": _op.log, "log2": _op.log2, "log10": _op.log10, "sqrt": _op.sqrt,
    "rsqrt": _op.rsqrt, "sin": _op.sin, "cos": _op.cos, "tan": _op.tan, "sinh": _op.sinh,
    "cosh": _op.cosh, "tanh": _op.tanh, "asin": _op.asin, "acos": _op.acos, "atan": _op.atan,
    "asinh": _op.asinh, "acosh": _op.acosh, "atanh": _op.atanh, "erf": _op.erf,
    "sigmoid": _op.sigmoid, "expm1": composites.expm1, "log1p": composites.log1p,
    "reciprocal": lambda x: scalar_like(1.0, x) / x,
    "exp2": lambda x: _op.power(scalar_like(2.0, x), x),
    "erfc": lambda x: scalar_like(1.0, x) - _op.erf(x),
    "deg2rad": lambda x: x * scalar_like(math.pi / 180, x),
    "rad2deg": lambda x: x * scalar_like(180 / math.pi, x),
}  # fmt: skip
torch_ops({name: _unary(name, function) for name, function in _UNARY.items()})
torch_ops({name: _of_float(name, function) for name, function in _OF_FLOAT.items()})
torch_ops({
    "eq": _binary(_op.equal, operator.eq), "ne": _binary(_op.not_equal, operator.ne),
    "lt": _binary(_op.less, operator.lt), "le": _binary(_op.less_equal, operator.le),
    "gt": _binary(_op.greater, operator.gt), "ge": _binary(_op.greater_equal, operator.ge),
    "mul multiply": _binary(_op.multiply, operator.mul),
    "maximum max.other": _binary(_op.maximum, max), "minimum min.other": _binary(_op.minimum, min),
    "remainder": _binary(_op.floor_mod, operator.mod), "fmod": _binary(_op.mod, math.fmod),
    "__xor__ bitwise_xor": _binary(_op.bitwise_xor, operator.xor),
    "__lshift__ bitwise_left_shift": _binary(_op.left_shift, operator.lshift),
    "__rshift__ bitwise_right_shift": _binary(_op.right_shift, operator.rshift),
    "hypot": _binary(lambda a, b: _op.sqrt(a * a + b * b)),
})  # fmt: skip


@torch_op("round")
def _round(x: Any, decimals: Any = 0) -> Any:
    if not is_tensor(x):
        return round(x)
    digits = as_number(decimals)
    if not digits:
        return _op.round(x)
    factor = scalar_like(10.0 ** abs(digits), x)
    if digits > 0:
        return _op.round(x * factor) / factor
    return _op.round(x / factor) * factor


def _scaled(x: Any, alpha: Any) -> Any:
    alpha = as_number(alpha)
    if alpha in (None, 1):
        return x
    return x * alpha if not is_tensor(x) else _op.multiply(*promoted(x, alpha))


@torch_op("add")
def add(a: Any, b: Any, alpha: Any = 1) -> Any:
    """``a + alpha * b`` of tensors, numbers or lists."""
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


@torch_op("pow")
def _pow(base: Any, exponent: Any) -> Any:
    exponent = as_number(exponent)
    if not is_tensor(base) and not is_tensor(exponent):
        return base**exponent
    if exponent == 2 and is_tensor(base):
        return base * base
    dtype = result_dtype(base, exponent)
    if category(dtype) < 2:
        if isinstance(exponent, int) and exponent > 0:
            return composites.whole_power(as_dtype(base, dtype), exponent, operator.mul)
        wide = [as_dtype(x, "float64") for x in (base, exponent)]
        return _op.power(*wide).astype(dtype)
    return _op.power(as_dtype(base, dtype), as_dtype(exponent, dtype))


# ---- logic


def _bitwise(
    of_bools: Function, of_integers: Function, on_numbers: Callable[..., Any]
) -> Converter:
    return _binary(
        lambda a, b: (of_bools if infer_dtype(a) == "bool" else of_integers)(a, b), on_numbers
    )


torch_ops({
    "logical_and": lambda a, b: _op.logical_and(_truth(a), _truth(b)),
    "logical_or": lambda a, b: _op.logical_or(_truth(a), _truth(b)),
    "logical_xor": lambda a, b: _op.not_equal(_truth(a), _truth(b)),
    "logical_not": lambda x: _op.logical_not(_truth(x)),
    "__and__ bitwise_and": _bitwise(_op.logical_and, _op.bitwise_and, operator.and_),
    "__or__ bitwise_or": _bitwise(_op.logical_or, _op.bitwise_or, operator.or_),
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
    "masked_fill": lambda x, mask, value: _op.where(
        as_dtype(mask, "bool"), as_dtype(as_number(value), infer_dtype(x)), x
    ),
})  # fmt: skip


def _truth(x: Any) -> RelayExpr:
    """Whether elements are not zero; NaN is true."""
    if not is_tensor(x):
        return as_dtype(bool(x), "bool")
    return x if infer_dtype(x) == "bool" else _op.not_equal(x, scalar_like(0, x))


@torch_op("bitwise_not", "__not__")
def _not(x: Any) -> Any:
    if not is_tensor(x):
        return not x
    return _op.logical_not(x) if infer_dtype(x) == "bool" else _op.bitwise_not(x)


@torch_op("where")
def _where(condition: RelayExpr, a: Any = None, b: Any = None) -> Any:
    """A choice of each element; of a condition alone, the indices where it is true."""
    if a is None and b is None:
        return CONVERTERS["aten::nonzero_numpy"](condition)
    return _op.where(as_dtype(condition, "bool"), *promoted(a, b))


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


@torch_op("prelu")
def _prelu(x: RelayExpr, weight: RelayExpr) -> RelayExpr:
    rank, count = len(infer_shape(x)), int(np.prod(infer_shape(weight)))
    if count > 1 and rank > 2:
        weight = _op.reshape(weight, (count, *[1] * (rank - 2)))
    elif not rank:
        weight = _op.reshape(weight, ())
    return composites.prelu(x, weight)


@torch_op("softplus")
def _softplus(x: RelayExpr, beta: Any = 1, threshold: Any = 20) -> RelayExpr:
    scale = scalar_like(float(beta), x)
    smooth = composites.softplus(x * scale) / scale
    return _op.where(_op.greater(x * scale, scalar_like(float(threshold), x)), x, smooth)


@torch_op("glu")
def _glu(x: RelayExpr, dim: int = -1) -> RelayExpr:
    first, second = _op.split(x, 2, dim)
    return first * _op.sigmoid(second)


torch_ops({
    "clamp_min": lambda x, low: _clamp(x, low),
    "clamp_max": lambda x, high: _clamp(x, None, high),
    "hardtanh": lambda x, low=-1.0, high=1.0: _op.clip(x, float(low), float(high)),
    "relu6": lambda x: _op.clip(x, 0.0, 6.0),
    "leaky_relu": lambda x, slope=0.01: _op.nn.leaky_relu(x, float(slope)),
    "elu": lambda x, alpha=1.0, scale=1.0, input_scale=1.0: composites.scaled(
        composites.elu(composites.scaled(x, input_scale), float(alpha)), scale
    ),
    "selu": lambda x: composites.selu(x, 1.6732632423543772, 1.0507009873554805),
    "celu": composites.celu,
    "gelu": composites.gelu,
    "silu": composites.swish,
    "mish": composites.mish,
    "log_sigmoid": lambda x: _op.negative(composites.softplus(_op.negative(x))),
    "hardsigmoid": composites.hard_sigmoid_of_sixths,
    "hardswish": composites.hard_swish,
    "threshold": composites.threshold,
})  # fmt: skip


@torch_op("gcd", "prims::gcd")
def _gcd(a: Any, b: Any) -> RelayExpr:
    """Euclid's algorithm, in the most steps that numbers of the type take: one a bit and a half."""
    left, right = [_op.abs(x) for x in promoted(a, b)]
    zero = scalar_like(0, left)
    bits = np.dtype(infer_dtype(left)).itemsize * 8
    # Fibonacci's numbers take the most: about 1.44 steps for each bit
    for _ in range(bits * 36 // 25 + 1):
        is_done = _op.equal(right, zero)
        rest = _op.mod(left, _op.where(is_done, scalar_like(1, left), right))
        left, right = _op.where(is_done, left, right), _op.where(is_done, zero, rest)
    return left


@torch_op("lcm")
def _lcm(a: Any, b: Any) -> RelayExpr:
    left, right = promoted(a, b)
    divisor = _gcd(left, right)
    is_zero = _op.equal(divisor, scalar_like(0, divisor))
    safe = _op.where(is_zero, scalar_like(1, divisor), divisor)
    return _op.abs(_op.divide(left, safe) * right)


torch_ops({
    "_add_relu": lambda a, b, alpha=1: _op.nn.relu(add(a, b, alpha)),
    "rsub": lambda a, b, alpha=1: _sub(b, a, alpha),
    "floor_divide floordiv __floordiv__": lambda a, b: _div(a, b, "floor"),
    "sign sgn": lambda x: x if infer_dtype(x) == "bool" else _op.sign(x),
    "square": lambda x: x * x if infer_dtype(x) != "bool" else _op.cast(x, "int64"),
    "frac": lambda x: x - _op.trunc(x),
    "addcmul": lambda x, a, b, value=1: add(x, a * b, value),
    "addcdiv": lambda x, a, b, value=1: add(x, a / b, value),
    "lerp": lambda a, b, weight: add(a, _op.multiply(*promoted(b - a, weight))),
})  # fmt: skip
