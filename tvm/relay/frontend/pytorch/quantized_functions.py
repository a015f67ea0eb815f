"""Functions of quantised PyTorch tensors: computed in real numbers, then quantised.

quantized::add(a, b, s, z)    ->    qnn.quantize(qnn.dequantize(a) + qnn.dequantize(b), s, z)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import const

from .quantized import Quantized, quantized
from .registry import CONVERTERS, Converter, as_number, torch_op, torch_ops


def _value(x: Any) -> Any:
    return x.real() if isinstance(x, Quantized) else x


def _real(x: Quantized) -> RelayExpr:
    """The real numbers as PyTorch's sums have them: the zero point is scaled by itself."""
    if isinstance(x.scale, RelayExpr):
        return x.real()
    scale = np.float32(x.scale)
    scaled = _op.cast(x.data, "float32") * const(scale)
    return scaled + const(np.float32(-x.zero_point) * scale) if x.zero_point else scaled


def _elementwise(apply: Callable[..., RelayExpr], relu: bool) -> Converter:
    def convert(a: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Any:
        if scale is None:
            return _with_number(apply, relu)(a, b)
        if isinstance(a, Quantized) and isinstance(b, Quantized):
            result = apply(_real(a), _real(b))
        else:
            result = apply(_value(a), _value(b))
        like = a if isinstance(a, Quantized) else b
        result = _op.nn.relu(result) if relu else result
        return quantized(result, scale, zero_point, like.dtype)

    return convert


def _limits(dtype: str) -> tuple[int, int]:
    return (0, 255) if dtype == "uint8" else (-128, 127)


def _added_number(x: Quantized, number: float) -> tuple[float, int]:
    """Scale and zero point of a sum with a number: the range moves, and is widened to hold zero."""
    low, high = _limits(x.dtype)
    offset = round(number / x.scale)
    start, end = low - x.zero_point + offset, high - x.zero_point + offset
    if start > 0:
        return x.scale * end / (high - low), low
    if end < 0:
        return x.scale * -start / (high - low), high
    return x.scale, x.zero_point - offset


def _multiplied_number(x: Quantized, number: float) -> tuple[float, int]:
    """Scale and zero point of a product with a number: the same integers, in the other direction below 0."""
    low, high = _limits(x.dtype)
    if number == 0:
        return 1.0, 0
    if number > 0:
        return x.scale * number, x.zero_point
    return x.scale * -number, high - (x.zero_point - low)


def _with_number(apply: Callable[..., RelayExpr], relu: bool) -> Converter:
    def convert(a: Any, b: Any) -> Quantized:
        x, number = (a, b) if isinstance(a, Quantized) else (b, a)
        number = as_number(number)
        steps = (_added_number if apply is _op.add else _multiplied_number)(x, float(number))
        result = apply(x.real(), const(float(number)))
        result = _op.nn.relu(result) if relu else result
        return quantized(result, *steps, x.dtype)

    return convert


def _product(relu: bool) -> Converter:
    """Integers are multiplied, so that ties of the result are exact."""

    def convert(a: Any, b: Any, *steps: Any) -> Any:
        if not isinstance(a, Quantized) or not isinstance(b, Quantized) or len(steps) < 2:
            return _elementwise(_op.multiply, relu)(a, b, *steps)
        scale, zero_point = [as_number(step) for step in steps]
        integers = [_op.cast(x.data, "int32") - const(x.zero_point, "int32") for x in (a, b)]
        factor = const(np.float32(a.scale * b.scale / scale))
        real = _op.cast(integers[0] * integers[1], "float32") * factor
        result = quantized(_op.nn.relu(real) if relu else real, 1.0, zero_point, a.dtype)
        return replace(result, scale=float(scale))

    return convert


def _joined(relu: bool) -> Converter:
    def convert(parts: Sequence[Quantized], dim: int, scale: Any, zero_point: Any) -> Quantized:
        like = parts[0]
        step = like.scale if scale is None else scale
        zero = like.zero_point if zero_point is None else zero_point
        joined = _op.concatenate([part.real() for part in parts], dim)
        return quantized(_op.nn.relu(joined) if relu else joined, step, zero, like.dtype)

    return convert


def _plain(name: str, arguments: Sequence[Any]) -> RelayExpr:
    result = CONVERTERS[f"aten::{name}"](*[_value(arg) for arg in arguments])
    if not isinstance(result, RelayExpr):
        raise OpAttributeUnImplemented(f"aten::{name} does not support quantised tensors")
    return result


def _finishing(name: str, steps_at: int = -2) -> Converter:
    """An operator of real numbers whose arguments have the result's scale and zero point among them."""

    def convert(*args: Any) -> Quantized:
        at = steps_at % len(args)
        result = _plain(name, [*args[:at], *args[at + 2 :]])
        return quantized(result, args[at], args[at + 1], args[0].dtype)

    return convert


@torch_op("quantized::prelu")
def _prelu(x: Quantized, weight: Any, scale: Any, zero_point: Any) -> Quantized:
    """What is positive is multiplied too: by the multiple of the weight's scale that is nearest to 1."""
    real = _plain("prelu", (x, weight))
    if isinstance(weight, Quantized) and not isinstance(weight.scale, RelayExpr):
        step = np.float32(weight.scale)
        one = const(np.rint(np.float32(1) / step) * step)
        positive = _op.greater(real, const(0.0))
        real = _op.where(positive, real * one, real)
    return quantized(real, scale, zero_point, x.dtype)


def _batch_norm(relu: bool) -> Converter:
    def convert(
        x: Quantized, weight: Any, bias: Any, mean: Any, variance: Any, eps: float, scale: Any,
        zero_point: Any,
    ) -> Quantized:  # fmt: skip
        real = _plain("batch_norm", (x, weight, bias, mean, variance, False, 0.1, eps))
        return quantized(_op.nn.relu(real) if relu else real, scale, zero_point, x.dtype)

    return convert


def _in_same_scale(name: str) -> Converter:
    def convert(x: Quantized, *args: Any) -> Quantized:
        return quantized(_plain(name, (x, *args)), x.scale, x.zero_point, x.dtype)

    return convert


def _pooled(name: str) -> Converter:
    def convert(x: Quantized, *args: Any) -> Quantized:
        integers = CONVERTERS[f"aten::{name}"](x.data, *args)
        return Quantized(integers, x.scale, x.zero_point, x.dtype)

    return convert


torch_ops(
    {
        "quantized::add": _elementwise(_op.add, relu=False),
        "quantized::add_relu": _elementwise(_op.add, relu=True),
        "quantized::add_scalar": _with_number(_op.add, relu=False),
        "quantized::add_scalar_relu": _with_number(_op.add, relu=True),
        "quantized::mul": _product(relu=False),
        "quantized::mul_relu": _product(relu=True),
        "quantized::mul_scalar": _with_number(_op.multiply, relu=False),
        "quantized::mul_scalar_relu": _with_number(_op.multiply, relu=True),
        "quantized::cat": _joined(relu=False),
        "quantized::cat_relu": _joined(relu=True),
        "quantized::layer_norm": _finishing("layer_norm"),
        "quantized::group_norm": _finishing("group_norm"),
        "quantized::hardswish": _finishing("hardswish"),
        "quantized::sigmoid": _finishing("sigmoid"),
        "quantized::softmax": _finishing("softmax"),
        "quantized::matmul": _finishing("matmul"),
        "quantized::elu": _finishing("elu", 1),
        "quantized::celu": _finishing("celu", 1),
        "quantized::dropout": _finishing("dropout", 1),
        "quantized::leaky_relu": lambda x, slope, inplace, scale, zero_point: quantized(
            _plain("leaky_relu", (x, slope)), scale, zero_point, x.dtype
        ),
        (
            "quantized::batch_norm quantized::batch_norm1d quantized::batch_norm2d "
            "quantized::batch_norm3d"
        ): _batch_norm(relu=False),
        (
            "quantized::batch_norm_relu quantized::batch_norm1d_relu quantized::batch_norm2d_relu "
            "quantized::batch_norm3d_relu"
        ): _batch_norm(relu=True),
        "quantized::threshold": _in_same_scale("threshold"),
        "quantized::clamp": _in_same_scale("clamp"),
        "quantized::relu6": lambda x, *_: _in_same_scale("relu6")(x),
        "quantized::max_pool1d": _pooled("max_pool1d"),
        "quantized::max_pool2d": _pooled("max_pool2d"),
    }
)


torch_ops({
    "quantized::instance_norm": lambda x, weight, bias, eps, scale, zero_point: quantized(
        _plain("instance_norm", (x, weight, bias, None, None, True, 0.1, eps)),
        scale,
        zero_point,
        x.dtype,
    ),
})  # fmt: skip
