"""Functions of quantised numbers: tables of 256 entries for 8 bits, real arithmetic otherwise.

qnn.tanh(%x, ...)    ->    take(table, reinterpret(%x, dtype="uint8"))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType
from tvm.relay.expr import const
from tvm.relay.op.layout_axes import layout_along_axis
from tvm.relay.op.nn.activation import leaky_relu as real_leaky_relu
from tvm.relay.op.nn.activation import softmax as real_softmax
from tvm.relay.op.operator import Expr, OperatorFunction, operator
from tvm.relay.op.registry import ops

from .affine import dequantized, quantized
from .common import cast, constant_array, like_data, saturate, subtract_zero_point
from .requantize import multiplier_and_shift, requantized

_DTYPES = ("int8", "uint8", "int16", "int32")


def integer_lookup_table(
    function: Callable[[np.ndarray], np.ndarray],
    parameters: Sequence[np.ndarray],
    in_dtype: str,
    out_dtype: str,
) -> np.ndarray:
    """The results for all 256 inputs, in the order of their bits read as uint8.

    `parameters` are the scale and zero point of the input, then those of the output.
    """
    in_scale, in_zero, out_scale, out_zero = [p.reshape(-1)[0] for p in parameters]
    codes = np.arange(256, dtype="uint8").view(in_dtype).astype("int32")
    with np.errstate(all="ignore"):
        result = function((codes - in_zero).astype("float32") * np.float32(in_scale))
        ratio = np.rint(result.astype("float32") / np.float32(out_scale)) + np.float32(out_zero)
    limits = np.iinfo(out_dtype)
    # what is no number has no code of its own: the zero point stands for it
    ratio = np.where(np.isnan(ratio), np.float32(out_zero), ratio)
    found: np.ndarray = np.clip(ratio, limits.min, limits.max).astype(out_dtype)
    return found


def legalize_with(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., RelayExpr | None]:
    def legalize(
        attrs: object, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
    ) -> RelayExpr | None:
        parameters = [constant_array(value) for value in inputs[1:]]
        dtype = types[0].dtype
        known = [p for p in parameters if p is not None and p.size == 1]
        if dtype not in ("int8", "uint8") or len(known) != 4:
            return None
        table = const(integer_lookup_table(function, known, dtype, dtype))
        index = inputs[0] if dtype == "uint8" else ops.reinterpret(inputs[0], dtype="uint8")
        return ops.take(table, index, axis=0, mode="fast")

    return legalize


def _canonicalize_with(function: Callable[[RelayExpr], RelayExpr]) -> Callable[..., RelayExpr]:
    def canonicalize(
        attrs: object, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
    ) -> RelayExpr:
        x, scale, zero, out_scale, out_zero = inputs
        real = function(dequantized(x, scale, zero))
        return quantized(real, out_scale, out_zero, types[0].dtype)

    return canonicalize


def _unary(
    name: str,
    summary: str,
    on_arrays: Callable[[np.ndarray], np.ndarray],
    on_expressions: Callable[[RelayExpr], RelayExpr],
) -> OperatorFunction[..., RelayExpr]:
    """One row: the function of arrays fills tables, the other one serves wider integers."""

    def row(
        x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr
    ) -> RelayExpr: ...

    row.__name__ = row.__qualname__ = name.removeprefix("qnn.")
    row.__doc__ = (
        f"{summary} of a quantised tensor.\n\nParameters\n----------\nx : relay.Expr\n"
        "    Integers, of the result's dtype.\n"
        "scale, zero_point, output_scale, output_zero_point : relay.Expr\n    Scalars."
    )
    return operator(
        name,
        infer_type=like_data(name, _DTYPES),
        qnn_legalize=legalize_with(on_arrays),
        qnn_canonicalize=_canonicalize_with(on_expressions),
    )(row)


def hardswish_of_arrays(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x * np.clip(x + 3, 0, 6) / 6
    return found


def _hardswish_of(x: RelayExpr) -> RelayExpr:
    gate = ops.clip(ops.add(x, const(3.0)), a_min=0.0, a_max=6.0)
    return ops.divide(ops.multiply(x, gate), const(6.0))


_erf = np.vectorize(math.erf, otypes=["float32"])

tanh = _unary("qnn.tanh", "Hyperbolic tangent", np.tanh, ops.tanh)
exp = _unary("qnn.exp", "Exponential", np.exp, ops.exp)
sqrt = _unary("qnn.sqrt", "Square root", np.sqrt, ops.sqrt)
rsqrt = _unary("qnn.rsqrt", "One over the square root", lambda x: 1 / np.sqrt(x), ops.rsqrt)
erf = _unary("qnn.erf", "Gauss error function", _erf, ops.erf)
sigmoid = _unary("qnn.sigmoid", "Logistic function", lambda x: 1 / (1 + np.exp(-x)), ops.sigmoid)
hardswish = _unary("qnn.hardswish", "x * clip(x + 3, 0, 6) / 6", hardswish_of_arrays, _hardswish_of)
log = _unary("qnn.log", "Natural logarithm", np.log, ops.log)
abs = _unary("qnn.abs", "Absolute value", np.abs, ops.abs)


def _canonicalize_leaky_relu(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    """q below the zero point z becomes alpha * q + (1 - alpha) * z, after requantisation."""
    data, in_scale, in_zero, out_scale, zero = inputs
    out_zero = cast(zero, "int32")
    q = requantized(data, in_scale, in_zero, out_scale, zero, "int32")
    slope, rest = [multiplier_and_shift(a) for a in (attrs.alpha, 1 - attrs.alpha)]
    below = ops.add(
        ops.fixed_point_multiply(q, multiplier=slope[0], shift=slope[1]),
        ops.fixed_point_multiply(out_zero, multiplier=rest[0], shift=rest[1]),
    )
    chosen = ops.where(ops.less(q, out_zero), below, q)
    return saturate(chosen, types[0].dtype)


_QUOTIENT_BITS = 30
_RESULT_BITS = 8
_EXPONENT_BITS = 8


def _canonicalize_softmax(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr:
    """Exponentials by shifts: exp(x) = 2**(x + x/2 - x/16), the fraction linear in between."""
    x, scale, zero, out_scale, out_zero = inputs
    dtype = types[0].dtype
    value = constant_array(scale)
    one = 0 if value is None else round(1 / float(value.reshape(-1)[0]))
    if not 1 <= one < 1 << (31 - _EXPONENT_BITS - 2):
        # a step of the input is too coarse, too fine or unknown for shifts
        real = dequantized(x, scale, zero)
        return quantized(Op.get("nn.softmax")(real, axis=attrs.axis), out_scale, out_zero, dtype)
    wide = subtract_zero_point(cast(x, "int32"), zero)
    low = ops.subtract(wide, ops.max(wide, axis=(attrs.axis,), keepdims=True))
    # 2**-n is the least exponential that n bits can tell from zero
    low = ops.maximum(low, const(-one * _EXPONENT_BITS * 16 // 23, "int32"))
    power = ops.subtract(
        ops.add(low, ops.right_shift(low, const(1))), ops.right_shift(low, const(4))
    )
    whole = ops.divide(power, const(-one))
    part = ops.add(power, ops.multiply(whole, const(one)))
    mantissa = ops.add(ops.right_shift(part, const(1)), const(one))
    exps = ops.left_shift(mantissa, ops.subtract(const(_EXPONENT_BITS), whole))
    total = ops.sum(exps, axis=(attrs.axis,), keepdims=True)
    share = ops.multiply(ops.divide(const(1 << _QUOTIENT_BITS), total), exps)
    result = ops.right_shift(share, const(_QUOTIENT_BITS - (_RESULT_BITS - 1)))
    step = const(1.0 / (1 << (_RESULT_BITS - 1)), "float32")
    return requantized(result, step, const(0), out_scale, out_zero, dtype)


@operator(
    "qnn.leaky_relu",
    real_leaky_relu.op.attrs_type,
    infer_type=like_data("qnn.leaky_relu", _DTYPES),
    qnn_canonicalize=_canonicalize_leaky_relu,
)
def leaky_relu(
    x: Expr,
    alpha: float,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
) -> RelayExpr:
    """Leaky rectifier of a quantised tensor.

    Parameters
    ----------
    x : relay.Expr
        Integers, of the result's dtype.
    alpha : float
        The slope below zero.
    input_scale, input_zero_point, output_scale, output_zero_point : relay.Expr
        Scalars.
    """


@operator(
    "qnn.softmax",
    real_softmax.op.attrs_type,
    infer_type=like_data("qnn.softmax", ("int8", "uint8")),
    infer_layout=layout_along_axis(),
    qnn_canonicalize=_canonicalize_softmax,
)
def softmax(
    x: Expr,
    scale: Expr,
    zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
) -> RelayExpr:
    """Normalised exponentials of a quantised tensor, in integer arithmetic.

    Parameters
    ----------
    x : relay.Expr
        Integers of 8 bits.
    scale, zero_point, output_scale, output_zero_point : relay.Expr
        Scalars.
    axis : int
        The axis of the distributions.
    """
