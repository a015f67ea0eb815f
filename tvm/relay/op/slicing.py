"""Windows of tensors: slices by numbers, and to the extents of another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tvm import te, topi
from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, const

from .attributes import as_ints, is_run_time, run_time_vector
from .known_shapes import known_shape
from .layout_axes import layout_sliced, layout_sliced_like
from .operator import Attribute, Expr, Ints, OptionalInts, operator
from .registry import OpPattern, ops
from .run_time_shapes import STRIDED_SLICE
from .types import (
    Dim,
    Shape,
    expect,
    is_any,
    largest,
    positive_axis,
    shape_of_type,
    show,
    simplified,
    smallest,
    tensor,
    unknown,
)

_FAR = np.iinfo("int32").max  # beyond every extent


def slice_ranges(attrs: Any, shape: Shape) -> list[tuple[Dim, Dim, int]]:
    """(begin, extent, stride) along each axis, begins counted from the front and clipped."""
    ranges: list[tuple[Dim, Dim, int]] = [(0, extent, 1) for extent in shape]
    count = (
        len(attrs.begin) if attrs.slice_mode == "size" else max(len(attrs.begin), len(attrs.end))
    )
    axes = range(count) if attrs.axes is None else attrs.axes
    expect(count <= len(shape), f"strided_slice of shape {show(shape)} got {count} ranges")
    for position, named in enumerate(axes):
        axis = positive_axis(named, len(shape), "strided_slice")
        stride = _stride(attrs, position)
        ranges[axis] = _slice_range(attrs, position, shape[axis], stride)
    return ranges


def _stride(attrs: Any, position: int) -> int:
    if attrs.slice_mode == "size":
        return 1
    strides: tuple[int, ...] = attrs.strides
    if len(strides) == 1:
        return strides[0]
    return strides[position] if position < len(strides) else 1


def _slice_range(attrs: Any, position: int, extent: Dim, stride: int) -> tuple[Dim, Dim, int]:
    if position < len(attrs.begin):
        begin = attrs.begin[position]
    else:  # the end alone is given
        begin = 0 if stride > 0 else _FAR
    if is_any(extent):
        known = attrs.slice_mode == "size" and attrs.end[position] >= 0
        first = begin if begin >= 0 else unknown()
        return first, attrs.end[position] if known else unknown(), stride
    if (begin, stride) == (0, 1) and position < len(attrs.end) and attrs.end[position] == _FAR:
        return 0, extent, 1
    low, high = (0, extent) if stride > 0 else (-1, extent - 1)
    first = smallest(largest(begin + extent if begin < 0 else begin, low), high)
    if attrs.slice_mode == "size":
        size = attrs.end[position]
        last = extent if size < 0 else smallest(first + size, extent)
    elif position >= len(attrs.end):
        last = extent if stride > 0 else -1
    else:
        end = attrs.end[position]
        last = smallest(largest(end + extent if end < 0 else end, low), high)
        if stride < 0 and isinstance(extent, int) and end < -extent:
            last = -1
    count = (last - first + stride - (1 if stride > 0 else -1)) // stride
    return simplified(first), simplified(largest(count, 0)), stride


def _strided_slice_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, each extent the number of elements that the slice takes."""
    return tensor([r[1] for r in slice_ranges(attrs, shape_of_type(data))], data.dtype)


def _strided_slice_compute(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    ranges = slice_ranges(attrs, topi.utils.dims(inputs[0].shape))
    begins, strides = [r[0] for r in ranges], [r[2] for r in ranges]
    return [topi.slicing.window(inputs[0], begins, strides, out_type.shape)]


def _fold_strided_slice(
    attrs: Any, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    found = arrays[0]
    for axis, (begin, extent, stride) in enumerate(slice_ranges(attrs, found.shape)):
        assert isinstance(extent, int) and isinstance(begin, int)
        found = np.take(found, begin + stride * np.arange(extent), axis=axis)
    return [np.ascontiguousarray(found)]


def _strided_slice_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The elements go back to their positions, with zeros between and around."""
    shape = known_shape(call.args[0], "strided_slice")
    widths, steps = [], []
    for axis, (begin, count, stride) in enumerate(slice_ranges(call.attrs, shape)):
        assert isinstance(count, int)
        first = begin if stride > 0 else begin + (count - 1) * stride
        if stride < 0:
            grad = ops.reverse(grad, axis=axis)
        steps.append(abs(stride))
        reach = (count - 1) * abs(stride) + 1 if count else 0
        widths.append((first, shape[axis] - first - reach))
    if any([step != 1 for step in steps]):
        grad = ops.nn.dilate(grad, strides=tuple(steps))
    zero = ops.cast_like(const(0.0), grad)
    return [ops.nn.pad(grad, zero, pad_width=tuple(widths))]


def _steps(strides: object) -> tuple[int, ...]:
    return (1,) if strides is None else as_ints(strides)


@operator(
    "strided_slice",
    support_level=4,
    fields=("begin", "end", "strides", "slice_mode", "axes"),
    infer_type=_strided_slice_type,
    fuse=OpPattern.INJECTIVE,
    compute=_strided_slice_compute,
    fold=_fold_strided_slice,
    infer_layout=layout_sliced(slice_ranges),
    gradient=_strided_slice_gradient,
    run_time=STRIDED_SLICE,
)
def strided_slice(
    data: Expr,
    begin: Ints,
    end: Ints,
    strides: Annotated[Any, Attribute("tuple[int, ...]", _steps)] = None,
    axes: OptionalInts = None,
    slice_mode: str = "end",
) -> RelayExpr | None:
    """Cut a window out of a tensor.

    Parameters
    ----------
    begin, end : sequence of int
        Where it starts and stops; negative numbers count from the back, None is the first or last.
    strides : sequence of int, optional
        Steps, 1 by default; they may be negative.
    axes : sequence of int, optional
        The axes meant, the leading ones by default.
    slice_mode : str
        "end", or "size" if `end` holds sizes (-1: all that is left).
    """
    if any([is_run_time(values) for values in (begin, end, strides)]):
        return _slice_at_run_time(data, begin, end, strides, axes, slice_mode)
    steps = _steps(strides)
    first = _bounds(begin, steps, 0, _FAR)
    last = _bounds(end, steps, -1 if slice_mode == "size" else _FAR, -_FAR)
    if first is begin and last is end:
        return None
    return strided_slice(data, first, last, steps, axes, slice_mode)


def _bounds(values: object, steps: Sequence[int], least: int, most: int) -> object:
    """Where slices begin or stop; None is one end for steps forward, the other one for others."""
    if not isinstance(values, (list, tuple)) or None not in values:
        return values
    ones = (1,) * len(values)
    steps = tuple(steps) * len(values) if len(steps) == 1 else (*steps, *ones)
    return [
        (least if step > 0 else most) if value is None else value
        for value, step in zip(values, steps, strict=False)
    ]


def _slice_at_run_time(
    data: RelayExpr, begin: object, end: object, strides: object, axes: object, slice_mode: str
) -> RelayExpr:
    if axes is not None:
        raise OpAttributeInvalid("strided_slice by expressions slices the leading axes, got axes")
    bounds = [run_time_vector(values) for values in (begin, end)]
    steps = ops.ones_like(bounds[0]) if strides is None else run_time_vector(strides)
    attrs = {"begin": (), "end": (), "strides": (), "slice_mode": str(slice_mode)}
    return ops.dyn.strided_slice(data, *bounds, steps, **attrs)


def _slice_like_type(attrs: Any, data: TensorType, slice_like: TensorType) -> Type:
    """A tensor of the dtype of `data`; along the axes it has the extents of the other tensor."""
    shape = list(shape_of_type(data))
    like = shape_of_type(slice_like)
    axes = attrs.axes or range(len(like))
    for named in axes:
        axis = positive_axis(named, len(shape), "slice_like")
        have, wanted = shape[axis], like[axis] if axis < len(like) else None
        is_longer = isinstance(have, int) and isinstance(wanted, int) and wanted > have
        expect(
            wanted is not None and not is_longer,
            f"slice_like cannot cut {show(shape)} to {show(like)} along axis {axis}",
        )
        shape[axis] = like[axis]
    return tensor(shape, data.dtype)


def _slice_like_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, like = call.args
    have, want = known_shape(data, "slice_like"), known_shape(call, "slice_like")
    widths = tuple([(0, n - m) for n, m in zip(have, want, strict=True)])
    zero = ops.cast_like(const(0.0), grad)
    return [ops.nn.pad(grad, zero, pad_width=widths), ops.zeros_like(like)]


@operator(
    "slice_like",
    infer_type=_slice_like_type,
    infer_layout=layout_sliced_like,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.slicing.window(
            inputs[0], [0] * len(out_type.shape), [1] * len(out_type.shape), out_type.shape
        )
    ],
    fold=lambda attrs, arrays, out_type: [
        np.ascontiguousarray(arrays[0][tuple([slice(n) for n in out_type.concrete_shape])])
    ],
    gradient=_slice_like_gradient,
)
def slice_like(data: Expr, shape_like: Expr, axes: OptionalInts = None) -> RelayExpr:
    """Cut a tensor to the extents of another one.

    Parameters
    ----------
    data, shape_like : relay.Expr
        The tensor, and the one whose extents are taken.
    axes : sequence of int, optional
        The axes that are cut, all by default.
    """
