"""Values of the reference interpreter, with the semantics of C.

A scalar integer is a Python int that is kept within its type, any other scalar a numpy scalar, a
vector a one-dimensional array. Integers wrap, divided by zero they are 0, conversions truncate.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.support import DType

from . import expr as e
from .fold import truncated


def constant(value: Any, dtype: DType) -> Any:
    """A scalar of the given type; integers out of range wrap."""
    if dtype.is_int or (dtype.is_uint and not dtype.is_bool):
        return wrapped(int(value), dtype)
    return dtype.numpy.type(value)


def wrapped(value: int, dtype: DType) -> int:
    """An integer brought into the range of its type."""
    bits = dtype.bits
    half = 1 << (bits - 1)
    if dtype.is_int:
        return value if -half <= value < half else (value + half) % (half * 2) - half
    return value if 0 <= value < half * 2 else value % (half * 2)


def as_numpy(value: Any, dtype: DType) -> Any:
    """A value as numpy scalar or array."""
    return dtype.numpy.type(value) if type(value) is int else value


def as_value(result: Any) -> Any:
    """A numpy result as a value: integer scalars become Python's."""
    if isinstance(result, np.ndarray) and result.ndim:
        return result
    scalar = result[()] if isinstance(result, np.ndarray) else result
    return int(scalar) if isinstance(scalar, np.integer) else scalar


def cast(value: Any, dtype: DType) -> Any:
    """Convert as C does: floats truncate towards zero, integers wrap."""
    if type(value) is int and dtype.lanes == 1 and dtype.is_int:
        return wrapped(value, dtype)
    if dtype.is_int or (dtype.is_uint and not dtype.is_bool):
        array = np.asarray(value)
        if array.dtype.kind not in "iub":
            whole = [wrapped(truncated(float(x), dtype), dtype) for x in array.reshape(-1)]
            return as_value(np.asarray(whole, dtype.numpy).reshape(array.shape))
    with np.errstate(all="ignore"):
        return as_value(np.asarray(value).astype(dtype.numpy))


def reinterpret(value: Any, dtype: DType) -> Any:
    """The same bits as another type."""
    array = np.atleast_1d(np.asarray(value)).view(dtype.numpy)
    return array if dtype.lanes > 1 else as_value(array[0])


def trunc_divide(a: Any, b: Any) -> Any:
    """Quotient rounded towards zero for integers, the plain quotient for floats."""
    if np.asarray(a).dtype.kind not in "iub":
        return a / b
    quotient = np.floor_divide(a, b)
    inexact = (np.multiply(quotient, b) != a) & (b != 0)
    return np.add(quotient, np.asarray(inexact & ((a < 0) != (b < 0)), np.asarray(a).dtype))


def trunc_remainder(a: Any, b: Any) -> Any:
    """Remainder with the sign of the dividend."""
    return np.fmod(a, b)


def floor_remainder(a: Any, b: Any) -> Any:
    """Remainder with the sign of the divisor."""
    if np.asarray(a).dtype.kind in "iub":
        return np.remainder(a, b)
    return np.subtract(a, np.multiply(np.floor_divide(a, b), b))


BINARY: dict[type, Callable[[Any, Any], Any]] = {
    e.Add: np.add,
    e.Sub: np.subtract,
    e.Mul: np.multiply,
    e.Div: trunc_divide,
    e.Mod: trunc_remainder,
    e.FloorDiv: np.floor_divide,
    e.FloorMod: floor_remainder,
    e.Min: np.minimum,
    e.Max: np.maximum,
    e.EQ: np.equal,
    e.NE: np.not_equal,
    e.LT: np.less,
    e.LE: np.less_equal,
    e.GT: np.greater,
    e.GE: np.greater_equal,
}


def _trunc_divide_int(a: int, b: int) -> int:
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


# on Python integers; the results still have to be wrapped
ON_INTS: dict[type, Callable[[int, int], Any]] = {
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
    e.Div: _trunc_divide_int,
    e.Mod: lambda a, b: a - _trunc_divide_int(a, b) * b if b else 0,
    e.FloorDiv: lambda a, b: a // b if b else 0,
    e.FloorMod: lambda a, b: a % b if b else 0,
    e.Min: min,
    e.Max: max,
    e.EQ: operator.eq,
    e.NE: operator.ne,
    e.LT: operator.lt,
    e.LE: operator.le,
    e.GT: operator.gt,
    e.GE: operator.ge,
}


def _in_float64(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Apply a scalar function element by element, in double precision."""

    def apply(x: Any) -> Any:
        array = np.asarray(x)
        flat = [function(float(item)) for item in array.reshape(-1)]
        return np.asarray(flat, np.float64).reshape(array.shape)

    return apply


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _popcount(x: Any) -> Any:
    mask = (1 << 8 * np.asarray(x).itemsize) - 1
    return np.vectorize(lambda item: bin(int(item) & mask).count("1"))(x)


def _clz(x: Any) -> Any:
    bits = 8 * np.asarray(x).itemsize
    return np.vectorize(lambda item: bits - (int(item) & ((1 << bits) - 1)).bit_length())(x)


def _q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> Any:
    """``round(x * y * 2**(s - q))`` with halves rounded up, in exact integers."""
    return _rounded_shift(x, y, _exact(q) - _exact(s))


def _is_null(address: Any) -> Any:
    is_number = isinstance(address, (int, np.integer, np.ndarray))
    return address == 0 if is_number else address is None


def _q_multiply_shift_per_axis(
    x: Any, y: Any, left: Any, right: Any, q: Any, has_left: Any, has_right: Any
) -> Any:
    """The same after a shift to the left and before one to the right, each where it is required."""
    moved = _exact(x) << np.where(has_left, _exact(left), 0)
    return _rounded_shift(moved, y, _exact(q) + np.where(has_right, _exact(right), 0))


def _exact(x: Any) -> Any:
    return np.asarray(x).astype(object)


def _rounded_shift(x: Any, y: Any, distance: Any) -> Any:
    def shift(value: int, bits: int) -> int:
        return (value + (1 << (bits - 1))) >> bits if bits > 0 else value << -bits

    # a number of 32 bits stays as it is in arithmetic that wraps around
    wrapped = np.vectorize(lambda v, d: (shift(v, int(d)) + (1 << 31)) % (1 << 32) - (1 << 31))
    return wrapped(_exact(x) * _exact(y), distance).astype(np.int32)


# computed in double precision and rounded once, so that the reference is the best of its type
_FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x),
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": _sigmoid,
    "tanh": np.tanh, "tan": np.tan, "sin": np.sin, "cos": np.cos, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
    "erf": _in_float64(math.erf), "pow": np.power, "hypot": np.hypot, "fmod": np.fmod,
    "fma": lambda a, b, c: a * b + c,
}  # fmt: skip

_EXACT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
    "nearbyint": np.rint, "fabs": np.abs, "abs": np.abs, "copysign": np.copysign, "nextafter": np.nextafter,
    "ldexp": lambda x, n: np.ldexp(x, np.asarray(n, np.int32)), "isnan": np.isnan,
    "isfinite": np.isfinite, "isinf": np.isinf,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert, "shift_left": np.left_shift, "shift_right": np.right_shift,
    "popcount": _popcount, "clz": _clz, "likely": lambda x: x, "assume": lambda x: x,
    "q_multiply_shift": _q_multiply_shift,
    "q_multiply_shift_per_axis": _q_multiply_shift_per_axis, "isnullptr": _is_null,
    "tvm_thread_invariant": lambda x: x,
}  # fmt: skip


def call_intrinsic(name: str, dtype: DType, args: list[Any]) -> Any:
    """The value of a pure intrinsic ``tir.<name>``.

    Raises
    ------
    TVMError
        If the reference interpreter has no such intrinsic.
    """
    exact = _EXACT_FUNCTIONS.get(name)
    with np.errstate(all="ignore"):
        if exact is not None:
            result = exact(*args)
            return cast(result, dtype) if isinstance(result, (np.generic, np.ndarray)) else result
        function = _FLOAT_FUNCTIONS.get(name)
        if function is None:
            raise TVMError(f"the reference interpreter has no intrinsic tir.{name}")
        return cast(function(*[np.asarray(arg, np.float64) for arg in args]), dtype)
