"""Element-wise operators of one tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from tvm import te, tir
from tvm.error import RuntimeTypeError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import as_expr

from . import tag
from .rewrites import erf_legalize as erf_legalize
from .utils import get_const_int


def elementwise(
    x: te.Tensor, function: Callable[[PrimExpr], PrimExpr], name: str = "T_elemwise"
) -> te.Tensor:
    """`function` of every element.

    Parameters
    ----------
    x : te.Tensor
        The tensor.
    function : callable
        From an element to an expression.
    name : str
        The name of the new stage.

    Returns
    -------
    te.Tensor
        Of the shape of `x`, and of the dtype that `function` gives.
    """
    return te.compute(x.shape, lambda *i: function(x(*i)), name=name, tag=tag.ELEMWISE)


_SAME = "Of the shape and dtype of `x`."
_TRUTH = "Of the shape of `x`, and of dtype bool."


def _unary(
    name: str, function: Callable[[PrimExpr], PrimExpr], result: str = _SAME
) -> Callable[[te.Tensor], te.Tensor]:
    def build(x: te.Tensor) -> te.Tensor:
        return elementwise(x, function, f"T_{name}")

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""`{name}` of every element.

    Parameters
    ----------
    x : te.Tensor
        The tensor.

    Returns
    -------
    te.Tensor
        {result}
    """
    return build


def _real_function(name: str, function: Callable[[PrimExpr], PrimExpr]) -> Callable[..., te.Tensor]:
    """As `_unary`, of floating-point numbers only."""

    def checked(value: PrimExpr) -> PrimExpr:
        if not value.dtype.is_float:
            raise RuntimeTypeError(
                f"topi.{name} requires floating-point numbers, got {value.dtype}; "
                'convert them first: topi.cast(x, "float32")'
            )
        return function(value)

    return _unary(name, checked)


def _negative(value: PrimExpr) -> PrimExpr:
    return tir.const(0, value.dtype) - value if value.dtype.is_uint else -value


def _sign(value: PrimExpr) -> PrimExpr:
    zero, one = tir.const(0, value.dtype), tir.const(1, value.dtype)
    if value.dtype.is_uint:
        return tir.Select(value > zero, one, zero)
    other = value if value.dtype.is_float else zero  # zero, or NaN
    below = tir.Select(value < zero, tir.const(-1, value.dtype), other)
    return tir.Select(value > zero, one, below)


identity = _unary("identity", lambda v: v)
negative = _unary("negative", _negative)
exp = _real_function("exp", tir.exp)
erf = _real_function("erf", tir.erf)
tanh = _real_function("tanh", tir.tanh)
tan = _real_function("tan", tir.tan)
cos = _real_function("cos", tir.cos)
cosh = _real_function("cosh", tir.cosh)
sin = _real_function("sin", tir.sin)
sinh = _real_function("sinh", tir.sinh)
acos = _real_function("acos", tir.acos)
acosh = _real_function("acosh", tir.acosh)
asin = _real_function("asin", tir.asin)
asinh = _real_function("asinh", tir.asinh)
atan = _real_function("atan", tir.atan)
atanh = _real_function("atanh", tir.atanh)
floor = _unary("floor", tir.floor)
ceil = _unary("ceil", tir.ceil)
trunc = _unary("trunc", tir.trunc)
round = _unary("round", tir.round)
abs = _unary("abs", tir.abs)
sign = _unary("sign", _sign)
isnan = _unary("isnan", tir.isnan, _TRUTH)
isfinite = _unary("isfinite", tir.isfinite, _TRUTH)
isinf = _unary("isinf", tir.isinf, _TRUTH)
log = _real_function("log", tir.log)
log2 = _real_function("log2", tir.log2)
log10 = _real_function("log10", tir.log10)
sqrt = _real_function("sqrt", tir.sqrt)
rsqrt = _real_function("rsqrt", tir.rsqrt)
sigmoid = _real_function("sigmoid", tir.sigmoid)
fast_exp = _real_function("fast_exp", tir.exp)
fast_tanh = _real_function("fast_tanh", tir.tanh)
fast_erf = _real_function("fast_erf", tir.erf)


def clip(x: te.Tensor, a_min: float, a_max: float) -> te.Tensor:
    """Limit every element to an interval.

    Parameters
    ----------
    x : te.Tensor
        The tensor.
    a_min, a_max : float
        The least and the greatest value; brought into the range of an integer dtype.

    Returns
    -------
    te.Tensor
        Of the shape and dtype of `x`.
    """

    def limited(value: PrimExpr) -> PrimExpr:
        low, high = _bound(a_min, value.dtype), _bound(a_max, value.dtype)
        return as_expr(tir.max(tir.min(value, high), low))

    return elementwise(x, limited, "T_clip")


def _bound(value: Any, dtype: Any) -> PrimExpr:
    """A clipping bound in the range of the dtype."""
    if dtype.is_float:
        return tir.const(float(value), dtype)
    low, high = [get_const_int(limit(dtype)) for limit in (tir.min_value, tir.max_value)]
    return tir.const(low if value <= low else high if value >= high else int(value), dtype)


def left_shift(x: te.Tensor, n: int) -> te.Tensor:
    """Shift every element to the left by `n` bits."""
    return elementwise(x, lambda v: tir.shift_left(v, tir.const(n, v.dtype)), "T_left_shift")


def right_shift(x: te.Tensor, n: int) -> te.Tensor:
    """Shift every element to the right by `n` bits."""
    return elementwise(x, lambda v: tir.shift_right(v, tir.const(n, v.dtype)), "T_right_shift")


def ceil_log2(x: Any) -> PrimExpr:
    """The logarithm to base 2 of an expression, rounded up.

    Parameters
    ----------
    x : PrimExpr or number
        The operand.

    Returns
    -------
    PrimExpr
        Of the operand's dtype; 0 for integers up to 1.
    """
    x = as_expr(x)
    if x.dtype.is_float:
        return tir.ceil(tir.log2(x))
    # the number of bits of x - 1; floating-point logarithms of large numbers are rounded
    bits = tir.const(x.dtype.bits, x.dtype) - tir.clz(tir.max(x - 1, tir.const(0, x.dtype))).astype(
        x.dtype
    )
    return tir.Select(x > 1, bits, tir.const(0, x.dtype))


@overload
def cast(x: te.Tensor, dtype: str, span: object = ...) -> te.Tensor: ...
@overload
def cast(x: PrimExpr, dtype: str, span: object = ...) -> PrimExpr: ...
def cast(x: te.Tensor | PrimExpr, dtype: str, span: object = None) -> te.Tensor | PrimExpr:
    """Convert every element.

    Parameters
    ----------
    x : te.Tensor or PrimExpr
        The tensor, or one value.
    dtype : str
        The wanted data type.
    span : object
        Not used.

    Returns
    -------
    te.Tensor or PrimExpr
        Of the shape of `x`, and of dtype `dtype`.
    """
    if isinstance(x, te.Tensor):
        return elementwise(x, lambda v: v.astype(dtype), "T_cast")
    return x.astype(dtype)


def reinterpret(x: te.Tensor, dtype: str) -> te.Tensor:
    """Read every element's bits as another dtype.

    Parameters
    ----------
    x : te.Tensor
        The tensor.
    dtype : str
        A data type of as many bits.

    Returns
    -------
    te.Tensor
        Of the shape of `x`, and of dtype `dtype`.
    """
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
    """As `fixed_point_multiply`, with a multiplier and shifts for each position along `axes`.

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
