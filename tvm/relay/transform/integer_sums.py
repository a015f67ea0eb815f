"""Products of tensors that stand for real numbers, as integer sums and a factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.relay.op.layout_shapes import axis_of
from tvm.relay.op.registry import ops
from tvm.relay.op.types import shape_of_type
from tvm.relay.qnn.op.convolutions import PLAIN_CONVOLUTIONS
from tvm.relay.qnn.op.convolutions import TRANSPOSED_CONVOLUTIONS as QNN_TRANSPOSED_CONVOLUTIONS
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.transform.operators import CONVOLUTIONS, TRANSPOSED_CONVOLUTIONS

# by the operator of real numbers
_CONVOLUTIONS: dict[Op, Op] = {
    **dict(zip(CONVOLUTIONS, PLAIN_CONVOLUTIONS, strict=True)),
    **dict(zip(TRANSPOSED_CONVOLUTIONS, QNN_TRANSPOSED_CONVOLUTIONS, strict=True)),
}
MATRIX_PRODUCTS = (ops.nn.dense, ops.nn.matmul, ops.nn.batch_matmul)
PRODUCTS = (*_CONVOLUTIONS, *MATRIX_PRODUCTS)


@dataclass(frozen=True)
class Affine:
    """Integers that stand for real numbers: (values - zero) * scale."""

    values: RelayExpr
    scale: np.ndarray
    zero: np.ndarray
    axis: int | None  # of vectors; None for scalars

    @property
    def is_scalar(self) -> bool:
        return self.axis is None

    @property
    def dtype(self) -> str:
        return str(tensor_type_of(self.values).dtype)


def affine_parameters(call: Call) -> Affine | None:
    """Scale and zero point of a call of quantize or dequantize, if both are constants."""
    found = [arg.data.numpy() for arg in call.args[1:] if isinstance(arg, Constant)]
    if len(found) < 2:
        return None
    scale, zero = found
    if scale.size == 1 and zero.size == 1:
        return Affine(call.args[0], scale.reshape(()), zero.reshape(()), None)
    rank = len(shape_of_type(infer_type_of(call.args[0])))
    size = max(scale.size, zero.size)
    scale, zero = [np.broadcast_to(a.reshape(-1), (size,)) for a in (scale, zero)]
    return Affine(call.args[0], scale, zero, call.attrs.axis % rank)


def channel_axis(call: Call) -> int | None:
    """The axis of a product's weight that stands for output channels; None if each has its own."""
    if call.op in _CONVOLUTIONS:
        return axis_of(call.attrs.kernel_layout, "O")
    return 0 if call.op is ops.nn.dense else None


def sums_and_factor(call: Call, data: Affine, weight: Affine) -> tuple[RelayExpr, np.ndarray]:
    """A product's integer sums, as real numbers, and what they are to be multiplied by."""
    kernel, weight_zero = signed_weight(weight)
    of_channels = [np.asarray(weight.scale), weight_zero]
    groups = call.attrs.groups if call.op in _CONVOLUTIONS else 1
    if call.op in TRANSPOSED_CONVOLUTIONS:  # a weight's O are the channels of one group
        of_channels = [np.tile(a, groups) if a.ndim else a for a in of_channels]
    scale, zero = of_channels
    parameters = (
        const(data.zero.astype("int32")), const(zero.astype("int32")),
        const(data.scale.astype("float32")), const(scale.astype("float32")),
    )  # fmt: skip
    factor = (data.scale * scale).astype("float32")
    sums = _sums(call, (data.values, kernel), parameters)
    if factor.ndim and call.op in _CONVOLUTIONS:
        layout = call.attrs.out_layout or call.attrs.data_layout
        factor = factor.reshape(-1, *[1] * (len(layout) - 1 - axis_of(layout, "C")))
    return ops.cast(sums, dtype="float32"), factor


def _sums(
    call: Call, factors: tuple[RelayExpr, RelayExpr], parameters: tuple[RelayExpr, ...]
) -> RelayExpr:
    if call.op in _CONVOLUTIONS:
        attrs = call.attrs.replace(out_dtype="int32")
        return Call(_CONVOLUTIONS[call.operator], (*factors, *parameters), attrs)
    if call.op is ops.nn.dense and ConstantFolder().is_constant(factors[1], {}):
        attrs = call.attrs.replace(out_dtype="int32")
        return Call(ops.qnn.dense, (*factors, *parameters), attrs)
    attrs = call.attrs
    swaps = (False, True) if call.op is ops.nn.dense else (attrs.transpose_a, attrs.transpose_b)
    is_batch = call.op is ops.nn.batch_matmul
    if not is_batch:
        left, right = [ops.expand_dims(x, axis=0, num_newaxis=1) for x in factors]
        factors = (left, right)
    product = ops.qnn.batch_matmul(
        *factors, *parameters, out_dtype="int32", transpose_a=swaps[0], transpose_b=swaps[1]
    )
    return product if is_batch else ops.squeeze(product, axis=(0,))


def signed_weight(weight: Affine) -> tuple[RelayExpr, np.ndarray]:
    """The weight and its zero points; bytes around 128 as int8 around 0."""
    if weight.dtype == "uint8" and (weight.zero == 128).all():
        moved = ops.subtract(ops.cast(weight.values, dtype="int16"), const(128, "int16"))
        return ops.cast(moved, dtype="int8"), np.array(0)
    return weight.values, weight.zero if weight.zero.any() else np.array(0)


def sums_fit(values: np.ndarray, data: Affine, weight: Affine, axis: int | None) -> bool:
    """Whether the products with any int16 data, less its zero point, add up to an int32."""
    numbers = values.astype("int64")
    newshape = [-1 if i == weight.axis else 1 for i in range(numbers.ndim)]
    zero = weight.zero if weight.is_scalar else weight.zero.reshape(newshape)
    others = tuple([i for i in range(numbers.ndim) if i != axis])
    magnitudes = np.abs(numbers - zero.astype("int64")).sum(axis=others)
    # with a zero point both the products and what is subtracted take half of the range
    return bool(magnitudes.max(initial=0) < (2**14 if data.zero.any() else 2**16))
