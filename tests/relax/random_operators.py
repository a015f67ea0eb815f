"""The operators of random relax programs: the expression, and numpy's words for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tvm import relax
from tvm.relax import op

from .random_indexing import gather_elements, index_put, index_tensor, take
from .random_operands import (
    EXACT,
    ROUGH,
    Draw,
    Operand,
    has_axes,
    is_exact_number,
    is_float,
    is_number,
)

# ---- elementwise


def unary(build: Any, function: Any, accepts: Any = is_float, exact: bool = ROUGH) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(accepts)
        if x is None:
            return None
        made = function(x.array).astype(x.array.dtype)
        return (
            Operand(build(x.expr), made, exact and x.is_exact) if np.isfinite(made).all() else None
        )

    return draw


def _wide(function: Any) -> Any:
    return lambda x: function(x.astype("float64"))


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=["float64"])(x)


def _selu(x: np.ndarray) -> np.ndarray:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


UNARY = [
    unary(op.abs, np.abs, is_number, EXACT),
    unary(op.negative, np.negative, is_number, EXACT),
    unary(op.sign, np.sign, is_exact_number, EXACT),
    unary(op.square, np.square, is_number, EXACT),
    unary(op.floor, np.floor, lambda x: is_float(x) and x.is_exact, EXACT),
    unary(op.ceil, np.ceil, lambda x: is_float(x) and x.is_exact, EXACT),
    unary(op.exp, _wide(np.exp)),
    unary(op.tanh, _wide(np.tanh)),
    unary(op.sigmoid, _wide(sigmoid)),
    unary(op.cos, _wide(np.cos), lambda x: is_float(x) and np.abs(x.array).max(initial=0) < 100),
    unary(op.sin, _wide(np.sin), lambda x: is_float(x) and np.abs(x.array).max(initial=0) < 100),
    unary(op.erf, _wide(_erf)),
    unary(op.trunc, np.trunc, lambda x: is_float(x) and x.is_exact, EXACT),
    unary(op.nn.relu6, lambda x: np.clip(x, 0, 6), is_float, EXACT),
    unary(op.nn.selu, _wide(_selu)),
    unary(op.nn.softplus, _wide(lambda x: np.logaddexp(x, 0))),
    unary(op.nn.relu, lambda x: np.maximum(x, 0), is_float, EXACT),
    unary(op.nn.silu, _wide(lambda x: x * sigmoid(x))),
    unary(op.nn.gelu, _wide(lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))))),
    unary(lambda x: op.nn.leakyrelu(x, 0.5), lambda x: np.where(x > 0, x, x * 0.5), is_float, EXACT),
    unary(lambda x: op.sqrt(op.abs(x)), _wide(lambda x: np.sqrt(np.abs(x))), lambda x: is_float(x) and x.is_exact),
    unary(lambda x: op.clip(x, -1, 1), lambda x: np.clip(x, -1, 1), is_number, EXACT),
    unary(op.logical_not, np.logical_not, lambda x: x.array.dtype == "bool", EXACT),
]  # fmt: skip


def _broadcasts(a: np.ndarray, b: np.ndarray) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False))


def binary(
    build: Any, function: Any, accepts: Any = is_number, exact: bool = EXACT, holds: Any = None
) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(accepts)
        if x is None:
            return None
        y = g.pick(
            lambda y: y.array.dtype == x.array.dtype and accepts(y) and _fit(x, y)
            and (holds is None or holds(y.array))
        )  # fmt: skip
        if y is None:
            return None
        return Operand(
            build(x.expr, y.expr), function(x.array, y.array), exact and x.is_exact and y.is_exact
        )

    return draw


def _fit(x: Operand, y: Operand) -> bool:
    """Whether the program knows that the shapes broadcast."""
    if not _broadcasts(x.array, y.array):
        return False
    a, b = x.expr.struct_info.dimensions, y.expr.struct_info.dimensions
    if a is None or b is None:
        return False
    pairs = zip(a[::-1], b[::-1], strict=False)
    return all([_is_one(m) or _is_one(n) or _same(m, n) for m, n in pairs])


def _is_one(dim: Any) -> bool:
    return getattr(dim, "value", None) == 1


def _same(m: Any, n: Any) -> bool:
    if m is n:
        return True
    a, b = getattr(m, "value", None), getattr(n, "value", None)
    return a is not None and a == b


def _no_zero(x: np.ndarray) -> bool:
    return bool((np.abs(x) > 0.1).all())


BINARY = [
    binary(op.add, np.add), binary(op.subtract, np.subtract), binary(op.multiply, np.multiply),
    binary(op.maximum, np.maximum), binary(op.minimum, np.minimum),
    binary(op.log_add_exp, np.logaddexp, is_float, ROUGH),
    binary(op.divide, np.divide, is_float, ROUGH, _no_zero),
    binary(op.floor_divide, np.floor_divide, lambda x: x.array.dtype.kind == "i", EXACT, _no_zero),
    binary(op.less, np.less, is_exact_number), binary(op.less_equal, np.less_equal, is_exact_number),
    binary(op.greater, np.greater, is_exact_number),
    binary(op.greater_equal, np.greater_equal, is_exact_number),
    binary(op.equal, np.equal, is_exact_number), binary(op.not_equal, np.not_equal, is_exact_number),
    binary(op.logical_and, np.logical_and, lambda x: x.array.dtype == "bool"),
    binary(op.logical_or, np.logical_or, lambda x: x.array.dtype == "bool"),
    binary(op.logical_xor, np.logical_xor, lambda x: x.array.dtype == "bool"),
]  # fmt: skip


def where(g: Any) -> Operand | None:
    c = g.pick(lambda x: x.array.dtype == "bool")
    x = c and g.pick(lambda x: is_number(x) and _fit(c, x))
    y = x and g.pick(lambda y: y.array.dtype == x.array.dtype and _fit(x, y) and _fit(c, y))
    if y is None:
        return None
    return Operand(
        op.where(c.expr, x.expr, y.expr),
        np.where(c.array, x.array, y.array),
        x.is_exact and y.is_exact,
    )


def astype(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.is_exact)
    if x is None:
        return None
    dtype = g.rng.choice(["float32", "float64", "int32", "int64", "bool"])
    if x.array.dtype.kind == "f" and dtype == "bool":
        return None
    return Operand(op.astype(x.expr, dtype), x.array.astype(dtype), EXACT)


# ---- reductions


def reduction(build: Any, function: Any, accepts: Any = is_float, exact: bool = ROUGH) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(lambda x: accepts(x) and has_axes(x) and x.array.size)
        if x is None:
            return None
        axes = sorted(g.rng.sample(range(x.array.ndim), g.rng.randint(1, x.array.ndim)))
        keep = g.rng.random() < 0.5
        axis = (
            None
            if g.rng.random() < 0.2
            else [a - x.array.ndim if g.rng.random() < 0.3 else a for a in axes]
        )
        made = function(x.array, axis=None if axis is None else tuple(axes), keepdims=keep)
        return Operand(
            build(x.expr, axis, keep), np.asarray(made).astype(x.array.dtype), exact and x.is_exact
        )

    return draw


def _wide_reduction(function: Any) -> Any:
    return lambda x, **options: function(x.astype("float64"), **options)


REDUCTIONS = [
    reduction(op.sum, np.sum, is_number, EXACT),
    reduction(op.max, np.max, is_number, EXACT),
    reduction(op.min, np.min, is_number, EXACT),
    reduction(op.mean, _wide_reduction(np.mean)),
    reduction(op.variance, _wide_reduction(np.var)),
    reduction(op.std, _wide_reduction(np.std), lambda x: is_float(x) and x.is_exact),
]


def arg_reduction(build: Any, function: Any) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(lambda x: is_exact_number(x) and has_axes(x) and x.array.size)
        if x is None or x.array.dtype != "float32":
            return None
        axis, keep = g.rng.randrange(x.array.ndim), g.rng.random() < 0.5
        made = function(x.array, axis=axis, keepdims=keep)
        return Operand(build(x.expr, axis, keep), made.astype("int64"), EXACT)

    return draw


def softmax(build: Any, function: Any) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(lambda x: is_float(x) and has_axes(x) and x.array.size)
        if x is None:
            return None
        axis = g.rng.randrange(-x.array.ndim, x.array.ndim)
        shifted = x.array.astype("float64") - x.array.max(axis=axis, keepdims=True)
        e = np.exp(shifted)
        total = e.sum(axis=axis, keepdims=True)
        return Operand(
            build(x.expr, axis), function(shifted, e, total).astype(x.array.dtype), ROUGH
        )

    return draw


# ---- shapes


def permute(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    if x is None:
        return None
    axes = g.rng.sample(range(x.array.ndim), x.array.ndim)
    return Operand(op.permute_dims(x.expr, axes), x.array.transpose(axes), x.is_exact)


def reshape(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.array.size > 0)
    if x is None:
        return None
    dims = list(x.expr.struct_info.dimensions or ())
    arrays = list(x.array.shape)
    if not dims:
        return None
    kind = g.rng.choice(["merge", "flat", "ones"])
    at = g.rng.randrange(len(dims))
    if kind == "merge" and len(dims) > 1 and at + 1 < len(dims):
        dims[at : at + 2] = [dims[at] * dims[at + 1]]
        arrays[at : at + 2] = [arrays[at] * arrays[at + 1]]
    elif kind == "flat":
        return Operand(op.reshape(x.expr, (-1,)), x.array.reshape(-1), x.is_exact)
    else:
        dims.insert(at, 1)
        arrays.insert(at, 1)
    return Operand(op.reshape(x.expr, dims), x.array.reshape(arrays), x.is_exact)


def expand_dims(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.array.ndim < 5)
    axis = x and g.rng.randrange(-x.array.ndim - 1, x.array.ndim + 1)
    return x and Operand(op.expand_dims(x.expr, axis), np.expand_dims(x.array, axis), x.is_exact)


def squeeze(g: Any) -> Operand | None:
    x = g.pick(lambda x: any(_is_one(d) for d in x.expr.struct_info.dimensions or ()))
    if x is None:
        return None
    ones = [i for i, d in enumerate(x.expr.struct_info.dimensions) if _is_one(d)]
    axis = g.rng.sample(ones, g.rng.randint(1, len(ones)))
    return Operand(op.squeeze(x.expr, axis), x.array.squeeze(tuple(axis)), x.is_exact)


def concat(g: Any) -> Operand | None:
    x = g.pick(lambda x: has_axes(x) and x.expr.struct_info.dimensions is not None)
    if x is None:
        return None
    axis = g.rng.randrange(x.array.ndim)

    def fits(y: Operand) -> bool:
        dims = y.expr.struct_info.dimensions
        return (
            y.array.dtype == x.array.dtype and y.array.ndim == x.array.ndim and dims is not None
            and all(i == axis or _same(a, b) for i, (a, b) in enumerate(zip(dims, x.expr.struct_info.dimensions, strict=True)))
        )  # fmt: skip

    others = [y for y in [g.pick(fits) for _ in range(g.rng.randint(0, 2))] if y is not None]
    all_ = [x, *others]
    made = np.concatenate([y.array for y in all_], axis)
    return Operand(op.concat([y.expr for y in all_], axis), made, all(y.is_exact for y in all_))


def stack(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.expr.struct_info.dimensions is not None and x.array.ndim < 5)
    if x is None:
        return None
    dims = x.expr.struct_info.dimensions

    def fits(y: Operand) -> bool:
        other = y.expr.struct_info.dimensions
        return (
            y.array.dtype == x.array.dtype and other is not None and len(other) == len(dims)
            and all(_same(a, b) for a, b in zip(other, dims, strict=True))
        )  # fmt: skip

    all_ = [x, *[g.pick(fits) for _ in range(g.rng.randint(0, 2))]]
    axis = g.rng.randrange(-x.array.ndim - 1, x.array.ndim + 1)
    made = np.stack([y.array for y in all_], axis)
    return Operand(op.stack([y.expr for y in all_], axis), made, all(y.is_exact for y in all_))


def split(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    if x is None:
        return None
    axis = g.rng.randrange(x.array.ndim)
    extent = (
        getattr(x.expr.struct_info.dimensions[axis], "value", None)
        if x.expr.struct_info.dimensions
        else None
    )
    if extent is None or extent < 2:
        return None
    if g.rng.random() < 0.5:
        parts: Any = g.rng.randint(2, extent)
        size = -(-extent // parts)
        cuts = list(range(size, extent, size))
        if len(cuts) + 1 != parts:
            return None
    else:
        parts = cuts = sorted(g.rng.sample(range(1, extent), g.rng.randint(1, min(2, extent - 1))))
    which = g.rng.randrange(len(cuts) + 1)
    whole = g.builder.emit(op.split(x.expr, parts, axis))
    return Operand(
        relax.TupleGetItem(whole, which), np.split(x.array, cuts, axis)[which], x.is_exact
    )


def strided_slice(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    if x is None:
        return None
    axis = g.rng.randrange(x.array.ndim)
    extent = x.array.shape[axis]
    stride = g.rng.choice([1, 1, 2, -1, -2])
    begin, end = g.rng.randint(-extent, extent), g.rng.randint(-extent, extent)
    is_known = x.expr.struct_info.dimensions is not None and hasattr(
        x.expr.struct_info.dimensions[axis], "value"
    )
    index: list[Any] = [slice(None)] * x.array.ndim
    index[axis] = slice(begin, end, stride)
    made = x.array[tuple(index)]
    if made.size == 0 or not is_known:
        return None
    return Operand(op.strided_slice(x.expr, [axis], [begin], [end], [stride]), made, x.is_exact)


def flip(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    axis = x and g.rng.randrange(x.array.ndim)
    return x and Operand(op.flip(x.expr, axis), np.flip(x.array, axis), x.is_exact)


def repeat(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    if x is None:
        return None
    axis, count = g.rng.randrange(x.array.ndim), g.rng.randint(1, 3)
    return Operand(op.repeat(x.expr, count, axis), np.repeat(x.array, count, axis), x.is_exact)


def tile(g: Any) -> Operand | None:
    x = g.pick(has_axes)
    if x is None:
        return None
    counts = [g.rng.randint(1, 2) for _ in range(g.rng.randint(1, x.array.ndim))]
    return Operand(op.tile(x.expr, counts), np.tile(x.array, counts), x.is_exact)


def broadcast_to(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.array.ndim < 4 and x.expr.struct_info.dimensions is not None)
    if x is None:
        return None
    first = g.dimension()
    dims, extents = [first[0]], [first[1]]
    for dim, extent in zip(x.expr.struct_info.dimensions, x.array.shape, strict=True):
        new = g.dimension() if _is_one(dim) else (dim, extent)
        dims.append(new[0])
        extents.append(new[1])
    return Operand(op.broadcast_to(x.expr, dims), np.broadcast_to(x.array, extents), x.is_exact)


def cumsum(g: Any) -> Operand | None:
    x = g.pick(lambda x: is_number(x) and has_axes(x) and x.array.size)
    axis = x and g.rng.randrange(x.array.ndim)
    return x and Operand(
        op.cumsum(x.expr, axis), np.cumsum(x.array, axis, dtype=x.array.dtype), x.is_exact
    )


def pad(g: Any) -> Operand | None:
    x = g.pick(lambda x: is_float(x) and has_axes(x))
    if x is None:
        return None
    widths = [(g.rng.randint(0, 2), g.rng.randint(0, 2)) for _ in range(x.array.ndim)]
    value = g.rng.choice([0, 1.5])
    flat = [w for pair in widths for w in pair]
    made = np.pad(x.array, widths, constant_values=value)
    return Operand(op.nn.pad(x.expr, flat, value), made, x.is_exact)


def triangle(build: Any, function: Any) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(lambda x: is_number(x) and x.array.ndim >= 2)
        k = g.rng.randint(-2, 2)
        return x and Operand(build(x.expr, k), function(x.array, k), x.is_exact)

    return draw


def sort(g: Any) -> Operand | None:
    x = g.pick(lambda x: is_exact_number(x) and has_axes(x) and x.array.size)
    if x is None or x.array.dtype != "float32":
        return None
    axis, down = g.rng.randrange(x.array.ndim), g.rng.random() < 0.5
    made = np.sort(x.array, axis)
    return Operand(op.sort(x.expr, axis, down), np.flip(made, axis) if down else made, EXACT)


# ---- products and layers


def _same_rows(x: Operand, y: Operand) -> bool:
    a, b = x.expr.struct_info.dimensions, y.expr.struct_info.dimensions
    if a is None or b is None or not a or not b:
        return False
    if not _same(a[-1], b[-2] if len(b) > 1 else b[-1]):
        return False
    pairs = zip(a[:-2][::-1], b[:-2][::-1], strict=False)
    return all([_is_one(m) or _is_one(n) or _same(m, n) for m, n in pairs])


def matmul(g: Any) -> Operand | None:
    x = g.pick(lambda x: is_float(x) and has_axes(x) and x.array.size)
    if x is None:
        return None
    y = g.pick(lambda y: y.array.dtype == x.array.dtype and y.array.size and _same_rows(x, y))
    if y is None:
        inner = x.expr.struct_info.dimensions and getattr(
            x.expr.struct_info.dimensions[-1], "value", None
        )
        if inner is None:
            return None
        weight = g.array((inner, g.rng.choice([1, 3, 8, 17])), str(x.array.dtype))
        y = Operand(relax.const(weight), weight, EXACT)
    return Operand(
        op.matmul(x.expr, y.expr), np.matmul(x.array, y.array), x.is_exact and y.is_exact
    )


def layer_norm(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.array.dtype == "float32" and has_axes(x) and x.array.size and x.is_exact)
    if x is None or x.expr.struct_info.dimensions is None:
        return None
    extent = getattr(x.expr.struct_info.dimensions[-1], "value", None)
    if extent is None:
        return None
    gamma, beta = g.array((extent,), "float32"), g.array((extent,), "float32")
    wide = x.array.astype("float64")
    center = wide - wide.mean(-1, keepdims=True)
    made = center / np.sqrt(wide.var(-1, keepdims=True) + 1e-2) * gamma + beta
    expr = op.nn.layer_norm(x.expr, relax.const(gamma), relax.const(beta), axes=[-1], epsilon=1e-2)
    return Operand(expr, made.astype("float32"), ROUGH)


def rms_norm(g: Any) -> Operand | None:
    x = g.pick(lambda x: x.array.dtype == "float32" and has_axes(x) and x.array.size)
    if x is None or x.expr.struct_info.dimensions is None:
        return None
    extent = getattr(x.expr.struct_info.dimensions[-1], "value", None)
    if extent is None:
        return None
    weight = g.array((extent,), "float32")
    wide = x.array.astype("float64")
    made = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-2) * weight
    return Operand(
        op.nn.rms_norm(x.expr, relax.const(weight), axes=[-1], epsilon=1e-2),
        made.astype("float32"),
        ROUGH,
    )


def _images(x: Operand) -> bool:
    dims = x.expr.struct_info.dimensions
    return (
        x.array.dtype == "float32"
        and x.array.ndim == 4
        and dims is not None
        and hasattr(dims[1], "value")
    )


def conv2d(g: Any) -> Operand | None:
    x = g.pick(_images)
    if x is None:
        return None
    channels, k, pad_ = x.array.shape[1], g.rng.choice([1, 3]), g.rng.choice([0, 1])
    stride, outs = g.rng.choice([1, 2]), g.rng.choice([1, 4, 8])
    if min(x.array.shape[2:]) + 2 * pad_ < k:
        return None
    weight = g.array((outs, channels, k, k), "float32")
    padded = np.pad(x.array, [(0, 0), (0, 0), (pad_, pad_), (pad_, pad_)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))[
        :, :, ::stride, ::stride
    ]
    made = np.einsum("nchwij,ocij->nohw", windows, weight)
    expr = op.nn.conv2d(x.expr, relax.const(weight), strides=stride, padding=pad_)
    return Operand(expr, made.astype("float32"), ROUGH)


def pool2d(build: Any, function: Any) -> Draw:
    def draw(g: Any) -> Operand | None:
        x = g.pick(_images)
        if x is None:
            return None
        k, stride = g.rng.choice([1, 2]), g.rng.choice([1, 2])
        if min(x.array.shape[2:]) < k:
            return None
        windows = np.lib.stride_tricks.sliding_window_view(x.array, (k, k), (2, 3))
        made = function(windows[:, :, ::stride, ::stride], axis=(-2, -1))
        return Operand(build(x.expr, (k, k), (stride, stride)), made.astype("float32"), x.is_exact)

    return draw


# ---- structure


def tuple_item(g: Any) -> Operand | None:
    x, y = g.pick(lambda x: True), g.pick(lambda x: True)
    which = g.rng.randrange(2)
    whole = g.builder.emit(relax.Tuple([x.expr, y.expr]))
    return Operand(relax.TupleGetItem(whole, which), (x, y)[which].array, (x, y)[which].is_exact)


OPERATORS: list[Draw] = [
    *UNARY, *BINARY, *BINARY, where, astype, *REDUCTIONS,
    arg_reduction(op.argmax, np.argmax), arg_reduction(op.argmin, np.argmin),
    softmax(op.nn.softmax, lambda s, e, t: e / t), softmax(op.nn.log_softmax, lambda s, e, t: s - np.log(t)),
    permute, reshape, expand_dims, squeeze, concat, stack, split, strided_slice, flip, repeat, tile, broadcast_to,
    take, gather_elements, index_tensor, index_put, cumsum, pad, triangle(op.tril, np.tril), triangle(op.triu, np.triu), sort,
    matmul, matmul, matmul, layer_norm, rms_norm, conv2d, conv2d,
    pool2d(op.nn.max_pool2d, np.max), pool2d(op.nn.avg_pool2d, np.mean), tuple_item,
]  # fmt: skip
