"""Quantised convolutions and dense layers of PyTorch, quantised statically or dynamically.

quantized::linear(q, packed, s, z)    ->    qnn.quantize((float32(qnn.dense(q, w, ..)) + bias) * t, 1, z)
quantized::linear_dynamic(x, packed)  ->    float32(qnn.dense(qnn.quantize(x, ..), w, ..)) * t + bias
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay import qnn
from tvm.relay.expr import const
from tvm.relay.frontend.common import constant, infer_shape
from tvm.support.scope import Scoped

from .products import linear
from .quantized import Quantized, quantized, scale_and_zero
from .registry import Converter, as_number, torch_ops
from .requantization import Engine, engine_of_convolution, engine_of_dense, requantized

# the least scale of dynamically quantised data, as torch has it
_LEAST_SCALE = 6.1e-5


# what stands for the integers of a packed weight; a constant if nothing is said
KEPT_WEIGHTS: Scoped[Callable[[Any, np.ndarray[Any, Any]], RelayExpr]] = Scoped("kept_weights")


@dataclass(frozen=True)
class Weight:
    """The integers of a packed weight, their scales and zero points, and a bias of real numbers."""

    integers: np.ndarray[Any, Any]
    scales: np.ndarray[Any, Any]
    zero_points: np.ndarray[Any, Any]
    bias: Any
    packed: Any  # torch's object for all of them

    @classmethod
    def unpacked(cls, packed: Any, weight: Any, bias: Any, axis: int = 0) -> Weight:
        scales, zeros, of_axis = scale_and_zero(weight)
        if of_axis not in (-1, axis):
            raise OpAttributeUnImplemented("weights require scales of their output channels")
        added = None if bias is None else bias.detach().numpy().astype("float64")
        integers = weight.int_repr().numpy()
        return cls(
            integers, np.asarray(scales, "float32"), np.asarray(zeros, "int32"), added, packed
        )

    def operand(self) -> RelayExpr:
        """The integers as the quantised operators take them."""
        keep = KEPT_WEIGHTS.current()
        return constant(self.integers) if keep is None else keep(self.packed, self.integers)

    @property
    def zeros(self) -> RelayExpr:
        """Zero points as the quantised operators take them."""
        return constant(self.zero_points if self.zero_points.any() else np.int32(0))


def dense_weight(packed: Any) -> Weight:
    """The weight of a dense layer."""
    import torch

    return Weight.unpacked(packed, *torch.ops.quantized.linear_unpack(packed))


def dynamically_quantized(x: RelayExpr, reduce_range: bool) -> Quantized:
    """Real numbers as uint8 by their own range, as 7 bits with `reduce_range`."""
    steps, zero = 127.0 if reduce_range else 255.0, const(0.0)
    low, high = _op.minimum(_op.min(x), zero), _op.maximum(_op.max(x), zero)
    raw = (high - low) / const(steps)
    safe = _op.where(_op.equal(raw, zero), const(1.0), raw)
    point = _op.cast(_op.clip(_op.round(_op.negative(low) / safe), 0.0, steps), "int32")
    scale = _op.maximum(raw, const(_LEAST_SCALE))
    return Quantized(qnn.op.quantize(x, scale, point, out_dtype="uint8"), scale, point, "uint8")


def _as_expr(value: Any, dtype: str) -> RelayExpr:
    return value if isinstance(value, RelayExpr) else const(value, dtype)


def _finished(
    engine: Engine, sums: RelayExpr, x: Quantized, weight: Weight, relu: bool, scale: Any, zero: Any
) -> Quantized:
    """Integer sums with the bias added, requantised as an engine rounds them."""
    step, point = float(as_number(scale)), int(as_number(zero))
    scales = (float(as_number(x.scale)), weight.scales, step)
    data = requantized(engine, sums, 1, scales, weight.bias, relu, point, x.dtype)
    return Quantized(data, step, point, x.dtype)


def _real(sums: RelayExpr, x: Quantized, weight: Weight, axis: int, relu: bool) -> RelayExpr:
    """Integer sums as real numbers, with the bias added."""
    trailing = len(infer_shape(sums)) - 1 - axis
    scales = weight.scales.reshape(-1, *[1] * trailing) if weight.scales.ndim else weight.scales
    result = _op.cast(sums, "float32") * (constant(scales) * _as_expr(x.scale, "float32"))
    if weight.bias is not None:
        result = _op.nn.bias_add(result, constant(weight.bias.astype("float32")), axis)
    return _op.nn.relu(result) if relu else result


def _dense_sums(x: Quantized, weight: Weight) -> RelayExpr:
    """The sums of all rows, in two dimensions."""
    units, width = weight.integers.shape
    return qnn.op.dense(
        _op.reshape(x.data, (-1, width)), weight.operand(), _as_expr(x.zero_point, "int32"),
        weight.zeros, _as_expr(x.scale, "float32"), constant(weight.scales), units=units,
        out_dtype="int32",
    )  # fmt: skip


def _in_rows(result: RelayExpr, shape: Sequence[Any]) -> RelayExpr:
    """Rows back in the dimensions of the data."""
    leading = shape[:-1]
    return result if len(leading) == 1 else _op.reshape(result, (*leading, infer_shape(result)[1]))


def _dense(relu: bool) -> Converter:
    def convert(x: Quantized, packed: Any, scale: Any, zero_point: Any) -> Quantized:
        weight = dense_weight(packed)
        engine = engine_of_dense()
        made = _finished(engine, _dense_sums(x, weight), x, weight, relu, scale, zero_point)
        data = _in_rows(made.data, infer_shape(x.data))
        return Quantized(data, made.scale, made.zero_point, made.dtype)

    return convert


def _dense_dynamic(relu: bool) -> Converter:
    def convert(x: RelayExpr, packed: Any, reduce_range: bool = False) -> RelayExpr:
        data, weight = dynamically_quantized(x, reduce_range), dense_weight(packed)
        return _in_rows(_real(_dense_sums(data, weight), data, weight, 1, relu), infer_shape(x))

    return convert


def _dense_float16(relu: bool) -> Converter:
    """Weights that were rounded to float16; data and sums in float32."""

    def convert(x: RelayExpr, packed: Any) -> RelayExpr:
        import torch

        weight, bias = torch.ops.quantized.linear_unpack_fp16(packed)
        added = None if bias is None else constant(bias.detach().float().numpy())
        result = linear(x, constant(weight.detach().float().numpy()), added)
        return _op.nn.relu(result) if relu else result

    return convert


def dynamic_dense(packed: Any, reduce_range: bool = False) -> Callable[[RelayExpr], RelayExpr]:
    """What a packed weight makes of real numbers: a product with weights of 8 or of 16 bits."""
    import torch

    weight, _ = torch.ops.quantized.linear_unpack(packed)
    if not weight.is_quantized:
        return partial(_dense_float16(relu=False), packed=packed)
    return partial(_dense_dynamic(relu=False), packed=packed, reduce_range=reduce_range)


def packed_cell(cell: Any) -> list[Callable[[RelayExpr], RelayExpr]]:
    """The products with inputs and with states of a recurrent layer's packed weights."""
    _, _, _, flags, packed = cell.__getstate__()[0]
    return [dynamic_dense(p, bool(flags and flags[0])) for p in packed]


def _conv_weight(packed: Any) -> Weight:
    import torch

    rank = len(packed.stride())
    unpack = torch.ops.quantized.conv2d_unpack if rank == 2 else torch.ops.quantized.conv3d_unpack
    weight, bias = unpack(packed)
    return Weight.unpacked(packed, weight, bias, axis=1 if packed.transpose() else 0)


def _conv_sums(x: Quantized, packed: Any, weight: Weight) -> RelayExpr:
    """The integer sums of a convolution, plain or transposed, over two or three axes."""
    shape, transposed = weight.integers.shape, bool(packed.transpose())
    attrs: dict[str, Any] = {
        "kernel_size": shape[2:],
        "channels": shape[1] * packed.groups() if transposed else shape[0],
        "strides": tuple(packed.stride()),
        "padding": tuple(packed.padding()),
        "dilation": tuple(packed.dilation()),
        "groups": packed.groups(),
        "out_dtype": "int32",
    }
    if transposed:
        attrs["output_padding"] = tuple(packed.output_padding())
    name = f"conv{len(shape) - 2}d{'_transpose' if transposed else ''}"
    result: RelayExpr = getattr(qnn.op, name)(
        x.data, weight.operand(), _as_expr(x.zero_point, "int32"), weight.zeros,
        _as_expr(x.scale, "float32"), constant(weight.scales), **attrs,
    )  # fmt: skip
    return result


def _is_over_one_axis(x: Quantized) -> bool:
    return len(infer_shape(x.data)) == 3


def _lifted(x: Quantized) -> Quantized:
    """Data of one axis with a second one, as the packed weights have it."""
    data = _op.expand_dims(x.data, 2) if _is_over_one_axis(x) else x.data
    return Quantized(data, x.scale, x.zero_point, x.dtype)


def _conv(relu: bool) -> Converter:
    def convert(x: Quantized, packed: Any, *steps: Any) -> Quantized:
        weight, data = _conv_weight(packed), _lifted(x)
        # overloads of old programs repeat what the packed weight holds, and end alike
        scale, zero_point = steps[-2:]
        sums = _conv_sums(data, packed, weight)
        extra = packed.output_padding() if packed.transpose() else ()
        engine = engine_of_convolution(packed.groups(), extra, weight.zero_points)
        made = _finished(engine, sums, x, weight, relu, scale, zero_point)
        result = _op.squeeze(made.data, [2]) if _is_over_one_axis(x) else made.data
        return Quantized(result, made.scale, made.zero_point, made.dtype)

    return convert


def _conv_add(relu: bool) -> Converter:
    """A convolution whose real sums a quantised tensor is added to."""

    def convert(
        x: Quantized, other: Quantized, packed: Any, scale: Any, zero_point: Any
    ) -> Quantized:
        weight = _conv_weight(packed)
        real = _real(_conv_sums(x, packed, weight), x, weight, 1, relu=False) + other.real()
        return quantized(_op.nn.relu(real) if relu else real, scale, zero_point, x.dtype)

    return convert


def _conv_dynamic(x: RelayExpr, packed: Any, reduce_range: bool = False) -> RelayExpr:
    weight, data = _conv_weight(packed), dynamically_quantized(x, reduce_range)
    real = _real(_conv_sums(_lifted(data), packed, weight), data, weight, 1, relu=False)
    return _op.squeeze(real, [2]) if _is_over_one_axis(data) else real


def _embedding(packed: Any, indices: RelayExpr, *_: Any) -> RelayExpr:
    """Rows of a table of bytes, each with a scale and a zero point of its own."""
    import torch

    table = torch.ops.quantized.embedding_bag_unpack(packed)
    rows = _op.cast(_op.take(constant(table.int_repr().numpy()), indices, 0), "float32")
    scales, zeros = [
        _op.expand_dims(_op.take(constant(v.numpy().astype("float32")), indices, 0), -1)
        for v in (table.q_per_channel_scales(), table.q_per_channel_zero_points())
    ]
    return (rows - zeros) * scales


torch_ops(
    {
        (
            "quantized::conv1d quantized::conv2d quantized::conv3d quantized::conv_transpose1d "
            "quantized::conv_transpose2d quantized::conv_transpose3d"
        ): _conv(relu=False),
        "quantized::conv1d_relu quantized::conv2d_relu quantized::conv3d_relu": _conv(relu=True),
        "quantized::conv2d_add": _conv_add(relu=False),
        "quantized::conv2d_add_relu": _conv_add(relu=True),
        (
            "quantized::conv1d_dynamic quantized::conv2d_dynamic quantized::conv3d_dynamic "
            "quantized::conv_transpose1d_dynamic quantized::conv_transpose2d_dynamic "
            "quantized::conv_transpose3d_dynamic"
        ): _conv_dynamic,
        "quantized::linear": _dense(relu=False),
        "quantized::linear_relu": _dense(relu=True),
        "quantized::linear_dynamic": _dense_dynamic(relu=False),
        "quantized::linear_relu_dynamic": _dense_dynamic(relu=True),
        "quantized::linear_dynamic_fp16": _dense_float16(relu=False),
        "quantized::linear_relu_dynamic_fp16": _dense_float16(relu=True),
        "quantized::embedding_byte": _embedding,
    }
)
