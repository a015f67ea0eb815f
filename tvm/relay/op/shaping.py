"""Operators that rearrange elements: reshape, transpose, squeeze, layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tvm import tir, topi
from tvm.auto_scheduler.layout_rewrite import layouts_of_texts
from tvm.error import TypeCheckError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call

from .computes import computed_by
from .known_shapes import known_shape, shape_of
from .layout_axes import layout_expanded, layout_squeezed, layout_transposed
from .layout_shapes import axes_extents, shape_in_layout
from .operator import Expr, Ints, OptionalInts, operator
from .registry import OpPattern, ops
from .run_time_shapes import EXPAND_DIMS, RESHAPE, SQUEEZE
from .types import (
    Dim,
    Shape,
    apply,
    equal_extents,
    expect,
    is_any,
    is_known,
    leave_to_run,
    may_equal,
    positive_axes,
    positive_axis,
    product,
    same_dim,
    shape_of_type,
    show,
    tensor,
)


def infer_reshape(shape: Shape, newshape: Sequence[int], allowzero: bool = False) -> Shape:
    """The shape a reshape gives.

    0 copies a dimension, -1 takes what is left, -2 copies all remaining ones, -3 merges two,
    -4 splits one into the two numbers that follow (one of them may be -1).
    """
    out: list[Dim] = []
    source = 0
    left_over: int | None = None
    values = list(newshape)
    expect(
        not allowzero or 0 not in values or -1 not in values,
        f"reshape requires no -1 beside an extent of 0, which leaves it open, got {tuple(newshape)}",
    )
    i = 0
    while i < len(values):
        value = values[i]
        if value > 0 or (value == 0 and allowzero):
            out.append(value)
            source += 1
        elif value == 0:
            out.append(_source_dim(shape, source, newshape))
            source += 1
        elif value == -1:
            expect(left_over is None, f"reshape allows one -1 in newshape, got {tuple(newshape)}")
            left_over = len(out)
            out.append(1)
            source += 1
        elif value == -2:
            out.extend(shape[source:])
            source = len(shape)
        elif value == -3:
            pair = [_source_dim(shape, source + k, newshape) for k in range(2)]
            out.append(product(pair))
            source += 2
        elif value == -4:
            expect(i + 2 < len(values), "reshape requires two numbers after -4 in newshape")
            out.extend(_split_dim(_source_dim(shape, source, newshape), values[i + 1 : i + 3]))
            source += 1
            i += 2
        else:
            raise TypeCheckError(f"reshape requires values of at least -4, got {tuple(newshape)}")
        i += 1
    if left_over is not None:
        out[left_over] = _left_over(shape, out, newshape)
    _expect_same_size(shape, out, newshape)
    return tuple(out)


def _source_dim(shape: Shape, index: int, newshape: Sequence[int]) -> Dim:
    expect(
        index < len(shape),
        f"reshape to {tuple(newshape)} copies more dimensions than {show(shape)} has",
    )
    return shape[index]


def _split_dim(extent: Dim, parts: Sequence[int]) -> tuple[Dim, Dim]:
    first, second = parts
    expect(first != -1 or second != -1, "reshape requires at most one -1 after -4")
    if first == -1:
        return apply(lambda e: e // second, extent), second
    if second == -1:
        return first, apply(lambda e: e // first, extent)
    return first, second


def _left_over(shape: Shape, out: Sequence[Dim], newshape: Sequence[int]) -> Dim:
    known, total = product(out), product(shape)
    if not is_known(known, total):
        return _shared_unknown(shape, out)
    if known == 0:
        return 0
    expect(
        total % known == 0,
        f"reshape of {show(shape)} to {tuple(newshape)} leaves a remainder",
    )
    return total // known


def _shared_unknown(shape: Shape, out: Sequence[Dim]) -> Dim:
    """What -1 stands for once the unknown dimensions that are copied cancel out."""
    rest, copied = list(shape), list(out)
    for dim in out:
        shared = [d for d in rest if not isinstance(d, int) and (d is dim or same_dim(d, dim))]
        if shared:
            rest = [d for d in rest if d is not shared[0]]
            copied = [d for d in copied if d is not dim]
    total, divisor = product(rest), product(copied)
    if isinstance(divisor, int) and divisor == 0:
        return 0
    if not is_any(total) and not is_any(divisor) and not is_known(total, divisor):
        message = "reshape leaves a remainder"
        leave_to_run(
            lambda: equal_extents(tir.floormod(total, divisor), 0), message, total, divisor
        )
    return apply(lambda a, b: a // b, total, divisor)


def _expect_same_size(shape: Shape, out: Sequence[Dim], newshape: Sequence[int]) -> None:
    before, after = product(shape), product(out)
    expect(
        may_equal(before, after),
        f"reshape of {show(shape)} to {tuple(newshape)} needs {before} elements, "
        f"newshape has {after}",
    )


# of operators that keep the elements' order: the type tells all
_RESHAPING: dict[str, Any] = {
    "fuse": OpPattern.INJECTIVE,
    "compute": lambda attrs, inputs, out_type: [topi.reshape(inputs[0], out_type.shape)],
    "fold": lambda attrs, arrays, out_type: [arrays[0].reshape(out_type.concrete_shape)],
}


def _reshaped_back(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    return [ops.reshape_like(grad, call.args[0])]


def _reshaped_back_from(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of an operator whose second argument tells the shape."""
    return [ops.reshape_like(grad, call.args[0]), ops.zeros_like(call.args[1])]


def _reshape_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, of the shape that `newshape` describes."""
    return tensor(infer_reshape(shape_of_type(data), attrs.newshape, attrs.allowzero), data.dtype)


@operator(
    "reshape",
    infer_type=_reshape_type,
    gradient=_reshaped_back,
    support_level=3,
    run_time=replace(RESHAPE, gradient=_reshaped_back_from),
    **_RESHAPING,
)
def reshape(data: Expr, newshape: Ints, allowzero: bool = False) -> RelayExpr:
    """The same elements in another shape.

    Parameters
    ----------
    newshape : int, sequence of int or relay.Expr
        The shape; 0 copies a dimension, -1 takes what is left, -2 copies all that remain,
        -3 merges two dimensions, -4 splits one into the two numbers that follow.
    allowzero : bool
        Read 0 as the extent 0.
    """


def _reshape_like_type(attrs: Any, data: TensorType, shape_like: TensorType) -> Type:
    """A tensor of the dtype of `data`: its dimensions in the given range are replaced by those of
    the other tensor."""
    shape, wanted = shape_of_type(data), shape_of_type(shape_like)
    begin, end = _range(attrs.lhs_begin, attrs.lhs_end, len(shape))
    rhs_begin, rhs_end = _range(attrs.rhs_begin, attrs.rhs_end, len(wanted))
    out = shape[:begin] + wanted[rhs_begin:rhs_end] + shape[end:]
    expect(
        may_equal(product(shape), product(out)),
        f"reshape_like requires as many elements in {show(out)} as in {show(shape)}",
    )
    return tensor(out, data.dtype)


def _range(begin: int, end: int | None, rank: int) -> tuple[int, int]:
    start = begin + rank if begin < 0 else begin
    stop = rank if end is None else end + rank if end < 0 else end
    return start, stop


@operator(
    "reshape_like",
    infer_type=_reshape_like_type,
    gradient=_reshaped_back_from,
    support_level=3,
    **_RESHAPING,
)
def reshape_like(
    data: Expr,
    shape_like: Expr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> RelayExpr:
    """Reshape to the shape of another tensor, or exchange a range of axes for its range.

    Parameters
    ----------
    data, shape_like : relay.Expr
        The tensor and the one whose shape is taken.
    lhs_begin, lhs_end, rhs_begin, rhs_end : int
        The axes of `data` that are replaced, by these axes of `shape_like`.
    """


class ReverseReshapeAttrs(reshape.op.attrs_type, key="relay.attrs.ReverseReshapeAttrs"):  # type: ignore
    """The shape wanted, its special values read from the right."""


def _reverse_reshape_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, of the shape that `newshape` describes from the right."""
    out = infer_reshape(shape_of_type(data)[::-1], attrs.newshape[::-1])
    return tensor(out[::-1], data.dtype)


@operator(
    "contrib_reverse_reshape",
    ReverseReshapeAttrs,
    infer_type=_reverse_reshape_type,
    gradient=_reshaped_back,
    **_RESHAPING,
)
def reverse_reshape(data: Expr, newshape: Ints) -> RelayExpr:
    """As `reshape`, with the special values read from the right."""


def _batch_flatten_type(attrs: Attrs, data: TensorType) -> Type:
    """A matrix of the dtype of `data`: the first dimension, and the product of all others."""
    shape = shape_of_type(data)
    expect(len(shape) > 0, "nn.batch_flatten requires at least one dimension")
    return tensor((shape[0], product(shape[1:])), data.dtype)


@operator(
    "nn.batch_flatten",
    infer_type=_batch_flatten_type,
    gradient=_reshaped_back,
    support_level=1,
    **_RESHAPING,
)
def batch_flatten(data: Expr) -> RelayExpr:
    """Merge all axes but the first."""


def _permutation(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    if not axes:
        return tuple(range(rank))[::-1]
    expect(len(axes) == rank, f"transpose requires {rank} axes, got {tuple(axes)}")
    return positive_axes(axes, rank, "transpose")


def _transpose_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, its dimensions in the order of `axes`; without axes the
    other way round."""
    shape = shape_of_type(data)
    return tensor([shape[a] for a in _permutation(attrs.axes, len(shape))], data.dtype)


def _transpose_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    axes = call.attrs.axes
    inverse = None if not axes else tuple(int(i) for i in np.argsort(axes))
    return [ops.transpose(grad, axes=inverse)]


@operator(
    "transpose",
    support_level=3,
    infer_type=_transpose_type,
    infer_layout=layout_transposed,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.transpose(inputs[0], _permutation(attrs.axes, len(inputs[0].shape)))
    ],
    fold=lambda attrs, arrays, out_type: [
        arrays[0].transpose(_permutation(attrs.axes, arrays[0].ndim))
    ],
    gradient=_transpose_gradient,
)
def transpose(data: Expr, axes: OptionalInts = None) -> RelayExpr:
    """Permute the axes.

    Parameters
    ----------
    axes : sequence of int, optional
        The source axis of each result axis; reversed by default.
    """


def in_order(expr: RelayExpr, src: str, dst: str) -> RelayExpr:
    """A tensor whose axes the letters of `src` name, with its axes in the order of `dst`."""
    return (
        expr if src == dst else ops.transpose(expr, axes=tuple([src.index(axis) for axis in dst]))
    )


def _expand_dims_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`, `num_newaxis` dimensions of extent 1 more."""
    shape = shape_of_type(data)
    axis = positive_axis(attrs.axis, len(shape) + 1, "expand_dims")
    return tensor(shape[:axis] + (1,) * attrs.num_newaxis + shape[axis:], data.dtype)


@operator(
    "expand_dims",
    support_level=1,
    infer_type=_expand_dims_type,
    fuse=OpPattern.BROADCAST,
    compute=computed_by(topi.expand_dims, "axis", "num_newaxis"),
    fold=_RESHAPING["fold"],
    gradient=_reshaped_back,
    infer_layout=layout_expanded(lambda attrs, rank: attrs.axis % (rank + 1)),
    run_time=EXPAND_DIMS,
)
def expand_dims(data: Expr, axis: int, num_newaxis: int = 1) -> RelayExpr:
    """Insert axes of extent 1.

    Parameters
    ----------
    axis : int
        Where they come in.
    num_newaxis : int
        How many.
    """


def _squeezed_axes(attrs: Any, shape: Shape) -> tuple[int, ...]:
    if attrs.axis is None:
        expect(
            is_known(*shape), f"squeeze requires an axis where extents are open, got {show(shape)}"
        )
        return tuple([i for i, d in enumerate(shape) if d == 1])
    axes = positive_axes(attrs.axis, len(shape), "squeeze")
    for axis in axes:
        expect(
            may_equal(shape[axis], 1),
            f"squeeze requires extent 1 at axis {axis}, got shape {show(shape)}",
        )
    return axes


def _squeeze_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data` without the dimensions that are left out."""
    shape = shape_of_type(data)
    gone = _squeezed_axes(attrs, shape)
    return tensor([d for i, d in enumerate(shape) if i not in gone], data.dtype)


@operator(
    "squeeze",
    support_level=3,
    infer_type=_squeeze_type,
    gradient=_reshaped_back,
    infer_layout=layout_squeezed(_squeezed_axes),
    run_time=SQUEEZE,
    **_RESHAPING,
)
def squeeze(data: Expr, axis: OptionalInts = None) -> RelayExpr:
    """Remove axes of extent 1.

    Parameters
    ----------
    axis : int or sequence of int, optional
        Which; all by default.
    """


def _layout_transform_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data` in `dst_layout`."""
    extents = axes_extents(shape_of_type(data), attrs.src_layout, "layout_transform")
    missing = [c for c in attrs.dst_layout if c.isupper() and c not in extents]
    expect(
        not missing and sum([c.isupper() for c in attrs.dst_layout]) == len(extents),
        f"layout_transform requires layouts of the same axes, got {attrs.src_layout} and "
        f"{attrs.dst_layout}",
    )
    return tensor(shape_in_layout(extents, attrs.dst_layout), data.dtype)


def _layout_transform_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    attrs = call.attrs
    back = ops.layout_transform(grad, src_layout=attrs.dst_layout, dst_layout=attrs.src_layout)
    shape, found = known_shape(call.args[0], "layout_transform"), shape_of(back)
    if found == shape:
        return [back]
    # what fills the last block is no element of the data
    return [ops.strided_slice(back, begin=(0,) * len(shape), end=shape)]


@operator(
    "layout_transform",
    support_level=5,
    infer_type=_layout_transform_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.layout_transform, "src_layout", "dst_layout"),
    fold=lambda attrs, arrays, out_type: [
        topi.layout.transform_array(arrays[0], attrs.src_layout, attrs.dst_layout)
    ],
    gradient=_layout_transform_gradient,
)
def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> RelayExpr:
    """Bring a tensor from one data layout to another.

    Parameters
    ----------
    src_layout, dst_layout : str
        Such as "NCHW" and "NCHW16c".
    """


def _auto_scheduler_layout_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data` in the layout `dst_layout`."""
    source, target = layouts_of_texts(attrs.src_layout, attrs.dst_layout)
    expect(
        shape_of_type(data) == tuple(source.new_shape),
        f"auto_scheduler_layout_transform requires data of layout {attrs.src_layout}, got {data}",
    )
    return tensor(target.new_shape, data.dtype)


@operator(
    "auto_scheduler_layout_transform",
    support_level=5,
    infer_type=_auto_scheduler_layout_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.auto_scheduler_layout_transform, "src_layout", "dst_layout"),
    gradient=lambda call, grad: [
        ops.auto_scheduler_layout_transform(
            grad, src_layout=call.attrs.dst_layout, dst_layout=call.attrs.src_layout
        )
    ],
)
def auto_scheduler_layout_transform(data: Expr, src_layout: str, dst_layout: str) -> RelayExpr:
    """Bring a tensor to a layout that a state of the auto-scheduler reads it in.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    src_layout, dst_layout : str
        The extents and axes of the dimensions, such as "64k64j" and "4j64k16j".
    """


def _reverse_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the shape and dtype of `data`."""
    positive_axis(attrs.axis, len(data.shape), "reverse")
    return data


@operator(
    "reverse",
    support_level=3,
    infer_type=_reverse_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.flip, "axis"),
    fold=lambda attrs, arrays, out_type: [np.ascontiguousarray(np.flip(arrays[0], attrs.axis))],
    gradient=lambda call, grad: [ops.reverse(grad, axis=call.attrs.axis)],
)
def reverse(data: Expr, axis: int) -> RelayExpr:
    """Turn the order along an axis round."""
