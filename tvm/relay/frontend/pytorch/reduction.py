"""PyTorch reductions, softmax, normalisation over axes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.normalization import moments, p_norm, rms_norm, standardized, weighted

from .dynamic_shapes import is_dynamic, reshaped, size_of, sizes_of
from .products import matrix_product
from .registry import (
    CONVERTERS,
    Converter,
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

Reduction = Callable[..., RelayExpr]


def _own_or(x: RelayExpr, default: str) -> str:
    """The element type of floats, another one for integers."""
    return own if category(own := infer_dtype(x)) == 2 else default


def _sum_like(reduce: Reduction, default: str = "int64") -> Converter:
    """``sum(x, dtype)`` and ``sum(x, dims, keepdim, dtype)``."""

    def convert(x: RelayExpr, *args: Any) -> RelayExpr:
        dims, keepdim, dtype = (
            (None, False, *args, None)[:3] if len(args) < 2 else (*args, None)[:3]
        )
        value = as_dtype(x, torch_dtype(dtype, _own_or(x, default)))
        axes = axes_of(dims, len(infer_shape(value)))
        return reduce(value, axis=axes, keepdims=bool(keepdim))

    return convert


def _over_axes(reduce: Reduction) -> Converter:
    return lambda x, dims=None, keepdim=False: reduce(
        x, axis=axes_of(dims, len(infer_shape(x))), keepdims=bool(keepdim)
    )


def _extremum(reduce: Reduction, find: Reduction, choose: Reduction) -> Converter:
    """``max(x)``, ``max(x, other)`` and ``max(x, dim)`` with indices."""

    def convert(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        if is_tensor(dim):
            return choose(*promoted(x, dim))
        values = reduce(x, axis=dim, keepdims=keepdim)
        return [values, find(x, axis=dim, keepdims=keepdim).astype("int64")]

    return convert


def _arg(find: Reduction) -> Converter:
    def convert(x: RelayExpr, dim: Any = None, keepdim: bool = False) -> RelayExpr:
        if dim is None:
            return find(_op.reshape(x, (-1,)), axis=0).astype("int64")
        return find(x, axis=dim, keepdims=keepdim).astype("int64")

    return convert


def _moments(root: bool) -> Converter:
    def convert(x: RelayExpr, *args: Any) -> RelayExpr:
        """``var(x, unbiased)``, ``var(x, dims, unbiased or correction, keepdim)``."""
        if len(args) <= 1:
            dims, correction, keepdim = None, args[0] if args else True, False
        else:
            dims, correction, keepdim = args[0], args[1], args[2] if len(args) > 2 else False
        shape = infer_shape(x)
        axes = axes_of(dims, len(shape))
        centred = x - _op.mean(x, axis=axes, keepdims=True)
        count = math.prod([shape[axis] for axis in axes])
        ddof = 1 if correction is None else as_number(correction)
        total = _op.sum(centred * centred, axis=axes, keepdims=bool(keepdim))
        variance = total / scalar_like(float(max(count - ddof, 0)), x)
        return _op.sqrt(variance) if root else variance

    return convert


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
    return p_norm(as_float(x), order, axes, keepdim)


@torch_op("logsumexp")
def _logsumexp(x: RelayExpr, dims: Any, keepdim: bool = False) -> RelayExpr:
    return _op.logsumexp(as_float(x), as_ints(dims), keepdim)


def _of_type(x: RelayExpr, dtype: Any) -> RelayExpr:
    """Floats, of an element type that may be given; the operators of core ATen have a flag there."""
    given = dtype is not None and not isinstance(dtype, bool)
    return as_dtype(x, torch_dtype(dtype)) if given else as_float(x)


@torch_op("log_softmax", "_log_softmax")
def _log_softmax(x: RelayExpr, dim: int, dtype: Any = None) -> RelayExpr:
    value, rank = _of_type(x, dtype), len(infer_shape(x))
    if dim % rank == rank - 1:
        return _op.nn.log_softmax(value, axis=-1)
    return value - _op.logsumexp(value, axis=[dim], keepdims=True)


@torch_op("cumsum")
def _cumsum(x: RelayExpr, dim: int, dtype: Any = None) -> RelayExpr:
    wanted = torch_dtype(dtype, _own_or(x, "int64"))
    return _op.cumsum(as_dtype(x, wanted), axis=dim, dtype=wanted)


def _of_mixed_types(normalize: Converter) -> Converter:
    """Weights of a wider type than the data: the sums are of theirs, the result of the data's."""

    def convert(x: RelayExpr, *args: Any) -> Any:
        own = infer_dtype(x)
        kinds = [infer_dtype(a) for a in args if is_tensor(a) and infer_shape(a)]
        wide = functools.reduce(promote_dtypes, kinds, own)
        if all(kind == own for kind in kinds):
            return normalize(x, *args)
        widened = [as_dtype(a, wide) if is_tensor(a) else a for a in args]
        return as_dtype(normalize(as_dtype(x, wide), *widened), own)

    return convert


def _last_axes(x: RelayExpr, shape: Any) -> list[int]:
    rank = len(infer_shape(x))
    return list(range(rank - len(as_ints(shape)), rank))


@torch_op("layer_norm")
@_of_mixed_types
def _layer_norm(
    x: RelayExpr, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> RelayExpr:
    axes = _last_axes(x, shape)
    if len(axes) == 1 and weight is not None and bias is not None:
        return _op.nn.layer_norm(x, weight, bias, axis=-1, epsilon=eps)
    return weighted(standardized(x, axes, eps), weight, bias)


@torch_op("native_layer_norm")
def _native_layer_norm(
    x: RelayExpr, shape: Any, weight: Any, bias: Any, eps: float
) -> list[RelayExpr]:
    _, mean, variance = moments(x, _last_axes(x, shape))
    scale = _op.rsqrt(variance + scalar_like(eps, x))
    return [_layer_norm(x, shape, weight, bias, eps), mean, scale]


@torch_op("rms_norm")
@_of_mixed_types
def _rms_norm(x: RelayExpr, shape: Any, weight: Any = None, eps: Any = None) -> RelayExpr:
    return rms_norm(x, _last_axes(x, shape), 1.1920929e-07 if eps is None else eps, weight)


@torch_op("batch_norm")
@_of_mixed_types
def _batch_norm(
    x: RelayExpr, weight: Any, bias: Any, mean: Any, variance: Any, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> RelayExpr:  # fmt: skip
    if training or mean is None or variance is None:  # the statistics of the batch itself
        axes = [axis for axis in range(len(infer_shape(x))) if axis != 1]
        return weighted(standardized(x, axes, eps), weight, bias, by_channel=True)
    gamma = _op.ones_like(mean) if weight is None else weight
    beta = _op.zeros_like(mean) if bias is None else bias
    return _op.nn.batch_norm(x, gamma, beta, mean, variance, epsilon=eps)[0]


@torch_op("instance_norm")
def _instance_norm(
    x: RelayExpr, weight: Any, bias: Any, mean: Any, variance: Any, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5, *_: Any,
) -> RelayExpr:  # fmt: skip
    result: RelayExpr = (
        _group_norm(x, infer_shape(x)[1], weight, bias, eps)
        if use_input_stats
        else _batch_norm(x, weight, bias, mean, variance, False, momentum, eps)
    )
    return result


@torch_op("group_norm")
@_of_mixed_types
def _group_norm(
    x: RelayExpr, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> RelayExpr:
    grouped = reshaped(x, [size_of(x, 0), groups, -1])
    result = reshaped(standardized(grouped, [2], eps), sizes_of(x))
    return weighted(result, weight, bias, by_channel=True)


@torch_op("native_group_norm")
def _native_group_norm(
    x: RelayExpr, weight: Any, bias: Any, batch: Any, channels: Any, count: Any, groups: int,
    eps: float,
) -> list[RelayExpr]:  # fmt: skip
    _, *found = moments(reshaped(x, [size_of(x, 0), groups, -1]), [2])
    mean, variance = [_op.squeeze(moment, [2]) for moment in found]
    scale = _op.rsqrt(variance + scalar_like(eps, x))
    return [_group_norm(x, groups, weight, bias, eps), mean, scale]


@torch_op("_weight_norm")
def _weight_norm(direction: RelayExpr, length: RelayExpr, dim: int = 0) -> RelayExpr:
    """``direction`` scaled so that its slices along ``dim`` have the norms ``length``."""
    rank = len(infer_shape(direction))
    axes = [axis for axis in range(rank) if dim == -1 or axis != dim % rank]
    return direction * (length / p_norm(direction, 2, axes, keepdims=True))


@torch_op("equal")
def _equal(a: RelayExpr, b: RelayExpr) -> Any:
    """Whether two tensors have one shape and the same elements."""
    if infer_shape(a) != infer_shape(b):
        return False
    return _op.all(_op.equal(*promoted(a, b)))


@torch_op("cov")
def _cov(x: RelayExpr, correction: int = 1, counts: Any = None, weights: Any = None) -> RelayExpr:
    """The covariance of the rows; the columns may be counted and weighed."""
    x = as_float(x)
    rows = _op.reshape(x, (1, -1)) if len(infer_shape(x)) < 2 else x
    columns, dtype = infer_shape(rows)[1], infer_dtype(x)
    frequency = as_dtype(counts, dtype) if counts is not None else (
        _op.ones_like(_op.take(rows, constant(0, "int64"), 0)) if is_dynamic(rows)
        else constant(np.ones(columns), dtype)
    )  # fmt: skip
    weight = frequency if weights is None else frequency * as_dtype(weights, dtype)
    total = _op.sum(weight)
    mean = _op.sum(rows * weight, axis=[1], keepdims=True) / total
    centred = rows - mean
    lost: RelayExpr = scalar_like(float(correction), x)
    if weights is not None:
        lost = lost * _op.sum(weight * as_dtype(weights, dtype)) / total
    free = _op.maximum(total - lost, scalar_like(0.0, x))
    product = matrix_product(centred * weight, _op.transpose(centred)) / free
    return _op.reshape(product, ()) if infer_shape(product) == (1, 1) else product


@torch_op("corrcoef")
def _corrcoef(x: RelayExpr) -> RelayExpr:
    covariance = _cov(x)
    size = len(infer_shape(covariance))
    if not size:
        return covariance / covariance
    spread = _op.sqrt(_op.gather_nd(covariance, _diagonal_positions(covariance)))
    result = covariance / _op.expand_dims(spread, 1) / _op.expand_dims(spread, 0)
    return _op.clip(result, -1.0, 1.0)


def _diagonal_positions(matrix: RelayExpr) -> RelayExpr:
    """The indices of a square matrix's diagonal."""
    if not is_dynamic(matrix):
        return constant(np.arange(infer_shape(matrix)[0])[None].repeat(2, 0), "int64")
    ones = _op.ones_like(_op.cast(_op.take(matrix, constant(0, "int64"), 0), "int64"))
    positions = _op.cumsum(ones, axis=0) - constant(1, "int64")
    return _op.stack([positions, positions], 0)


torch_ops({
    "sum": _sum_like(_op.sum), "prod": _sum_like(_op.prod), "mean": _sum_like(_op.mean, "float32"),
    "amax": _over_axes(_op.max), "amin": _over_axes(_op.min),
    "max": _extremum(_op.max, _op.argmax, _op.maximum),
    "min": _extremum(_op.min, _op.argmin, _op.minimum),
    "aminmax": lambda x, dim=None, keepdim=False: [
        reduce(x, axis=dim, keepdims=keepdim) for reduce in (_op.min, _op.max)
    ],
    "argmax": _arg(_op.argmax), "argmin": _arg(_op.argmin),
    "all": lambda x, *args: _over_axes(_op.all)(as_dtype(x, "bool"), *args),
    "any": lambda x, *args: _over_axes(_op.any)(as_dtype(x, "bool"), *args),
    "_is_all_true": _op.all, "_is_any_true": _op.any,
    "var": _moments(root=False), "std": _moments(root=True),
    "softmax _softmax special_softmax": lambda x, dim, dtype=None: _op.nn.softmax(
        _of_type(x, dtype), axis=dim
    ),
    "_native_batch_norm_legit_no_training": lambda x, weight, bias, mean, variance, momentum, eps: [
        _batch_norm(x, weight, bias, mean, variance, False, momentum, eps), None, None,
    ],
    "cumprod": lambda x, dim, dtype=None, *_: _op.cumprod(
        as_dtype(x, torch_dtype(dtype, _own_or(x, "int64"))), axis=dim
    ),
})  # fmt: skip
