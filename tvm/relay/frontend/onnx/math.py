"""Element-wise ONNX operators, matrix products, constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant, const
from tvm.relay.frontend import composites
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.dynamic_extents import with_static_extents
from tvm.relay.frontend.einsum import einsum
from tvm.relay.frontend.indexing import along_axis
from tvm.relay.frontend.matmul import matmul, swap_last

from .narrow_floats import narrow_name, narrowed
from .registry import Converter, EmptyOptional, OnnxNode, Value, onnx_op, onnx_ops, static_ints
from .strings import string_tensor
from .tensors import tensor_dtype

Function = Callable[..., RelayExpr]

_UNARY: dict[str, Function] = {
    "Abs": _op.abs, "Acos": _op.acos, "Acosh": _op.acosh, "Asin": _op.asin, "Asinh": _op.asinh,
    "Atan": _op.atan, "Atanh": _op.atanh, "Ceil": _op.ceil, "Cos": _op.cos, "Cosh": _op.cosh,
    "Erf": _op.erf, "Exp": _op.exp, "Floor": _op.floor, "IsNaN": _op.isnan, "Log": _op.log,
    "Neg": _op.negative, "Not": _op.logical_not, "Relu": _op.nn.relu, "Round": _op.round,
    "Sigmoid": _op.sigmoid, "Sign": _op.sign, "Sin": _op.sin, "Sinh": _op.sinh,
    "Sqrt": _op.sqrt, "Tan": _op.tan, "Tanh": _op.tanh, "BitwiseNot": _op.bitwise_not,
    "Reciprocal": lambda x: scalar_like(1.0, x) / x,
    "Softplus": composites.softplus, "Mish": composites.mish, "Softsign": composites.softsign,
    "HardSwish": composites.hard_swish,
}  # fmt: skip
_BINARY: dict[str, Function] = {
    "Add": _op.add, "Sub": _op.subtract, "Mul": _op.multiply, "Div": _op.divide,
    "And": _op.logical_and, "Or": _op.logical_or, "Xor": _op.logical_xor, "Equal": _op.equal,
    "Less": _op.less, "LessOrEqual": _op.less_equal, "Greater": _op.greater,
    "GreaterOrEqual": _op.greater_equal, "BitwiseAnd": _op.bitwise_and,
    "BitwiseOr": _op.bitwise_or, "BitwiseXor": _op.bitwise_xor,
}  # fmt: skip
# functions whose parameters are attributes with these defaults
_WITH_ATTRIBUTES: dict[str, tuple[Function, Mapping[str, float]]] = {
    "LeakyRelu": (_op.nn.leaky_relu, {"alpha": 0.01}),
    "Elu": (composites.elu, {"alpha": 1.0}),
    "Celu": (composites.celu, {"alpha": 1.0}),
    "Selu": (composites.selu, {"alpha": 1.6732632, "gamma": 1.050701}),
    "HardSigmoid": (composites.hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "ThresholdedRelu": (composites.threshold, {"alpha": 1.0}),
    "Swish": (composites.swish, {"alpha": 1.0}),
    "com.microsoft.QuickGelu": (composites.swish, {"alpha": 1.702}),
    # of the first releases of ONNX, which exporters of their time wrote
    "Affine": (composites.affine, {"alpha": 1.0, "beta": 0.0}),
    "Scale": (composites.scaled, {"scale": 1.0}),
    "ScaledTanh": (composites.scaled_tanh, {"alpha": 1.0, "beta": 1.0}),
    "ParametricSoftplus": (composites.parametric_softplus, {"alpha": 1.0, "beta": 1.0}),
}


def _unary(apply: Function) -> Converter:
    return lambda node: apply(node[0])


def _binary(apply: Function) -> Converter:
    return lambda node: apply(*operands(node))


def _with_attributes(apply: Function, defaults: Mapping[str, float]) -> Converter:
    return lambda node: apply(node[0], *[node.attr(name, d) for name, d in defaults.items()])


onnx_ops({name: _unary(function) for name, function in _UNARY.items()})
onnx_ops({name: _binary(function) for name, function in _BINARY.items()})
onnx_ops({name: _with_attributes(*row) for name, row in _WITH_ATTRIBUTES.items()})
onnx_ops({
    "Identity": lambda node: EmptyOptional() if node.inputs[0] is None else node.inputs[0],
    "Where": lambda node: _op.where(node[0], node[1], node[2]),
})  # fmt: skip


def operands(node: OnnxNode) -> tuple[RelayExpr, RelayExpr]:
    """Both inputs; before opset 7 the second one's axes may belong to those from ``axis`` on."""
    axis = node.attr("axis") if node.opset < 7 else None
    if axis is None:
        return node[0], node[1]
    rank, count = len(node.shape(0)), len(node.shape(1))
    missing = rank - axis % rank - count
    return node[0], _op.expand_dims(node[1], count, missing) if missing > 0 else node[1]


@onnx_op("Mod")
def _mod(node: OnnxNode) -> RelayExpr:
    if node.attr("fmod", 0):
        return _op.mod(node[0], node[1])
    if not node.dtype(0).startswith("float"):
        return _op.floor_mod(node[0], node[1])
    # of infinite divisors too the remainder takes the sign
    rest, zero = _op.mod(node[0], node[1]), scalar_like(0.0, node[0])
    wrong = _op.not_equal(_op.less(rest, zero), _op.less(node[1], zero))
    wrong = _op.logical_and(wrong, _op.not_equal(rest, zero))
    return _op.where(wrong, rest + node[1], rest)


@onnx_op("Pow")
def _pow(node: OnnxNode) -> RelayExpr:
    exponent = node.value(1)
    if exponent is not None and exponent.size == 1 and float(exponent.reshape(-1)[0]) == 2.0:
        return node[0] * node[0]
    dtype = node.dtype(0)
    _, power = operands(node)
    power = power if node.dtype(1) == dtype else power.astype(dtype)
    if dtype.startswith("int"):
        return _op.power(node[0].astype("float64"), power.astype("float64")).astype(dtype)
    return _op.power(node[0], power)


@onnx_op("Min", "Max", "Sum", "Mean")
def _variadic(node: OnnxNode) -> RelayExpr:
    fold = {"Min": _smaller, "Max": _larger}.get(node.op_type, _op.add)
    inputs = node.given()
    result = inputs[0]
    for item in inputs[1:]:
        result = fold(result, item)
    return result / scalar_like(len(inputs), result) if node.op_type == "Mean" else result


def _smaller(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """The smaller one; NaN where one of them is."""
    return _op.minimum(a, b) if _is_integer(a) else _op.where(_goes_first(a, b, _op.less), a, b)


def _larger(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """The larger one; NaN where one of them is."""
    return _op.maximum(a, b) if _is_integer(a) else _op.where(_goes_first(a, b, _op.greater), a, b)


def _is_integer(x: RelayExpr) -> bool:
    return not infer_dtype(x).startswith(("float", "bfloat"))


def _goes_first(
    a: RelayExpr, b: RelayExpr, comes_before: Callable[[RelayExpr, RelayExpr], RelayExpr]
) -> RelayExpr:
    """Whether ``a`` is chosen: a comparison with NaN is false, which chooses ``b``."""
    if isinstance(a, Constant) and not np.isnan(a.data.numpy().astype("float64")).any():
        return comes_before(a, b)
    return _op.logical_or(comes_before(a, b), _op.isnan(a))


@onnx_op("Clip")
def _clip(node: OnnxNode) -> RelayExpr:
    if node.opset < 11:
        bounds: list[Any] = [node.attr("min"), node.attr("max")]
    else:
        bounds = [node.value(1), node.value(2)]
        if any(node.has(i) and bounds[i - 1] is None for i in (1, 2)):
            result = _op.maximum(node[0], node[1]) if node.has(1) else node[0]
            return _op.minimum(result, node[2]) if node.has(2) else result
    dtype = node.dtype(0)
    kind = np.iinfo(dtype) if "int" in dtype else np.finfo(dtype)
    low = float(kind.min) if bounds[0] is None else float(np.asarray(bounds[0]).reshape(()))
    high = float(kind.max) if bounds[1] is None else float(np.asarray(bounds[1]).reshape(()))
    return _op.clip(node[0], min(low, high), high)


@onnx_op("Cast", "CastLike")
def _cast(node: OnnxNode) -> RelayExpr:
    is_like = node.op_type == "CastLike"
    saturate = bool(node.attr("saturate", 1))
    if kind := narrow_name(node.input_types[1] if is_like else node.attr("to")):
        return narrowed(node[0], kind, saturate, node.attr("round_mode", "up"))
    dtype = node.dtype(1) if is_like else tensor_dtype(node.attr("to"))
    if dtype in NARROW_FLOATS and saturate:
        return saturated(node[0], dtype)
    return _op.cast(node[0], dtype)


# the largest finite value of each
NARROW_FLOATS = {"e4m3_float8": 448.0, "e5m2_float8": 57344.0}


def saturated(x: RelayExpr, dtype: str) -> RelayExpr:
    """As a narrow float: what is too large becomes the largest finite value."""
    most = NARROW_FLOATS[dtype]
    bounded = _op.clip(x, -most, most)
    return _op.cast(_op.where(_op.isnan(x), x, bounded), dtype)


@onnx_op("BitShift")
def _bit_shift(node: OnnxNode) -> RelayExpr:
    """Shifts by the width or more, and negative ones, leave nothing of the value but its sign."""
    x, count = node[0], node[1]
    is_left = node.attr("direction") == "LEFT"
    dtype = node.dtype(0)
    bits = int("".join([c for c in dtype if c.isdigit()]))
    zero, most = scalar_like(0, x), scalar_like(bits - 1, x)
    fits = _op.less_equal(count, most)
    if dtype.startswith("int"):
        fits = _op.logical_and(fits, _op.greater_equal(count, zero))
    shifted = (_op.left_shift if is_left else _op.right_shift)(x, _op.where(fits, count, most))
    if is_left or not dtype.startswith("int"):
        return _op.where(fits, shifted, zero)
    return shifted


@onnx_op("IsInf")
def _is_inf(node: OnnxNode) -> RelayExpr:
    zero = scalar_like(0.0, node[0])
    result = _op.isinf(node[0])
    if not node.attr("detect_negative", 1):
        result = _op.logical_and(result, _op.greater(node[0], zero))
    if not node.attr("detect_positive", 1):
        result = _op.logical_and(result, _op.less(node[0], zero))
    return result


# ---- activations


@onnx_op("PRelu")
def _prelu(node: OnnxNode) -> RelayExpr:
    slope, shape, have = node[1], node.shape(0), node.shape(1)
    is_of_last = have and (not isinstance(have[0], int) or have[0] in (1, shape[-1]))
    if len(have) == 1 and len(shape) > 2 and not is_of_last:
        # old exporters give a slope for each channel
        slope = _op.reshape(slope, along_axis(1, len(shape)))
    return composites.prelu(node[0], slope)


@onnx_op("Gelu", "com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu")
def _gelu(node: OnnxNode) -> RelayExpr:
    x = node[0] + node[1] if node.has(1) else node[0]
    return composites.gelu(
        x, "tanh" if node.op_type == "FastGelu" else node.attr("approximate", "none")
    )


# ---- constants


@onnx_op("Constant")
def _constant(node: OnnxNode) -> Value:
    for name, dtype in (("value_float", "float32"), ("value_floats", "float32"),
                        ("value_int", "int64"), ("value_ints", "int64")):  # fmt: skip
        if name in node.attrs:
            return constant(node.attrs[name], dtype)
    for name in ("value_string", "value_strings"):
        if name in node.attrs:
            return string_tensor(node.attrs[name])
    if "value" not in node.attrs:
        raise node.unsupported(f"a constant given by {list(node.attrs)}")
    value = node.attrs["value"]
    return string_tensor(value) if value.dtype.kind == "O" else constant(value)


@onnx_op("ConstantOfShape")
def _constant_of_shape(node: OnnxNode) -> RelayExpr:
    value = np.asarray(node.attr("value", np.zeros(1, "float32"))).reshape(-1)[0]
    shape = node.value_or_expr(0, "shape")
    if isinstance(shape, np.ndarray):
        return _op.full(constant(value), static_ints(shape), str(value.dtype))
    return _op.full(constant(value), shape, str(value.dtype))


@onnx_op("EyeLike")
def _eye_like(node: OnnxNode) -> RelayExpr:
    given = node.attr("dtype")
    dtype = tensor_dtype(given) if given else node.dtype(0)
    shape, shift = node.shape(0), node.attr("k", 0)
    if is_static(shape):
        return constant(np.eye(shape[0], shape[1], k=shift), dtype)
    zero, one = constant(0, "int64"), constant(1, "int64")
    rows, columns = [
        _op.arange(
            zero, _op.take(_op.shape_of(node[0], "int64"), constant(axis, "int64"), 0), one, "int64"
        )
        for axis in (0, 1)
    ]
    is_one = _op.equal(_op.expand_dims(rows + constant(shift, "int64"), 1), columns)
    return with_static_extents(_op.cast(is_one, dtype), shape)


@onnx_op("Range", "com.microsoft.Range")
def _range(node: OnnxNode) -> RelayExpr:
    names = ("start", "limit", "delta")
    if not node.has(2):
        inputs = [node[0], node[1], constant(1, node.dtype(0))]
        return _range(replace(node, inputs=inputs))
    bounds = [node.value_or_expr(i, name) for i, name in enumerate(names)]
    if all(isinstance(bound, np.ndarray) for bound in bounds):
        known: list[Any] = [np.reshape(np.asarray(bound), ()) for bound in bounds]
        return constant(np.arange(*known, dtype=known[0].dtype))
    start, limit, delta = [_op.reshape(node[i], ()) for i in range(3)]
    return _op.arange(start, limit, delta, node.dtype(0))


# ---- matrix products


@onnx_op("MatMul")
def _matmul(node: OnnxNode) -> RelayExpr:
    return matmul(node[0], node[1], node.config.get("use_nt_batch_matmul", False))


@onnx_op("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(node: OnnxNode) -> RelayExpr:
    """The product of two operands, each transposed as the node says, times a number."""
    a, b = [_transposed_operand(node, i, side) for i, side in enumerate("AB")]
    product = matmul(a, b)
    alpha = node.attr("alpha", 1.0)
    return product if alpha == 1.0 else product * scalar_like(alpha, product)


def _transposed_operand(node: OnnxNode, index: int, side: str) -> RelayExpr:
    """An input; ``transBatch`` moves its first axis behind the others of the batch."""
    x = node[index]
    if node.attr(f"transBatch{side}", 0):
        rank = len(infer_shape(x))
        x = _op.transpose(x, (*range(1, rank - 1), 0, rank - 1))
    return swap_last(x) if node.attr(f"trans{side}", 0) else x


@onnx_op("Einsum")
def _einsum(node: OnnxNode) -> RelayExpr:
    try:
        return einsum(node.attr("equation"), node.given())
    except OpAttributeUnImplemented:  # diagonals
        return _op.einsum(node.given(), node.attr("equation"))


def gemm_operands(node: OnnxNode, first: int, second: int) -> tuple[RelayExpr, RelayExpr]:
    """Two inputs as rows (M, K) and a weight (N, K)."""
    a, b = node[first], node[second]
    a = _op.transpose(a, (1, 0)) if node.attr("transA", 0) else a
    return a, b if node.attr("transB", 0) else _op.transpose(b, (1, 0))


@onnx_op("Gemm")
def gemm(node: OnnxNode) -> RelayExpr:
    """``alpha * A @ B + beta * C``."""
    a, b = gemm_operands(node, 0, 1)
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    if alpha != 1.0:
        b = b * const(alpha, infer_dtype(b))
    product = _op.nn.dense(a, b)
    if not node.has(2) or beta == 0.0:
        return product
    bias = node[2] if beta == 1.0 else node[2] * scalar_like(beta, node[2])
    fits = infer_shape(bias) == infer_shape(product)[1:]
    return _op.nn.bias_add(product, bias) if fits else product + bias
