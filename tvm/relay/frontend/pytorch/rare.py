"""PyTorch's primitives that decompositions end in, and operators of few models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.indexing import from_front
from tvm.relay.frontend.normalization import p_norm

from .dynamic_shapes import is_dynamic
from .movement import index_by, scatter
from .nn import matrix_product
from .pointwise import add
from .registry import (
    CONVERTERS,
    Converter,
    as_dtype,
    as_float,
    as_ints,
    as_number,
    category,
    promoted,
    promoted_floats,
    torch_dtype,
    torch_op,
    torch_ops,
)

Array = np.ndarray


@torch_op("prims::convert_element_type")
def _convert_element_type(x: RelayExpr, dtype: int) -> RelayExpr:
    return as_dtype(x, torch_dtype(dtype))


@torch_op("signbit", "prims::signbit")
def _signbit(x: RelayExpr) -> RelayExpr:
    dtype = infer_dtype(x)
    if category(dtype) < 2:
        return _op.less(x, scalar_like(0, x)) if dtype != "bool" else _op.zeros_like(x)
    bits = {"float32": "int32", "float64": "int64", "float16": "int16", "bfloat16": "int16"}
    pattern = _op.reinterpret(x, bits[dtype])
    return _op.less(pattern, scalar_like(0, pattern))


@torch_op("copysign")
def _copysign(a: Any, b: Any) -> RelayExpr:
    size, sign = promoted_floats(a, b)
    size = _op.abs(size)
    return _op.where(_signbit(sign), _op.negative(size), size)


def _of_numbers(choose: Callable[..., RelayExpr]) -> Converter:
    """The choice among two; of NaN and a number the number."""

    def convert(a: Any, b: Any) -> RelayExpr:
        left, right = promoted(a, b)
        chosen = _op.where(_op.isnan(left), right, choose(left, right))
        return _op.where(_op.isnan(right), left, chosen)

    return convert


torch_ops({
    "fmax prims::fmax": _of_numbers(_op.maximum),
    "fmin prims::fmin": _of_numbers(_op.minimum),
})  # fmt: skip


@torch_op("atan2", "arctan2", "prims::atan2")
def _atan2(a: Any, b: Any) -> RelayExpr:
    """The angle of (b, a), by the arc tangent of the smaller over the larger."""
    y, x = promoted_floats(a, b)
    zero, pi = scalar_like(0.0, x), scalar_like(math.pi, x)
    steep = _op.greater(_op.abs(y), _op.abs(x))
    low, high = _op.where(steep, _op.abs(x), _op.abs(y)), _op.where(steep, _op.abs(y), _op.abs(x))
    endless = _op.logical_and(_op.isinf(low), _op.isinf(high))
    none = _op.equal(high, zero)
    ratio = low / _op.where(none, scalar_like(1.0, x), high)
    ratio = _op.where(endless, scalar_like(1.0, x), ratio)
    angle = _op.atan(ratio)
    angle = _op.where(steep, scalar_like(math.pi / 2, x) - angle, angle)
    angle = _op.where(_signbit(x), pi - angle, angle)
    angle = _op.where(_signbit(y), _op.negative(angle), angle)
    return _op.where(_op.logical_or(_op.isnan(x), _op.isnan(y)), x + y, angle)


@torch_op("angle")
def _angle(x: RelayExpr) -> RelayExpr:
    value = as_float(x)
    turned = _op.where(_op.less(value, scalar_like(0.0, value)), scalar_like(math.pi, value),
                       scalar_like(0.0, value))  # fmt: skip
    return _op.where(_op.isnan(value), value, turned)


@torch_op("frexp", "prims::frexp")
def _frexp(x: RelayExpr) -> list[RelayExpr]:
    """The fraction in [1/2, 1) and the power of two of float32, from the bits."""
    if infer_dtype(x) != "float32":
        raise OpAttributeUnImplemented(f"frexp requires float32, got {infer_dtype(x)}")
    tiny = _op.less(_op.abs(x), scalar_like(2.0**-126, x))
    value = _op.where(tiny, x * scalar_like(2.0**32, x), x)
    bits = _op.reinterpret(value, "int32")
    raw = _op.bitwise_and(_op.right_shift(bits, constant(23, "int32")), constant(255, "int32"))
    exponent = raw - constant(126, "int32")
    kept = _op.bitwise_and(bits, constant(-2139095041, "int64").astype("int32"))
    mantissa = _op.reinterpret(_op.bitwise_or(kept, constant(126 << 23, "int32")), "float32")
    exponent = _op.where(tiny, exponent - constant(32, "int32"), exponent)
    plain = _op.logical_and(_op.isfinite(x), _op.not_equal(x, scalar_like(0.0, x)))
    return [_op.where(plain, mantissa, x), _op.where(plain, exponent, constant(0, "int32"))]


@torch_op("nextafter", "prims::nextafter")
def _nextafter(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """One step of the bit pattern towards the other number."""
    x, target = promoted(a, b)
    if infer_dtype(x) != "float32":
        raise OpAttributeUnImplemented(f"nextafter requires float32, got {infer_dtype(x)}")
    zero, one = scalar_like(0.0, x), constant(1, "int32")
    bits = _op.reinterpret(x, "int32")
    away = _op.equal(_op.greater(target, x), _op.greater(x, zero))
    moved = _op.reinterpret(_op.where(away, bits + one, bits - one), "float32")
    smallest = scalar_like(float(np.float32(1e-45)), x)
    from_zero = _op.where(_op.greater(target, zero), smallest, _op.negative(smallest))
    result = _op.where(_op.equal(x, zero), from_zero, moved)
    result = _op.where(_op.equal(x, target), target, result)
    return _op.where(_op.logical_or(_op.isnan(x), _op.isnan(target)), x + target, result)


# ---- copies of views share the converters of the views

for _name in (
    "diagonal", "expand", "permute", "split_with_sizes", "split", "squeeze", "t", "transpose",
    "unbind", "unfold", "unsqueeze", "view", "slice", "select", "detach",
):  # fmt: skip
    CONVERTERS[f"aten::{_name}_copy"] = CONVERTERS[f"aten::{_name}"]


# ---- indices


@torch_op("take")
def _take(x: RelayExpr, index: RelayExpr) -> RelayExpr:
    flat = _op.reshape(x, (-1,))
    return _op.take(flat, from_front(index, infer_shape(flat)[0]), 0)


@torch_op("put")
def _put(x: RelayExpr, index: RelayExpr, source: RelayExpr, accumulate: bool = False) -> RelayExpr:
    shape = infer_shape(x)
    flat = _op.reshape(x, (-1,))
    positions = _op.reshape(from_front(index, infer_shape(flat)[0]), (-1,))
    written = scatter(flat, 0, positions, _op.reshape(source, (-1,)), "add" if accumulate else None)
    return _op.reshape(written, shape)


_REDUCE = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


@torch_op("scatter_reduce")
def scatter_reduce(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, reduce: str,
    include_self: bool = True,
) -> RelayExpr:  # fmt: skip
    """``x`` with a source reduced into it at indices along an axis."""
    axis, dtype = dim % len(infer_shape(x)), infer_dtype(x)
    if dtype == "bool":
        numbers = as_dtype(x, "int32"), dim, index, as_dtype(source, "int32")
        return as_dtype(scatter_reduce(*numbers, reduce, include_self), "bool")
    extents = infer_shape(index)
    if infer_shape(source) != extents:
        source = _op.strided_slice(source, [0] * len(extents), extents, [1] * len(extents))
    ones = constant(np.ones(extents), dtype)
    zeros = _op.zeros_like(x)
    hits = _op.scatter_elements(zeros, index, ones, axis, "add")
    missed = _op.equal(hits, scalar_like(0, x))
    start = x if include_self else _op.where(missed, x, scalar_like(_neutral(reduce, dtype), x))
    result = _op.scatter_elements(start, index, source, axis, _REDUCE[reduce])
    if reduce != "mean":
        return result
    count = hits + scalar_like(1, x) if include_self else _op.maximum(hits, scalar_like(1, x))
    return result / count if category(dtype) == 2 else _op.floor_divide(result, count)


def _neutral(reduce: str, dtype: str) -> Any:
    limits: Any = np.finfo(dtype) if category(dtype) == 2 else np.iinfo(dtype)
    low, high = (-math.inf, math.inf) if category(dtype) == 2 else (limits.min, limits.max)
    return {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[reduce]


@torch_op("index_reduce")
def _index_reduce(
    x: RelayExpr, dim: int, index: RelayExpr, source: RelayExpr, reduce: str,
    include_self: bool = True,
) -> RelayExpr:  # fmt: skip
    shape = infer_shape(source)
    along = [1] * len(shape)
    along[dim] = -1
    whole = _op.broadcast_to(_op.reshape(index, along), shape)
    return scatter_reduce(x, dim, whole, source, _FULL_NAMES.get(reduce, reduce), include_self)


_FULL_NAMES = {"multiply": "prod"}


@torch_op("_unsafe_index")
def _unsafe_index(x: RelayExpr, indices: list[Any]) -> RelayExpr:
    return index_by(x, indices)


@torch_op("masked_scatter")
def _masked_scatter(x: RelayExpr, mask: RelayExpr, source: RelayExpr) -> RelayExpr:
    """The k-th element of the mask takes the k-th of the source."""
    shape = np.broadcast_shapes(infer_shape(x), infer_shape(mask))
    chosen = _op.reshape(_op.broadcast_to(mask, shape), (-1,))
    data = _op.reshape(_op.broadcast_to(x, shape), (-1,))
    rank = _op.cumsum(_op.cast(chosen, "int64"), axis=0) - constant(1, "int64")
    picked = _op.take(_op.reshape(source, (-1,)), _op.maximum(rank, constant(0, "int64")), 0)
    return _op.reshape(_op.where(chosen, picked, data), shape)


@torch_op("tensor_split.tensor_indices_or_sections")
def _tensor_split_by_tensor(x: RelayExpr, sections: Any, dim: int = 0) -> Any:
    return CONVERTERS["aten::tensor_split"](x, sections, dim)


# ---- products, distances


@torch_op("_trilinear")
def _trilinear(
    a: RelayExpr, b: RelayExpr, c: RelayExpr, spread_a: Any, spread_b: Any, spread_c: Any,
    summed: Any, *_: Any,
) -> RelayExpr:  # fmt: skip
    operands = []
    for x, axes in ((a, spread_a), (b, spread_b), (c, spread_c)):
        for axis in as_ints(axes):
            x = _op.expand_dims(x, axis)
        operands.append(x)
    product = operands[0] * operands[1] * operands[2]
    return _op.sum(product, axis=as_ints(summed))


@torch_op("cdist", "_cdist_forward")
def _cdist(a: RelayExpr, b: RelayExpr, p: Any = 2.0, *_: Any) -> RelayExpr:
    rank = len(infer_shape(a))
    difference = _op.expand_dims(a, rank - 1) - _op.expand_dims(b, len(infer_shape(b)) - 2)
    return p_norm(difference, float(as_number(p)), [-1])


@torch_op("pdist", "_pdist_forward")
def _pdist(x: RelayExpr, p: Any = 2.0) -> RelayExpr:
    rows, columns = np.triu_indices(infer_shape(x)[0], 1)
    left, right = [_op.take(x, constant(i, "int64"), 0) for i in (rows, columns)]
    return p_norm(left - right, float(as_number(p)), [-1])


@torch_op("combinations")
def _combinations(x: RelayExpr, count: int = 2, repeats: bool = False) -> RelayExpr:
    pick = itertools.combinations_with_replacement if repeats else itertools.combinations
    rows = list(pick(range(infer_shape(x)[0]), count))
    return _op.take(x, constant(np.array(rows).reshape(len(rows), count), "int64"), 0)


@torch_op("_grouped_mm", "transformers::grouped_mm_fallback")
def _grouped_mm(
    x: RelayExpr, weights: RelayExpr, ends: Any = None, bias: Any = None, dtype: Any = None
) -> RelayExpr:
    """Rows times the matrix of their group; groups follow each other and end at ``ends``."""
    if ends is None or len(infer_shape(x)) != 2 or len(infer_shape(weights)) != 3:
        raise OpAttributeUnImplemented("_grouped_mm is supported for rows in groups of matrices")
    rows, groups = infer_shape(x)[0], infer_shape(weights)[0]
    every = matrix_product(
        _op.broadcast_to(_op.expand_dims(x, 0), (groups, *infer_shape(x))), weights
    )
    positions = constant(np.arange(rows), "int64")
    owner = _op.searchsorted(_op.cast(ends, "int64"), positions, True, "int64")
    # rows behind the last group belong to none; what they hold is not defined
    owner = _op.minimum(owner, constant(groups - 1, "int64"))
    result = _op.gather_nd(every, _op.stack([owner, positions], 0))
    result = result if bias is None else result + _op.take(bias, owner, 0)
    return as_dtype(result, torch_dtype(dtype, infer_dtype(x)))


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


@torch_op("linalg_matrix_exp", "matrix_exp")
def _matrix_exp(x: RelayExpr) -> RelayExpr:
    """Taylor's series of the matrix over 2^12 in float64, squared twelve times."""
    size, squarings = infer_shape(x)[-1], 12
    wide = _op.cast(x, "float64") * constant(2.0**-squarings, "float64")
    result = term = constant(np.eye(size), "float64")
    for k in range(1, 13):
        term = matrix_product(term, wide) * constant(1.0 / k, "float64")
        result = result + term
    for _ in range(squarings):
        result = matrix_product(result, result)
    return _op.cast(_op.broadcast_to(result, infer_shape(x)), infer_dtype(x))


# ---- images


@torch_op("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(x: RelayExpr, grid: RelayExpr, mode: int, padding: int, align: Any) -> RelayExpr:
    rank = len(infer_shape(x)) - 2
    axes = (0, rank + 1, *range(1, rank + 1))
    return _op.image.grid_sample(
        x, _op.transpose(grid, axes),
        method=("bilinear", "nearest", "bicubic")[mode],
        layout=("NCHW", "NCDHW")[rank - 2],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=bool(align),
    )  # fmt: skip


@torch_op("_add_relu")
def _add_relu(a: Any, b: Any, alpha: Any = 1) -> RelayExpr:
    return _op.nn.relu(add(a, b, alpha))
