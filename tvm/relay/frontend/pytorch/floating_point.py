"""PyTorch operators on the signs, exponents and bit patterns of floating-point numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, scalar_like

from .registry import (
    Converter,
    as_float,
    category,
    promoted,
    promoted_floats,
    torch_op,
    torch_ops,
)


@torch_op("signbit", "prims::signbit")
def _signbit(x: RelayExpr) -> RelayExpr:
    dtype = infer_dtype(x)
    if category(dtype) < 2:
        return _op.less(x, scalar_like(0, x)) if dtype != "bool" else _op.zeros_like(x)
    bits = {"float32": "int32", "float64": "int64", "float16": "int16", "bfloat16": "int16"}
    pattern = _op.reinterpret(x, bits[dtype])
    return _op.less(pattern, scalar_like(0, pattern))


@torch_op("copysign")
def _copysign(a: Any, b: Any) -> RelayExpr:
    size, sign = promoted_floats(a, b)
    size = _op.abs(size)
    return _op.where(_signbit(sign), _op.negative(size), size)


def _of_numbers(choose: Callable[..., RelayExpr]) -> Converter:
    """The choice among two; of NaN and a number the number."""

    def convert(a: Any, b: Any) -> RelayExpr:
        left, right = promoted(a, b)
        chosen = _op.where(_op.isnan(left), right, choose(left, right))
        return _op.where(_op.isnan(right), left, chosen)

    return convert


torch_ops({
    "fmax prims::fmax": _of_numbers(_op.maximum),
    "fmin prims::fmin": _of_numbers(_op.minimum),
})  # fmt: skip


@torch_op("atan2", "arctan2", "prims::atan2")
def _atan2(a: Any, b: Any) -> RelayExpr:
    """The angle of (b, a), by the arc tangent of the smaller over the larger."""
    y, x = promoted_floats(a, b)
    zero, pi = scalar_like(0.0, x), scalar_like(math.pi, x)
    steep = _op.greater(_op.abs(y), _op.abs(x))
    low, high = _op.where(steep, _op.abs(x), _op.abs(y)), _op.where(steep, _op.abs(y), _op.abs(x))
    endless = _op.logical_and(_op.isinf(low), _op.isinf(high))
    none = _op.equal(high, zero)
    ratio = low / _op.where(none, scalar_like(1.0, x), high)
    ratio = _op.where(endless, scalar_like(1.0, x), ratio)
    angle = _op.atan(ratio)
    angle = _op.where(steep, scalar_like(math.pi / 2, x) - angle, angle)
    angle = _op.where(_signbit(x), pi - angle, angle)
    angle = _op.where(_signbit(y), _op.negative(angle), angle)
    return _op.where(_op.logical_or(_op.isnan(x), _op.isnan(y)), x + y, angle)


@torch_op("angle")
def _angle(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    turned = _op.where(_op.less(value, scalar_like(0.0, value)), scalar_like(math.pi, value),
                       scalar_like(0.0, value))  # fmt: skip
    return _op.where(_op.isnan(value), value, turned)


@torch_op("frexp", "prims::frexp")
def _frexp(x: RelayExpr) -> list[RelayExpr]:
    """The fraction in [1/2, 1) and the power of two of float32, from the bits."""
    if infer_dtype(x) != "float32":
        raise OpAttributeUnImplemented(f"frexp requires float32, got {infer_dtype(x)}")
    tiny = _op.less(_op.abs(x), scalar_like(2.0**-126, x))
    value = _op.where(tiny, x * scalar_like(2.0**32, x), x)
    bits = _op.reinterpret(value, "int32")
    raw = _op.bitwise_and(_op.right_shift(bits, constant(23, "int32")), constant(255, "int32"))
    exponent = raw - constant(126, "int32")
    kept = _op.bitwise_and(bits, constant(-2139095041, "int64").astype("int32"))
    mantissa = _op.reinterpret(_op.bitwise_or(kept, constant(126 << 23, "int32")), "float32")
    exponent = _op.where(tiny, exponent - constant(32, "int32"), exponent)
    plain = _op.logical_and(_op.isfinite(x), _op.not_equal(x, scalar_like(0.0, x)))
    return [_op.where(plain, mantissa, x), _op.where(plain, exponent, constant(0, "int32"))]


@torch_op("nextafter", "prims::nextafter")
def _nextafter(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """One step of the bit pattern towards the other number."""
    x, target = promoted(a, b)
    if infer_dtype(x) != "float32":
        raise OpAttributeUnImplemented(f"nextafter requires float32, got {infer_dtype(x)}")
    zero, one = scalar_like(0.0, x), constant(1, "int32")
    bits = _op.reinterpret(x, "int32")
    away = _op.equal(_op.greater(target, x), _op.greater(x, zero))
    moved = _op.reinterpret(_op.where(away, bits + one, bits - one), "float32")
    smallest = scalar_like(float(np.float32(1e-45)), x)
    from_zero = _op.where(_op.greater(target, zero), smallest, _op.negative(smallest))
    result = _op.where(_op.equal(x, zero), from_zero, moved)
    result = _op.where(_op.equal(x, target), target, result)
    return _op.where(_op.logical_or(_op.isnan(x), _op.isnan(target)), x + target, result)
