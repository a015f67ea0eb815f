"""ONNX operators that sort, search and select; some give as many elements as they find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.dynamic_extents import as_vector, broadcast, extent, positions_along

from .registry import OnnxNode, onnx_op, onnx_ops
from .tensors import tensor_dtype


@onnx_op("TopK")
def _topk(x: RelayExpr, *_: RelayExpr, axis: int = -1, largest: bool = True, node: OnnxNode) -> Any:
    k: Any = node.value_or_expr(1, "k") if node.opset >= 10 else node.attr("k")
    k = _op.reshape(k, ()) if isinstance(k, RelayExpr) else int(np.reshape(k, ()))
    return _op.topk(x, k, axis, "both", not largest, "int64")


onnx_ops({
    "ReverseSequence": lambda x, lengths, time_axis=0, batch_axis=1: _op.reverse_sequence(
        x, lengths, time_axis, batch_axis
    ),
    # a bool is a byte, 0 or 1
    "BitCast": lambda x, *, to: _op.reinterpret(
        x.astype("uint8") if infer_dtype(x) == "bool" else x, tensor_dtype(to)
    ),
})  # fmt: skip


@onnx_op("Compress")
def _compress(node: OnnxNode) -> RelayExpr:
    condition, axis = node.value_or_expr(1, "the condition"), node.attr("axis")
    x = _op.reshape(node[0], (-1,)) if axis is None else node[0]
    if isinstance(condition, RelayExpr):
        return _op.take(x, _op.squeeze(_op.argwhere(condition), [1]), axis or 0)
    chosen = np.flatnonzero(condition)
    return _op.take(x, constant(chosen, "int64"), axis or 0)


@onnx_op("NonZero")
def _non_zero(node: OnnxNode) -> RelayExpr:
    data = node.value_or_expr(0, "the data")
    if isinstance(data, RelayExpr):
        data = data if infer_shape(data) else _op.reshape(data, (1,))
        return _op.cast(_op.transpose(_op.argwhere(data), (1, 0)), "int64")
    return constant(np.array(np.nonzero(np.atleast_1d(data))), "int64")


@onnx_op("Unique")
def _unique(node: OnnxNode) -> list[RelayExpr]:
    """Distinct slices, where each is first, which one each slice is, and how many there are."""
    axis = node.attr("axis")
    if node.allow_dynamic and node.value(0) is None:
        if axis is not None and len(node.shape(0)) > 1:
            return _dynamic_unique_slices(node, axis)
        row = _op.reshape(node[0], (-1,))
        return _dynamic_unique(node, row, row, 0)
    data = node.require_value(0, "the data")
    plain = data.astype("float32") if data.dtype.kind == "V" else data
    found, first, which, counts = np.unique(
        plain, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not node.attr("sorted", 1):
        order = np.argsort(first)
        found = np.take(found, order, axis or 0)
        which = np.argsort(order)[which.reshape(-1)]
        first, counts = first[order], counts[order]
    integers = [constant(part.reshape(-1), "int64") for part in (first, which, counts)]
    return [constant(found.astype(data.dtype)), *integers][: node.output_count]


def _dynamic_unique_slices(node: OnnxNode, axis: int) -> list[RelayExpr]:
    """The distinct slices of run-time data: each is told by how many come before it, element by element."""
    rank = len(node.shape(0))
    axis %= rank
    others = [i for i in range(rank) if i != axis]
    data = _op.cast(node[0], "int8") if node.dtype(0) == "bool" else node[0]
    rows = _op.reshape(_op.transpose(data, (axis, *others)), (0, -1))
    here, there = _op.expand_dims(rows, 1), _op.expand_dims(rows, 0)
    differ = _op.cast(_op.not_equal(here, there), "int8")
    first = _op.argmax(differ, axis=2, keepdims=True)
    before = _op.gather(_op.cast(_op.less(there, here), "int32"), 2, first)
    return _dynamic_unique(node, _op.sum(before, axis=[1, 2]), node[0], axis)


def _dynamic_unique(node: OnnxNode, keys: RelayExpr, data: RelayExpr, axis: int) -> list[RelayExpr]:
    """The slices of run-time data whose keys are distinct; their number is dynamic."""
    found = _op.unique(keys, bool(node.attr("sorted", 1)), True)
    _, first, which, count, counts = [found[i] for i in range(5)]
    begin, step = constant([0], "int64"), constant([1], "int64")
    end = _op.cast(count, "int64")
    first, counts = [_op.strided_slice(part, begin, end, step) for part in (first, counts)]
    integers = [_op.cast(part, "int64") for part in (first, which, counts)]
    return [_op.take(data, first, axis), *integers][: node.output_count]


@onnx_op("com.microsoft.Unique")
def _unique_in_order(node: OnnxNode) -> list[RelayExpr]:
    """Distinct elements in the order of their first positions, which each is, and how many."""
    values, _, *rest = _unique(replace(node, attrs={"sorted": 0}, output_count=4))
    return [values, *rest]


@onnx_op("NonMaxSuppression")
def _non_max_suppression(node: OnnxNode) -> RelayExpr:
    """Rows (batch, class, box), as many as there are."""
    boxes = node[0]
    if node.attr("center_point_box", 0):
        x, y, width, height = _op.split(boxes, 4, 2)
        half = scalar_like(0.5, boxes)
        corners = [y - height * half, x - width * half, y + height * half, x + width * half]
        boxes = _op.concatenate(corners, 2)
    most, overlap, score = [
        _limit(node, i, name) if node.has(i) else default
        for i, name, default in ((2, "the most boxes", 0), (3, "the overlap", 0.0),
                                 (4, "the score", -np.inf))
    ]  # fmt: skip
    rows, count = _op.vision.all_class_non_max_suppression(boxes, node[1], most, overlap, score)
    three = constant(np.array([3]), "int64")
    end = _op.concatenate([_op.reshape(count, (1,)).astype("int64"), three], 0)
    return _op.strided_slice(
        rows, constant(np.zeros(2), "int64"), end, constant(np.ones(2), "int64")
    ).astype("int64")


def _limit(node: OnnxNode, index: int, what: str) -> Any:
    """A number, or a scalar known only at run time."""
    found = node.value_or_expr(index, what)
    if isinstance(found, np.ndarray):
        return found.reshape(-1)[0].item()
    return _op.reshape(_op.cast(found, "int32") if index == 2 else found, ())


@onnx_op("TensorScatter")
def _tensor_scatter(
    x: RelayExpr, update: RelayExpr, indices: RelayExpr | None = None, axis: int = -2,
    mode: str = "linear",
) -> RelayExpr:  # fmt: skip
    """Each batch's update goes to its own position along an axis, as in caches of attention."""
    rank = len(infer_shape(x))
    axis %= rank
    steps = positions_along(update, axis)
    if indices is not None:
        steps = steps + _op.reshape(indices.astype("int64"), (-1, *[1] * (rank - 1)))
    if mode == "circular":
        steps = _op.floor_mod(steps, as_vector(extent(x, axis)))
    positions = broadcast(steps, [extent(update, i) for i in range(rank)])
    return _op.scatter_elements(x, positions, update, axis)
