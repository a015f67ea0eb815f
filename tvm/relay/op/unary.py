"""Element-wise operators of one argument: a table, one row an operator."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call, Constant, const
from tvm.support.dtype import dtype as as_dtype

from .attributes import as_float
from .layout import layout_any
from .registry import Gradient, OpPattern, Precision, define_op
from .types import (
    TypeRelation,
    expect_tensor,
    integers_only,
    keep_shape,
    same_as_input,
    same_floating,
    shape_of_type,
    tensor,
)


def unary(
    name: str,
    function: Callable[[te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray], np.ndarray] | None = None,
    gradient: Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr] | None = None,
    infer_type: TypeRelation | None = None,
    precision: Precision = Precision.FOLLOW,
    description: str = "",
) -> Op:
    """One row of the table; `gradient(x, y, g)` is the gradient of the input, with y = f(x)."""
    return define_op(
        name,
        inputs=("data",),
        infer_type=infer_type or same_as_input(name),
        fuse=OpPattern.ELEMWISE,
        compute=lambda attrs, inputs, out_type: [function(inputs[0])],
        fold=_elementwise_fold(fold) if fold else None,
        gradient=_unary_gradient(gradient) if gradient else None,
        infer_layout=layout_any,
        precision=precision,
        description=description,
    )


def real_function(
    name: str,
    function: Callable[[te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray], np.ndarray] | None = None,
    gradient: Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr] | None = None,
    precision: Precision = Precision.FOLLOW,
) -> Op:
    """One row of the table that takes floating-point numbers only."""
    return unary(name, function, fold, gradient, same_floating(name), precision)


def _elementwise_fold(
    function: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Attrs, Sequence[np.ndarray], Type], list[np.ndarray]]:
    def fold(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
        return [np.asarray(function(arrays[0])).astype(arrays[0].dtype, copy=False)]

    return fold


def _unary_gradient(
    function: Callable[[RelayExpr, RelayExpr, RelayExpr], RelayExpr],
) -> Gradient:
    return lambda call, grad: [function(call.args[0], call, grad)]


def _numpy_sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _numpy_rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _like(value: float, x: RelayExpr) -> RelayExpr:
    """A number in the dtype of a tensor."""
    return Op.get("cast_like")(const(value, "float64"), x)


_FLOAT32 = Precision.KEEP_FLOAT32

LOG = real_function("log", topi.log, np.log, lambda x, y, g: g / x, precision=_FLOAT32)
LOG2 = real_function(
    "log2", topi.log2, np.log2, lambda x, y, g: g / (x * _like(math.log(2), x)), precision=_FLOAT32
)
LOG10 = real_function(
    "log10", topi.log10, np.log10, lambda x, y, g: g / (x * _like(math.log(10), x)),
    precision=_FLOAT32,
)  # fmt: skip
EXP = real_function("exp", topi.exp, np.exp, lambda x, y, g: g * y, precision=_FLOAT32)
SQRT = real_function("sqrt", topi.sqrt, np.sqrt, lambda x, y, g: g / (y + y))
RSQRT = real_function("rsqrt", topi.rsqrt, _numpy_rsqrt, lambda x, y, g: g * _like(-0.5, x) * y / x)
SIGMOID = real_function(
    "sigmoid", topi.sigmoid, _numpy_sigmoid, lambda x, y, g: g * y * (ONES_LIKE(y) - y)
)  # fmt: skip
TANH = real_function("tanh", topi.tanh, np.tanh, lambda x, y, g: g * (ONES_LIKE(y) - y * y))
ERF = real_function(
    "erf", topi.erf, None,
    lambda x, y, g: g * _like(2 / math.sqrt(math.pi), x) * EXP(NEGATIVE(x * x)),
    precision=_FLOAT32,
)  # fmt: skip
SIN = real_function("sin", topi.sin, np.sin, lambda x, y, g: g * COS(x), precision=_FLOAT32)
COS = real_function(
    "cos", topi.cos, np.cos, lambda x, y, g: NEGATIVE(g * SIN(x)), precision=_FLOAT32
)
TAN = real_function(
    "tan", topi.tan, np.tan, lambda x, y, g: g * (ONES_LIKE(y) + y * y), precision=_FLOAT32
)
SINH = real_function("sinh", topi.sinh, np.sinh, lambda x, y, g: g * COSH(x), precision=_FLOAT32)
COSH = real_function("cosh", topi.cosh, np.cosh, lambda x, y, g: g * SINH(x), precision=_FLOAT32)
ASIN = real_function(
    "asin",
    topi.asin,
    np.arcsin,
    lambda x, y, g: g * RSQRT(ONES_LIKE(y) - x * x),
    precision=_FLOAT32,
)
ACOS = real_function(
    "acos", topi.acos, np.arccos, lambda x, y, g: NEGATIVE(g * RSQRT(ONES_LIKE(y) - x * x)),
    precision=_FLOAT32,
)  # fmt: skip
ATAN = real_function(
    "atan", topi.atan, np.arctan, lambda x, y, g: g / (ONES_LIKE(y) + x * x), precision=_FLOAT32
)
ASINH = real_function(
    "asinh", topi.asinh, np.arcsinh, lambda x, y, g: g * RSQRT(x * x + ONES_LIKE(x)),
    precision=_FLOAT32,
)  # fmt: skip
ACOSH = real_function(
    "acosh", topi.acosh, np.arccosh, lambda x, y, g: g * RSQRT(x * x - ONES_LIKE(x)),
    precision=_FLOAT32,
)  # fmt: skip
ATANH = real_function(
    "atanh", topi.atanh, np.arctanh, lambda x, y, g: g / (ONES_LIKE(x) - x * x),
    precision=_FLOAT32,
)  # fmt: skip
FLOOR = unary("floor", topi.floor, np.floor, lambda x, y, g: ZEROS_LIKE(x))
CEIL = unary("ceil", topi.ceil, np.ceil, lambda x, y, g: ZEROS_LIKE(x))
TRUNC = unary("trunc", topi.trunc, np.trunc, lambda x, y, g: ZEROS_LIKE(x))
ROUND = unary("round", topi.round, np.rint, lambda x, y, g: ZEROS_LIKE(x))
SIGN = unary("sign", topi.sign, np.sign, lambda x, y, g: ZEROS_LIKE(x))
ABS = unary("abs", topi.abs, np.abs, lambda x, y, g: g * SIGN(x))
NEGATIVE = unary("negative", topi.negative, np.negative, lambda x, y, g: NEGATIVE(g))
LOGICAL_NOT = unary("logical_not", topi.logical_not, np.logical_not)
BITWISE_NOT = unary(
    "bitwise_not", topi.bitwise_not, np.bitwise_not,
    infer_type=integers_only(same_as_input("bitwise_not"), "bitwise_not"),
)  # fmt: skip
COPY = unary("copy", topi.identity, np.copy, lambda x, y, g: g)
ZEROS_LIKE = unary(
    "zeros_like", lambda x: topi.full_like(x, 0), np.zeros_like, lambda x, y, g: ZEROS_LIKE(x)
)
ONES_LIKE = unary(
    "ones_like", lambda x: topi.full_like(x, 1), np.ones_like, lambda x, y, g: ZEROS_LIKE(x)
)


# the exact functions are vectorised and cost no more than classic approximations of them
FAST_EXP = real_function("fast_exp", topi.fast_exp, np.exp, precision=_FLOAT32)
FAST_TANH = real_function("fast_tanh", topi.fast_tanh, np.tanh, precision=_FLOAT32)
FAST_ERF = real_function("fast_erf", topi.fast_erf, precision=_FLOAT32)


def _predicate(
    name: str, function: Callable[[te.Tensor], te.Tensor], fold: Callable[[np.ndarray], np.ndarray]
) -> Op:
    return define_op(
        name,
        inputs=("data",),
        infer_type=keep_shape(name, "bool"),
        fuse=OpPattern.ELEMWISE,
        compute=lambda attrs, inputs, out_type: [function(inputs[0])],
        fold=lambda attrs, arrays, out_type: [np.asarray(fold(arrays[0]))],
        infer_layout=layout_any,
    )


ISNAN = _predicate("isnan", topi.isnan, np.isnan)
ISFINITE = _predicate("isfinite", topi.isfinite, np.isfinite)
ISINF = _predicate("isinf", topi.isinf, np.isinf)


class ClipAttrs(Attrs, key="relay.attrs.ClipAttrs"):
    """The bounds of a clip."""

    a_min: float
    a_max: float


def _clip_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    x, attrs = call.args[0], call.attrs
    below = Op.get("less_equal")(_like(attrs.a_min, x), x)
    inside = Op.get("logical_and")(below, Op.get("less_equal")(x, _like(attrs.a_max, x)))
    return [Op.get("where")(inside, grad, ZEROS_LIKE(grad))]


CLIP = define_op(
    "clip",
    ClipAttrs,
    inputs=("data",),
    infer_type=same_as_input("clip"),
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.clip(inputs[0], attrs.a_min, attrs.a_max)],
    fold=lambda attrs, arrays, out_type: [
        np.clip(arrays[0], attrs.a_min, attrs.a_max).astype(arrays[0].dtype, copy=False)
    ],
    gradient=_clip_gradient,
    infer_layout=layout_any,
)


class CastAttrs(Attrs, key="relay.attrs.CastAttrs"):
    """The dtype of the result."""

    dtype: str


def _cast_type(attrs: CastAttrs, arg_types: Sequence[Type]) -> Type:
    return tensor(shape_of_type(expect_tensor(arg_types[0], "cast")), attrs.dtype)


CAST = define_op(
    "cast",
    CastAttrs,
    inputs=("data",),
    infer_type=_cast_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], attrs.dtype)],
    fold=lambda attrs, arrays, out_type: [arrays[0].astype(numpy_dtype(attrs.dtype))],
    gradient=lambda call, grad: [CAST_LIKE(grad, call.args[0])],
    infer_layout=layout_any,
)
REINTERPRET = define_op(
    "reinterpret",
    CastAttrs,
    inputs=("data",),
    infer_type=_cast_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.reinterpret(inputs[0], attrs.dtype)],
    infer_layout=layout_any,
)


def _cast_like_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    wanted = expect_tensor(arg_types[1], "cast_like", "dtype_like")
    return tensor(shape_of_type(expect_tensor(arg_types[0], "cast_like")), wanted.dtype)


CAST_LIKE = define_op(
    "cast_like",
    inputs=("data", "dtype_like"),
    infer_type=_cast_like_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], inputs[1].dtype)],
    simplify=lambda call, arg_types: CAST(call.args[0], dtype=arg_types[1].dtype),
    gradient=lambda call, grad: [CAST_LIKE(grad, call.args[0]), ZEROS_LIKE(call.args[1])],
)


def numpy_dtype(dtype: str) -> np.dtype:
    """The numpy dtype (`ml_dtypes` ones included) of a dtype of ours."""
    return as_dtype(dtype).numpy


def clip(a: RelayExpr, a_min: float, a_max: float) -> RelayExpr:
    """Limit the elements to an interval.

    Parameters
    ----------
    a : relay.Expr
        The tensor.
    a_min, a_max : float
        The interval's ends, both included.
    """
    return CLIP(a, a_min=as_float(a_min), a_max=as_float(a_max))


def cast(data: RelayExpr, dtype: str) -> RelayExpr:
    """Convert the elements to a dtype.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype : str
        The dtype of the result.
    """
    return CAST(data, dtype=str(dtype))


def cast_like(data: RelayExpr, dtype_like: RelayExpr) -> RelayExpr:
    """Convert the elements to the dtype of another tensor.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype_like : relay.Expr
        The tensor whose dtype is taken.
    """
    return CAST_LIKE(data, dtype_like)


def reinterpret(data: RelayExpr, dtype: str) -> RelayExpr:
    """Read the elements' bits as another dtype of the same size.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype : str
        The dtype of the result.
    """
    return REINTERPRET(data, dtype=str(dtype))


def _public(op: Op, summary: str) -> Callable[[RelayExpr], RelayExpr]:
    """The public function of one row: `log(data)`."""

    def function(data: RelayExpr) -> RelayExpr:
        return op(data)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{summary}\n\nParameters\n----------\ndata : relay.Expr\n    The tensor."
    return function


log = _public(LOG, "Natural logarithm, element by element.")
log2 = _public(LOG2, "Logarithm to base 2, element by element.")
log10 = _public(LOG10, "Logarithm to base 10, element by element.")
exp = _public(EXP, "Exponential, element by element.")
sqrt = _public(SQRT, "Square root, element by element.")
rsqrt = _public(RSQRT, "One over the square root, element by element.")
sigmoid = _public(SIGMOID, "Logistic function, element by element.")
tanh = _public(TANH, "Hyperbolic tangent, element by element.")
erf = _public(ERF, "Gauss error function, element by element.")
sin = _public(SIN, "Sine, element by element.")
cos = _public(COS, "Cosine, element by element.")
tan = _public(TAN, "Tangent, element by element.")
sinh = _public(SINH, "Hyperbolic sine, element by element.")
cosh = _public(COSH, "Hyperbolic cosine, element by element.")
asin = _public(ASIN, "Inverse sine, element by element.")
acos = _public(ACOS, "Inverse cosine, element by element.")
atan = _public(ATAN, "Inverse tangent, element by element.")
asinh = _public(ASINH, "Inverse hyperbolic sine, element by element.")
acosh = _public(ACOSH, "Inverse hyperbolic cosine, element by element.")
atanh = _public(ATANH, "Inverse hyperbolic tangent, element by element.")
floor = _public(FLOOR, "The nearest integer towards minus infinity.")
ceil = _public(CEIL, "The nearest integer towards infinity.")
trunc = _public(TRUNC, "The nearest integer towards zero.")
round = _public(ROUND, "The nearest integer, halves to even.")
sign = _public(SIGN, "-1, 0 or 1 by the sign of each element.")
abs = _public(ABS, "Absolute value, element by element.")
negative = _public(NEGATIVE, "The elements with the opposite sign.")
logical_not = _public(LOGICAL_NOT, "Logical negation, element by element.")
bitwise_not = _public(BITWISE_NOT, "Bitwise negation, element by element.")
copy = _public(COPY, "A copy of a tensor.")
zeros_like = _public(ZEROS_LIKE, "Zeros in the shape and dtype of a tensor.")
ones_like = _public(ONES_LIKE, "Ones in the shape and dtype of a tensor.")
isnan = _public(ISNAN, "Whether each element is not a number.")
isfinite = _public(ISFINITE, "Whether each element is finite.")
isinf = _public(ISINF, "Whether each element is infinite.")
fast_exp = _public(FAST_EXP, "Exponential, element by element.")
fast_tanh = _public(FAST_TANH, "Hyperbolic tangent, element by element.")
fast_erf = _public(FAST_ERF, "Gauss error function, element by element.")


def converted(x: RelayExpr, dtype: str) -> RelayExpr:
    """A value in another dtype; constants at once."""
    if isinstance(x, Constant):
        return x if x.data.dtype == dtype else const(x.data.numpy().astype(dtype))
    return CAST(x, dtype=dtype)
