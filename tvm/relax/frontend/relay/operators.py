"""What operators of relay are in relax, one row each.

A row gets the translator, relay's call and the translated arguments, a tuple as a list. It gives an
expression of relax, a list for a tuple, or None where relax's operators do not say the same: then the
operator's te stages are called. Those that only arrange elements are in `shape_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm.relax import op as _op
from tvm.relax.expr import Constant, PrimValue, const
from tvm.relax.frontend.relay.shape_rows import SHAPE_ROWS, Row
from tvm.relay.expr import Call
from tvm.relay.traverse import is_call_of
from tvm.tir.expr import IntImm

_SAME_NAMES = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "ceil", "cos", "cosh", "divide", "equal", "erf", "exp", "floor",
    "floor_divide", "floor_mod", "greater", "greater_equal", "isfinite", "isinf", "isnan",
    "left_shift", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or",
    "logical_xor", "maximum", "minimum", "mod", "multiply", "negative", "nn.relu", "not_equal",
    "ones_like", "power", "right_shift", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "subtract", "tan", "tanh", "where", "zeros_like",
)  # fmt: skip


def _plain(function: Callable[..., Any]) -> Row:
    return lambda t, call, args: function(*args)


def _function(name: str) -> Callable[..., Any]:
    found: Any = _op
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _numbers(values: Any) -> list[int]:
    return [int(getattr(v, "value", v)) for v in values]


def _axes(call: Call, rank: int) -> list[int] | None:
    """The axes that a reduction takes away, None for all."""
    axis = call.attrs.axis
    axes = None if axis is None else _numbers(axis if isinstance(axis, (tuple, list)) else [axis])
    if call.attrs.exclude:
        kept = {a % rank for a in axes or ()}
        return [a for a in range(rank) if a not in kept]
    return axes


def _reduction(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        if args[0].struct_info.dtype == "bool":
            return None
        axes = _axes(call, args[0].struct_info.ndim)
        return args[0] if axes == [] else function(args[0], axes, bool(call.attrs.keepdims))

    return row


def _variance(t: Any, call: Call, args: list[Any]) -> Any:
    if call.attrs.unbiased:
        return None
    axes = _axes(call, args[0].struct_info.ndim)
    return _op.variance(args[0], axes, bool(call.attrs.keepdims))


def _best(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        axes = _axes(call, args[0].struct_info.ndim)
        if call.attrs.select_last_index or (axes is not None and len(axes) != 1):
            return None
        best = function(args[0], None if axes is None else axes[0], bool(call.attrs.keepdims))
        return _op.astype(t.emit(best), str(call.checked_type.dtype))

    return row


def _out_dtype(attrs: Any) -> str | None:
    return str(attrs.out_dtype) if getattr(attrs, "out_dtype", None) else None


def _conv(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        attrs = call.attrs
        if not str(attrs.kernel_layout).isalpha() or not str(attrs.data_layout).isalpha():
            return None
        options = {"output_padding": attrs.output_padding} if "output_padding" in dir(attrs) else {}
        return function(
            *args, strides=attrs.strides, padding=attrs.padding, dilation=attrs.dilation,
            groups=attrs.groups, data_layout=str(attrs.data_layout),
            kernel_layout=str(attrs.kernel_layout),
            out_layout=str(attrs.out_layout) if attrs.out_layout else None,
            out_dtype=_out_dtype(attrs), **options,
        )  # fmt: skip

    return row


def _transposed_conv(function: Callable[..., Any]) -> Row:
    convolve = _conv(function)

    def row(t: Any, call: Call, args: list[Any]) -> Any:
        is_usual = str(call.attrs.kernel_layout).startswith("IO")
        is_dilated = any([d != 1 for d in _numbers(call.attrs.dilation)])
        return convolve(t, call, args) if is_usual and not is_dilated else None

    return row


def _pool(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        attrs = call.attrs
        counts = bool(getattr(attrs, "count_include_pad", False))
        return function(
            args[0], attrs.pool_size, attrs.strides, attrs.padding, attrs.dilation,
            bool(attrs.ceil_mode), counts, str(attrs.layout),
        )  # fmt: skip

    return row


def _adaptive_pool(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        size = call.attrs.output_size
        sizes = _numbers(size if isinstance(size, (tuple, list)) else [size]) if size else None
        return function(args[0], sizes or None, str(call.attrs.layout))

    return row


def _global_pool(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.nn.adaptive_avg_pool2d(args[0], (1, 1), str(call.attrs.layout))


def _transposed(t: Any, node: Any, value: Any) -> Any:
    """With the last two axes exchanged; what relay exchanged for its products as it was."""
    rank = value.struct_info.ndim
    axes = [*range(rank - 2), rank - 1, rank - 2]
    if is_call_of(node, "transpose"):
        given = node.attrs.axes
        if (list(range(rank))[::-1] if given is None else _numbers(given)) == axes:
            return t.values[id(node.args[0])]
    return t.emit(_op.permute_dims(value, axes))


def _product(first: bool, second: bool) -> Row:
    """A product of matrices; whether the factors are given transposed by default."""

    def row(t: Any, call: Call, args: list[Any]) -> Any:
        attrs = call.attrs
        a, b = args
        if getattr(attrs, "transpose_a", first):
            a = _transposed(t, call.args[0], a)
        if getattr(attrs, "transpose_b", second):
            b = _transposed(t, call.args[1], b)
        return _op.matmul(a, b, out_dtype=_out_dtype(attrs))

    return row


def _bias_add(t: Any, call: Call, args: list[Any]) -> Any:
    data, bias = args
    rank = data.struct_info.ndim
    behind = rank - 1 - call.attrs.axis % rank
    if behind:
        bias = t.emit(_op.expand_dims(bias, list(range(1, behind + 1))))
    return _op.add(data, bias)


def _norm(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    data, gamma, beta = args
    return _op.nn.layer_norm(
        data, gamma, beta, axes=[int(attrs.axis)], epsilon=float(attrs.epsilon), center=bool(attrs.center),
        scale=bool(attrs.scale),
    )  # fmt: skip


def _group_norm(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    data, gamma, beta = args
    rank = data.struct_info.ndim
    return _op.nn.group_norm(
        data, gamma, beta, num_groups=int(attrs.num_groups), channel_axis=int(attrs.axis),
        axes=[a for a in range(1, rank) if a != attrs.axis % rank], epsilon=float(attrs.epsilon),
        center=bool(attrs.center), scale=bool(attrs.scale),
    )  # fmt: skip


def _batch_norm(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    data, gamma, beta, mean, variance = args
    return _op.nn.batch_norm(
        data, gamma, beta, mean, variance, axis=int(attrs.axis), epsilon=float(attrs.epsilon), center=bool(attrs.center),
        scale=bool(attrs.scale),
    )  # fmt: skip


def _dropout(t: Any, call: Call, args: list[Any]) -> Any:
    return [args[0], t.emit(_op.ones_like(args[0]))]  # of inference


def _clip(t: Any, call: Call, args: list[Any]) -> Any:
    bounds = [call.attrs.a_min, call.attrs.a_max]
    if str(args[0].struct_info.dtype).startswith(("int", "uint")):
        if any([b != int(b) for b in bounds]):
            return None
        kind = args[0].struct_info.dtype
        return _op.clip(args[0], *[PrimValue(IntImm(kind, int(b))) for b in bounds])
    return _op.clip(args[0], *[PrimValue(float(b)) for b in bounds])


def _topk(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    if not isinstance(attrs.k, (int, IntImm)) or int(attrs.k) < 1:
        return None
    return _op.topk(
        args[0], int(attrs.k), int(attrs.axis), str(attrs.ret_type), not attrs.is_ascend,
        str(attrs.dtype),
    )  # fmt: skip


def _argsort(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    return _op.argsort(args[0], int(attrs.axis), not attrs.is_ascend, str(attrs.dtype))


def _sort(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.sort(args[0], int(call.attrs.axis), not call.attrs.is_ascend)


def _scan(function: Callable[..., Any]) -> Row:
    def row(t: Any, call: Call, args: list[Any]) -> Any:
        attrs = call.attrs
        axis = None if attrs.axis is None else int(attrs.axis)
        return function(args[0], axis, str(call.checked_type.dtype), bool(attrs.exclusive))

    return row


def _trilu(t: Any, call: Call, args: list[Any]) -> Any:
    known = t.elements(call.args[1])
    if known is None or not isinstance(known[0], int):
        return None
    return (_op.triu if call.attrs.upper else _op.tril)(args[0], known[0])


def _take(t: Any, call: Call, args: list[Any]) -> Any:
    """Of indices that are known to be within bounds, since relax does not look."""
    attrs, (data, indices) = call.attrs, args
    axis = None if attrs.axis is None else int(attrs.axis)
    if attrs.batch_dims or (axis is None and data.struct_info.ndim != 1):
        return None
    if attrs.mode != "fast":
        extent = data.struct_info.shape.values[axis or 0]
        if not isinstance(indices, Constant) or not isinstance(extent, IntImm):
            return None
        given = indices.data.numpy()
        if given.size and (given.min() < 0 or given.max() >= extent.value):
            return None
    return _op.take(data, indices, axis)


def _einsum(t: Any, call: Call, args: list[Any]) -> Any:
    return _op.einsum(args[0], str(call.attrs.equation))


def _cast(t: Any, call: Call, args: list[Any]) -> Any:
    return _cast_constant(args[0], str(call.attrs.dtype))


def _cast_constant(value: Any, dtype: str) -> Any:
    is_plain = isinstance(value, Constant) and "float" not in str(value.data.dtype)
    if is_plain and not value.data.shape and dtype != "bool":
        return const(np.asarray(value.data.numpy()).item(), dtype)
    return _op.astype(value, dtype)


def _resize2d(t: Any, call: Call, args: list[Any]) -> Any:
    attrs = call.attrs
    return _op.image.resize2d(
        args[0], list(attrs.size), roi=list(attrs.roi) if attrs.roi else None,
        layout=str(attrs.layout), method=str(attrs.method),
        coordinate_transformation_mode=str(attrs.coordinate_transformation_mode),
        rounding_method=str(attrs.rounding_method), cubic_alpha=float(attrs.cubic_alpha),
        cubic_exclude=int(attrs.cubic_exclude), extrapolation_value=float(attrs.extrapolation_value),
        out_dtype=_out_dtype(attrs),
    )  # fmt: skip


def _scatter_elements(t: Any, call: Call, args: list[Any]) -> Any:
    data, indices, updates = args
    axis, reduction = int(call.attrs.axis), str(call.attrs.reduction)
    return _op.scatter_elements(data, indices, updates, axis, reduction)


ROWS: Mapping[str, Row] = {
    **SHAPE_ROWS,
    **{name: _plain(_function(name)) for name in _SAME_NAMES},
    "copy": lambda t, call, args: args[0],
    "cast": _cast,
    "clip": _clip,
    "sum": _reduction(_op.sum),
    "mean": _reduction(_op.mean),
    "max": _reduction(_op.max),
    "min": _reduction(_op.min),
    "prod": _reduction(_op.prod),
    "variance": _variance,
    "argmax": _best(_op.argmax),
    "argmin": _best(_op.argmin),
    "cumsum": _scan(_op.cumsum),
    "cumprod": _scan(_op.cumprod),
    "topk": _topk,
    "argsort": _argsort,
    "sort": _sort,
    "trilu": _trilu,
    "take": _take,
    "einsum": _einsum,
    "scatter_elements": _scatter_elements,
    "image.resize2d": _resize2d,
    "nn.leaky_relu": lambda t, call, args: _op.nn.leakyrelu(args[0], float(call.attrs.alpha)),
    "nn.softmax": lambda t, call, args: _op.nn.softmax(args[0], int(call.attrs.axis)),
    "nn.log_softmax": lambda t, call, args: _op.nn.log_softmax(args[0], int(call.attrs.axis)),
    "nn.dense": _product(False, True),
    "nn.matmul": _product(False, False),
    "nn.batch_matmul": _product(False, True),
    "nn.bias_add": _bias_add,
    "nn.conv1d": _conv(_op.nn.conv1d),
    "nn.conv2d": _conv(_op.nn.conv2d),
    "nn.conv3d": _conv(_op.nn.conv3d),
    "nn.conv1d_transpose": _transposed_conv(_op.nn.conv1d_transpose),
    "nn.conv2d_transpose": _transposed_conv(_op.nn.conv2d_transpose),
    **{
        f"nn.{kind}_pool{rank}d": _pool(_function(f"nn.{kind}_pool{rank}d"))
        for kind in ("max", "avg")
        for rank in (1, 2, 3)
    },
    **{
        f"nn.adaptive_avg_pool{rank}d": _adaptive_pool(_function(f"nn.adaptive_avg_pool{rank}d"))
        for rank in (1, 2, 3)
    },
    "nn.global_avg_pool2d": _global_pool,
    "nn.layer_norm": _norm,
    "nn.group_norm": _group_norm,
    "nn.batch_norm": _batch_norm,
    "nn.dropout": _dropout,
}
