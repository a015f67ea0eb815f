"""How operators on dequantised tensors are written on the integers themselves.

Each rule gets a call on integers and the affine types of its arguments, under the call itself the
type that the region ends with, and gives the integer expression and its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from tvm.ir.affine_type import AffineType, TensorAffineType, TupleAffineType
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, const
from tvm.relay.op.layout_shapes import axis_of
from tvm.relay.op.registry import ops
from tvm.relay.op.types import shape_of_type
from tvm.relay.qnn.op import elementwise, lookup
from tvm.relay.qnn.op.common import are_equal, constant_array, integer_range, scalar_value

TypeMap: TypeAlias = Mapping[RelayExpr, AffineType]
_TRANSPOSED = (ops.nn.conv1d_transpose, ops.nn.conv2d_transpose, ops.nn.conv3d_transpose)
Result: TypeAlias = tuple[RelayExpr, AffineType]


class NoRule(Exception):
    """A call that cannot be written on integers; the region stays as it is."""


def _tensor(types: TypeMap, expr: RelayExpr, what: str = "an argument") -> TensorAffineType:
    found = types.get(expr)
    if not isinstance(found, TensorAffineType):
        raise NoRule(f"{what} is not quantised")
    return found


def _scalar(types: TypeMap, expr: RelayExpr) -> TensorAffineType:
    found = _tensor(types, expr)
    if not _is_scalar(found):
        raise NoRule("it has a scale for each channel")
    return found


def _is_scalar(affine: TensorAffineType) -> bool:
    shapes = [shape_of_type(infer_type_of(p)) for p in (affine.scale, affine.zero_point)]
    return all(shape in ((), (1,)) for shape in shapes)


def _dequantize(call: Call, types: TypeMap) -> Result:
    values, scale, zero = call.args
    return values, TensorAffineType(scale, zero, tensor_type_of(values).dtype, call.attrs.axis)


def _quantize(call: Call, types: TypeMap) -> Result:
    values, scale, zero = call.args
    have = _tensor(types, values)
    wanted = TensorAffineType(scale, zero, call.attrs.out_dtype, call.attrs.axis)
    return requantize(values, have, wanted), wanted


def requantize(values: RelayExpr, have: TensorAffineType, wanted: TensorAffineType) -> RelayExpr:
    """The integers of one type as those of another."""
    if have.dtype == wanted.dtype and _same_parameters(have, wanted):
        return values
    axis = wanted.axis if _is_scalar(have) else have.axis
    return ops.qnn.requantize(
        values, have.scale, have.zero_point, wanted.scale, wanted.zero_point,
        axis=axis, out_dtype=str(wanted.dtype),
    )  # fmt: skip


def _same_parameters(a: TensorAffineType, b: TensorAffineType) -> bool:
    return _same_steps(a, b) and (_is_scalar(a) or a.axis == b.axis)


def _same_steps(a: TensorAffineType, b: TensorAffineType) -> bool:
    """Equal scales, but for rounding, and zero points."""
    if not are_equal(a.zero_point, b.zero_point):
        return False
    left, right = constant_array(a.scale), constant_array(b.scale)
    if left is None or right is None:
        return a.scale is b.scale
    return left.size == right.size and np.allclose(left.ravel(), right.ravel(), 1e-6, 0)


def unary_identity(call: Call, types: TypeMap) -> Result:
    """Operators that move elements, or choose among them."""
    return call, _scalar(types, call.args[0])


def _choice_along_window(call: Call, types: TypeMap) -> Result:
    return call, _tensor(types, call.args[0])


def _transpose(call: Call, types: TypeMap) -> Result:
    have = _tensor(types, call.args[0])
    if _is_scalar(have):
        return call, have
    rank = len(shape_of_type(infer_type_of(call.args[0])))
    order = [int(a) % rank for a in call.attrs.axes or reversed(range(rank))]
    axis = order.index(have.axis % rank)
    return call, TensorAffineType(have.scale, have.zero_point, have.dtype, axis)


def _avg_pool2d(call: Call, types: TypeMap) -> Result:
    have, wanted = _scalar(types, call.args[0]), _scalar(types, call)
    if have.dtype != wanted.dtype or have.dtype not in ("int8", "uint8", "int32"):
        raise NoRule(f"it is {have.dtype} and becomes {wanted.dtype}")
    parameters = (have.scale, have.zero_point, wanted.scale, wanted.zero_point)
    return Call(ops.qnn.avg_pool2d, (call.args[0], *parameters), call.attrs), wanted


def _mean(call: Call, types: TypeMap) -> Result:
    """A mean of integers, rounded: the zero point is the mean of zero points."""
    have = _scalar(types, call.args[0])
    real = call.replace(args=(ops.cast(call.args[0], dtype="float32"),))
    return ops.cast(ops.round(real), dtype=str(have.dtype)), have


def _bias_add(call: Call, types: TypeMap) -> Result:
    values, bias = call.args
    have = _tensor(types, values)
    if have.dtype != "int32":
        raise NoRule(f"a bias of {have.dtype} may overflow")
    wanted = TensorAffineType(have.scale, have.zero_point, have.dtype, 0)
    if bias in types:
        found = _tensor(types, bias)
        bias = requantize(
            bias, TensorAffineType(found.scale, found.zero_point, found.dtype, 0), wanted
        )
    else:
        bias = _quantized_constant(bias, wanted)
    return call.replace(args=(values, bias)), have


def _quantized_constant(value: RelayExpr, wanted: TensorAffineType) -> RelayExpr:
    """A constant of real numbers as integers of a type."""
    if not isinstance(value, Constant):
        raise NoRule("an argument is not quantised")
    axis = 0 if _is_scalar(wanted) else wanted.axis
    quantized: RelayExpr = ops.qnn.quantize(
        value, wanted.scale, wanted.zero_point, out_dtype=str(wanted.dtype), axis=axis
    )
    return quantized


def _product(quantized: Op, channel_axis: Callable[[Call], int]) -> Callable[..., Result]:
    """Products with 32-bit sums, whose scale is the product of the scales."""

    def rule(call: Call, types: TypeMap) -> Result:
        data, weight = call.args
        left, right = _scalar(types, data), _tensor(types, weight)
        for dtype in (left.dtype, right.dtype):
            if dtype not in ("int8", "uint8"):
                raise NoRule(f"it takes 8-bit integers, got {dtype}")
        weight_scale, weight_zero = _of_channels(call, right)
        parameters = (left.zero_point, weight_zero, left.scale, weight_scale)
        attrs = call.attrs.replace(out_dtype="int32")
        out = Call(quantized, (data, weight, *parameters), attrs)
        scale = _product_of(left.scale, weight_scale)
        return out, TensorAffineType(scale, zeros_for(scale), "int32", channel_axis(call))

    return rule


def _of_channels(call: Call, weight: TensorAffineType) -> tuple[RelayExpr, RelayExpr]:
    """A weight's scale and zero point, as those of output channels if they are vectors."""
    if _is_scalar(weight):
        return weight.scale, weight.zero_point
    if call.op is ops.nn.dense:
        axis = 0
    elif hasattr(call.attrs, "kernel_layout"):
        axis = axis_of(call.attrs.kernel_layout, "O")
    else:
        raise NoRule("the second factor has a scale for each channel")
    kernel = getattr(call.attrs, "kernel_layout", "")
    rank = len(shape_of_type(infer_type_of(call.args[1])))
    if weight.axis % rank != axis and kernel != "HWOI":
        raise NoRule("the weight's scales are not those of output channels")
    both = (weight.scale, weight.zero_point)
    if call.op not in _TRANSPOSED or call.attrs.groups == 1:
        return both
    # a weight's O are the channels of one group
    scale, zero = [ops.tile(p, reps=(call.attrs.groups,)) if _is_vector(p) else p for p in both]
    return scale, zero


def _is_vector(parameter: RelayExpr) -> bool:
    return shape_of_type(infer_type_of(parameter)) not in ((), (1,))


def _product_of(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = constant_array(a), constant_array(b)
    if left is None or right is None:
        return ops.multiply(a, b)
    return const((left * right).astype("float32"))


def zeros_for(scale: RelayExpr) -> RelayExpr:
    return const(np.zeros(tensor_type_of(scale).concrete_shape, "int32"))


def _conv_axis(call: Call) -> int:
    attrs = call.attrs
    return axis_of(attrs.out_layout or attrs.data_layout, "C")


def _last_axis(call: Call) -> int:
    return len(shape_of_type(infer_type_of(call.args[0]))) - 1


def _concatenate(call: Call, types: TypeMap) -> Result:
    parts = types.get(call.args[0])
    if not isinstance(parts, TupleAffineType) or not isinstance(call.args[0], Tuple):
        raise NoRule("a field of the tuple is not quantised")
    wanted = _scalar(types, call)
    fields = [requantize(field, _tensor(types, field), wanted) for field in call.args[0].fields]
    return call.replace(args=(Tuple(fields),)), wanted


def _split(call: Call, types: TypeMap) -> Result:
    have = _scalar(types, call.args[0])
    whole = infer_type_of(call)
    assert isinstance(whole, TupleType)
    return call, TupleAffineType([have] * len(whole.fields))


def _topk(call: Call, types: TypeMap) -> Result:
    if call.attrs.ret_type != "values":
        raise NoRule("it gives indices")
    return call, _scalar(types, call.args[0])


def _clip(call: Call, types: TypeMap) -> Result:
    have = _scalar(types, call.args[0])
    scale, zero = scalar_value(have.scale), scalar_value(have.zero_point)
    if scale is None or zero is None:
        raise NoRule("its scale is not a constant")
    limits = integer_range(str(have.dtype))
    ends = [float(np.clip(np.round(v / scale) + zero, *limits))
            for v in (call.attrs.a_min, call.attrs.a_max)]  # fmt: skip
    return ops.clip(call.args[0], a_min=ends[0], a_max=ends[1]), have


def _relu(call: Call, types: TypeMap) -> Result:
    have = _tensor(types, call.args[0])
    zero = constant_array(have.zero_point)
    if zero is not None and not zero.any():
        return call, have
    if not _is_scalar(have):
        raise NoRule("it has a zero point for each channel")
    dtype = str(have.dtype)
    if zero is None:
        point: RelayExpr = ops.cast(have.zero_point, dtype=dtype)
    else:
        point = const(zero.reshape(()), dtype)
    return ops.maximum(call.args[0], point), have


def _leaky_relu(call: Call, types: TypeMap) -> Result:
    have, wanted = _scalar(types, call.args[0]), _scalar(types, call)
    out = lookup.leaky_relu(
        call.args[0], call.attrs.alpha, have.scale, have.zero_point, wanted.scale,
        wanted.zero_point,
    )  # fmt: skip
    return out, TensorAffineType(wanted.scale, wanted.zero_point, have.dtype, wanted.axis)


def _pad(call: Call, types: TypeMap) -> Result:
    values, border = call.args
    have = _scalar(types, values)
    if border in types:
        border = requantize(border, _tensor(types, border), have)
    else:
        border = _quantized_constant(border, have)
    return call.replace(args=(values, border)), have


def binary_types(
    call: Call, types: TypeMap
) -> tuple[RelayExpr, RelayExpr, TensorAffineType, TensorAffineType]:
    """The operands and their types; a constant takes the type of the other one."""
    left, right = call.args
    if left not in types and right not in types:
        raise NoRule("nothing of it is quantised")
    if left not in types:
        left_type = _scalar(types, right)
        return _quantized_constant(left, left_type), right, left_type, left_type
    if right not in types:
        right_type = _scalar(types, left)
        return left, _quantized_constant(right, right_type), right_type, right_type
    return left, right, _tensor(types, left), _tensor(types, right)


def _may_have_zero_point(ty: TensorAffineType) -> bool:
    value = constant_array(ty.zero_point)
    return value is None or bool(value.any())


def binary_rule(quantized: Callable[..., RelayExpr], is_sum: bool) -> Callable[..., Result]:
    """Arithmetic: 32-bit sums of one scale add up, others are brought to the result's type."""

    def rule(call: Call, types: TypeMap) -> Result:
        left, right, a, b = binary_types(call, types)
        has_zero = _may_have_zero_point(a) or _may_have_zero_point(b)
        if is_sum and a.dtype == b.dtype == "int32" and _same_parameters(a, b) and not has_zero:
            return call.replace(args=(left, right)), a
        wanted = _scalar(types, call)
        if a.dtype != wanted.dtype:
            left, a = requantize(left, a, wanted), wanted
        if b.dtype != wanted.dtype:
            right, b = requantize(right, b, wanted), wanted
        out = quantized(
            left, right, a.scale, a.zero_point, b.scale, b.zero_point, wanted.scale,
            wanted.zero_point, lhs_axis=a.axis, rhs_axis=b.axis,
        )  # fmt: skip
        return out, wanted

    return rule


def binary_choice(call: Call, types: TypeMap) -> Result:
    """The greater or lesser one: of integers of one type."""
    left, right, a, b = binary_types(call, types)
    if not (a.dtype == b.dtype and _same_parameters(a, b)):
        wanted = _scalar(types, call)
        left, right, a = requantize(left, a, wanted), requantize(right, b, wanted), wanted
    return call.replace(args=(left, right)), a


def unary_rule(quantized: Callable[..., RelayExpr]) -> Callable[..., Result]:
    def rule(call: Call, types: TypeMap) -> Result:
        have, wanted = _scalar(types, call.args[0]), _scalar(types, call)
        out = quantized(call.args[0], have.scale, have.zero_point, wanted.scale, wanted.zero_point)
        return out, TensorAffineType(wanted.scale, wanted.zero_point, have.dtype, wanted.axis)

    return rule


def _softmax(call: Call, types: TypeMap) -> Result:
    have, wanted = _scalar(types, call.args[0]), _scalar(types, call)
    if have.dtype not in ("int8", "uint8"):
        raise NoRule(f"it takes 8-bit integers, got {have.dtype}")
    parameters = (have.scale, have.zero_point, wanted.scale, wanted.zero_point)
    out = lookup.softmax(call.args[0], *parameters, axis=call.attrs.axis)
    return out, TensorAffineType(wanted.scale, wanted.zero_point, have.dtype, wanted.axis)


_MOVES = (
    ops.reshape, ops.squeeze, ops.expand_dims, ops.nn.batch_flatten, ops.broadcast_to,
    ops.strided_slice, ops.nn.depth_to_space, ops.image.resize2d, ops.take, ops.max, ops.min,
    ops.nn.global_max_pool2d, ops.nn.max_pool1d, ops.annotation.stop_fusion, ops.annotation.cast_hint,
)  # fmt: skip
_MEANS = (
    ops.mean, ops.nn.global_avg_pool2d, ops.nn.adaptive_avg_pool1d,
    ops.nn.adaptive_avg_pool2d,
)  # fmt: skip
_UNARY = {
    ops.exp: lookup.exp, ops.sqrt: lookup.sqrt, ops.rsqrt: lookup.rsqrt,
    ops.erf: lookup.erf, ops.sigmoid: lookup.sigmoid, ops.tanh: lookup.tanh,
    ops.log: lookup.log, ops.abs: lookup.abs,
}  # fmt: skip

RULES: dict[Op, Callable[[Call, TypeMap], Result]] = {
    ops.qnn.dequantize: _dequantize,
    ops.qnn.quantize: _quantize,
    **dict.fromkeys(_MOVES, unary_identity),
    **dict.fromkeys(_MEANS, _mean),
    **{op: unary_rule(quantized) for op, quantized in _UNARY.items()},
    ops.nn.max_pool2d: _choice_along_window,
    ops.nn.avg_pool2d: _avg_pool2d,
    ops.transpose: _transpose,
    ops.nn.bias_add: _bias_add,
    ops.nn.relu: _relu,
    ops.nn.leaky_relu: _leaky_relu,
    ops.nn.pad: _pad,
    ops.nn.softmax: _softmax,
    ops.clip: _clip,
    ops.concatenate: _concatenate,
    ops.split: _split,
    ops.topk: _topk,
    ops.nn.conv1d: _product(ops.qnn.conv1d, _conv_axis),
    ops.nn.conv2d: _product(ops.qnn.conv2d, _conv_axis),
    ops.nn.conv3d: _product(ops.qnn.conv3d, _conv_axis),
    ops.nn.conv1d_transpose: _product(ops.qnn.conv1d_transpose, _conv_axis),
    ops.nn.conv2d_transpose: _product(ops.qnn.conv2d_transpose, _conv_axis),
    ops.nn.conv3d_transpose: _product(ops.qnn.conv3d_transpose, _conv_axis),
    ops.nn.dense: _product(ops.qnn.dense, _last_axis),
    ops.nn.batch_matmul: _product(ops.qnn.batch_matmul, _last_axis),
    ops.add: binary_rule(elementwise.add, True),
    ops.subtract: binary_rule(elementwise.subtract, True),
    ops.multiply: binary_rule(elementwise.mul, False),
    ops.maximum: binary_choice,
    ops.minimum: binary_choice,
}
