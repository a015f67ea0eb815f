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
from .registry import Gradient, OpPattern, Precision, define_op, ops
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

real_function("log", topi.log, np.log, lambda x, y, g: g / x, precision=_FLOAT32)
real_function(
    "log2", topi.log2, np.log2, lambda x, y, g: g / (x * _like(math.log(2), x)), precision=_FLOAT32
)
real_function(
    "log10", topi.log10, np.log10, lambda x, y, g: g / (x * _like(math.log(10), x)),
    precision=_FLOAT32,
)  # fmt: skip
real_function("exp", topi.exp, np.exp, lambda x, y, g: g * y, precision=_FLOAT32)
real_function("sqrt", topi.sqrt, np.sqrt, lambda x, y, g: g / (y + y))
real_function("rsqrt", topi.rsqrt, _numpy_rsqrt, lambda x, y, g: g * _like(-0.5, x) * y / x)
real_function(
    "sigmoid", topi.sigmoid, _numpy_sigmoid, lambda x, y, g: g * y * (ops.ones_like(y) - y)
)  # fmt: skip
real_function("tanh", topi.tanh, np.tanh, lambda x, y, g: g * (ops.ones_like(y) - y * y))
real_function(
    "erf", topi.erf, None,
    lambda x, y, g: g * _like(2 / math.sqrt(math.pi), x) * ops.exp(ops.negative(x * x)),
    precision=_FLOAT32,
)  # fmt: skip
real_function("sin", topi.sin, np.sin, lambda x, y, g: g * ops.cos(x), precision=_FLOAT32)
real_function(
    "cos", topi.cos, np.cos, lambda x, y, g: ops.negative(g * ops.sin(x)), precision=_FLOAT32
)
real_function(
    "tan", topi.tan, np.tan, lambda x, y, g: g * (ops.ones_like(y) + y * y), precision=_FLOAT32
)
real_function("sinh", topi.sinh, np.sinh, lambda x, y, g: g * ops.cosh(x), precision=_FLOAT32)
real_function("cosh", topi.cosh, np.cosh, lambda x, y, g: g * ops.sinh(x), precision=_FLOAT32)
real_function(
    "asin",
    topi.asin,
    np.arcsin,
    lambda x, y, g: g * ops.rsqrt(ops.ones_like(y) - x * x),
    precision=_FLOAT32,
)
real_function(
    "acos", topi.acos, np.arccos, lambda x, y, g: ops.negative(g * ops.rsqrt(ops.ones_like(y) - x * x)),
    precision=_FLOAT32,
)  # fmt: skip
real_function(
    "atan", topi.atan, np.arctan, lambda x, y, g: g / (ops.ones_like(y) + x * x), precision=_FLOAT32
)
real_function(
    "asinh", topi.asinh, np.arcsinh, lambda x, y, g: g * ops.rsqrt(x * x + ops.ones_like(x)),
    precision=_FLOAT32,
)  # fmt: skip
real_function(
    "acosh", topi.acosh, np.arccosh, lambda x, y, g: g * ops.rsqrt(x * x - ops.ones_like(x)),
    precision=_FLOAT32,
)  # fmt: skip
real_function(
    "atanh", topi.atanh, np.arctanh, lambda x, y, g: g / (ops.ones_like(x) - x * x),
    precision=_FLOAT32,
)  # fmt: skip
unary("floor", topi.floor, np.floor, lambda x, y, g: ops.zeros_like(x))
unary("ceil", topi.ceil, np.ceil, lambda x, y, g: ops.zeros_like(x))
unary("trunc", topi.trunc, np.trunc, lambda x, y, g: ops.zeros_like(x))
unary("round", topi.round, np.rint, lambda x, y, g: ops.zeros_like(x))
unary("sign", topi.sign, np.sign, lambda x, y, g: ops.zeros_like(x))
unary("abs", topi.abs, np.abs, lambda x, y, g: g * ops.sign(x))
unary("negative", topi.negative, np.negative, lambda x, y, g: ops.negative(g))
unary("logical_not", topi.logical_not, np.logical_not)
unary(
    "bitwise_not", topi.bitwise_not, np.bitwise_not,
    infer_type=integers_only(same_as_input("bitwise_not"), "bitwise_not"),
)  # fmt: skip
unary("copy", topi.identity, np.copy, lambda x, y, g: g)
unary(
    "zeros_like", lambda x: topi.full_like(x, 0), np.zeros_like, lambda x, y, g: ops.zeros_like(x)
)
unary("ones_like", lambda x: topi.full_like(x, 1), np.ones_like, lambda x, y, g: ops.zeros_like(x))


# the exact functions are vectorised and cost no more than classic approximations of them
real_function("fast_exp", topi.fast_exp, np.exp, precision=_FLOAT32)
real_function("fast_tanh", topi.fast_tanh, np.tanh, precision=_FLOAT32)
real_function("fast_erf", topi.fast_erf, precision=_FLOAT32)


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


_predicate("isnan", topi.isnan, np.isnan)
_predicate("isfinite", topi.isfinite, np.isfinite)
_predicate("isinf", topi.isinf, np.isinf)


class ClipAttrs(Attrs, key="relay.attrs.ClipAttrs"):
    """The bounds of a clip."""

    a_min: float
    a_max: float


def _clip_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    x, attrs = call.args[0], call.attrs
    below = Op.get("less_equal")(_like(attrs.a_min, x), x)
    inside = Op.get("logical_and")(below, Op.get("less_equal")(x, _like(attrs.a_max, x)))
    return [Op.get("where")(inside, grad, ops.zeros_like(grad))]


define_op(
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


define_op(
    "cast",
    CastAttrs,
    inputs=("data",),
    infer_type=_cast_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], attrs.dtype)],
    fold=lambda attrs, arrays, out_type: [arrays[0].astype(numpy_dtype(attrs.dtype))],
    gradient=lambda call, grad: [ops.cast_like(grad, call.args[0])],
    infer_layout=layout_any,
)
define_op(
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


define_op(
    "cast_like",
    inputs=("data", "dtype_like"),
    infer_type=_cast_like_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], inputs[1].dtype)],
    simplify=lambda call, arg_types: ops.cast(call.args[0], dtype=arg_types[1].dtype),
    gradient=lambda call, grad: [ops.cast_like(grad, call.args[0]), ops.zeros_like(call.args[1])],
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
    return ops.clip(a, a_min=as_float(a_min), a_max=as_float(a_max))


def cast(data: RelayExpr, dtype: str) -> RelayExpr:
    """Convert the elements to a dtype.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype : str
        The dtype of the result.
    """
    return ops.cast(data, dtype=str(dtype))


def cast_like(data: RelayExpr, dtype_like: RelayExpr) -> RelayExpr:
    """Convert the elements to the dtype of another tensor.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype_like : relay.Expr
        The tensor whose dtype is taken.
    """
    return ops.cast_like(data, dtype_like)


def reinterpret(data: RelayExpr, dtype: str) -> RelayExpr:
    """Read the elements' bits as another dtype of the same size.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    dtype : str
        The dtype of the result.
    """
    return ops.reinterpret(data, dtype=str(dtype))


def _public(op: Op, summary: str) -> Callable[[RelayExpr], RelayExpr]:
    """The public function of one row: `log(data)`."""

    def function(data: RelayExpr) -> RelayExpr:
        return op(data)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{summary}\n\nParameters\n----------\ndata : relay.Expr\n    The tensor."
    return function


log = _public(ops.log, "Natural logarithm, element by element.")
log2 = _public(ops.log2, "Logarithm to base 2, element by element.")
log10 = _public(ops.log10, "Logarithm to base 10, element by element.")
exp = _public(ops.exp, "Exponential, element by element.")
sqrt = _public(ops.sqrt, "Square root, element by element.")
rsqrt = _public(ops.rsqrt, "One over the square root, element by element.")
sigmoid = _public(ops.sigmoid, "Logistic function, element by element.")
tanh = _public(ops.tanh, "Hyperbolic tangent, element by element.")
erf = _public(ops.erf, "Gauss error function, element by element.")
sin = _public(ops.sin, "Sine, element by element.")
cos = _public(ops.cos, "Cosine, element by element.")
tan = _public(ops.tan, "Tangent, element by element.")
sinh = _public(ops.sinh, "Hyperbolic sine, element by element.")
cosh = _public(ops.cosh, "Hyperbolic cosine, element by element.")
asin = _public(ops.asin, "Inverse sine, element by element.")
acos = _public(ops.acos, "Inverse cosine, element by element.")
atan = _public(ops.atan, "Inverse tangent, element by element.")
asinh = _public(ops.asinh, "Inverse hyperbolic sine, element by element.")
acosh = _public(ops.acosh, "Inverse hyperbolic cosine, element by element.")
atanh = _public(ops.atanh, "Inverse hyperbolic tangent, element by element.")
floor = _public(ops.floor, "The nearest integer towards minus infinity.")
ceil = _public(ops.ceil, "The nearest integer towards infinity.")
trunc = _public(ops.trunc, "The nearest integer towards zero.")
round = _public(ops.round, "The nearest integer, halves to even.")
sign = _public(ops.sign, "-1, 0 or 1 by the sign of each element.")
abs = _public(ops.abs, "Absolute value, element by element.")
negative = _public(ops.negative, "The elements with the opposite sign.")
logical_not = _public(ops.logical_not, "Logical negation, element by element.")
bitwise_not = _public(ops.bitwise_not, "Bitwise negation, element by element.")
copy = _public(ops.copy, "A copy of a tensor.")
zeros_like = _public(ops.zeros_like, "Zeros in the shape and dtype of a tensor.")
ones_like = _public(ops.ones_like, "Ones in the shape and dtype of a tensor.")
isnan = _public(ops.isnan, "Whether each element is not a number.")
isfinite = _public(ops.isfinite, "Whether each element is finite.")
isinf = _public(ops.isinf, "Whether each element is infinite.")
fast_exp = _public(ops.fast_exp, "Exponential, element by element.")
fast_tanh = _public(ops.fast_tanh, "Hyperbolic tangent, element by element.")
fast_erf = _public(ops.fast_erf, "Gauss error function, element by element.")


def converted(x: RelayExpr, dtype: str) -> RelayExpr:
    """A value in another dtype; constants at once."""
    if isinstance(x, Constant):
        return x if x.data.dtype == dtype else const(x.data.numpy().astype(dtype))
    return ops.cast(x, dtype=dtype)
