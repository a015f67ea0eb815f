"""Element-wise operators of one argument: a table, one row an operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, Constant, const
from tvm.support.dtype import dtype as as_dtype

from .computes import computed_by
from .layout import layout_any
from .operator import Expr, OperatorFunction, operator
from .registry import Gradient, OpPattern, Precision, ops
from .types import (
    TypeRelation,
    expect_floating,
    integers_only,
    keep_shape,
    same_as_input,
    shape_of_type,
    tensor,
)

UnaryFunction = OperatorFunction[[RelayExpr], RelayExpr]
Scalar = Callable[[te.Tensor], te.Tensor]
Fold = Callable[[np.ndarray], np.ndarray]


def unary(
    name: str,
    summary: str,
    function: Scalar,
    fold: Fold | None = None,
    gradient: Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr] | None = None,
    infer_type: TypeRelation | None = None,
    **facets: Any,
) -> UnaryFunction:
    """One row of the table; `gradient(x, y, g)` is the gradient of the input, with y = f(x)."""

    def row(data: Expr) -> RelayExpr: ...

    row.__name__ = row.__qualname__ = name.rpartition(".")[2]
    row.__doc__ = f"{summary}\n\nParameters\n----------\ndata : relay.Expr\n    The tensor."
    return operator(
        name,
        infer_type=infer_type or same_as_input(name),
        fuse=OpPattern.ELEMWISE,
        compute=lambda attrs, inputs, out_type: [function(inputs[0])],
        fold=_elementwise_fold(fold) if fold else None,
        gradient=_unary_gradient(gradient) if gradient else None,
        derivative=gradient,
        infer_layout=layout_any,
        **{"support_level": 3, **facets},
    )(row)


def real_function(
    name: str,
    summary: str,
    function: Scalar,
    fold: Fold | None = None,
    *args: Any,
    **facets: Any,
) -> UnaryFunction:
    """One row of the table whose kernels take floating-point numbers only, and lose accuracy in fewer bits.

    Integers have a type all the same, as analyses of programs that are not run rely on.
    """

    def of_floating(x: te.Tensor) -> te.Tensor:
        expect_floating(TensorType(x.shape, x.dtype), name)
        return function(x)

    def folded(x: np.ndarray) -> np.ndarray:
        if fold is None or np.issubdtype(x.dtype, np.integer):
            raise TypeError(f"{name} of integers")
        return fold(x)

    facets = {"precision": Precision.KEEP_FLOAT32, "support_level": 1, **facets}
    summary = f"{summary}, element by element."
    return unary(name, summary, of_floating, folded if fold else None, *args, **facets)


def _elementwise_fold(
    function: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Attrs, Sequence[np.ndarray], Any], list[np.ndarray] | None]:
    def fold(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Any) -> list[np.ndarray] | None:
        wanted = np.dtype(bool) if out_type.dtype == "bool" else arrays[0].dtype
        try:
            return [np.asarray(function(arrays[0])).astype(wanted, copy=False)]
        except TypeError:  # no such function of these numbers: compiling says so
            return None

    return fold


def _unary_gradient(
    function: Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr],
) -> Gradient:
    return lambda call, grad: [function(call.args[0], call, grad)]


def _numpy_sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def _numpy_rsqrt(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / np.sqrt(x))


def number_like(value: float, x: RelayExpr) -> RelayExpr:
    """A number in the dtype of a tensor."""
    return ops.cast_like(const(value, "float64"), x)


def _flat(x: RelayExpr, y: RelayExpr, g: RelayExpr) -> RelayExpr:
    """Where a function has a derivative, it is zero."""
    return ops.zeros_like(x)


# fmt: off
log = real_function("log", "Natural logarithm", topi.log, np.log, lambda x, y, g: g / x)
log2 = real_function(
    "log2", "Logarithm to base 2", topi.log2, np.log2,
    lambda x, y, g: g / (x * number_like(math.log(2), x)),
)
log10 = real_function(
    "log10", "Logarithm to base 10", topi.log10, np.log10,
    lambda x, y, g: g / (x * number_like(math.log(10), x)),
)
exp = real_function(
    "exp", "Exponential", topi.exp, np.exp, lambda x, y, g: g * y, fast_math="fast_exp",
)
sqrt = real_function(
    "sqrt", "Square root", topi.sqrt, np.sqrt, lambda x, y, g: g / (y + y),
    precision=Precision.FOLLOW,
)
rsqrt = real_function(
    "rsqrt", "One over the square root", topi.rsqrt, _numpy_rsqrt,
    lambda x, y, g: g * number_like(-0.5, x) * y / x, precision=Precision.FOLLOW,
)
sigmoid = real_function(
    "sigmoid", "Logistic function", topi.sigmoid, _numpy_sigmoid,
    lambda x, y, g: g * y * (ops.ones_like(y) - y), precision=Precision.FOLLOW,
)
tanh = real_function(
    "tanh", "Hyperbolic tangent", topi.tanh, np.tanh,
    lambda x, y, g: g * (ops.ones_like(y) - y * y), precision=Precision.FOLLOW,
    fast_math="fast_tanh",
)
erf = real_function(
    "erf", "Gauss error function", topi.erf, None,
    lambda x, y, g: g * number_like(2 / math.sqrt(math.pi), x) * ops.exp(ops.negative(x * x)),
    fast_math="fast_erf",
)
sin = real_function("sin", "Sine", topi.sin, np.sin, lambda x, y, g: g * ops.cos(x))
cos = real_function("cos", "Cosine", topi.cos, np.cos, lambda x, y, g: ops.negative(g * ops.sin(x)))
tan = real_function(
    "tan", "Tangent", topi.tan, np.tan, lambda x, y, g: g * (ops.ones_like(y) + y * y),
)
sinh = real_function("sinh", "Hyperbolic sine", topi.sinh, np.sinh, lambda x, y, g: g * ops.cosh(x))
cosh = real_function(
    "cosh", "Hyperbolic cosine", topi.cosh, np.cosh, lambda x, y, g: g * ops.sinh(x),
)
asin = real_function(
    "asin", "Inverse sine", topi.asin, np.arcsin,
    lambda x, y, g: g * ops.rsqrt(ops.ones_like(y) - x * x),
)
acos = real_function(
    "acos", "Inverse cosine", topi.acos, np.arccos,
    lambda x, y, g: ops.negative(g * ops.rsqrt(ops.ones_like(y) - x * x)),
)
atan = real_function(
    "atan", "Inverse tangent", topi.atan, np.arctan, lambda x, y, g: g / (ops.ones_like(y) + x * x),
)
asinh = real_function(
    "asinh", "Inverse hyperbolic sine", topi.asinh, np.arcsinh,
    lambda x, y, g: g * ops.rsqrt(x * x + ops.ones_like(x)),
)
acosh = real_function(
    "acosh", "Inverse hyperbolic cosine", topi.acosh, np.arccosh,
    lambda x, y, g: g * ops.rsqrt(x * x - ops.ones_like(x)),
)
atanh = real_function(
    "atanh", "Inverse hyperbolic tangent", topi.atanh, np.arctanh,
    lambda x, y, g: g / (ops.ones_like(x) - x * x),
)
floor = unary("floor", "The nearest integer towards minus infinity.", topi.floor, np.floor, _flat)
ceil = unary("ceil", "The nearest integer towards infinity.", topi.ceil, np.ceil, _flat)
trunc = unary("trunc", "The nearest integer towards zero.", topi.trunc, np.trunc, _flat)
round = unary("round", "The nearest integer, halves to even.", topi.round, np.rint, _flat)
sign = unary("sign", "-1, 0 or 1 by the sign of each element.", topi.sign, np.sign, _flat)
abs = unary(
    "abs", "Absolute value, element by element.", topi.abs, np.abs, lambda x, y, g: g * ops.sign(x),
)
negative = unary(
    "negative", "The elements with the opposite sign.", topi.negative, np.negative,
    lambda x, y, g: ops.negative(g),
)
logical_not = unary(
    "logical_not", "Logical negation, element by element.", topi.logical_not, np.logical_not, _flat,
    support_level=4,
)
bitwise_not = unary(
    "bitwise_not", "Bitwise negation, element by element.",
    integers_only(topi.bitwise_not, "bitwise_not"), np.bitwise_not, _flat, support_level=4,
)
copy = unary("copy", "A copy of a tensor.", topi.identity, np.copy, lambda x, y, g: g)
zeros_like = unary(
    "zeros_like", "Zeros in the shape and dtype of a tensor.", lambda x: topi.full_like(x, 0),
    np.zeros_like, _flat,
)
ones_like = unary(
    "ones_like", "Ones in the shape and dtype of a tensor.", lambda x: topi.full_like(x, 1),
    np.ones_like, _flat,
)


# the exact functions are vectorised and cost no more than classic approximations of them
fast_exp = real_function(
    "fast_exp", "Exponential", topi.fast_exp, np.exp,
    composition=lambda call, arg_types: ops.exp(*call.args),
)
fast_tanh = real_function(
    "fast_tanh", "Hyperbolic tangent", topi.fast_tanh, np.tanh,
    composition=lambda call, arg_types: ops.tanh(*call.args),
)
fast_erf = real_function(
    "fast_erf", "Gauss error function", topi.fast_erf,
    composition=lambda call, arg_types: ops.erf(*call.args),
)
# fmt: on


def _predicate(name: str, summary: str, function: Scalar, fold: Fold) -> UnaryFunction:
    return unary(name, summary, function, fold, _flat, infer_type=keep_shape(name, "bool"))


isnan = _predicate("isnan", "Whether each element is not a number.", topi.isnan, np.isnan)
isfinite = _predicate("isfinite", "Whether each element is finite.", topi.isfinite, np.isfinite)
isinf = _predicate("isinf", "Whether each element is infinite.", topi.isinf, np.isinf)


def _clip_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    x, attrs = call.args[0], call.attrs
    below = ops.less_equal(number_like(attrs.a_min, x), x)
    inside = ops.logical_and(below, ops.less_equal(x, number_like(attrs.a_max, x)))
    return [ops.where(inside, grad, ops.zeros_like(grad))]


@operator(
    "clip",
    support_level=3,
    infer_type=same_as_input("clip"),
    fuse=OpPattern.ELEMWISE,
    compute=computed_by(topi.clip, "a_min", "a_max"),
    fold=lambda attrs, arrays, out_type: [
        np.clip(arrays[0], attrs.a_min, attrs.a_max).astype(arrays[0].dtype, copy=False)
    ],
    gradient=_clip_gradient,
    infer_layout=layout_any,
)
def clip(a: Expr, a_min: float, a_max: float) -> RelayExpr:
    """Limit the elements to an interval.

    Parameters
    ----------
    a : relay.Expr
        The tensor.
    a_min, a_max : float
        The interval's ends, both included.
    """


def _cast_type(attrs: Attrs, data: TensorType) -> Type:
    """A tensor of the shape of `data`, and of dtype `dtype`."""
    return tensor(shape_of_type(data), attrs["dtype"])


@operator(
    "cast",
    support_level=3,
    infer_type=_cast_type,
    fuse=OpPattern.ELEMWISE,
    compute=computed_by(topi.cast, "dtype"),
    fold=lambda attrs, arrays, out_type: [arrays[0].astype(numpy_dtype(attrs.dtype))],
    gradient=lambda call, grad: [ops.cast_like(grad, call.args[0])],
    infer_layout=layout_any,
)
def cast(data: Expr, dtype: str) -> RelayExpr:
    """Convert the elements to a dtype.

    Parameters
    ----------
    dtype : str
        The dtype of the result.
    """


def _fold_reinterpret(
    attrs: Any, arrays: Sequence[np.ndarray], out_type: Any
) -> list[np.ndarray] | None:
    element = out_type.dtype.numpy
    (data,) = arrays
    return [data.view(element)] if data.dtype.itemsize == element.itemsize else None


@operator(
    "reinterpret",
    cast,
    support_level=3,
    infer_type=_cast_type,
    fuse=OpPattern.ELEMWISE,
    compute=computed_by(topi.reinterpret, "dtype"),
    fold=_fold_reinterpret,
    infer_layout=layout_any,
)
def reinterpret(data: Expr, dtype: str) -> RelayExpr:
    """Read the elements' bits as another dtype of the same size.

    Parameters
    ----------
    dtype : str
        The dtype of the result.
    """


def _cast_like_type(attrs: Attrs, data: TensorType, dtype_like: TensorType) -> Type:
    """A tensor of the shape of `data`, and of the other tensor's dtype."""
    return tensor(shape_of_type(data), dtype_like.dtype)


@operator(
    "cast_like",
    support_level=3,
    infer_type=_cast_like_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], inputs[1].dtype)],
    simplify=lambda call, arg_types: ops.cast(call.args[0], dtype=arg_types[1].dtype),
    gradient=lambda call, grad: [ops.cast_like(grad, call.args[0]), ops.zeros_like(call.args[1])],
)
def cast_like(data: Expr, dtype_like: Expr) -> RelayExpr:
    """Convert the elements to the dtype of another tensor.

    Parameters
    ----------
    dtype_like : relay.Expr
        The tensor whose dtype is taken.
    """


def numpy_dtype(dtype: str) -> np.dtype:
    """The numpy dtype (`ml_dtypes` ones included) of a dtype of ours."""
    found: np.dtype = as_dtype(dtype).numpy
    return found


def converted(x: RelayExpr, dtype: str) -> RelayExpr:
    """A value in another dtype; constants at once."""
    if not isinstance(x, Constant):
        return ops.cast(x, dtype=dtype)
    if x.data.dtype == dtype:
        return x
    return const(x.data.elements().astype(numpy_dtype(dtype)))


def raised_bytes(x: RelayExpr) -> RelayExpr:
    """int8 values as uint8, each 128 higher; constants at once."""
    if isinstance(x, Constant):
        return const((x.data.numpy().astype("int16") + 128).astype("uint8"))
    return ops.cast(ops.add(ops.cast(x, dtype="int16"), const(128, "int16")), dtype="uint8")
