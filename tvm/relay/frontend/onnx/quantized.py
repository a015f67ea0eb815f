"""ONNX operators of quantised models, as QDQ pairs and as integer operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import (
    as_exprs,
    constant,
    infer_dtype,
    infer_shape,
    is_static,
    scalar_like,
)
from tvm.relay.frontend.dynamic_extents import extent, reshaped
from tvm.relay.frontend.indexing import along_axis
from tvm.relay.frontend.matmul import matmul
from tvm.relay.qnn import op as _qnn

from .math import gemm_operands, saturated
from .narrow_floats import narrow_name, narrowed
from .nn import channels_last, convolve, window_of, with_borders
from .pooling import pool_of
from .registry import CONVERTERS, Converter, OnnxNode, onnx_op, onnx_ops
from .tensors import tensor_dtype

# what the quantised operators take
_QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    bits = int("".join([c for c in dtype if c.isdigit()]))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def along(values: RelayExpr, shape: tuple[Any, ...], axis: int, block: int = 0) -> RelayExpr:
    """Values of one tensor, of each slice of ``axis`` or of each block of it, to broadcast."""
    have = infer_shape(values)
    if not have or (have == (1,) and not block):
        return _op.reshape(values, ()) if have else values
    if len(have) == 1 and not block:
        return _op.reshape(values, along_axis(axis, len(shape)))
    repeated = _op.repeat(values, block, axis)
    if infer_shape(repeated)[axis] == shape[axis]:
        return repeated
    return _op.strided_slice(repeated, [0], [shape[axis]], axes=[axis])


def quantize(x: RelayExpr, zero: RelayExpr | None, dtype: str) -> RelayExpr:
    """Rounded to even, moved by the zero point, and saturated; ``x`` is scaled already."""
    rounded = _op.round(x)
    if zero is not None:
        rounded = rounded + _op.cast(zero, infer_dtype(x))
    low, high = limits(dtype)
    return _op.cast(_op.clip(rounded, float(low), float(high)), dtype)


def _parameters(node: OnnxNode) -> tuple[RelayExpr, RelayExpr]:
    """Scale and zero point as the quantised operators take them."""
    return _scalar_or_vector(node[1]), _zero(node, 2)


def _scalar_or_vector(values: RelayExpr) -> RelayExpr:
    return _op.reshape(values, ()) if infer_shape(values) == (1,) else values


def _granularity(node: OnnxNode) -> tuple[tuple[Any, ...], int, int, int]:
    """The data's shape, the axis and the blocks that have scales of their own, the result's type."""
    shape = node.shape(0)
    axis = node.attr("axis", 1) % max(len(shape), 1)
    return shape, axis, node.attr("block_size", 0), node.attr("output_dtype", 0)


@onnx_op("QuantizeLinear", "com.microsoft.QuantizeLinear")
def _quantize_linear(node: OnnxNode) -> RelayExpr:
    shape, axis, block, given = _granularity(node)
    dtype = tensor_dtype(given) if given else node.dtype(2) if node.has(2) else "uint8"
    if not block and dtype in _QUANTIZED and node.dtype(0) == node.dtype(1) == "float32":
        return _qnn.quantize(node[0], *_parameters(node), axis=axis, out_dtype=dtype)
    scale = along(node[1], shape, axis, block)
    zero = along(node[2], shape, axis, block) if node.has(2) else None
    x = node[0] if node.dtype(0).startswith("float") else _op.cast(node[0], "float32")
    precise = node.attr("precision", 0)
    work = "float32" if node.dtype(1) == "float16" else node.dtype(1)
    work = tensor_dtype(precise) if precise else work
    scaled = _op.cast(x, work) / _op.cast(scale, work)
    if kind := narrow_name(given or (node.input_types[2] if node.has(2) else None)):
        return narrowed(scaled, kind, bool(node.attr("saturate", 1)))
    if "float" not in dtype:
        return quantize(scaled, zero, dtype)
    return saturated(scaled, dtype) if node.attr("saturate", 1) else _op.cast(scaled, dtype)


@onnx_op("DequantizeLinear", "com.microsoft.DequantizeLinear")
def _dequantize_linear(node: OnnxNode) -> RelayExpr:
    shape, axis, block, given = _granularity(node)
    dtype = tensor_dtype(given) if given else node.dtype(1)
    if not block and node.dtype(0) in _QUANTIZED and dtype == node.dtype(1) == "float32":
        return _qnn.dequantize(node[0], *_parameters(node), axis=axis)
    scale = along(node[1], shape, axis, block)
    exact = "float32" if "float" in node.dtype(0) else "int32"
    x = _op.cast(node[0], exact)
    if node.has(2) and exact != "float32":
        x = x - _op.cast(along(node[2], shape, axis, block), exact)
    work = "float32" if dtype == "float16" else dtype
    return _op.cast(_op.cast(x, work) * _op.cast(scale, work), dtype)


onnx_ops({
    "DynamicQuantizeLinear": lambda node: dynamically_quantized(node[0]),
    "MatMulInteger": lambda node: integer_matmul(node, (0, 2), (1, 3)),
    "ConvInteger": lambda node: _integer_conv(node, (0, 2), (1, 3)),
    "com.microsoft.MulInteger": lambda node: _moved(node, 0, 1) * _moved(node, 2, 3),
})  # fmt: skip


def dynamically_quantized(x: RelayExpr) -> list[RelayExpr]:
    """To uint8 by the range of the data, zero always within it: the data, the scale, the point."""
    zero = scalar_like(0.0, x)
    low, high = _op.minimum(_op.min(x), zero), _op.maximum(_op.max(x), zero)
    scale = (high - low) / scalar_like(255.0, x)
    safe = _op.where(_op.equal(scale, zero), scalar_like(1.0, x), scale)
    point = quantize(_op.negative(low) / safe, None, "uint8")
    return [quantize(x / safe, point, "uint8"), scale, point]


def _moved(node: OnnxNode, index: int, zero_index: int, row: bool = False) -> RelayExpr:
    """An integer input less its zero point, as int32."""
    x = _op.cast(node[index], "int32")
    if not node.has(zero_index):
        return x
    zero = _op.cast(node[zero_index], "int32")
    if row and len(infer_shape(zero)) == 1 and infer_shape(zero) != (1,):
        zero = _op.expand_dims(zero, 1)
    return x - zero


def _requantized(total: RelayExpr, scale: RelayExpr, zero: RelayExpr, dtype: str) -> RelayExpr:
    return quantize(_op.cast(total, "float32") * scale, zero, dtype)


def _zero(node: OnnxNode, index: int) -> RelayExpr:
    """A zero point as the quantised operators take it."""
    if not node.has(index):
        return constant(0, "int32")
    return _op.cast(_scalar_or_vector(node[index]), "int32")


def integer_matmul(node: OnnxNode, a: tuple[int, int], b: tuple[int, int]) -> RelayExpr:
    """The product of two integer inputs, each given by its index and its zero point's."""
    zeros = [_zero(node, index) for _, index in (a, b)]
    shape, of_columns = node.shape(b[0]), infer_shape(zeros[1])
    is_plain = len(node.shape(a[0])) >= 2 and len(shape) == 2 and infer_shape(zeros[0]) == ()
    is_plain = is_plain and is_static(shape)
    if not is_plain or len(of_columns) > 1:
        return matmul(_moved(node, *a, row=True), _moved(node, *b))
    rows = _op.reshape(node[a[0]], (-1, shape[0]))
    product = integer_dense(rows, _op.transpose(node[b[0]], (1, 0)), *zeros)
    leading = [extent(node[a[0]], axis) for axis in range(len(node.shape(a[0])) - 1)]
    return reshaped(product, [*leading, shape[1]])


def integer_dense(
    rows: RelayExpr, weight: RelayExpr, zero: RelayExpr, weight_zero: RelayExpr
) -> RelayExpr:
    one = constant(1.0, "float32")
    units = infer_shape(weight)[0]
    return _qnn.dense(rows, weight, zero, weight_zero, one, one, units=units)


def _integer_conv(node: OnnxNode, x: tuple[int, int], w: tuple[int, int]) -> RelayExpr:
    """The convolution of two integer inputs, each given by its index and its zero point's."""
    shape, zeros = node.shape(w[0]), [_zero(node, index) for _, index in (x, w)]
    by_rank: dict[int, Callable[..., RelayExpr]] = {
        3: _qnn.conv1d, 4: _qnn.conv2d, 5: _qnn.conv3d,
    }  # fmt: skip
    conv = by_rank.get(len(shape))
    if conv is None or infer_shape(zeros[0]) != ():
        return convolve(node, _moved(node, *x), _weight_moved(node, *w))
    kernel = list(node.attr("kernel_shape", shape[2:]))
    view, data = with_borders(node, node[x[0]], kernel, _op.cast(zeros[0], node.dtype(x[0])))
    strides, padding, dilations = window_of(view, kernel)
    one = constant(1.0, "float32")
    return conv(
        data, node[w[0]], *zeros, one, one, kernel_size=tuple(kernel), channels=shape[0],
        strides=tuple(strides), padding=padding, dilation=tuple(dilations),
        groups=node.attr("group", 1),
    )  # fmt: skip


@onnx_op("com.microsoft.MatMulIntegerToFloat")
def _matmul_integer_to_float(node: OnnxNode) -> RelayExpr:
    total = integer_matmul(node, (0, 4), (1, 5))
    result = _op.cast(total, "float32") * (node[2] * node[3])
    return result + node[6] if node.has(6) else result


@onnx_op("com.microsoft.DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(node: OnnxNode) -> RelayExpr:
    a, scale, zero = dynamically_quantized(node[0])
    total = matmul(_op.cast(a, "int32") - _op.cast(zero, "int32"), _moved(node, 1, 3))
    result = _op.cast(total, "float32") * (scale * node[2])
    return result + node[4] if node.has(4) else result


@onnx_op("QLinearMatMul")
def _qlinear_matmul(node: OnnxNode) -> RelayExpr:
    """Inputs a, its scale and zero point, b, its scale and zero point, and those of the result."""
    total = integer_matmul(node, (0, 2), (3, 5))
    a_scale, y_scale = node[1], node[6]
    if len(infer_shape(a_scale)) == 1 and infer_shape(a_scale) != (1,):
        a_scale = _op.expand_dims(a_scale, 1)
    scale = _op.cast(a_scale * node[4] / y_scale, "float32")
    return _requantized(total, scale, node[7], node.dtype(7))


def _weight_moved(node: OnnxNode, index: int, zero_index: int) -> RelayExpr:
    """A convolution's weight less its zero points, of all or of each output channel."""
    w = _op.cast(node[index], "int32")
    if not node.has(zero_index):
        return w
    return w - along(_op.cast(node[zero_index], "int32"), infer_shape(w), 0)


@onnx_op("QLinearConv")
def _qlinear_conv(node: OnnxNode) -> RelayExpr:
    """x, its scale and zero point, w, its scale and zero point, those of the result, bias."""
    total = _integer_conv(node, (0, 2), (3, 5))
    if node.has(8):
        total = _op.nn.bias_add(total, node[8])
    shape = infer_shape(total)
    scale = along(node[1] * node[4] / node[6], shape, 1)
    return _requantized(total, scale, node[7], node.dtype(7))


# ---- com.microsoft: operators over quantised values


def _real(node: OnnxNode, index: int) -> RelayExpr:
    """The float32 value of a quantised input followed by its scale and zero point."""
    return _op.cast(_moved(node, index, index + 2), "float32") * node[index + 1]


def _quantized(node: OnnxNode, x: RelayExpr, index: int, dtype: str) -> RelayExpr:
    """``x`` by the scale and zero point that are inputs ``index`` and ``index + 1``."""
    zero = node[index + 1] if node.has(index + 1) else None
    return quantize(x / node[index], zero, dtype)


# the operator of float32, which inputs are its data, each followed by its scale and zero point, and
# which input is the scale of the result
_QLINEAR: dict[str, tuple[str, tuple[int, ...], int]] = {
    "com.microsoft.QLinearAdd": ("Add", (0, 3), 6),
    "com.microsoft.QLinearMul": ("Mul", (0, 3), 6),
    "com.microsoft.QLinearWhere": ("Where", (1, 4), 7),
    "com.microsoft.QLinearSigmoid": ("Sigmoid", (0,), 3),
    "com.microsoft.QLinearLeakyRelu": ("LeakyRelu", (0,), 3),
    "com.microsoft.QLinearSoftmax": ("Softmax", (0,), 3),
    "com.microsoft.QLinearReduceMean": ("ReduceMean", (0,), 3),
}


def _qlinear(name: str, data: tuple[int, ...], scale: int) -> Converter:
    """The operator on dequantised inputs, its result quantised."""

    def convert(node: OnnxNode) -> RelayExpr:
        inputs = [*node.inputs[: data[0]], *[_real(node, i) for i in data]]
        # Softmax says the opset whose axes it has
        view = replace(node, op_type=name, inputs=inputs, opset=node.attr("opset", 13))
        (result,) = as_exprs(CONVERTERS[name](view))
        return _quantized(node, result, scale, node.dtype(data[0]))

    return convert


onnx_ops({name: _qlinear(*row) for name, row in _QLINEAR.items()})
onnx_ops({
    # whose channels may be last; the weight's are not
    "com.microsoft.QLinearConv": lambda node: (
        channels_last(node, _qlinear_conv) if node.attr("channels_last", 0)
        else _qlinear_conv(node)
    ),
})  # fmt: skip


@onnx_op("com.microsoft.QLinearGlobalAveragePool")
def _qlinear_global_average_pool(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(0))
    axes = list(range(1, rank - 1)) if node.attr("channels_last", 0) else list(range(2, rank))
    return _quantized(node, _op.mean(_real(node, 0), axes, True), 3, node.dtype(0))


@onnx_op("com.microsoft.QLinearAveragePool")
def _qlinear_average_pool(node: OnnxNode) -> RelayExpr:
    view = replace(node, op_type="AveragePool", inputs=[_real(node, 0)])
    is_last = node.attr("channels_last", 0)
    pooled = channels_last(view, pool_of) if is_last else pool_of(view)
    return _quantized(node, pooled, 3, node.dtype(0))


@onnx_op("com.microsoft.QLinearConcat")
def _qlinear_concat(node: OnnxNode) -> RelayExpr:
    """Scale and zero point of the result come first, then each input with its own."""
    parts = [_real(node, i) for i in range(2, len(node.inputs), 3)]
    joined = _op.concatenate(parts, node.attr("axis"))
    return quantize(joined / node[0], node[1], node.dtype(1))


@onnx_op("com.microsoft.QGemm")
def _qgemm(node: OnnxNode) -> RelayExpr:
    a, b = gemm_operands(node, 0, 3)
    total = integer_dense(a, b, _zero(node, 2), _zero(node, 5))
    total = total + node[6] if node.has(6) else total
    scale = node[1] * node[4] * constant(node.attr("alpha", 1.0), "float32")
    real = _op.cast(total, "float32") * scale
    return quantize(real / node[7], node[8], node.dtype(8)) if node.has(7) else real
