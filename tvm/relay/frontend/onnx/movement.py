"""ONNX operators that move, cut, join and index data."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_shape, scalar_like

from .registry import OnnxNode, onnx_op


@onnx_op("Shape")
def _shape(node: OnnxNode) -> RelayExpr:
    shape = node.shape(0)
    start, end = node.attr("start", 0), node.attr("end")
    part = shape[slice(start, end)]
    if all(isinstance(dim, int) for dim in part):
        return constant(np.array(part, "int64"))
    whole = _op.shape_of(node[0], "int64")
    return whole if len(part) == len(shape) else _op.strided_slice(
        whole, [start], [len(shape) if end is None else end], [1]
    )  # fmt: skip


@onnx_op("Size")
def _size(node: OnnxNode) -> RelayExpr:
    return constant(np.array(np.prod(node.shape(0)), "int64"))


@onnx_op("Reshape")
def _reshape(node: OnnxNode) -> RelayExpr:
    wanted = node.ints("shape", 1)
    if node.attr("allowzero", 0) and 0 in wanted:
        return _op.full(scalar_like(0, node[0]), wanted, node.dtype(0))
    return _op.reshape(node[0], wanted)


@onnx_op("Flatten")
def _flatten(node: OnnxNode) -> RelayExpr:
    shape, axis = node.shape(0), node.attr("axis", 1)
    if axis == 1:
        return _op.nn.batch_flatten(node[0])
    axis += len(shape) if axis < 0 else 0
    rows = int(np.prod(shape[:axis]))
    return _op.reshape(node[0], (rows, int(np.prod(shape[axis:]))))


@onnx_op("Transpose")
def _transpose(node: OnnxNode) -> RelayExpr:
    return _op.transpose(node[0], node.attr("perm"))


@onnx_op("Squeeze")
def _squeeze(node: OnnxNode) -> RelayExpr:
    return _op.squeeze(node[0], node.ints("axes", 1))


@onnx_op("Unsqueeze")
def _unsqueeze(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(0)) + len(node.ints("axes", 1))
    result = node[0]
    for axis in sorted(axis % rank for axis in node.ints("axes", 1)):
        result = _op.expand_dims(result, axis)
    return result


@onnx_op("Concat")
def _concat(node: OnnxNode) -> RelayExpr:
    return _op.concatenate(node.given(), node.attr("axis", 1))


@onnx_op("Split")
def _split(node: OnnxNode) -> Any:
    axis = node.attr("axis", 0)
    sizes = node.ints("split", 1)
    extent = node.shape(0)[axis]
    if sizes is None:
        count = node.attr("num_outputs", node.output_count)
        size = -(-extent // count)
        sizes = [min(size, extent - i * size) for i in range(count)]
    if len(sizes) == 1:
        return [node[0]]
    return _op.split(node[0], tuple(np.cumsum(sizes[:-1]).tolist()), axis)


@onnx_op("Slice")
def _slice(node: OnnxNode) -> RelayExpr:
    shape = node.shape(0)
    starts, ends = node.ints("starts", 1), node.ints("ends", 2)
    axes = node.ints("axes", 3, list(range(len(starts))))
    steps = node.ints("steps", 4, [1] * len(starts))
    begin, end, stride = [0] * len(shape), list(shape), [1] * len(shape)
    for start, stop, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = shape[axis]
        if not isinstance(extent, int):
            raise node.unsupported("a slice of a dimension known only at run time")
        begin[axis], end[axis], stride[axis] = *slice(start, stop, step).indices(extent)[:2], step
    reverse = [axis for axis, step in enumerate(stride) if step < 0]
    if not reverse:
        return _op.strided_slice(node[0], begin, end, stride)
    return _sliced_backwards(node[0], shape, begin, end, stride)


def _sliced_backwards(
    x: RelayExpr, shape: tuple[Any, ...], begin: list[int], end: list[int], stride: list[int]
) -> RelayExpr:
    """Negative steps pick elements one by one."""
    for axis in range(len(shape)):
        picked = np.arange(begin[axis], end[axis], stride[axis], dtype="int64")
        if len(picked) != shape[axis] or stride[axis] < 0:
            x = _op.take(x, constant(picked), axis)
    return x


@onnx_op("Gather")
def _gather(node: OnnxNode) -> RelayExpr:
    axis = node.attr("axis", 0)
    extent = node.shape(0)[axis]
    return _op.take(node[0], _from_front(node[1], extent), axis)


def _from_front(indices: RelayExpr, extent: Any) -> RelayExpr:
    """Negative indices count from the end."""
    if isinstance(indices, Constant):
        values = indices.data.numpy()
        return constant(np.where(values < 0, values + extent, values).astype(values.dtype))
    shift = scalar_like(extent, indices)
    return _op.where(_op.less(indices, scalar_like(0, indices)), indices + shift, indices)


@onnx_op("GatherElements")
def _gather_elements(node: OnnxNode) -> RelayExpr:
    axis = node.attr("axis", 0)
    return _op.gather(node[0], axis, _from_front(node[1], node.shape(0)[axis]))


@onnx_op("GatherND")
def _gather_nd(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(1))
    indices = _op.transpose(node[1], (rank - 1, *range(rank - 1)))
    return _op.gather_nd(node[0], indices, node.attr("batch_dims", 0))


_SCATTERS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@onnx_op("ScatterElements", "Scatter")
def _scatter_elements(node: OnnxNode) -> RelayExpr:
    axis = node.attr("axis", 0)
    indices = _from_front(node[1], node.shape(0)[axis])
    axis %= len(node.shape(0))
    reduction = _SCATTERS[node.attr("reduction", "none")]
    return _op.scatter_elements(node[0], indices, node[2], axis, reduction)


@onnx_op("ScatterND")
def _scatter_nd(node: OnnxNode) -> RelayExpr:
    shape, rank = node.shape(0), len(node.shape(1))
    extents = constant(np.array(shape[: node.shape(1)[-1]]), node.dtype(1))
    negative = _op.less(node[1], scalar_like(0, node[1]))
    indices = _op.where(negative, node[1] + extents, node[1])
    moved = _op.transpose(indices, (rank - 1, *range(rank - 1)))
    return _op.scatter_nd(node[0], moved, node[2], _SCATTERS[node.attr("reduction", "none")])


@onnx_op("Expand")
def _expand(node: OnnxNode) -> RelayExpr:
    wanted = [int(dim) for dim in node.require_value(1, "shape")]
    return _op.broadcast_to(node[0], np.broadcast_shapes(node.shape(0), wanted))


@onnx_op("Tile")
def _tile(node: OnnxNode) -> RelayExpr:
    return _op.tile(node[0], node.ints("repeats", 1))


@onnx_op("Pad")
def _pad(node: OnnxNode) -> RelayExpr:
    rank = len(node.shape(0))
    pads = node.ints("pads", 1)
    axes = node.ints("axes", 3, list(range(rank)))
    begins, ends = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(axes)]
    fill: Any = float(node.attr("value", 0.0))
    if node.has(2):
        fill = node[2] if node.shape(2) == () else _op.reshape(node[2], ())
    x = node[0]
    if any(pad < 0 for pad in (*begins, *ends)):
        cut = [max(0, -pad) for pad in begins]
        stop = [dim - max(0, -pad) for dim, pad in zip(node.shape(0), ends, strict=True)]
        x = _op.strided_slice(x, cut, stop, [1] * rank)
    width = [(max(0, b), max(0, e)) for b, e in zip(begins, ends, strict=True)]
    mode = node.attr("mode", "constant")
    if mode == "wrap":
        return _wrapped(x, width)
    if mode not in ("constant", "edge", "reflect"):
        raise node.unsupported(f"mode {mode!r}")
    return _op.nn.pad(x, width, fill, mode)


def _wrapped(x: RelayExpr, width: list[tuple[int, int]]) -> RelayExpr:
    """Each axis goes on with its other end."""
    for axis, (before, after) in enumerate(width):
        if before or after:
            extent = infer_shape(x)[axis]
            places = np.arange(-before, extent + after) % extent
            x = _op.take(x, constant(places, "int64"), axis)
    return x


@onnx_op("DepthToSpace")
def _depth_to_space(node: OnnxNode) -> RelayExpr:
    n, c, h, w = node.shape(0)
    block = node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        split = _op.reshape(node[0], (n, block, block, c // block**2, h, w))
        moved = _op.transpose(split, (0, 3, 4, 1, 5, 2))
    else:
        split = _op.reshape(node[0], (n, c // block**2, block, block, h, w))
        moved = _op.transpose(split, (0, 1, 4, 2, 5, 3))
    return _op.reshape(moved, (n, c // block**2, h * block, w * block))


@onnx_op("SpaceToDepth")
def _space_to_depth(node: OnnxNode) -> RelayExpr:
    n, c, h, w = node.shape(0)
    block = node.attr("blocksize")
    split = _op.reshape(node[0], (n, c, h // block, block, w // block, block))
    by_blocks = node.attr("mode", "DCR") == "DCR"
    moved = _op.transpose(split, (0, 3, 5, 1, 2, 4) if by_blocks else (0, 1, 3, 5, 2, 4))
    return _op.reshape(moved, (n, c * block**2, h // block, w // block))


@onnx_op("OneHot")
def _one_hot(node: OnnxNode) -> RelayExpr:
    depth = int(node.require_value(1, "depth").reshape(-1)[0])
    off, on = _op.split(node[2], 2, 0)
    scalar_off, scalar_on = _op.squeeze(off, [0]), _op.squeeze(on, [0])
    indices = _from_front(node[0], depth)
    axis = node.attr("axis", -1) % (len(node.shape(0)) + 1)
    return _op.one_hot(indices, scalar_on, scalar_off, depth, axis, node.dtype(2))


@onnx_op("Trilu")
def _trilu(node: OnnxNode) -> RelayExpr:
    k = int(node.require_value(1, "k").reshape(-1)[0]) if node.has(1) else 0
    rows, columns = infer_shape(node[0])[-2:]
    keep = np.triu if node.attr("upper", 1) else np.tril
    mask = constant(keep(np.ones((rows, columns), bool), k))
    return _op.where(mask, node[0], _op.zeros_like(node[0]))


@onnx_op("CumSum", "CumProd")
def _cumulative(node: OnnxNode) -> RelayExpr:
    scan = _op.cumsum if node.op_type == "CumSum" else _op.cumprod
    axis = int(node.require_value(1, "axis").reshape(-1)[0])
    exclusive = bool(node.attr("exclusive", 0))
    if node.attr("reverse", 0):
        return _op.reverse(scan(_op.reverse(node[0], axis), axis, exclusive=exclusive), axis)
    return scan(node[0], axis, exclusive=exclusive)
