"""ONNX operators that move, cut, join and index data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import (
    constant,
    infer_dtype,
    infer_shape,
    is_static,
    scalar_like,
    shape_of,
)
from tvm.relay.frontend.dynamic_extents import (
    as_vector,
    element,
    extent,
    iota,
    parts_of_sizes,
    with_static_extents,
)
from tvm.relay.frontend.indexing import SLICE_END, from_front, padded

from .dynamic_axes import flags_of_axes, has_dynamic_axes, kept_extents, spread_over_axes
from .registry import OnnxNode, Result, onnx_op, onnx_ops, static_ints
from .shape_inference import reshape_by

_SCATTERS: dict[str, str] = {
    "none": "update", "update": "update", "add": "add", "mul": "mul", "min": "min", "max": "max",
}  # fmt: skip
onnx_ops({
    "Shape": lambda x, start=0, *, end=None: shape_of(x, "int64", start, end),
    "Transpose": lambda x, *, perm=None: _op.transpose(x, perm),
    "Concat": lambda *parts, axis=1: _op.concatenate(list(parts), axis),
    "DepthToSpace": lambda x, *, blocksize, mode="DCR": _op.nn.depth_to_space(
        x, blocksize, "NCHW", mode
    ),
    "Gather": lambda x, indices, axis=0: _op.take(x, _front(x, indices, axis), axis),
    "GatherElements": lambda x, indices, axis=0: _op.gather(x, axis, _front(x, indices, axis)),
    "GatherND com.microsoft.GatherND": lambda x, indices, batch_dims=0: _op.gather_nd(
        x, _positions(x, indices, batch_dims), batch_dims
    ),
    "ScatterElements Scatter": lambda x, indices, updates, axis=0, reduction="none": (
        _op.scatter_elements(
            x, _front(x, indices, axis), updates, axis % len(infer_shape(x)), _SCATTERS[reduction]
        )
    ),
    "ScatterND": lambda x, indices, updates, reduction="none": _op.scatter_nd(
        x, _positions(x, indices), updates, _SCATTERS[reduction]
    ),
})  # fmt: skip


@onnx_op("Size")
def _size(x: RelayExpr) -> RelayExpr:
    if is_static(infer_shape(x)):
        return constant(np.array(np.prod(infer_shape(x)), "int64"))
    return _op.ndarray_size(x, "int64")


@onnx_op("Reshape")
def _reshape(node: OnnxNode) -> RelayExpr:
    if node.has(1) and not isinstance(wanted := node.value_or_expr(1, "shape"), np.ndarray):
        if node.attr("allowzero", 0):
            return _op.reshape(node[0], wanted, allowzero=True)
        spec = reshape_by(node.input_dims[0], node.output_dims[0]) if node.output_dims else None
        return _op.reshape(node[0], wanted if spec is None else spec)
    extents = node.ints("shape", 1)
    if node.attr("allowzero", 0) and 0 in extents:
        return _op.full(scalar_like(0, node[0]), extents, node.dtype(0))
    return _op.reshape(node[0], extents)


@onnx_op("Flatten")
def _flatten(x: RelayExpr, axis: int = 1) -> RelayExpr:
    if axis == 1:
        return _op.nn.batch_flatten(x)
    shape = infer_shape(x)
    axis += len(shape) if axis < 0 else 0
    sides = [int(np.prod(part)) if is_static(part) else -1 for part in (shape[:axis], shape[axis:])]
    if sides != [-1, -1]:
        return _op.reshape(x, sides)
    for _ in range(axis - 1):
        x = _op.reshape(x, (-3, -2))
    for _ in range(len(shape) - axis - 1):
        x = _op.reshape(x, (0, -3, -2))
    return x


@onnx_op("Squeeze")
def _squeeze(node: OnnxNode) -> RelayExpr:
    if not has_dynamic_axes(node):
        return _op.squeeze(node[0], node.ints("axes", 1))
    rank = len(node.shape(0))
    flags = flags_of_axes(node[1], rank)
    return _op.reshape(node[0], kept_extents(node[0], flags, rank - node.static_shape(1)[0]))


@onnx_op("Unsqueeze")
def _unsqueeze(node: OnnxNode) -> RelayExpr:
    if has_dynamic_axes(node):
        added = flags_of_axes(node[1], len(node.shape(0)) + node.static_shape(1)[0])
        ones = scalar_like(1, added)
        source = _op.cumsum(ones - added, axis=0) - ones  # -1 before the first old axis
        extents = _op.take(_op.shape_of(node[0], "int64"), source, 0, mode="clip")
        return _op.reshape(node[0], _op.where(_op.cast(added, "bool"), ones, extents))
    rank = len(node.shape(0)) + len(node.ints("axes", 1))
    result = node[0]
    for axis in sorted(axis % rank for axis in node.ints("axes", 1)):
        result = _op.expand_dims(result, axis)
    return result


@onnx_op("Split")
def _split(node: OnnxNode) -> Result:
    axis = node.attr("axis", 0)
    if node.has(1) and isinstance(node.value_or_expr(1, "split"), RelayExpr):
        return parts_of_sizes(node[0], axis, node[1], node.output_count)
    sizes = node.ints("split", 1)
    extent = node.shape(0)[axis]
    if sizes is None:
        count = node.attr("num_outputs", node.output_count)
        if not isinstance(extent, int):
            return _split_dynamic(node, axis % len(node.shape(0)))
        size = -(-extent // count)
        sizes = [min(size, extent - i * size) for i in range(count)]
    if isinstance(extent, int) and sum(sizes) != extent:
        raise OpAttributeInvalid(
            f"Split {node.name} requires parts that add up to {extent}, got {sizes}"
        )
    if len(sizes) == 1:
        return [node[0]]
    return _op.split(node[0], tuple(np.cumsum(sizes[:-1]).tolist()), axis)


def _split_dynamic(node: OnnxNode, axis: int) -> Result:
    """Parts of an dynamic extent; with ``num_outputs`` the last one may be smaller."""
    if "num_outputs" not in node.attrs:
        return _op.split(node[0], node.output_count, axis)
    count, total = node.attr("num_outputs"), as_vector(extent(node[0], axis))
    size = _op.floor_divide(total + constant([count - 1], "int64"), constant([count], "int64"))
    rest = total - size * constant(np.arange(count), "int64")
    sizes = _op.maximum(_op.minimum(rest, size), constant([0], "int64"))
    return parts_of_sizes(node[0], axis, sizes, node.output_count)


@onnx_op("Slice")
def _slice(node: OnnxNode) -> RelayExpr:
    shape = node.shape(0)
    if node.allow_dynamic and any(node.has(i) and node.value(i) is None for i in (3, 4)):
        return _slice_by_axes_of_the_run(node)
    if node.allow_dynamic and any(node.has(i) and node.value(i) is None for i in (1, 2)):
        return _dynamic_slice_bounds(node)
    starts, ends = node.ints("starts", 1), node.ints("ends", 2)
    axes = node.ints("axes", 3, list(range(len(starts))))
    steps = node.ints("steps", 4, [1] * len(starts))
    if not all(isinstance(shape[axis], int) for axis in axes):
        return _slice_dynamic_axes(node, starts, ends, axes, steps)
    begin, end, stride = [0] * len(shape), list(shape), [1] * len(shape)
    for start, stop, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = shape[axis]
        start = max(start, -extent) if step < 0 else start
        begin[axis], end[axis], stride[axis] = *slice(start, stop, step).indices(extent)[:2], step
    if all(step > 0 for step in stride):
        kept = [axis for axis, dim in enumerate(shape) if isinstance(dim, int)]
        first, last, step = [[bounds[axis] for axis in kept] for bounds in (begin, end, stride)]
        return _op.strided_slice(node[0], first, last, step, axes=kept)
    return _sliced_backwards(node[0], shape, begin, end, stride)


def _slice_dynamic_axes(
    node: OnnxNode, starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> RelayExpr:
    """A slice of dynamic dimensions by constant bounds."""
    x, parts = node[0], list(zip(starts, ends, axes, steps, strict=True))
    is_reversed = [
        step == -1 and (a == -1 or a >= SLICE_END) and b < -SLICE_END for a, b, _, step in parts
    ]
    is_plain = [step > 0 and (start >= 0 or not node.has(1)) for start, _, _, step in parts]
    if not all(turned or plain for turned, plain in zip(is_reversed, is_plain, strict=True)):
        return _dynamic_slice_bounds(node)
    for (start, end, axis, step), turned in zip(parts, is_reversed, strict=True):
        bounds = [max(-SLICE_END, min(SLICE_END, bound)) for bound in (start, end)]
        x = (
            _op.reverse(x, axis) if turned
            else _op.strided_slice(x, bounds[:1], bounds[1:], [step], axes=[axis])
        )  # fmt: skip
    return x


def _dynamic_slice_bounds(node: OnnxNode) -> RelayExpr:
    """A slice by dynamic bounds; negative steps slice the reversed axis forwards."""
    shape, count = node.shape(0), infer_shape(node[1])[0]
    axes = [axis % len(shape) for axis in node.ints("axes", 3, list(range(count)))]
    step_of = dict(zip(axes, node.ints("steps", 4, [1] * count), strict=True))
    x, dims, zero = node[0], _op.shape_of(node[0], "int64"), constant(np.zeros(1, "int64"))
    bounds = []
    for index in (1, 2):
        given = _op.cast(node[index], "int64")
        parts = [zero if index == 1 else element(dims, axis) for axis in range(len(shape))]
        for i, axis in enumerate(axes):
            is_reversed = step_of[axis] < 0
            least = -1 if is_reversed and index == 2 else 0
            parts[axis] = _within(element(given, i), element(dims, axis), least, is_reversed)
        bounds.append(_op.concatenate(parts, 0))
    for axis, step in step_of.items():
        x = _op.reverse(x, axis) if step < 0 else x
    stride = [abs(step_of.get(axis, 1)) for axis in range(len(shape))]
    begin, end = bounds
    result = _op.strided_slice(x, begin, end, constant(stride, "int64"))
    return with_static_extents(
        result, [None if axis in axes else dim for axis, dim in enumerate(shape)]
    )


def _slice_by_axes_of_the_run(node: OnnxNode) -> RelayExpr:
    """A slice whose axes or steps the run knows: each axis by the indices of its elements."""
    rank, count = len(node.shape(0)), infer_shape(node[1])[0]
    dims = _op.shape_of(node[0], "int64")
    axes = node[3] if node.has(3) else constant(np.arange(count), "int64")
    zeros, ones = _op.zeros_like(dims), _op.ones_like(dims)
    steps = spread_over_axes(node[4], axes, rank, ones) if node.has(4) else ones
    starts = spread_over_axes(node[1], axes, rank, zeros)
    ends = spread_over_axes(node[2], axes, rank, dims)
    is_down = _op.less(steps, zeros)
    least, most = _op.where(is_down, zeros - ones, zeros), _op.where(is_down, dims - ones, dims)
    first, last = [
        _op.minimum(_op.maximum(_op.where(_op.less(v, zeros), v + dims, v), least), most)
        for v in (starts, ends)
    ]  # fmt: skip
    x = node[0]
    for axis in range(rank):
        start, stop, step = [_op.reshape(element(v, axis), ()) for v in (first, last, steps)]
        x = _op.take(x, _op.arange(start, stop, step, "int64"), axis)
    return x


def _within(bound: RelayExpr, extent: RelayExpr, least: int, is_reversed: bool) -> RelayExpr:
    """A bound that may count from the end, or lie outside, as an index of the axis (reversed)."""
    zero, last = scalar_like(0, bound), extent - scalar_like(1, bound)
    bound = _op.where(_op.less(bound, zero), bound + extent, bound)
    bound = _op.maximum(bound, scalar_like(least, bound))
    return last - _op.minimum(bound, last) if is_reversed else _op.minimum(bound, extent)


def _sliced_backwards(
    x: RelayExpr, shape: tuple[Any, ...], begin: list[int], end: list[int], stride: list[int]
) -> RelayExpr:
    """Negative steps pick elements one by one."""
    for axis in [axis for axis, dim in enumerate(shape) if isinstance(dim, int)]:
        picked = np.arange(begin[axis], end[axis], stride[axis], dtype="int64")
        if len(picked) != shape[axis] or stride[axis] < 0:
            x = _op.take(x, constant(picked), axis)
    return x


def _front(x: RelayExpr, indices: RelayExpr, axis: int) -> RelayExpr:
    return from_front(indices, extent(x, axis))


def _positions(x: RelayExpr, indices: RelayExpr, first: int = 0) -> RelayExpr:
    """Indices whose last axis indexes the axes from ``first`` on, that axis in front;
    numbers below zero count from the end."""
    rank, end = len(infer_shape(indices)), first + infer_shape(indices)[-1]
    if not (isinstance(indices, Constant) and (indices.data.numpy() >= 0).all()):
        extents = shape_of(x, infer_dtype(indices), first, end)
        negative = _op.less(indices, scalar_like(0, indices))
        indices = _op.where(negative, indices + extents, indices)
    return _op.transpose(indices, (rank - 1, *range(rank - 1)))


@onnx_op("Expand")
def _expand(node: OnnxNode) -> RelayExpr:
    wanted, shape = node.value_or_expr(1, "shape"), node.shape(0)
    if isinstance(wanted, np.ndarray) and is_static(shape):
        return _op.broadcast_to(node[0], np.broadcast_shapes(shape, static_ints(wanted)))
    return _expanded(node[0], node[1])


def _expanded(x: RelayExpr, wanted: RelayExpr) -> RelayExpr:
    """Broadcast together with a dynamic shape, of which ones change nothing."""
    have, rank = _op.shape_of(x, "int64"), len(infer_shape(x))
    count = infer_shape(wanted)[0]
    ones = [constant(np.ones(abs(count - rank), "int64"))] if count != rank else []
    if count > rank:
        have = _op.concatenate([*ones, have], 0) if rank else ones[0]
    elif count < rank:
        wanted = _op.concatenate([*ones, wanted], 0)
    is_one = _op.equal(wanted, scalar_like(1, wanted))
    return _op.broadcast_to(x, _op.where(is_one, have, wanted))


@onnx_op("Tile")
def _tile(node: OnnxNode) -> RelayExpr:
    if node.opset < 6:  # one axis
        counts = [1] * len(node.shape(0))
        counts[int(node.require_scalar(2, "the axis"))] = int(node.require_scalar(1, "tiles"))
        return _op.tile(node[0], counts)
    repeats = node.value_or_expr(1, "repeats")
    if isinstance(repeats, np.ndarray) and len(repeats) != len(node.shape(0)):
        raise OpAttributeInvalid(
            f"Tile {node.name} requires a number for each of {len(node.shape(0))} axes, "
            f"got {static_ints(repeats)}"
        )
    return _op.tile(node[0], static_ints(repeats) if isinstance(repeats, np.ndarray) else repeats)


@onnx_op("Pad", "com.microsoft.Pad")
def _pad(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(0))
    if has_dynamic_axes(node, 3):
        zeros, count = constant(np.zeros(rank), "int64"), node.static_shape(3)[0]
        sides = [
            spread_over_axes(_op.strided_slice(node[1], [i], [i + count]), node[3], rank, zeros)
            for i in (0, count)
        ]
        return _dynamic_pad(node, _op.stack(sides, 1), list(range(rank)))
    axes = node.ints("axes", 3, list(range(rank)))
    if node.has(1) and not isinstance(node.value_or_expr(1, "pads"), np.ndarray):
        widths = _dynamic_widths(node, [axis % rank for axis in axes])
        return _dynamic_pad(node, widths, [axis % rank for axis in axes])
    pads = node.ints("pads", 1, node.attr("paddings"))
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(axes)]
    fill: Any = float(node.attr("value", 0.0))
    if node.has(2):
        fill = node[2] if node.shape(2) == () else _op.reshape(node[2], ())
    mode = node.attr("mode", "constant")
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise node.unsupported(f"mode {mode!r}")
    return padded(node[0], list(zip(begins, ends, strict=True)), fill, mode)


def _dynamic_widths(node: OnnxNode, axes: list[int]) -> RelayExpr:
    """Before and behind each axis, (axes, 2)."""
    zero = constant(np.zeros(1, "int64"))
    sides = [[zero] * len(node.shape(0)) for _ in range(2)]
    for i, axis in enumerate(axes):
        for side, offset in zip(sides, (0, len(axes)), strict=True):
            side[axis] = element(node[1], i + offset)
    return _op.stack([_op.concatenate(side, 0) for side in sides], 1)


def _dynamic_pad(node: OnnxNode, widths: RelayExpr, axes: list[int]) -> RelayExpr:
    """Padding of dynamic widths, none of which may be negative."""
    mode = node.attr("mode", "constant")
    if mode == "wrap":
        return _dynamic_wrap(node[0], widths, axes)
    fill = _op.reshape(node[2], ()) if node.has(2) else scalar_like(0.0, node[0])
    result = _op.nn.pad(node[0], widths, fill, mode)
    kept = [None if axis in axes else dim for axis, dim in enumerate(node.shape(0))]
    return with_static_extents(result, kept)


def _dynamic_wrap(x: RelayExpr, widths: RelayExpr, axes: list[int]) -> RelayExpr:
    """Each axis goes on with the other end of what negative widths leave of it."""
    zero, one = as_vector(0), as_vector(1)
    for axis in axes:
        before, after = [
            _op.reshape(_op.strided_slice(widths, [axis, side], [axis + 1, side + 1]), (1,))
            for side in (0, 1)
        ]
        first = _op.maximum(_op.negative(before), zero)
        left_out = first + _op.maximum(_op.negative(after), zero)
        count = as_vector(extent(x, axis)) - left_out
        ahead, behind = _op.maximum(before, zero), _op.maximum(after, zero)
        at = iota(ahead + count + behind) - ahead
        x = _op.take(x, first + _op.floor_mod(at, _op.maximum(count, one)), axis)
    return x


@onnx_op("SpaceToDepth")
def _space_to_depth(x: RelayExpr, *, blocksize: int, mode: str = "DCR") -> RelayExpr:
    split = _op.reshape(x, (0, 0, -4, -1, blocksize, -4, -1, blocksize))
    moved = _op.transpose(split, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return _op.reshape(_op.reshape(moved, (0, -3, 0, 0, 0)), (0, -3, 0, 0))


@onnx_op("OneHot")
def _one_hot(node: OnnxNode) -> RelayExpr:
    depth = node.value_or_expr(1, "depth")
    if isinstance(depth, RelayExpr):
        return _dynamic_one_hot(node, depth)
    count = int(depth.reshape(-1)[0])
    off, on = _op.split(node[2], 2, 0)
    scalar_off, scalar_on = _op.squeeze(off, [0]), _op.squeeze(on, [0])
    indices = from_front(node[0], count)
    axis = node.attr("axis", -1) % (len(node.shape(0)) + 1)
    return _op.one_hot(indices, scalar_on, scalar_off, count, axis, node.dtype(2))


def _dynamic_one_hot(node: OnnxNode, depth: RelayExpr) -> RelayExpr:
    """Comparisons with all classes, whose number is dynamic."""
    rank = len(node.shape(0))
    axis = node.attr("axis", -1) % (rank + 1)
    count = _op.reshape(_op.cast(depth, "int64"), ())
    indices = from_front(_op.cast(node[0], "int64"), count)
    classes = _op.arange(constant(0, "int64"), count, constant(1, "int64"), "int64")
    along = _op.reshape(classes, [-1, *[1] * (rank - axis)])
    off, on = _op.split(node[2], 2, 0)
    return _op.where(_op.equal(_op.expand_dims(indices, axis), along), on, off)


@onnx_op("Trilu", "com.microsoft.Trilu")
def _trilu(node: OnnxNode) -> RelayExpr:
    k = node.value_or_expr(1, "k") if node.has(1) else np.zeros((), "int64")
    k = k if isinstance(k, RelayExpr) else constant(k, "int64")
    return _op.trilu(node[0], _op.reshape(k, ()), bool(node.attr("upper", 1)))


def _cumulative(scan: Callable[..., RelayExpr]) -> Callable[..., RelayExpr]:
    def convert(
        x: RelayExpr,
        _: RelayExpr,
        exclusive: bool = False,
        reverse: bool = False,
        *,
        node: OnnxNode,
    ) -> RelayExpr:
        def along(axis: int) -> RelayExpr:
            if reverse:
                return _op.reverse(scan(_op.reverse(x, axis), axis, exclusive=exclusive), axis)
            return scan(x, axis, exclusive=exclusive)

        axis = node.value_or_expr(1, "axis")
        if not isinstance(axis, RelayExpr):
            return along(int(axis.reshape(-1)[0]))
        # one of all axes is that of the run
        axis, rank = _op.reshape(axis, ()), len(node.shape(0))
        result = along(0)
        for i in range(1, rank):
            is_asked = _op.logical_or(
                _op.equal(axis, scalar_like(i, axis)), _op.equal(axis, scalar_like(i - rank, axis))
            )
            result = _op.where(is_asked, along(i), result)
        return result

    return convert


onnx_ops({"CumSum": _cumulative(_op.cumsum), "CumProd": _cumulative(_op.cumprod)})
