"""Relay's operators as nodes of ONNX: a function or a row of a table each.

A function takes the graph's writer, the call and the names of its operands, the fields of tuples one by one;
it returns the names of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented
from tvm.relay.expr import Call, Constant

from .onnx_graph import GraphWriter

Write = Callable[[GraphWriter, Call, list[str]], list[str]]

_ALIKE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "copy": "Identity", "cos": "Cos",
    "cosh": "Cosh", "divide": "Div", "equal": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "greater": "Greater", "isinf": "IsInf", "isnan": "IsNaN", "less": "Less", "log": "Log",
    "logical_and": "And", "logical_not": "Not", "logical_or": "Or", "logical_xor": "Xor",
    "maximum": "Max", "minimum": "Min", "multiply": "Mul", "negative": "Neg",
    "nn.global_avg_pool2d": "GlobalAveragePool", "nn.global_max_pool2d": "GlobalMaxPool",
    "nn.relu": "Relu", "power": "Pow", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "subtract": "Sub", "tan": "Tan", "tanh": "Tanh",
    "where": "Where",
}  # fmt: skip
_REDUCTIONS = {
    "max": "ReduceMax", "mean": "ReduceMean", "min": "ReduceMin", "prod": "ReduceProd",
    "sum": "ReduceSum",
}  # fmt: skip


def _shape(expr: Any) -> list[int]:
    return list(expr.checked_type.concrete_shape)


def _numbers(values: Any) -> list[int]:
    return [int(v) for v in values]


def _alike(kind: str) -> Write:
    return lambda w, call, args: w.node(kind, args)


def _negated(kind: str) -> Write:
    return lambda w, call, args: w.node("Not", [w.one(kind, *args)])


def _reshape(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return [w.reshaped(args[0], _shape(call))]


def _rsqrt(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("Reciprocal", [w.one("Sqrt", args[0])])


def _cast(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("Cast", args, to=w.element_type(call.checked_type.dtype))


def _clip(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    dtype = call.checked_type.dtype
    bounds = [w.constant(v, str(dtype)) for v in (call.attrs.a_min, call.attrs.a_max)]
    return w.node("Clip", [args[0], *bounds])


def _softmax(kind: str) -> Write:
    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        # before version 13 the axes behind the one given were part of it
        rank = len(_shape(call))
        order = list(range(rank))
        axis = int(call.attrs.axis) % rank
        order[axis], order[-1] = order[-1], order[axis]
        found = w.one(kind, w.transposed(args[0], order), axis=rank - 1)
        return [w.transposed(found, order)]

    return write


def _transpose(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    rank, axes = len(_shape(call)), call.attrs.axes
    order = [int(a) % rank for a in axes] if axes else list(range(rank))[::-1]
    return [w.transposed(args[0], order)]


def _layout_transform(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    source, target = str(call.attrs.src_layout), str(call.attrs.dst_layout)
    if sorted(source) != sorted(target) or not source.isalpha():
        raise OpNotImplemented(f"to_onnx does not split axes: layout_transform to {target}")
    return [w.relaid(args[0], source, target)]


# ---- products


def _dense(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("MatMul", [args[0], w.transposed(args[1], (1, 0))])


def _matmul(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    def operand(number: int, is_transposed: bool) -> str:
        order = list(range(len(_shape(call.args[number]))))
        if is_transposed:
            order[-2:] = order[:-3:-1]
        return w.transposed(args[number], order)

    a = call.attrs
    if hasattr(a, "tensor_a") or hasattr(a, "transpose_a"):
        return w.node("MatMul", [operand(0, bool(a.transpose_a)), operand(1, bool(a.transpose_b))])
    return w.node("MatMul", args)


def _bias_add(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    rank = len(_shape(call))
    after = rank - 1 - int(call.attrs.axis) % rank
    bias = w.reshaped(args[1], [*_shape(call.args[1]), *[1] * after]) if after else args[1]
    return w.node("Add", [args[0], bias])


def _convolution(kind: str, spatial: str) -> Write:
    channels_first = "NC" + spatial
    order = ("OI" if kind == "Conv" else "IO") + spatial

    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        a = call.attrs
        layout, kernel = str(a.data_layout), str(a.kernel_layout)
        if sorted(layout) != sorted(channels_first) or sorted(kernel) != sorted(order):
            raise OpNotImplemented(f"to_onnx does not know the layouts {layout} and {kernel}")
        weight = _shape(call.args[1])
        more = {}
        if kind == "ConvTranspose" and any(_numbers(a.output_padding)):
            more["output_padding"] = _numbers(a.output_padding)
        found = w.one(
            kind,
            w.relaid(args[0], layout, channels_first),
            w.relaid(args[1], kernel, order),
            kernel_shape=[weight[kernel.index(axis)] for axis in spatial],
            strides=_numbers(a.strides),
            dilations=_numbers(a.dilation),
            pads=_pads(a.padding, len(spatial)),
            group=int(a.groups),
            **more,
        )
        return [w.relaid(found, channels_first, layout)]

    return write


def _pads(padding: Any, rank: int) -> list[int]:
    """The amounts before all axes, then those behind them."""
    amounts = _numbers(padding)
    if len(amounts) == 1:
        return amounts * (2 * rank)
    return amounts if len(amounts) == 2 * rank else amounts * 2


def _pool(kind: str, spatial: str) -> Write:
    channels_first = "NC" + spatial

    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        a, layout = call.attrs, str(call.attrs.layout)
        if sorted(layout) != sorted(channels_first):
            raise OpNotImplemented(f"to_onnx does not know the layout {layout}")
        more: dict[str, Any] = {}
        dilation = _numbers(a.dilation)
        if kind == "AveragePool":
            more["count_include_pad"] = int(a.count_include_pad)
            if any([d != 1 for d in dilation]) and w.opset < 19:
                raise OpNotImplemented("average pools with dilations need opset_version=19")
        if kind == "MaxPool" or any([d != 1 for d in dilation]):
            more["dilations"] = dilation
        found = w.one(
            kind,
            w.relaid(args[0], layout, channels_first),
            kernel_shape=_numbers(a.pool_size),
            strides=_numbers(a.strides),
            pads=_pads(a.padding, len(spatial)),
            ceil_mode=int(a.ceil_mode),
            **more,
        )
        return [w.relaid(found, channels_first, layout)]

    return write


# ---- normalization


def _batch_norm(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    a, shape = call.attrs, _shape(call.args[0])
    axis = int(a.axis) % len(shape)
    order = [0, axis, *[i for i in range(1, len(shape)) if i != axis]] if axis else []
    if not order:
        raise OpNotImplemented("to_onnx takes batch norms along another axis than the first")
    dtype = str(call.args[0].checked_type.dtype)
    gamma = args[1] if a.scale else w.constant(np.ones(shape[axis]), dtype)
    beta = args[2] if a.center else w.constant(np.zeros(shape[axis]), dtype)
    data = w.transposed(args[0], order)
    found = w.one("BatchNormalization", data, gamma, beta, *args[3:5], epsilon=float(a.epsilon))
    back = [order.index(i) for i in range(len(shape))]
    return [w.transposed(found, back), *args[3:5]]


def _layer_norm(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    a, shape = call.attrs, _shape(call)
    dtype, axis = str(call.checked_type.dtype), int(a.axis) % len(shape)
    centered = w.one("Sub", args[0], w.reduced("ReduceMean", args[0], [axis], True))
    variance = w.reduced("ReduceMean", w.one("Mul", centered, centered), [axis], True)
    deviation = w.one("Sqrt", w.one("Add", variance, w.constant(float(a.epsilon), dtype)))
    value = w.one("Div", centered, deviation)
    row = [shape[axis], *[1] * (len(shape) - 1 - axis)]
    if a.scale:
        value = w.one("Mul", value, w.reshaped(args[1], row))
    if a.center:
        value = w.one("Add", value, w.reshaped(args[2], row))
    return [value]


def _lrn(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    a = call.attrs
    if int(a.axis) != 1:
        raise OpNotImplemented("to_onnx takes nn.lrn along axis 1")
    numbers: dict[str, Any] = {
        "alpha": float(a.alpha),
        "beta": float(a.beta),
        "bias": float(a.bias),
    }
    return w.node("LRN", args, size=int(a.size), **numbers)


def _dropout(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    mask = w.constant(np.ones(_shape(call.args[0])), str(call.args[0].checked_type.dtype))
    return [w.one("Identity", args[0]), mask]


def _leaky_relu(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("LeakyRelu", args, alpha=float(call.attrs.alpha))


def _prelu(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    rank = len(_shape(call))
    after = rank - 1 - int(call.attrs.axis) % rank
    return w.node("PRelu", [args[0], w.reshaped(args[1], [-1, *[1] * after])])


# ---- parts and joins


def _pad(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    modes = {"constant": "constant", "edge": "edge", "reflect": "reflect"}
    before, after = zip(*[_numbers(pair) for pair in call.attrs.pad_width], strict=True)
    inputs = [args[0], w.constant([*before, *after], "int64")]
    if str(call.attrs.pad_mode) == "constant":
        inputs.append(w.reshaped(args[1], []))
    return w.node("Pad", inputs, mode=modes[str(call.attrs.pad_mode)])


def _concatenate(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("Concat", args, axis=int(call.attrs.axis) % len(_shape(call)))


def _stack(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    shape = _shape(call)
    axis = int(call.attrs.axis) % len(shape)
    one = [*shape[:axis], 1, *shape[axis + 1 :]]
    return w.node("Concat", [w.reshaped(arg, one) for arg in args], axis=axis)


def _split(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    shape = _shape(call.args[0])
    axis = int(call.attrs.axis) % len(shape)
    sizes = [part.concrete_shape[axis] for part in call.checked_type.fields]
    if w.opset < 13:
        return w.node("Split", args, len(sizes), axis=axis, split=sizes)
    return w.node("Split", [args[0], w.constant(sizes, "int64")], len(sizes), axis=axis)


def _strided_slice(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    a, shape = call.attrs, _shape(call.args[0])
    begin, end = _numbers(a.begin), _numbers(a.end)
    axes = _numbers(a.axes) if a.axes else list(range(len(begin)))
    strides = _numbers(a.strides) if a.strides else []
    strides = (strides * len(begin) if len(strides) == 1 else strides) or [1] * len(begin)
    if str(a.slice_mode) == "size":
        lengths = [
            shape[axis] - b if n < 0 else n for axis, b, n in zip(axes, begin, end, strict=True)
        ]
        end, strides = [b + n for b, n in zip(begin, lengths, strict=True)], [1] * len(begin)
    parts = [begin, end, axes, strides]
    return w.node("Slice", [args[0], *[w.constant(part, "int64") for part in parts]])


def _take(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    axis, data = call.attrs.axis, args[0]
    if axis is None:
        data, axis = w.reshaped(data, [-1]), 0
    if int(call.attrs.batch_dims):
        raise OpNotImplemented("to_onnx takes take without batch_dims")
    return w.node("Gather", [data, args[1]], axis=int(axis))


def _tile(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    shape, reps = _shape(call.args[0]), _numbers(call.attrs.reps)
    rank = max(len(shape), len(reps))
    data = w.reshaped(args[0], [1] * (rank - len(shape)) + shape)
    return w.node("Tile", [data, w.constant([1] * (rank - len(reps)) + reps, "int64")])


def _expand(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    return w.node("Expand", [args[0], w.constant(_shape(call), "int64")])


def _filled(value: int) -> Write:
    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        return [w.constant(np.full(_shape(call), value), str(call.checked_type.dtype))]

    return write


# ---- reductions


def _reduced_axes(call: Call) -> list[int]:
    rank, axis = len(_shape(call.args[0])), call.attrs.axis
    if axis is None:
        return list(range(rank))
    named = {int(a) % rank for a in (axis if hasattr(axis, "__iter__") else [axis])}
    excluded = bool(getattr(call.attrs, "exclude", False))
    return [i for i in range(rank) if (i in named) != excluded]


def _reduction(kind: str) -> Write:
    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        return [w.reduced(kind, args[0], _reduced_axes(call), bool(call.attrs.keepdims))]

    return write


def _arg_reduction(kind: str) -> Write:
    def write(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        axes = _reduced_axes(call)
        data, keepdims = args[0], int(call.attrs.keepdims)
        if len(axes) != 1:
            raise OpNotImplemented(f"to_onnx takes {kind} along one axis, got {axes}")
        found = w.one(kind, data, axis=axes[0], keepdims=keepdims)
        return w.node("Cast", [found], to=w.element_type(call.checked_type.dtype))

    return write


# ---- images

_COORDINATES = {
    "half_pixel": "half_pixel", "align_corners": "align_corners", "asymmetric": "asymmetric",
}  # fmt: skip
_METHODS = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
_ROUNDINGS = {
    "round_prefer_floor": "round_prefer_floor", "floor": "floor", "ceil": "ceil",
    "round_prefer_ceil": "round_prefer_ceil", "round": "round_prefer_ceil",
}  # fmt: skip


def _resize2d(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
    a, layout = call.attrs, str(call.attrs.layout)
    mode, coordinates = str(a.method), str(a.coordinate_transformation_mode)
    data = w.relaid(args[0], layout, "NCHW")
    shape = [_shape(call)[layout.index(axis)] for axis in "NCHW"]
    more: dict[str, Any] = {}
    if mode == "nearest_neighbor":
        rounding = str(a.rounding_method) or (
            "round_prefer_ceil" if coordinates == "align_corners" else "floor"
        )
        more["nearest_mode"] = _ROUNDINGS[rounding]
    if mode == "cubic":
        more |= {"cubic_coeff_a": float(a.cubic_alpha), "exclude_outside": int(a.cubic_exclude)}
    none = w.constant([], "float32")
    found = w.one(
        "Resize", data, none, none, w.constant(shape, "int64"), mode=_METHODS[mode],
        coordinate_transformation_mode=_COORDINATES[coordinates], **more,
    )  # fmt: skip
    return [w.relaid(found, "NCHW", layout)]


def _constant_only(write: Write, operands: Sequence[int]) -> Write:
    """The same, for calls some operands of which are constants."""

    def checked(w: GraphWriter, call: Call, args: list[str]) -> list[str]:
        if any([not isinstance(call.args[i], Constant) for i in operands]):
            raise OpNotImplemented(f"to_onnx takes {call.op} with constants alone")
        return write(w, call, args)

    return checked


OPERATORS: dict[str, Write] = {
    **{name: _alike(kind) for name, kind in _ALIKE.items()},
    **{name: _reduction(kind) for name, kind in _REDUCTIONS.items()},
    "argmax": _arg_reduction("ArgMax"),
    "argmin": _arg_reduction("ArgMin"),
    "broadcast_to": _expand,
    "cast": _cast,
    "clip": _clip,
    "concatenate": _concatenate,
    "expand_dims": _reshape,
    "greater_equal": _negated("Less"),
    "image.resize2d": _resize2d,
    "layout_transform": _layout_transform,
    "less_equal": _negated("Greater"),
    "nn.avg_pool1d": _pool("AveragePool", "W"),
    "nn.avg_pool2d": _pool("AveragePool", "HW"),
    "nn.avg_pool3d": _pool("AveragePool", "DHW"),
    "nn.batch_flatten": _reshape,
    "nn.batch_matmul": _matmul,
    "nn.batch_norm": _batch_norm,
    "nn.bias_add": _bias_add,
    "nn.conv1d": _convolution("Conv", "W"),
    "nn.conv2d": _convolution("Conv", "HW"),
    "nn.conv2d_transpose": _convolution("ConvTranspose", "HW"),
    "nn.conv3d": _convolution("Conv", "DHW"),
    "nn.dense": _dense,
    "nn.dropout": _dropout,
    "nn.layer_norm": _layer_norm,
    "nn.leaky_relu": _leaky_relu,
    "nn.log_softmax": _softmax("LogSoftmax"),
    "nn.lrn": _lrn,
    "nn.matmul": _matmul,
    "nn.max_pool1d": _pool("MaxPool", "W"),
    "nn.max_pool2d": _pool("MaxPool", "HW"),
    "nn.max_pool3d": _pool("MaxPool", "DHW"),
    "nn.pad": _constant_only(_pad, [1]),
    "nn.prelu": _prelu,
    "nn.softmax": _softmax("Softmax"),
    "not_equal": _negated("Equal"),
    "ones_like": _filled(1),
    "reshape": _reshape,
    "rsqrt": _rsqrt,
    "split": _split,
    "squeeze": _reshape,
    "stack": _stack,
    "strided_slice": _strided_slice,
    "take": _take,
    "tile": _tile,
    "transpose": _transpose,
    "zeros_like": _filled(0),
}
