"""Operators that pick elements by index: take, gather, slices, where, one_hot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm import te, topi
from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from .attributes import as_int, as_ints, as_optional_ints, is_run_time, run_time_vector
from .layout_axes import layout_sliced
from .registry import OpPattern, define_op, ops
from .types import (
    Dim,
    Shape,
    broadcast_shapes,
    expect,
    expect_same_dtype,
    expect_tensor,
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
from .unary import numpy_dtype


class TakeAttrs(Attrs, key="relay.attrs.TakeAttrs"):
    """The axis indexed, and what happens to indices out of range."""

    batch_dims: int = 0
    axis: int | None = None  # None: the flattened tensor
    mode: str = "clip"


def _take_type(attrs: TakeAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "take")
    indices = expect_tensor(arg_types[1], "take", "indices")
    expect(
        indices.dtype.is_int or indices.dtype.is_uint,
        f"take requires integer indices, got {indices.dtype}",
    )
    expect(
        attrs.mode in ("clip", "wrap", "fast"),
        f"take requires a mode of clip, wrap or fast, got {attrs.mode!r}",
    )
    shape, picked = shape_of_type(data), shape_of_type(indices)
    if attrs.axis is None:
        return tensor(picked, data.dtype)
    axis = positive_axis(attrs.axis, len(shape), "take")
    batch = attrs.batch_dims % len(picked) if attrs.batch_dims < 0 else attrs.batch_dims
    return tensor(shape[:axis] + picked[batch:] + shape[axis + 1 :], data.dtype)


def _fold_take(attrs: TakeAttrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    data, indices = arrays
    if attrs.batch_dims and attrs.axis is not None:
        inner = attrs.replace(
            batch_dims=attrs.batch_dims % indices.ndim - 1, axis=attrs.axis % data.ndim - 1
        )
        pairs = zip(data, indices, strict=True)
        return [np.stack([_fold_take(inner, pair, out_type)[0] for pair in pairs])]
    extent = data.size if attrs.axis is None else data.shape[attrs.axis]
    if not extent and indices.size:  # what a mask leaves out: any value will do
        data, extent = np.insert(data, 0, 0, attrs.axis), 1
    if attrs.mode == "wrap":
        indices = indices % extent
    else:
        if attrs.mode == "fast":
            indices = np.where(indices < 0, indices + extent, indices)
        indices = np.clip(indices, 0, extent - 1)
    return [np.asarray(np.take(data, indices, axis=attrs.axis))]


define_op(
    "take",
    TakeAttrs,
    inputs=("data", "indices"),
    infer_type=_take_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.take(inputs[0], inputs[1], attrs.axis, attrs.batch_dims, attrs.mode)
    ],
    fold=_fold_take,
)


class GatherAttrs(Attrs, key="relay.attrs.GatherAttrs"):
    """The axis along which elements are picked."""

    axis: int = 0


def _gather_type(attrs: GatherAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "gather")
    indices = expect_tensor(arg_types[1], "gather", "indices")
    shape, picked = shape_of_type(data), shape_of_type(indices)
    axis = positive_axis(attrs.axis, len(shape), "gather")
    expect(
        len(shape) == len(picked),
        f"gather requires indices of the data's rank, got {show(shape)} and {show(picked)}",
    )
    for i, (have, want) in enumerate(zip(shape, picked, strict=True)):
        expect(
            i == axis or not (isinstance(have, int) and isinstance(want, int)) or want <= have,
            f"gather requires indices no larger than the data but along axis {axis}, "
            f"got {show(shape)} and {show(picked)}",
        )
    return tensor(picked, data.dtype)


def _fold_gather(
    attrs: GatherAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    data, indices = arrays
    axis = attrs.axis % data.ndim
    window = tuple([slice(None) if i == axis else slice(0, n) for i, n in enumerate(indices.shape)])
    return [np.take_along_axis(data[window], indices.astype("int64"), axis=axis)]


define_op(
    "gather",
    GatherAttrs,
    inputs=("data", "indices"),
    infer_type=_gather_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.gather(inputs[0], attrs.axis, inputs[1])],
    fold=_fold_gather,
)


class GatherNDAttrs(Attrs, key="relay.attrs.GatherNDAttrs"):
    """The axes shared with the indices."""

    batch_dims: int = 0
    index_rank: int | None = None


def _gather_nd_type(attrs: GatherNDAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "gather_nd")
    indices = expect_tensor(arg_types[1], "gather_nd", "indices")
    shape, picked = shape_of_type(data), shape_of_type(indices)
    expect(len(picked) > 0, "gather_nd requires indices of at least one dimension")
    depth = picked[0] if isinstance(picked[0], int) else attrs.index_rank
    expect(
        depth is not None,
        "gather_nd requires index_rank where the indices' first dimension is unknown",
    )
    expect(
        depth + attrs.batch_dims <= len(shape),  # type: ignore[operator]
        f"gather_nd requires at most {len(shape)} indices an element, got {depth}",
    )
    return tensor(picked[1:] + shape[depth + attrs.batch_dims :], data.dtype)  # type: ignore[operator]


def _fold_gather_nd(
    attrs: GatherNDAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    data, indices = arrays
    if attrs.batch_dims == 0:
        return [np.asarray(data[tuple(indices)])]
    inner = attrs.replace(batch_dims=attrs.batch_dims - 1)
    pairs = zip(data, np.moveaxis(indices, 1, 0), strict=True)
    return [np.stack([_fold_gather_nd(inner, pair, out_type)[0] for pair in pairs])]


define_op(
    "gather_nd",
    GatherNDAttrs,
    inputs=("data", "indices"),
    infer_type=_gather_nd_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.gather_nd(inputs[0], inputs[1], attrs.batch_dims, out_type.shape)
    ],
    fold=_fold_gather_nd,
)


class StridedSliceAttrs(Attrs, key="relay.attrs.StridedSliceAttrs"):
    """Begins, ends (or sizes) and strides of a slice, of the leading or the named axes."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...] = (1,)
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None


_FAR = np.iinfo("int32").max  # beyond every extent


def slice_ranges(attrs: StridedSliceAttrs, shape: Shape) -> list[tuple[Dim, Dim, int]]:
    """(begin, extent, stride) along each axis, begins counted from the front and clipped."""
    ranges: list[tuple[Dim, Dim, int]] = [(0, extent, 1) for extent in shape]
    axes = range(len(attrs.begin)) if attrs.axes is None else attrs.axes
    expect(
        len(attrs.begin) <= len(shape),
        f"strided_slice of shape {show(shape)} got {len(attrs.begin)} begins",
    )
    for position, named in enumerate(axes):
        axis = positive_axis(named, len(shape), "strided_slice")
        stride = _stride(attrs, position)
        ranges[axis] = _slice_range(attrs, position, shape[axis], stride)
    return ranges


def _stride(attrs: StridedSliceAttrs, position: int) -> int:
    if attrs.slice_mode == "size":
        return 1
    if len(attrs.strides) == 1:
        return attrs.strides[0]
    return attrs.strides[position] if position < len(attrs.strides) else 1


def _slice_range(
    attrs: StridedSliceAttrs, position: int, extent: Dim, stride: int
) -> tuple[Dim, Dim, int]:
    begin = attrs.begin[position]
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


def _strided_slice_type(attrs: StridedSliceAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "strided_slice")
    return tensor([r[1] for r in slice_ranges(attrs, shape_of_type(data))], data.dtype)


def _strided_slice_compute(
    attrs: StridedSliceAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    ranges = slice_ranges(attrs, topi.utils.dims(inputs[0].shape))
    begins, strides = [r[0] for r in ranges], [r[2] for r in ranges]
    return [topi.slicing.window(inputs[0], begins, strides, out_type.shape)]  # type: ignore[attr-defined]


def _fold_strided_slice(
    attrs: StridedSliceAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    found = arrays[0]
    for axis, (begin, extent, stride) in enumerate(slice_ranges(attrs, found.shape)):
        picked = begin + stride * np.arange(extent)
        found = np.take(found, picked, axis=axis)
    return [np.ascontiguousarray(found)]


define_op(
    "strided_slice",
    StridedSliceAttrs,
    inputs=("data",),
    infer_type=_strided_slice_type,
    fuse=OpPattern.INJECTIVE,
    compute=_strided_slice_compute,
    fold=_fold_strided_slice,
    infer_layout=layout_sliced(slice_ranges),
)


class SliceLikeAttrs(Attrs, key="relay.attrs.SliceLikeAttrs"):
    """The axes cut to another tensor's extents."""

    axes: tuple[int, ...] | None = None


def _slice_like_type(attrs: SliceLikeAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "slice_like")
    shape = list(shape_of_type(data))
    like = shape_of_type(expect_tensor(arg_types[1], "slice_like", "slice_like"))
    axes = attrs.axes or range(len(like))
    for named in axes:
        axis = positive_axis(named, len(shape), "slice_like")
        expect(
            axis < len(like)
            and (
                not isinstance(shape[axis], int)
                or not isinstance(like[axis], int)
                or like[axis] <= shape[axis]
            ),
            f"slice_like cannot cut {show(shape)} to {show(like)} along axis {axis}",
        )
        shape[axis] = like[axis]
    return tensor(shape, data.dtype)


define_op(
    "slice_like",
    SliceLikeAttrs,
    inputs=("data", "shape_like"),
    infer_type=_slice_like_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.slicing.window(
            inputs[0], [0] * len(out_type.shape), [1] * len(out_type.shape), out_type.shape
        )
    ],
    fold=lambda attrs, arrays, out_type: [
        np.ascontiguousarray(arrays[0][tuple([slice(n) for n in out_type.concrete_shape])])
    ],
)


def _where_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    condition = expect_tensor(arg_types[0], "where", "condition")
    x, y = expect_tensor(arg_types[1], "where", "x"), expect_tensor(arg_types[2], "where", "y")
    dtype = expect_same_dtype((x, y), "where")
    shape = broadcast_shapes(shape_of_type(x), shape_of_type(y), "where")
    return tensor(broadcast_shapes(shape_of_type(condition), shape, "where"), dtype)


define_op(
    "where",
    inputs=("condition", "x", "y"),
    infer_type=_where_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.where(*inputs)],
    fold=lambda attrs, arrays, out_type: [np.where(arrays[0].astype(bool), arrays[1], arrays[2])],
)


class OneHotAttrs(Attrs, key="relay.attrs.OneHotAttrs"):
    """The length, place and dtype of the one-hot vectors."""

    depth: int
    axis: int
    dtype: str


def _one_hot_type(attrs: OneHotAttrs, arg_types: Sequence[Type]) -> Type:
    shape = shape_of_type(expect_tensor(arg_types[0], "one_hot", "indices"))
    axis = len(shape) if attrs.axis == -1 else attrs.axis
    expect(0 <= axis <= len(shape), f"one_hot requires an axis in [-1, {len(shape)}], got {axis}")
    return tensor((*shape[:axis], attrs.depth, *shape[axis:]), attrs.dtype)


define_op(
    "one_hot",
    OneHotAttrs,
    inputs=("indices", "on_value", "off_value"),
    infer_type=_one_hot_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [
        topi.one_hot(inputs[0], inputs[1](), inputs[2](), attrs.depth, attrs.axis, attrs.dtype)
    ],
    fold=lambda attrs, arrays, out_type: [
        np.where(
            np.expand_dims(arrays[0], attrs.axis)
            == np.arange(attrs.depth).reshape(
                [
                    -1 if d == attrs.axis % (arrays[0].ndim + 1) else 1
                    for d in range(arrays[0].ndim + 1)
                ]
            ),
            arrays[1],
            arrays[2],
        ).astype(numpy_dtype(attrs.dtype))
    ],
)


class TriluAttrs(Attrs, key="relay.attrs.TriluAttrs"):
    """Which triangle is kept."""

    upper: bool = True


def _trilu_type(attrs: TriluAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "trilu")
    expect(len(data.shape) >= 2, "trilu requires at least two dimensions")
    return data


define_op(
    "trilu",
    TriluAttrs,
    inputs=("data", "k"),
    infer_type=_trilu_type,
    fuse=OpPattern.ELEMWISE,
    compute=lambda attrs, inputs, out_type: [topi.trilu(inputs[0], inputs[1](), attrs.upper)],
    fold=lambda attrs, arrays, out_type: [
        (np.triu if attrs.upper else np.tril)(arrays[0], int(arrays[1]))
    ],
)


def take(
    data: RelayExpr,
    indices: RelayExpr,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> RelayExpr:
    """Pick elements by index along an axis.

    Parameters
    ----------
    data, indices : relay.Expr
        The tensor, and the indices.
    axis : int, optional
        The axis; the flattened tensor by default.
    batch_dims : int
        The number of leading axes that data and indices share.
    mode : str
        Indices out of range: "clip", "wrap", or "fast" (not checked).
    """
    return ops.take(
        data,
        indices,
        axis=None if axis is None else as_int(axis),
        batch_dims=as_int(batch_dims),
        mode=str(mode),
    )


def gather(data: RelayExpr, axis: int, indices: RelayExpr) -> RelayExpr:
    """Pick one element for each index, along an axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    axis : int
        The axis.
    indices : relay.Expr
        A tensor of the data's rank.
    """
    return ops.gather(data, indices, axis=as_int(axis))


def gather_nd(
    data: RelayExpr, indices: RelayExpr, batch_dims: int = 0, index_rank: int | None = None
) -> RelayExpr:
    """Pick slices by index tuples, held along the first axis of the indices.

    Parameters
    ----------
    data, indices : relay.Expr
        The tensor, and the index tuples.
    batch_dims : int
        The number of leading axes that data and indices share.
    index_rank : int, optional
        The length of the tuples, where the shape does not tell.
    """
    return ops.gather_nd(data, indices, batch_dims=as_int(batch_dims), index_rank=index_rank)


def strided_slice(
    data: RelayExpr,
    begin: Sequence[int] | RelayExpr,
    end: Sequence[int] | RelayExpr,
    strides: Sequence[int] | RelayExpr | None = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> RelayExpr:
    """Cut a window out of a tensor.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
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
    steps = (1,) if strides is None else as_ints(strides)
    return ops.strided_slice(
        data,
        begin=_bounds(begin, steps, 0, _FAR),
        end=_bounds(end, steps, -1 if slice_mode == "size" else _FAR, -_FAR),
        strides=steps,
        axes=as_optional_ints(axes),
        slice_mode=str(slice_mode),
    )


def _bounds(values: object, steps: Sequence[int], least: int, most: int) -> tuple[int, ...]:
    """Where slices begin or stop; None is one end for steps forward, the other one for others."""
    if not isinstance(values, (list, tuple)) or None not in values:
        return as_ints(values)
    steps = steps * len(values) if len(steps) == 1 else (*steps, *(1,) * len(values))
    return as_ints([
        (least if step > 0 else most) if value is None else value
        for value, step in zip(values, steps, strict=False)
    ])  # fmt: skip


def _slice_at_run_time(
    data: RelayExpr, begin: object, end: object, strides: object, axes: object, slice_mode: str
) -> RelayExpr:
    if axes is not None:
        raise OpAttributeInvalid("strided_slice by expressions slices the leading axes, got axes")
    bounds = [run_time_vector(values) for values in (begin, end)]
    steps = ops.ones_like(bounds[0]) if strides is None else run_time_vector(strides)
    attrs = {"begin": (), "end": (), "strides": (), "slice_mode": str(slice_mode)}
    return Op.get("dyn.strided_slice")(data, *bounds, steps, **attrs)


def slice_like(
    data: RelayExpr, shape_like: RelayExpr, axes: Sequence[int] | None = None
) -> RelayExpr:
    """Cut a tensor to the extents of another one.

    Parameters
    ----------
    data, shape_like : relay.Expr
        The tensor, and the one whose extents are taken.
    axes : sequence of int, optional
        The axes that are cut, all by default.
    """
    return ops.slice_like(data, shape_like, axes=as_optional_ints(axes))


def where(condition: RelayExpr, x: RelayExpr, y: RelayExpr) -> RelayExpr:
    """Elements of `x` where the condition holds, of `y` elsewhere, with broadcasting.

    Parameters
    ----------
    condition, x, y : relay.Expr
        The condition (bool, or a number that is not zero) and the two choices.
    """
    return ops.where(condition, x, y)


def one_hot(
    indices: RelayExpr,
    on_value: RelayExpr,
    off_value: RelayExpr,
    depth: int,
    axis: int,
    dtype: str,
) -> RelayExpr:
    """Vectors that are `on_value` at each index and `off_value` elsewhere.

    Parameters
    ----------
    indices, on_value, off_value : relay.Expr
        The indices and the two values (scalars).
    depth : int
        The length of the vectors.
    axis : int
        Where their axis comes in; -1 is last.
    dtype : str
        The dtype of the result.
    """
    if is_run_time(depth):
        attrs = {"depth": 0, "axis": as_int(axis), "dtype": str(dtype)}
        return Op.get("dyn.one_hot")(indices, on_value, off_value, depth, **attrs)
    return ops.one_hot(
        indices, on_value, off_value, depth=as_int(depth), axis=as_int(axis), dtype=str(dtype)
    )


def trilu(data: RelayExpr, k: RelayExpr, upper: bool = True) -> RelayExpr:
    """Keep the upper or the lower triangle of each matrix.

    Parameters
    ----------
    data : relay.Expr
        The matrices.
    k : relay.Expr
        The number of the diagonal up to which elements are kept.
    upper : bool
        Which triangle.
    """
    return ops.trilu(data, k, upper=bool(upper))
