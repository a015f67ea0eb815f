"""All functions, by the name of their intrinsic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import (
    double,
    double_logarithm,
    double_power,
    erf,
    exponential,
    logarithm,
    power,
    remainder,
    trigonometric,
)
from .bits import Lanes, fabs


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One function; arguments whose ``size`` is beyond ``limit`` are left to the C library."""

    name: str
    build: Callable[..., Lanes]
    arity: int = 1
    limit: float | None = None
    size: Callable[..., Lanes] = fabs


_LIMIT = trigonometric.SINGLE.largest
_DOUBLE_LIMIT = trigonometric.DOUBLE.largest
_ALL = (
    MathFunction("exp", exponential.exp),
    MathFunction("exp2", exponential.exp2),
    MathFunction("exp10", exponential.exp10),
    MathFunction("sinh", exponential.sinh),
    MathFunction("cosh", exponential.cosh),
    MathFunction("tanh", exponential.tanh),
    MathFunction("sigmoid", exponential.sigmoid),
    MathFunction("log", logarithm.SINGLE.log),
    MathFunction("log2", logarithm.SINGLE.log2),
    MathFunction("log10", logarithm.SINGLE.log10),
    MathFunction("log1p", logarithm.SINGLE.log1p),
    MathFunction("asinh", logarithm.SINGLE.asinh),
    MathFunction("acosh", logarithm.SINGLE.acosh),
    MathFunction("atanh", logarithm.SINGLE.atanh),
    MathFunction("sin", trigonometric.sin, limit=_LIMIT),
    MathFunction("cos", trigonometric.cos, limit=_LIMIT),
    MathFunction("tan", trigonometric.tan, limit=_LIMIT),
    MathFunction("asin", trigonometric.asin),
    MathFunction("acos", trigonometric.acos),
    MathFunction("atan", trigonometric.atan),
    MathFunction("atan2", trigonometric.atan2, arity=2),
    MathFunction("erf", erf.erf),
    MathFunction("pow", power.pow, arity=2),
    MathFunction("hypot", power.hypot, arity=2),
    MathFunction("fmod", remainder.fmod, 2, remainder.LARGEST_QUOTIENT, remainder.quotient_size),
)
FLOAT32_FUNCTIONS = {function.name: function for function in _ALL}
_DOUBLE = (
    MathFunction("exp", double.exp),
    MathFunction("exp2", double.exp2),
    MathFunction("exp10", double.exp10),
    MathFunction("log", double_logarithm.DOUBLE.log),
    MathFunction("log2", double_logarithm.DOUBLE.log2),
    MathFunction("log10", double_logarithm.DOUBLE.log10),
    MathFunction("log1p", double_logarithm.DOUBLE.log1p),
    MathFunction("tanh", double.tanh),
    MathFunction("sigmoid", double.sigmoid),
    MathFunction("sinh", double.sinh),
    MathFunction("cosh", double.cosh),
    MathFunction("asinh", double_logarithm.DOUBLE.asinh),
    MathFunction("acosh", double_logarithm.DOUBLE.acosh),
    MathFunction("atanh", double_logarithm.DOUBLE.atanh),
    MathFunction("sin", trigonometric.sin, limit=_DOUBLE_LIMIT),
    MathFunction("cos", trigonometric.cos, limit=_DOUBLE_LIMIT),
    MathFunction("tan", trigonometric.tan, limit=_DOUBLE_LIMIT),
    MathFunction("asin", trigonometric.asin),
    MathFunction("acos", trigonometric.acos),
    MathFunction("atan", trigonometric.atan),
    MathFunction("atan2", trigonometric.atan2, arity=2),
    MathFunction("erf", erf.erf_of_double),
    MathFunction("pow", double_power.pow, arity=2),
    MathFunction("hypot", double_power.hypot, arity=2),
)
FLOAT64_FUNCTIONS = {function.name: function for function in _DOUBLE}
