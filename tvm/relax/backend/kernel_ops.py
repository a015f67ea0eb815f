"""What operators of relax are in the kernel library's graphs, one row each.

The library knows layouts, packed weights, fusion and schedules of its own records of operators
(`tvm/relay/op/`). Facts that importers know too, such as numpy's product of matrices, are theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relax.expr import Call, PrimValue, Tuple
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo
from tvm.relay import op as _op
from tvm.relay.expr import Tuple as GraphTuple
from tvm.relay.frontend.common import infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.composites import gelu
from tvm.relay.frontend.matmul import matmul, swap_last
from tvm.relay.frontend.normalization import rms_norm, standardized, weighted
from tvm.relay.frontend.windows import conv_transpose
from tvm.relay.op.new_shape import find_new_shape
from tvm.relay.op.types import are_known, as_dim
from tvm.tir.expr import FloatImm, IntImm

Graph = Any  # an expression of the library's graphs, or a tuple of them
Row = Callable[[Call, Sequence[Graph]], Graph]


def numbers(values: Any) -> tuple[int, ...]:
    """Integers that are known.

    Raises
    ------
    OpNotImplemented
        If they are not.
    """
    found = [value.value if isinstance(value, IntImm) else value for value in values]
    if not all([isinstance(value, (int, np.integer)) for value in found]):
        raise OpNotImplemented(f"{values} are no numbers that are known")
    return tuple([int(value) for value in found])


def _require_tensors(call: Call, args: Sequence[Graph]) -> None:
    if len(args) < len(call.args):
        raise OpNotImplemented("operators of tensors and numbers are computed elsewhere")


def _plain(function: Callable[..., Graph]) -> Row:
    def row(call: Call, args: Sequence[Graph]) -> Graph:
        _require_tensors(call, args)
        return function(*args)

    return row


def _reduction(function: Callable[..., Graph]) -> Row:
    def row(call: Call, args: Sequence[Graph]) -> Graph:
        axis = call.attrs.axis
        return function(args[0], None if axis is None else numbers(axis), bool(call.attrs.keepdims))

    return row


def _matmul(call: Call, args: Sequence[Graph]) -> Graph:
    out = call.struct_info.dtype
    if out != call.args[0].struct_info.dtype:
        raise OpNotImplemented("products that are wider than their factors are computed elsewhere")
    return matmul(args[0], args[1])


def _silu(call: Call, args: Sequence[Graph]) -> Graph:
    return args[0] * _op.sigmoid(args[0])


def _conv2d(call: Call, args: Sequence[Graph]) -> Graph:
    attrs = call.attrs
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    shape = dict(zip(layouts[1], infer_shape(args[1]), strict=True))
    if not all([layout.isalpha() and layout.isupper() for layout in layouts]):
        raise OpNotImplemented("convolutions of packed layouts are computed elsewhere")
    convolve = {4: _op.nn.conv2d, 5: _op.nn.conv3d, 3: _op.nn.conv1d}[len(layouts[1])]
    window = numbers([shape[axis] for axis in layouts[1] if axis not in "OI"])
    (channels,) = numbers([shape["O"]])
    return convolve(
        args[0], args[1], strides=numbers(attrs.strides), padding=numbers(attrs.padding),
        dilation=numbers(attrs.dilation), groups=int(attrs.groups), channels=channels,
        kernel_size=window, data_layout=layouts[0], kernel_layout=layouts[1],
        out_layout=str(attrs.out_layout or ""), out_dtype=str(call.struct_info.dtype),
    )  # fmt: skip


def _conv_transpose(call: Call, args: Sequence[Graph]) -> Graph:
    attrs = call.attrs
    if not str(attrs.data_layout).startswith("NC") or not str(attrs.kernel_layout).startswith("IO"):
        raise OpNotImplemented("transposed convolutions of other layouts are computed elsewhere")
    if call.struct_info.dtype != call.args[0].struct_info.dtype:
        raise OpNotImplemented("transposed convolutions into other dtypes are computed elsewhere")
    return conv_transpose(
        args[0], args[1], numbers(attrs.strides), numbers(attrs.padding), numbers(attrs.dilation),
        int(attrs.groups), numbers(attrs.output_padding),
    )  # fmt: skip


def _pool(function: Callable[..., Graph], counts: bool) -> Row:
    def row(call: Call, args: Sequence[Graph]) -> Graph:
        attrs = call.attrs
        if str(attrs.out_layout or attrs.layout) != str(attrs.layout):
            raise OpNotImplemented("pooling into another layout is computed elsewhere")
        options = {"count_include_pad": bool(attrs.count_include_pad)} if counts else {}
        return function(
            args[0], pool_size=numbers(attrs.pool_size), strides=numbers(attrs.strides),
            dilation=numbers(attrs.dilation), padding=numbers(attrs.padding),
            layout=str(attrs.layout), ceil_mode=bool(attrs.ceil_mode), **options,
        )  # fmt: skip

    return row


def _adaptive_pool(call: Call, args: Sequence[Graph]) -> Graph:
    attrs = call.attrs
    size = numbers(attrs.output_size) if attrs.output_size is not None else None
    return _op.nn.adaptive_avg_pool2d(args[0], size, layout=str(attrs.layout))


def _layer_norm(call: Call, args: Sequence[Graph]) -> Graph:
    attrs, data = call.attrs, args[0]
    axes = [int(axis) % len(infer_shape(data)) for axis in attrs.axes]
    if axes != list(range(len(infer_shape(data)) - len(axes), len(infer_shape(data)))):
        raise OpNotImplemented("normalisation of other axes than the last is computed elsewhere")
    if len(axes) == 1:
        center, scale = bool(attrs.center), bool(attrs.scale)
        return _op.nn.layer_norm(
            args[0], args[1], args[2], axes[0], float(attrs.epsilon), center, scale
        )
    weight = args[1] if attrs.scale else None
    bias = args[2] if attrs.center else None
    return weighted(standardized(data, axes, float(attrs.epsilon)), weight, bias)


def _rms_norm(call: Call, args: Sequence[Graph]) -> Graph:
    axes = numbers(call.attrs.axes)
    return rms_norm(args[0], axes, float(call.attrs.epsilon), args[1])


def _batch_norm(call: Call, args: Sequence[Graph]) -> Graph:
    attrs = call.attrs
    data, gamma, beta, mean, variance = args
    return _op.nn.batch_norm(
        data,
        gamma,
        beta,
        mean,
        variance,
        int(attrs.axis),
        float(attrs.epsilon),
        bool(attrs.center),
        bool(attrs.scale),
    ).astuple()


def _dropout(call: Call, args: Sequence[Graph]) -> Graph:
    return GraphTuple([args[0], _op.ones_like(args[0])])


def _reshape(call: Call, args: Sequence[Graph]) -> Graph:
    # the shapes tell all, whatever form the operator has
    source, target = [
        tuple([as_dim(dim) for dim in info.dimensions])
        for info in (call.args[0].struct_info, call.struct_info)
    ]
    if are_known(target):
        return _op.reshape(args[0], target, allowzero=0 in target)
    new_shape = find_new_shape(source, target)
    if new_shape is None:
        raise OpNotImplemented(f"no numbers say how {source} becomes {target}")
    return _op.reshape(args[0], new_shape)


def _broadcast_to(call: Call, args: Sequence[Graph]) -> Graph:
    return _op.broadcast_to(args[0], numbers(call.struct_info.shape.values))


def _permute(call: Call, args: Sequence[Graph]) -> Graph:
    axes = call.attrs.axes
    return _op.transpose(args[0], None if axes is None else numbers(axes))


def _concat(call: Call, args: Sequence[Graph]) -> Graph:
    axis = 0 if call.attrs.axis is None else int(call.attrs.axis)
    return _op.concatenate(args[0], axis)


def _split(call: Call, args: Sequence[Graph]) -> Graph:
    parts = call.attrs.indices_or_sections
    axis = int(call.attrs.axis)
    if isinstance(parts, (tuple, list)):
        parts = numbers(parts)
    elif numbers(infer_shape(args[0]))[axis] % int(parts):
        raise OpNotImplemented("parts of different sizes are computed elsewhere")
    return _op.split(args[0], parts, axis).astuple()


def _strided_slice(call: Call, args: Sequence[Graph]) -> Graph:
    fields = [_known_numbers(arg) for arg in call.args[1:]]
    axes, begin, end = fields[:3]
    strides = fields[3] if len(fields) > 3 else [1] * len(axes)
    return _op.strided_slice(args[0], begin, end, strides, axes)


def _known_numbers(value: RelayExpr) -> tuple[int, ...]:
    items: Sequence[Any] = [value]
    if isinstance(value, Tuple):
        items = [item.value if isinstance(item, PrimValue) else item for item in value.fields]
    elif isinstance(value, ShapeExpr):
        items = value.values
    return numbers(items)


def _take(call: Call, args: Sequence[Graph]) -> Graph:
    _require_tensors(call, args)
    axis = call.attrs.axis
    mode = str(getattr(call.attrs, "mode", "fast"))
    return _op.take(args[0], args[1], axis=None if axis is None else int(axis), mode=mode)


def _clip(call: Call, args: Sequence[Graph]) -> Graph:
    low, high = [_number(arg) for arg in call.args[1:3]]
    return _op.clip(args[0], low, high)


def _number(value: RelayExpr) -> float:
    if not isinstance(value, PrimValue) or not isinstance(value.value, (IntImm, FloatImm)):
        raise OpNotImplemented(f"{value} is no number that is known")
    return float(value.value.value)


def _pad(call: Call, args: Sequence[Graph]) -> Graph:
    if str(call.attrs.pad_mode) not in ("constant", "reflect", "edge"):
        raise OpNotImplemented(f"padding by {call.attrs.pad_mode} is computed elsewhere")
    width = numbers(call.attrs.pad_width)
    pairs = tuple(zip(width[::2], width[1::2], strict=True))
    value = float(getattr(call.attrs, "pad_value", 0.0))
    return _op.nn.pad(args[0], pairs, value, str(call.attrs.pad_mode))


def _attention(call: Call, args: Sequence[Graph]) -> Graph:
    """Of queries (batch, length, heads, depth); a mask is added to the scores."""
    attrs = call.attrs
    if attrs.causal_mask is not None or attrs.window_size is not None:
        raise OpNotImplemented("masked attention is computed elsewhere")
    (depth,) = numbers(infer_shape(args[0])[-1:])
    scale = depth**-0.5 if attrs.scale is None else _scale(attrs.scale)
    query, key, value = [_op.transpose(x, (0, 2, 1, 3)) for x in args[:3]]
    scores = matmul(query, swap_last(key)) * scalar_like(scale, query)
    if len(args) > 3:
        scores = scores + args[3]
    mixed = matmul(_op.nn.softmax(scores, -1), value)
    return _op.transpose(mixed, (0, 2, 1, 3))


def _scale(value: Any) -> float:
    return float(getattr(value, "value", value))


ROWS: Mapping[str, Row] = {
    **{
        f"relax.{name}": _plain(getattr(_op, name))
        for name in (
            "abs",
            "acos",
            "acosh",
            "add",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "ceil",
            "cos",
            "cosh",
            "divide",
            "equal",
            "erf",
            "exp",
            "floor",
            "floor_divide",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "log",
            "logical_and",
            "logical_not",
            "logical_or",
            "maximum",
            "minimum",
            "multiply",
            "negative",
            "not_equal",
            "power",
            "round",
            "rsqrt",
            "sigmoid",
            "sign",
            "sin",
            "sinh",
            "sqrt",
            "subtract",
            "tan",
            "tanh",
            "where",
        )
    },
    "relax.square": lambda call, args: args[0] * args[0],
    "relax.astype": lambda call, args: _op.cast(args[0], str(call.struct_info.dtype)),
    "relax.nn.relu": _plain(_op.nn.relu),
    "relax.nn.leakyrelu": lambda call, args: _op.nn.leaky_relu(args[0], float(call.attrs.alpha)),
    "relax.nn.gelu": _plain(gelu),
    "relax.nn.gelu_tanh": lambda call, args: gelu(args[0], "tanh"),
    "relax.nn.silu": _silu,
    "relax.nn.softmax": lambda call, args: _op.nn.softmax(args[0], int(call.attrs.axis)),
    "relax.nn.log_softmax": lambda call, args: _op.nn.log_softmax(args[0], int(call.attrs.axis)),
    "relax.matmul": _matmul,
    "relax.nn.conv1d": _conv2d,
    "relax.nn.conv2d": _conv2d,
    "relax.nn.conv3d": _conv2d,
    "relax.nn.conv2d_transpose": _conv_transpose,
    "relax.nn.max_pool2d": _pool(_op.nn.max_pool2d, False),
    "relax.nn.avg_pool2d": _pool(_op.nn.avg_pool2d, True),
    "relax.nn.adaptive_avg_pool2d": _adaptive_pool,
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.rms_norm": _rms_norm,
    "relax.nn.batch_norm": _batch_norm,
    "relax.nn.dropout": _dropout,
    "relax.nn.pad": _pad,
    "relax.nn.attention": _attention,
    "relax.nn.attention_bias": _attention,
    "relax.sum": _reduction(_op.sum),
    "relax.mean": _reduction(_op.mean),
    "relax.max": _reduction(_op.max),
    "relax.min": _reduction(_op.min),
    "relax.prod": _reduction(_op.prod),
    "relax.variance": _reduction(_op.variance),
    "relax.std": _reduction(_op.std),
    "relax.reshape": _reshape,
    "relax.flatten": _reshape,
    "relax.expand_dims": _reshape,
    "relax.squeeze": _reshape,
    "relax.broadcast_to": _broadcast_to,
    "relax.permute_dims": _permute,
    "relax.concat": _concat,
    "relax.split": _split,
    "relax.strided_slice": _strided_slice,
    "relax.take": _take,
    "relax.clip": _clip,
}
# what is an array in a graph of the library: no shapes, numbers or texts
OPERANDS = (ShapeExpr, PrimValue)


def has_dimensions(info: Any) -> bool:
    """Whether a value is a tensor whose extents and data type are known, or a tuple of such."""
    if hasattr(info, "fields"):
        return all([has_dimensions(field) for field in info.fields])
    return (
        isinstance(info, TensorStructInfo)
        and not info.dtype.is_void
        and info.dimensions is not None
    )


__all__ = ["OPERANDS", "ROWS", "has_dimensions", "infer_dtype", "numbers"]
