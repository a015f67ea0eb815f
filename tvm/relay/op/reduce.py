"""Reductions: a table of one-pass ones, and what is composed of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, Tuple, TupleWrapper, const
from tvm.support.docstrings import described_by

from .attributes import as_optional_ints, names_arguments
from .known_shapes import known_shape
from .layout_axes import layout_reduced
from .operator import Expr, Operand, OperatorFunction, OptionalInts, operator
from .registry import OpPattern, Precision, ops, zero_gradient
from .schedules import REDUCTION_SCHEDULES
from .types import (
    Dim,
    TypeRelation,
    expect,
    expect_tensor,
    leave_to_run,
    positive_axes,
    product,
    shape_of_type,
    tensor,
)


def reduced_axes(attrs: Any, rank: int, who: str = "a reduction") -> tuple[int, ...]:
    """The axes that a reduction removes, in order."""
    if attrs.axis is None:
        return () if attrs.exclude else tuple(range(rank))
    named = positive_axes(attrs.axis, rank, who)
    if attrs.exclude:
        return tuple([i for i in range(rank) if i not in named])
    return tuple(sorted(named))


def reduce_type(who: str, dtype: str | None = None) -> TypeRelation:
    """The shape without (or with 1 at) the reduced axes."""

    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor of the dtype of `data` without the reduced axes, which have extent 1 if
        `keepdims`."""
        data = expect_tensor(arg_types[0], who)
        shape = shape_of_type(data)
        axes = reduced_axes(attrs, len(shape), who)
        if dtype == "bool":
            expect(data.dtype == "bool", f"{who} requires a tensor of bool, got {data.dtype}")
        kept: list[Dim] = []
        for i, extent in enumerate(shape):
            if i not in axes:
                kept.append(extent)
            elif attrs.keepdims:
                kept.append(1)
        return tensor(kept, dtype or data.dtype)

    return relation


def _position_type(who: str) -> TypeRelation:
    """Positions of int32; of int64 where a row has more elements than that counts."""

    def relation(attrs: Any, arg_types: Sequence[Type]) -> Type:
        """A tensor without the reduced axes, which have extent 1 if `keepdims`; of dtype int32, or
        int64 where positions do not fit."""
        shape = shape_of_type(expect_tensor(arg_types[0], who))
        extents = [shape[axis] for axis in reduced_axes(attrs, len(shape), who)]
        expect(0 not in extents, f"{who} requires an element along its axes, got none: {shape}")
        known = [extent for extent in extents if isinstance(extent, int)]
        for extent in extents:
            if not isinstance(extent, int):
                _require_elements(who, extent)
        dtype = "int32" if math.prod(known) < 1 << 31 else "int64"
        return reduce_type(who, dtype)(attrs, arg_types)

    return relation


def _require_elements(who: str, extent: PrimExpr) -> None:
    message = f"{who} requires an element along its axes, got none"
    leave_to_run(lambda: tir.GT(extent, tir.const(0, extent.dtype)), message, extent)


def _reduces_nothing(x: np.ndarray, axes: Sequence[int]) -> bool:
    return 0 in [x.shape[axis] for axis in axes]


_AXES = """

Parameters
----------
data : relay.Expr
    The tensor.
axis : int or sequence of int, optional
    The axes that go away, all by default.
keepdims : bool
    Keep the reduced axes with extent 1.
exclude : bool
    Reduce over the axes that are not named.
"""
_REDUCTION: dict[str, Any] = {"fuse": OpPattern.COMM_REDUCE, "schedules": REDUCTION_SCHEDULES}
_NUMERIC: dict[str, Any] = {**_REDUCTION, "precision": Precision.KEEP_FLOAT32}


def reduction(
    name: str,
    summary: str,
    function: Callable[[te.Tensor, tuple[int, ...], bool], te.Tensor],
    fold: Callable[..., np.ndarray],
    gradient: Callable[[Call, RelayExpr], list[RelayExpr]],
    dtype: str | None = None,
    accumulate: Callable[[str], str] | None = None,
) -> OperatorFunction[..., RelayExpr]:
    """One row: `function(x, axes, keepdims)` for kernels, `fold(x, axis=, keepdims=)` in numpy.

    What numpy rejects, the extremum of nothing, is left to kernels. `accumulate` tells the dtype that partial results have.
    """

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        x = inputs[0]
        axes = reduced_axes(attrs, len(x.shape))
        if not axes:
            return [topi.identity(x)]
        wide = accumulate(x.dtype) if accumulate else x.dtype
        if wide == x.dtype:
            return [function(x, axes, attrs.keepdims)]
        return [topi.cast(function(topi.cast(x, wide), axes, attrs.keepdims), x.dtype)]

    def fold_axes(
        attrs: Any, arrays: Sequence[np.ndarray], out_type: Type
    ) -> list[np.ndarray] | None:
        axes = reduced_axes(attrs, arrays[0].ndim)
        if fold in _WITHOUT_IDENTITY and _reduces_nothing(arrays[0], axes):
            return None
        result = fold(arrays[0], axis=axes, keepdims=attrs.keepdims)
        return [np.asarray(result).astype(arrays[0].dtype, copy=False)]

    def row(
        data: Expr, axis: OptionalInts = None, keepdims: bool = False, exclude: bool = False
    ) -> RelayExpr: ...

    row.__name__ = row.__qualname__ = name
    row.__doc__ = summary + _AXES
    return operator(
        name,
        "ReduceAttrs" if name == "sum" else sum,
        support_level=4,
        infer_type=reduce_type(name, dtype),
        compute=compute,
        fold=fold_axes,
        gradient=gradient,
        infer_layout=layout_reduced(reduced_axes),
        accumulates=accumulate is not None,
        **_NUMERIC,
    )(row)


def _expanded(call: Call, grad: RelayExpr) -> RelayExpr:
    """The gradient of a reduction's result, spread over its input's shape."""
    data, attrs = call.args[0], call.attrs
    if not attrs.keepdims:
        for axis in reduced_axes(attrs, len(tensor_type_of(data).shape)):
            grad = ops.expand_dims(grad, axis=axis, num_newaxis=1)
    return ops.broadcast_to_like(grad, data)


def _reduced_count(call: Call) -> RelayExpr:
    """How many elements a reduction joins, as a scalar of the data's dtype."""
    shape = shape_of_type(infer_type_of(call.args[0]))
    count = product([shape[axis] for axis in reduced_axes(call.attrs, len(shape))])
    if isinstance(count, int):
        size: RelayExpr = const(count, "int64")
    else:
        data, one = ops.ndarray_size(call.args[0]), ops.ndarray_size(call)
        size = ops.floor_divide(data, one)
    return ops.cast_like(size, call.args[0])


def _mean_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [_expanded(call, grad) / _reduced_count(call)]


def _sum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [_expanded(call, grad)]


def _extremum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data = call.args[0]
    chosen = ops.equal(_expanded(call, call), data)
    return [ops.cast_like(chosen, grad) * _expanded(call, grad)]


def _prod_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Each element's slope is the product of those before it and those behind it."""
    data = call.args[0]
    shape = known_shape(data, "prod")
    over = reduced_axes(call.attrs, len(shape))
    kept = tuple([a for a in range(len(shape)) if a not in over])
    order = (*kept, *over)
    rest = tuple([shape[a] for a in kept])
    count = int(np.prod([shape[a] for a in over]))
    rows = ops.reshape(ops.transpose(data, axes=order) if order else data, newshape=(*rest, count))
    axis = len(rest)
    before = ops.cumprod(rows, axis=axis, exclusive=True)
    behind = ops.reverse(
        ops.cumprod(ops.reverse(rows, axis=axis), axis=axis, exclusive=True), axis=axis
    )
    slope = ops.multiply(ops.multiply(before, behind), ops.reshape(grad, newshape=(*rest, 1)))
    found = ops.reshape(slope, newshape=tuple([shape[a] for a in order]))
    back = tuple([order.index(a) for a in range(len(shape))])
    return [ops.transpose(found, axes=back) if back else found]


def _mean(x: te.Tensor, axes: tuple[int, ...], keepdims: bool) -> te.Tensor:
    count = topi.utils.prod([x.shape[a] for a in axes])
    total: te.Tensor = topi.sum(x, axes, keepdims)
    if x.dtype.is_float:
        share = te.const(1.0, x.dtype) / topi.utils.cast_scalar(count, x.dtype)
        return topi.multiply(total, share)
    return topi.divide(total, topi.utils.cast_scalar(count, x.dtype))


def _numpy_mean(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.asarray(np.mean(x, axis=axis, keepdims=keepdims))


# what numpy rejects, or warns of, where there are no elements
_WITHOUT_IDENTITY = (np.max, np.min, _numpy_mean)

sum = reduction(
    "sum", "The sum along axes.", topi.sum, np.sum, _sum_gradient,
    accumulate=topi.utils.sum_dtype,
)  # fmt: skip
prod = reduction(
    "prod", "The product along axes.", topi.prod, np.prod, _prod_gradient,
    accumulate=topi.utils.sum_dtype,
)  # fmt: skip
max = reduction("max", "The largest element along axes.", topi.max, np.max, _extremum_gradient)
min = reduction("min", "The smallest element along axes.", topi.min, np.min, _extremum_gradient)
all = reduction(
    "all", "Whether all elements along axes are true.", topi.all, np.all, zero_gradient, "bool"
)
any = reduction(
    "any", "Whether some element along axes is true.", topi.any, np.any, zero_gradient, "bool"
)
mean = reduction(
    "mean", "The arithmetic mean along axes.", _mean, _numpy_mean, _mean_gradient,
    accumulate=topi.utils.mean_dtype,
)  # fmt: skip


def _arg_reduction(
    name: str, summary: str, function: Callable[..., te.Tensor], fold: Callable[..., np.ndarray]
) -> OperatorFunction[..., RelayExpr]:
    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        axes = reduced_axes(attrs, len(inputs[0].shape))
        return [function(inputs[0], axes, attrs.keepdims, attrs.select_last_index)]

    def fold_axes(
        attrs: Any, arrays: Sequence[np.ndarray], out_type: Type
    ) -> list[np.ndarray] | None:
        axes = reduced_axes(attrs, arrays[0].ndim)
        if _reduces_nothing(arrays[0], axes):
            return None
        return [_fold_positions(arrays[0], axes, attrs, fold)]

    def row(
        data: Expr,
        axis: OptionalInts = None,
        keepdims: bool = False,
        exclude: bool = False,
        select_last_index: bool = False,
    ) -> RelayExpr: ...

    row.__name__ = row.__qualname__ = name
    row.__doc__ = (
        f"{summary}{_AXES}select_last_index : bool\n    Of equal elements take the last.\n"
    )
    return operator(
        name,
        "ArgReduceAttrs" if name == "argmax" else argmax,
        support_level=4,
        fields=("select_last_index", "axis", "keepdims", "exclude"),
        infer_type=_position_type(name),
        infer_layout=layout_reduced(reduced_axes, gives_positions=True),
        compute=compute,
        fold=fold_axes,
        gradient=zero_gradient,
        **_REDUCTION,
    )(row)


def _fold_positions(
    x: np.ndarray, axes: tuple[int, ...], attrs: Any, fold: Callable[..., np.ndarray]
) -> np.ndarray:
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose(kept + list(axes)).reshape([x.shape[i] for i in kept] + [-1])
    if attrs.select_last_index:
        found = rows.shape[-1] - 1 - fold(rows[..., ::-1], axis=-1)
    else:
        found = fold(rows, axis=-1)
    if attrs.keepdims:
        found = found.reshape([1 if i in axes else x.shape[i] for i in range(x.ndim)])
    return np.asarray(found, dtype="int32" if rows.shape[-1] < 1 << 31 else "int64")


argmax = _arg_reduction(
    "argmax", "The position of the largest element, int32.", topi.argmax, np.argmax
)
argmin = _arg_reduction(
    "argmin", "The position of the smallest element, int32.", topi.argmin, np.argmin
)


def _variance_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the dtype of `data` without the reduced axes, which have extent 1 if `keepdims`."""
    return reduce_type("variance")(attrs, arg_types[:1])


def _variance_compute(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    wide = topi.utils.mean_dtype(inputs[0].dtype)
    x, mean_of_x = [t if t.dtype == wide else topi.cast(t, wide) for t in inputs]
    axes = reduced_axes(attrs, len(x.shape))
    count = topi.utils.prod([x.shape[a] for a in axes])
    spread_out = topi.subtract(x, mean_of_x)
    total = topi.sum(topi.multiply(spread_out, spread_out), axes, attrs.keepdims)
    found = topi.divide(total, topi.utils.cast_scalar(count - int(attrs.unbiased), wide))
    return [found if wide == out_type.dtype else topi.cast(found, out_type.dtype)]


def _variance_fold(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    x, mean_of_x = arrays
    axes = reduced_axes(attrs, x.ndim)
    count = int(np.prod([x.shape[a] for a in axes])) - int(attrs.unbiased)
    total = np.sum(np.square(x - mean_of_x), axis=axes, keepdims=attrs.keepdims)
    return [np.asarray(total / count).astype(x.dtype, copy=False)]


def _variance_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    # of sum((x - m)^2) / n, with m an argument of its own
    data, mean_of_data = call.args
    count = _reduced_count(call)
    if call.attrs.unbiased:
        count = count - ops.ones_like(count)
    twice = (data - mean_of_data) / count
    to_data = _expanded(call, grad) * (twice + twice)
    return [to_data, ops.negative(ops.collapse_sum_like(to_data, mean_of_data))]


@operator(
    "variance",
    support_level=4,
    fields=("unbiased", "axis", "keepdims", "exclude"),
    inputs=("data", "mean"),
    infer_type=_variance_type,
    compute=_variance_compute,
    fold=_variance_fold,
    gradient=_variance_gradient,
    accumulates=True,
    infer_layout=layout_reduced(reduced_axes),
    **_NUMERIC,
)
@described_by(mean)
def variance(
    data: Expr,
    axis: OptionalInts = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Annotated[Any, Operand()] = None,
) -> RelayExpr | None:
    """The variance along axes.

    Parameters
    ----------
    unbiased : bool
        Divide by the count less one.
    with_mean : relay.Expr, optional
        The mean along the same axes with `keepdims`, if it is at hand.
    """
    if with_mean is not None:
        return None
    return variance(data, axis, keepdims, exclude, unbiased, mean(data, axis, True, exclude))


@described_by(variance)
def std(
    data: RelayExpr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> RelayExpr:
    """The standard deviation along axes."""
    return ops.sqrt(variance(data, axis, keepdims, exclude, unbiased))


@described_by(variance)
def mean_variance(
    data: RelayExpr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:
    """The mean and the variance along axes.

    Returns
    -------
    TupleWrapper
        The mean and the variance, of the dtype of the data.
    """
    centre = mean(data, axis, True, exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, with_mean=centre)
    return TupleWrapper(Tuple([mean(data, axis, keepdims, exclude), spread]), 2)


@described_by(variance)
def mean_std(
    data: RelayExpr,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    exclude: bool = False,
) -> TupleWrapper:
    """The mean and the standard deviation along axes.

    Returns
    -------
    TupleWrapper
        The mean and the standard deviation, of the dtype of the data.
    """
    both = [mean(data, axis, keepdims, exclude), std(data, axis, keepdims, exclude)]
    return TupleWrapper(Tuple(both), 2)


@names_arguments
@described_by(sum)
def logsumexp(
    data: RelayExpr, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> RelayExpr:
    """The logarithm of the sum of exponentials along axes, without overflow."""
    largest = max(data, axis, True)
    # the difference of two infinities is NaN
    shift = ops.where(ops.isinf(largest), ops.zeros_like(largest), largest)
    total = sum(ops.exp(data - shift), axis, True)
    result = ops.log(total) + shift
    if keepdims:
        return result
    return ops.squeeze(result, axis=as_optional_ints(axis))


__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "mean",
    "mean_std",
    "mean_variance",
    "min",
    "prod",
    "std",
    "sum",
    "variance",
]
