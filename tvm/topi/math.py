"""Element-wise operators of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from . import tag


def elementwise(
    x: te.Tensor, function: Callable[[PrimExpr], PrimExpr], name: str = "T_elemwise"
) -> te.Tensor:
    """`function` of every element."""
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name, tag=tag.ELEMWISE)


def _unary(name: str, function: Callable[[PrimExpr], PrimExpr]) -> Callable[[te.Tensor], te.Tensor]:
    def build(x: te.Tensor) -> te.Tensor:
        return elementwise(x, function, f"T_{name}")

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{name}` of every element."
    return build


def _sign(value: PrimExpr) -> PrimExpr:
    zero, one = tir.const(0, value.dtype), tir.const(1, value.dtype)
    if value.dtype.is_uint:
        return tir.Select(value > zero, one, zero)
    below = tir.Select(value < zero, tir.const(-1, value.dtype), zero)
    return tir.Select(value > zero, one, below)


def _sigmoid(value: PrimExpr) -> PrimExpr:
    return tir.sigmoid(value)


identity = _unary("identity", lambda v: v)
negative = _unary("negative", lambda v: -v)
exp = _unary("exp", tir.exp)
erf = _unary("erf", tir.erf)
tanh = _unary("tanh", tir.tanh)
tan = _unary("tan", tir.tan)
cos = _unary("cos", tir.cos)
cosh = _unary("cosh", tir.cosh)
sin = _unary("sin", tir.sin)
sinh = _unary("sinh", tir.sinh)
acos = _unary("acos", tir.acos)
acosh = _unary("acosh", tir.acosh)
asin = _unary("asin", tir.asin)
asinh = _unary("asinh", tir.asinh)
atan = _unary("atan", tir.atan)
atanh = _unary("atanh", tir.atanh)
floor = _unary("floor", tir.floor)
ceil = _unary("ceil", tir.ceil)
trunc = _unary("trunc", tir.trunc)
round = _unary("round", tir.round)
abs = _unary("abs", tir.abs)
sign = _unary("sign", _sign)
isnan = _unary("isnan", tir.isnan)
isfinite = _unary("isfinite", tir.isfinite)
isinf = _unary("isinf", tir.isinf)
log = _unary("log", tir.log)
log2 = _unary("log2", tir.log2)
log10 = _unary("log10", tir.log10)
sqrt = _unary("sqrt", tir.sqrt)
rsqrt = _unary("rsqrt", tir.rsqrt)
sigmoid = _unary("sigmoid", _sigmoid)
fast_exp = _unary("fast_exp", tir.exp)
fast_tanh = _unary("fast_tanh", tir.tanh)
fast_erf = _unary("fast_erf", tir.erf)


def clip(x: te.Tensor, a_min: float, a_max: float) -> te.Tensor:
    """Limit every element to an interval."""

    def limited(value: PrimExpr) -> PrimExpr:
        low, high = _bound(a_min, value.dtype), _bound(a_max, value.dtype)
        return tir.max(tir.min(value, high), low)

    return elementwise(x, limited, "T_clip")


def _bound(value: Any, dtype: Any) -> PrimExpr:
    """A clipping bound in the range of the dtype."""
    if dtype.is_float:
        return tir.const(float(value), dtype)
    low, high = int(tir.min_value(dtype).value), int(tir.max_value(dtype).value)
    return tir.const(low if value <= low else high if value >= high else int(value), dtype)


def cast(x: te.Tensor, dtype: str, span: object = None) -> te.Tensor:
    """Convert every element."""
    if isinstance(x, te.Tensor):
        return elementwise(x, lambda v: v.astype(dtype), "T_cast")
    return x.astype(dtype)


def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """Read every element's bits as another dtype."""
    return elementwise(x, lambda v: tir.reinterpret(dtype, v), "T_reinterpret")


def fixed_point_multiply(x: te.Tensor, multiplier: int, shift: int) -> te.Tensor:
    """x * multiplier * 2**(shift - 31), rounded.

    Parameters
    ----------
    x : te.Tensor
        int32 numbers.
    multiplier : int
        A fixed-point number with 31 bits behind the point.
    shift : int
        An exponent of two.
    """
    m, q, s = [tir.const(value, "int32") for value in (multiplier, 31, shift)]
    return elementwise(x, lambda v: tir.q_multiply_shift(v, m, q, s), "T_fixed_point_multiply")


def fixed_point_multiply_per_axis(
    x: te.Tensor,
    y: te.Tensor,
    lshift: te.Tensor,
    rshift: te.Tensor,
    is_lshift_required: int,
    is_rshift_required: int,
    axes: Sequence[int],
) -> te.Tensor:
    """As `fixed_point_multiply`, with a multiplier and shifts for each place along `axes`.

    Parameters
    ----------
    x : te.Tensor
        int32 numbers.
    y, lshift, rshift : te.Tensor
        Multipliers, shifts to the left before the product, shifts to the right after it.
    is_lshift_required, is_rshift_required : int
        Whether there is a shift that is not 0.
    axes : sequence of int
        The axes of `x` that the axes of `y` stand for.
    """
    flags = [tir.const(int(f), "bool") for f in (is_lshift_required, is_rshift_required)]

    def element(*i: Any) -> PrimExpr:
        at = [i[axis] for axis in axes]
        return tir.q_multiply_shift_per_axis(
            x(*i), y(*at), lshift(*at), rshift(*at), tir.const(31, "int32"), *flags
        )

    return te.compute(x.shape, element, name="T_fixed_point_multiply_per_axis", tag=tag.BROADCAST)


__all__ = [
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "elementwise",
    "erf",
    "exp",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "floor",
    "identity",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log2",
    "negative",
    "reinterpret",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
