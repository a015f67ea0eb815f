"""Element-wise ONNX operators, matrix products, constants."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend import composites
from tvm.relay.frontend.collecting_loops import extent_of
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.composites import added, whole_power
from tvm.relay.frontend.dynamic_extents import with_static_extents
from tvm.relay.frontend.einsum import einsum
from tvm.relay.frontend.indexing import along_axis
from tvm.relay.frontend.matmul import matmul, swap_last

from .narrow_floats import narrow_name, narrowed
from .registry import EmptyOptional, OnnxNode, Value, onnx_op, onnx_ops, static_ints
from .strings import string_tensor
from .tensors import dtype_or, tensor_dtype

Function = Callable[..., RelayExpr]


def _binary(apply: Function) -> Function:
    return lambda *_, node: apply(*operands(node))


onnx_ops({
    "Abs": _op.abs, "Acos": _op.acos, "Acosh": _op.acosh, "Asin": _op.asin, "Asinh": _op.asinh,
    "Atan": _op.atan, "Atanh": _op.atanh, "Ceil": _op.ceil, "Cos": _op.cos, "Cosh": _op.cosh,
    "Erf": _op.erf, "Exp": _op.exp, "Floor": _op.floor, "IsNaN": _op.isnan, "Log": _op.log,
    "Neg": _op.negative, "Not": _op.logical_not, "Relu": _op.nn.relu, "Round": _op.round,
    "Sigmoid": _op.sigmoid, "Sign": _op.sign, "Sin": _op.sin, "Sinh": _op.sinh,
    "Sqrt": _op.sqrt, "Tan": _op.tan, "Tanh": _op.tanh, "BitwiseNot": _op.bitwise_not,
    "Reciprocal": lambda x: scalar_like(1.0, x) / x, "Where": _op.where,
})  # fmt: skip
onnx_ops({
    name: _binary(apply) for name, apply in {
        "Add": _op.add, "Sub": _op.subtract, "Mul": _op.multiply, "Div": _op.divide,
        "And": _op.logical_and, "Or": _op.logical_or, "Xor": _op.logical_xor, "Equal": _op.equal,
        "Less": _op.less, "LessOrEqual": _op.less_equal, "Greater": _op.greater,
        "GreaterOrEqual": _op.greater_equal, "BitwiseAnd": _op.bitwise_and,
        "BitwiseOr": _op.bitwise_or, "BitwiseXor": _op.bitwise_xor,
    }.items()
})  # fmt: skip
onnx_ops({
    "LeakyRelu": _op.nn.leaky_relu, "Elu": composites.elu, "Celu": composites.celu,
    "Selu": composites.selu, "HardSigmoid": composites.hard_sigmoid, "Swish": composites.swish,
    "Softplus": composites.softplus, "Mish": composites.mish, "Softsign": composites.softsign,
    "HardSwish": composites.hard_swish,
    "ThresholdedRelu": lambda x, alpha=1.0: composites.threshold(x, alpha),
    "com.microsoft.QuickGelu": lambda x, alpha=1.702: composites.swish(x, alpha),
    # of the first releases of ONNX, which exporters of their time wrote
    "Affine": composites.affine, "ScaledTanh": composites.scaled_tanh,
    "Scale": lambda x, scale=1.0: composites.scaled(x, scale),
    "ParametricSoftplus": composites.parametric_softplus,
    "Gelu com.microsoft.Gelu com.microsoft.BiasGelu": (
        lambda x, bias=None, approximate="none": composites.gelu(added(x, bias), approximate)
    ),
    "com.microsoft.FastGelu": lambda x, bias=None: composites.gelu(added(x, bias), "tanh"),
    "Identity": lambda node: EmptyOptional() if node.inputs[0] is None else node.inputs[0],
    "MatMul": lambda a, b, node: matmul(a, b, node.config.get("use_nt_batch_matmul", False)),
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
def _mod(x: RelayExpr, divisor: RelayExpr, fmod: bool = False) -> RelayExpr:
    if fmod:
        return _op.mod(x, divisor)
    if not infer_dtype(x).startswith("float"):
        return _op.floor_mod(x, divisor)
    # of infinite divisors too the remainder takes the sign
    rest, zero = _op.mod(x, divisor), scalar_like(0.0, x)
    wrong = _op.not_equal(_op.less(rest, zero), _op.less(divisor, zero))
    wrong = _op.logical_and(wrong, _op.not_equal(rest, zero))
    return _op.where(wrong, rest + divisor, rest)


@onnx_op("Pow")
def _pow(node: OnnxNode) -> RelayExpr:
    dtype, whole = node.dtype(0), _whole_exponent(node)
    if whole == 2 or (whole is not None and dtype.startswith("int")):
        return whole_power(node[0], whole, operator.mul)
    _, power = operands(node)
    power = power if node.dtype(1) == dtype else power.astype(dtype)
    if dtype.startswith("int"):
        return _op.power(node[0].astype("float64"), power.astype("float64")).astype(dtype)
    return _op.power(node[0], power)


def _whole_exponent(node: OnnxNode) -> int | None:
    """A constant exponent of one element, if it is a number from 1 on and leaves the base's shape."""
    exponent = node.value(1)
    if exponent is None or exponent.size != 1 or exponent.ndim > len(infer_shape(node[0])):
        return None
    number = float(exponent.reshape(-1)[0])
    return int(number) if number >= 1 and number.is_integer() else None


def _folded(fold: Function) -> Function:
    return lambda *inputs: reduce(fold, inputs)


onnx_ops({
    "Min": _folded(lambda a, b: _preferred(a, b, _op.minimum, _op.less)),
    "Max": _folded(lambda a, b: _preferred(a, b, _op.maximum, _op.greater)),
    "Sum": _folded(_op.add),
    "Mean": lambda *inputs: reduce(_op.add, inputs) / scalar_like(len(inputs), inputs[0]),
})  # fmt: skip


def _preferred(a: RelayExpr, b: RelayExpr, of_integers: Function, first: Function) -> RelayExpr:
    """The smaller or the larger one; NaN where one of them is."""
    if "float" not in infer_dtype(a):
        return of_integers(a, b)
    return _op.where(_goes_first(a, b, first), a, b)


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
def _bit_shift(x: RelayExpr, count: RelayExpr, *, direction: str) -> RelayExpr:
    """Shifts by the width or more, and negative ones, leave nothing of the value but its sign."""
    is_left, is_signed = direction == "LEFT", infer_dtype(x).startswith("int")
    zero, most = scalar_like(0, x), scalar_like(np.iinfo(infer_dtype(x)).bits - 1, x)
    fits = _op.less_equal(count, most)
    if is_signed:
        fits = _op.logical_and(fits, _op.greater_equal(count, zero))
    shifted = (_op.left_shift if is_left else _op.right_shift)(x, _op.where(fits, count, most))
    return _op.where(fits, shifted, zero) if is_left or not is_signed else shifted


@onnx_op("IsInf")
def _is_inf(x: RelayExpr, detect_negative: bool = True, detect_positive: bool = True) -> RelayExpr:
    zero, result = scalar_like(0.0, x), _op.isinf(x)
    if not detect_negative:
        result = _op.logical_and(result, _op.greater(x, zero))
    return result if detect_positive else _op.logical_and(result, _op.less(x, zero))


# ---- activations


@onnx_op("PRelu")
def _prelu(x: RelayExpr, slope: RelayExpr) -> RelayExpr:
    shape, have = infer_shape(x), infer_shape(slope)
    is_of_last = have and (not isinstance(have[0], int) or have[0] in (1, shape[-1]))
    if len(have) == 1 and len(shape) > 2 and not is_of_last:
        # old exporters give a slope for each channel
        slope = _op.reshape(slope, along_axis(1, len(shape)))
    return composites.prelu(x, slope)


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
    known = static_ints(shape) if isinstance(shape, np.ndarray) else shape
    return _op.full(constant(value), known, str(value.dtype))


@onnx_op("EyeLike")
def _eye_like(x: RelayExpr, dtype: int = 0, k: int = 0) -> RelayExpr:
    kind, shape = dtype_or(dtype, x), infer_shape(x)
    if is_static(shape):
        return constant(np.eye(shape[0], shape[1], k=k), kind)
    zero, one = constant(0, "int64"), constant(1, "int64")
    rows, columns = [_op.arange(zero, extent_of(x, axis), one, "int64") for axis in (0, 1)]
    is_one = _op.equal(_op.expand_dims(rows + constant(k, "int64"), 1), columns)
    return with_static_extents(_op.cast(is_one, kind), shape)


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


@onnx_op("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def fused_matmul(node: OnnxNode) -> RelayExpr:
    """The product of two operands, each transposed as the node says, times a number."""
    a, b = [_transposed_operand(node, i, side) for i, side in enumerate("AB")]
    return composites.scaled(matmul(a, b), node.attr("alpha", 1.0))


def _transposed_operand(node: OnnxNode, index: int, side: str) -> RelayExpr:
    """An input; ``transBatch`` moves its first axis behind the others of the batch."""
    x = node[index]
    if node.attr(f"transBatch{side}", 0):
        rank = len(infer_shape(x))
        x = _op.transpose(x, (*range(1, rank - 1), 0, rank - 1))
    return swap_last(x) if node.attr(f"trans{side}", 0) else x


@onnx_op("Einsum")
def _einsum(*operands: RelayExpr, equation: str) -> RelayExpr:
    try:
        return einsum(equation, operands)
    except OpAttributeUnImplemented:  # diagonals
        return _op.einsum(list(operands), equation)


def gemm_operands(node: OnnxNode, first: int, second: int) -> tuple[RelayExpr, RelayExpr]:
    """Two inputs as rows (M, K) and a weight (N, K)."""
    a, b = node[first], node[second]
    a = _op.transpose(a, (1, 0)) if node.attr("transA", 0) else a
    return a, b if node.attr("transB", 0) else _op.transpose(b, (1, 0))


@onnx_op("Gemm")
def gemm(node: OnnxNode) -> RelayExpr:
    """``alpha * A @ B + beta * C``."""
    a, b = gemm_operands(node, 0, 1)
    product = _op.nn.dense(a, composites.scaled(b, node.attr("alpha", 1.0)))
    beta = node.attr("beta", 1.0)
    if not node.has(2) or beta == 0.0:
        return product
    bias = composites.scaled(node[2], beta)
    fits = infer_shape(bias) == infer_shape(product)[1:]
    return _op.nn.bias_add(product, bias) if fits else product + bias
