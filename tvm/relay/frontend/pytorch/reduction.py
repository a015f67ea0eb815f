"""PyTorch reductions, softmax, normalisation over axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_dtype, infer_shape, scalar_like

from .open_shapes import reshaped, size_of, sizes_of
from .registry import (
    CONVERTERS,
    Converter,
    Rows,
    as_dtype,
    as_float,
    as_ints,
    as_number,
    axes_of,
    category,
    is_tensor,
    promote_dtypes,
    promoted,
    torch_dtype,
    torch_op,
    torch_ops,
)


def _axis_arguments(args: tuple[Any, ...]) -> tuple[Any, bool, Any]:
    """(dim, keepdim, dtype) of the overloads with and without dimensions."""
    if len(args) <= 1:
        return None, False, args[0] if args else None
    return args[0], bool(args[1]), args[2] if len(args) > 2 else None


def _sum_like(reduce: Callable[..., RelayExpr], floats: bool) -> Callable[..., RelayExpr]:
    def convert(x: RelayExpr, *args: Any) -> RelayExpr:
        dims, keepdim, dtype = _axis_arguments(args)
        own = infer_dtype(x)
        default = own if category(own) == 2 else ("float32" if floats else "int64")
        value = as_dtype(x, torch_dtype(dtype, default))
        return reduce(value, axis=axes_of(dims, len(infer_shape(x))), keepdims=keepdim)

    return convert


CONVERTERS["aten::sum"] = _sum_like(_op.sum, floats=False)
CONVERTERS["aten::mean"] = _sum_like(_op.mean, floats=True)
CONVERTERS["aten::prod"] = _sum_like(_op.prod, floats=False)


_REDUCTIONS: Rows = {
    "amax": lambda x, dims=None, keepdim=False: _op.max(
        x, axis=axes_of(dims, len(infer_shape(x))), keepdims=keepdim
    ),
    "amin": lambda x, dims=None, keepdim=False: _op.min(
        x, axis=axes_of(dims, len(infer_shape(x))), keepdims=keepdim
    ),
    "_native_batch_norm_legit_no_training": lambda x, weight, bias, mean, variance, momentum, eps: [
        _batch_norm(x, weight, bias, mean, variance, False, momentum, eps),
        None,
        None,
    ],
}
torch_ops(_REDUCTIONS)


def _extremum(
    reduce: Callable[..., RelayExpr],
    find: Callable[..., RelayExpr],
    choose: Callable[..., RelayExpr],
) -> Callable[..., Any]:
    """``max(x)``, ``max(x, other)`` and ``max(x, dim)`` with indices."""

    def convert(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        if is_tensor(dim):
            return choose(*promoted(x, dim))
        values = reduce(x, axis=dim, keepdims=keepdim)
        return [values, find(x, axis=dim, keepdims=keepdim).astype("int64")]

    return convert


CONVERTERS["aten::max"] = _extremum(_op.max, _op.argmax, _op.maximum)
CONVERTERS["aten::min"] = _extremum(_op.min, _op.argmin, _op.minimum)


def _arg(find: Callable[..., RelayExpr]) -> Callable[..., RelayExpr]:
    def convert(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> RelayExpr:
        if dim is None:
            return find(_op.reshape(x, (-1,)), axis=0).astype("int64")
        return find(x, axis=dim, keepdims=keepdim).astype("int64")

    return convert


CONVERTERS["aten::argmax"], CONVERTERS["aten::argmin"] = _arg(_op.argmax), _arg(_op.argmin)


def _logical(reduce: Callable[..., RelayExpr]) -> Callable[..., RelayExpr]:
    def convert(x: RelayExpr, dims: Any = None, keepdim: bool = False) -> RelayExpr:
        axes = axes_of(dims, len(infer_shape(x)))
        return reduce(as_dtype(x, "bool"), axis=axes, keepdims=keepdim)

    return convert


CONVERTERS["aten::all"], CONVERTERS["aten::any"] = _logical(_op.all), _logical(_op.any)


def _moments(root: bool) -> Callable[..., RelayExpr]:
    def convert(x: RelayExpr, *args: Any) -> RelayExpr:
        """``var(x, unbiased)``, ``var(x, dims, unbiased or correction, keepdim)``."""
        if len(args) <= 1:
            dims, correction, keepdim = None, args[0] if args else True, False
        else:
            dims, correction, keepdim = args[0], args[1], args[2] if len(args) > 2 else False
        shape = infer_shape(x)
        axes = axes_of(dims, len(shape))
        centred = x - _op.mean(x, axis=axes, keepdims=True)
        count = 1
        for axis in axes:
            count *= shape[axis]
        ddof = 1 if correction is None else as_number(correction)
        total = _op.sum(centred * centred, axis=axes, keepdims=bool(keepdim))
        variance = total / scalar_like(float(max(count - ddof, 0)), x)
        return _op.sqrt(variance) if root else variance

    return convert


CONVERTERS["aten::var"], CONVERTERS["aten::std"] = _moments(False), _moments(True)


@torch_op("var_mean")
def _var_mean(x: RelayExpr, *args: Any) -> list[RelayExpr]:
    variance = CONVERTERS["aten::var"](x, *args)
    dims, keepdim = (args[0], args[2]) if len(args) > 2 else (None, False)
    axes = axes_of(dims, len(infer_shape(x)))
    return [variance, _op.mean(x, axis=axes, keepdims=bool(keepdim))]


@torch_op("norm", "linalg_vector_norm", "frobenius_norm")
def _norm(x: RelayExpr, p: Any = 2, dims: Any = None, keepdim: bool = False, *_: Any) -> RelayExpr:
    axes = axes_of(dims, len(infer_shape(x)))
    order = 2 if p is None or isinstance(p, (list, str)) else float(as_number(p))
    x = as_float(x)
    if order == 0:
        counted = as_dtype(_op.not_equal(x, scalar_like(0.0, x)), infer_dtype(x))
        return _op.sum(counted, axis=axes, keepdims=keepdim)
    if order == float("-inf"):
        return _op.min(_op.abs(x), axis=axes, keepdims=keepdim)
    if order == 1:
        return _op.sum(_op.abs(x), axis=axes, keepdims=keepdim)
    if order == 2:
        return _op.sqrt(_op.sum(x * x, axis=axes, keepdims=keepdim))
    if order == float("inf"):
        return _op.max(_op.abs(x), axis=axes, keepdims=keepdim)
    powered = _op.power(_op.abs(x), scalar_like(order, x))
    total = _op.sum(powered, axis=axes, keepdims=keepdim)
    return _op.power(total, scalar_like(1 / order, x))


@torch_op("logsumexp")
def _logsumexp(x: RelayExpr, dims: Any, keepdim: bool = False) -> RelayExpr:
    """The largest element is taken out, where it is finite."""
    value, axes = as_float(x), as_ints(dims)
    largest = _op.max(value, axis=axes, keepdims=True)
    shift = _op.where(_op.isinf(largest), _op.zeros_like(largest), largest)
    total = _op.sum(_op.exp(value - shift), axis=axes, keepdims=keepdim)
    kept = shift if keepdim else _op.squeeze(shift, [a % len(infer_shape(x)) for a in axes])
    return _op.log(total) + kept


@torch_op("softmax", "_softmax", "special_softmax")
def _softmax(x: RelayExpr, dim: int, dtype: Any = None) -> RelayExpr:
    given = dtype if not isinstance(dtype, bool) else None
    value = as_float(x) if given is None else as_dtype(x, torch_dtype(given))
    return _op.nn.softmax(value, axis=dim)


@torch_op("log_softmax", "_log_softmax")
def _log_softmax(x: RelayExpr, dim: int, dtype: Any = None) -> RelayExpr:
    given = dtype if not isinstance(dtype, bool) else None
    value = as_float(x) if given is None else as_dtype(x, torch_dtype(given))
    rank = len(infer_shape(x))
    if dim % rank == rank - 1:
        return _op.nn.log_softmax(value, axis=-1)
    return value - _op.logsumexp(value, axis=[dim], keepdims=True)


@torch_op("cumsum")
def _cumsum(x: RelayExpr, dim: int, dtype: Any = None) -> RelayExpr:
    own = infer_dtype(x)
    default = own if category(own) == 2 else "int64"
    wanted = torch_dtype(dtype, default)
    return _op.cumsum(as_dtype(x, wanted), axis=dim, dtype=wanted)


def _of_mixed_types(normalize: Converter) -> Converter:
    """Weights of a wider type than the data: the sums are of theirs, the result of the data's."""

    def convert(x: RelayExpr, *args: Any) -> RelayExpr:
        own = infer_dtype(x)
        kinds = [infer_dtype(a) for a in args if is_tensor(a) and infer_shape(a)]
        wide = functools.reduce(promote_dtypes, kinds, own)
        if all(kind == own for kind in kinds):
            return normalize(x, *args)
        widened = [as_dtype(a, wide) if is_tensor(a) else a for a in args]
        return as_dtype(normalize(as_dtype(x, wide), *widened), own)

    return convert


@torch_op("layer_norm")
@_of_mixed_types
def _layer_norm(
    x: RelayExpr, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> RelayExpr:
    rank, count = len(infer_shape(x)), len(as_ints(shape))
    if count == 1 and weight is not None and bias is not None:
        return _op.nn.layer_norm(x, weight, bias, axis=-1, epsilon=eps)
    axes = list(range(rank - count, rank))
    centred = x - _op.mean(x, axis=axes, keepdims=True)
    variance = _op.mean(centred * centred, axis=axes, keepdims=True)
    result = centred / _op.sqrt(variance + scalar_like(eps, x))
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@torch_op("native_layer_norm")
def _native_layer_norm(
    x: RelayExpr, shape: Any, weight: Any, bias: Any, eps: float
) -> list[RelayExpr]:
    rank, count = len(infer_shape(x)), len(as_ints(shape))
    axes = list(range(rank - count, rank))
    mean = _op.mean(x, axis=axes, keepdims=True)
    variance = _op.mean((x - mean) * (x - mean), axis=axes, keepdims=True)
    scale = _op.rsqrt(variance + scalar_like(eps, x))
    return [_layer_norm(x, shape, weight, bias, eps), mean, scale]


@torch_op("rms_norm")
@_of_mixed_types
def _rms_norm(x: RelayExpr, shape: Any, weight: Any = None, eps: Any = None) -> RelayExpr:
    rank, count = len(infer_shape(x)), len(as_ints(shape))
    axes = list(range(rank - count, rank))
    square = _op.mean(x * x, axis=axes, keepdims=True)
    epsilon = 1.1920929e-07 if eps is None else eps
    result = x * _op.rsqrt(square + scalar_like(epsilon, x))
    return result if weight is None else result * weight


@torch_op("batch_norm")
@_of_mixed_types
def _batch_norm(
    x: RelayExpr, weight: Any, bias: Any, mean: Any, variance: Any, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> RelayExpr:  # fmt: skip
    if training or mean is None or variance is None:
        return _normalized_by_batch(x, weight, bias, eps)
    gamma = _op.ones_like(mean) if weight is None else weight
    beta = _op.zeros_like(mean) if bias is None else bias
    return _op.nn.batch_norm(x, gamma, beta, mean, variance, epsilon=eps)[0]


def _normalized_by_batch(x: RelayExpr, weight: Any, bias: Any, eps: float) -> RelayExpr:
    """With the statistics of the batch itself."""
    shape = infer_shape(x)
    axes = [axis for axis in range(len(shape)) if axis != 1]
    centred = x - _op.mean(x, axis=axes, keepdims=True)
    variance = _op.mean(centred * centred, axis=axes, keepdims=True)
    result = centred / _op.sqrt(variance + scalar_like(eps, x))
    per_channel = (shape[1], *[1] * (len(shape) - 2))
    result = result if weight is None else result * _op.reshape(weight, per_channel)
    return result if bias is None else result + _op.reshape(bias, per_channel)


@torch_op("instance_norm")
def _instance_norm(
    x: RelayExpr, weight: Any, bias: Any, mean: Any, variance: Any, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> RelayExpr:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(x, weight, bias, mean, variance, False, momentum, eps)
    return _group_norm(x, infer_shape(x)[1], weight, bias, eps)


@torch_op("group_norm")
@_of_mixed_types
def _group_norm(
    x: RelayExpr, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> RelayExpr:
    shape = infer_shape(x)
    grouped = reshaped(x, [size_of(x, 0), groups, -1])
    centred = grouped - _op.mean(grouped, axis=[2], keepdims=True)
    variance = _op.mean(centred * centred, axis=[2], keepdims=True)
    result = reshaped(centred / _op.sqrt(variance + scalar_like(eps, x)), sizes_of(x))
    per_channel = (shape[1], *[1] * (len(shape) - 2))
    result = result if weight is None else result * _op.reshape(weight, per_channel)
    return result if bias is None else result + _op.reshape(bias, per_channel)


@torch_op("native_group_norm")
def _native_group_norm(
    x: RelayExpr, weight: Any, bias: Any, batch: Any, channels: Any, count: Any, groups: int,
    eps: float,
) -> list[RelayExpr]:  # fmt: skip
    grouped = reshaped(x, [size_of(x, 0), groups, -1])
    mean = _op.mean(grouped, axis=[2])
    centred = grouped - _op.expand_dims(mean, 2)
    scale = _op.rsqrt(_op.mean(centred * centred, axis=[2]) + scalar_like(eps, x))
    return [_group_norm(x, groups, weight, bias, eps), mean, scale]


@torch_op("_weight_norm")
def _weight_norm(direction: RelayExpr, length: RelayExpr, dim: int = 0) -> RelayExpr:
    """``direction`` scaled so that its slices along ``dim`` have the norms ``length``."""
    rank = len(infer_shape(direction))
    axes = [axis for axis in range(rank) if dim == -1 or axis != dim % rank]
    norm = _op.sqrt(_op.sum(direction * direction, axis=axes, keepdims=True))
    return direction * (length / norm)


@torch_op("equal")
def _equal(a: RelayExpr, b: RelayExpr) -> Any:
    """Whether two tensors have one shape and the same elements."""
    if infer_shape(a) != infer_shape(b):
        return False
    return _op.all(_op.equal(*promoted(a, b)))


@torch_op("_is_all_true")
def _is_all_true(x: RelayExpr) -> RelayExpr:
    return _op.all(x)


@torch_op("_is_any_true")
def _is_any_true(x: RelayExpr) -> RelayExpr:
    return _op.any(x)
