"""ONNX sequences and optionals: what they hold is known at import, the tensors are not."""

from __future__ import annotations

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, is_static
from tvm.relay.frontend.dynamic_extents import parts_of_sizes

from .registry import (
    EmptyOptional,
    OnnxNode,
    TensorSequence,
    Value,
    onnx_op,
    onnx_ops,
    static_ints,
)

onnx_ops({
    "SequenceConstruct": lambda node: TensorSequence(tuple(node.given())),
    "SequenceEmpty": lambda: TensorSequence(()),
    "SequenceAt": lambda node: node.sequence(0)[_position(node, 1, len(node.sequence(0)))],
    "ConcatFromSequence": lambda new_axis=False, *, axis, node: (
        _op.stack if new_axis else _op.concatenate
    )(list(node.sequence(0)), axis),
    "SequenceLength": lambda node: constant(np.array(len(node.sequence(0)), "int64")),
    "Optional": lambda node: (
        node.inputs[0] if node.inputs and node.inputs[0] is not None else EmptyOptional()
    ),
})  # fmt: skip


def _position(node: OnnxNode, index: int, length: int) -> int:
    """An index into a sequence; negative ones count from the end."""
    position = int(node.require_scalar(index, "the position"))
    if not -length <= position < length:
        raise OpAttributeInvalid(
            f"{node.op_type} {node.name} requires a position within {length} tensors, got {position}"
        )
    return position % length


@onnx_op("SequenceErase")
def _erase(node: OnnxNode) -> TensorSequence:
    items = node.sequence(0)
    position = _position(node, 1, len(items)) if node.has(1) else len(items) - 1
    return TensorSequence((*items[:position], *items[position + 1 :]))


@onnx_op("SequenceInsert")
def _insert(node: OnnxNode) -> TensorSequence:
    items = node.sequence(0)
    position = len(items)
    if node.has(2):
        given = int(node.require_scalar(2, "the position"))
        position = given if given == len(items) else _position(node, 2, len(items))
    return TensorSequence((*items[:position], node[1], *items[position:]))


@onnx_op("SplitToSequence")
def _split(node: OnnxNode) -> TensorSequence:
    axis, x = node.attr("axis", 0), node[0]
    sizes = node.value_or_expr(1, "split") if node.has(1) else None
    extent = node.shape(0)[axis]
    if isinstance(sizes, RelayExpr) or (
        sizes is not None and sizes.ndim and not is_static([extent])
    ):
        return _split_by_sizes_of_the_run(node)
    if not isinstance(extent, int):
        node.static_shape(0)  # how many parts there are has to be known
    if sizes is None:
        parts = [constant(i, "int64") for i in range(extent)]
        if node.attr("keepdims", 1):
            parts = [_op.expand_dims(i, 0) for i in parts]
        return TensorSequence(tuple([_op.take(x, i, axis) for i in parts]))
    if sizes.ndim == 0:
        size = int(sizes)
        ends = list(range(size, extent, size))
    else:
        ends = np.cumsum(static_ints(sizes))[:-1].tolist()
    return TensorSequence(tuple(_op.split(x, tuple(ends), axis)) if ends else (x,))


def _split_by_sizes_of_the_run(node: OnnxNode) -> TensorSequence:
    """Parts whose number the shape of their sizes tells."""
    if not node.shape(1):
        node.require_value(1, "the size of all parts, which decides how many they are")
    (count,) = node.static_shape(1)
    return TensorSequence(tuple(parts_of_sizes(node[0], node.attr("axis", 0), node[1], count)))


@onnx_op("OptionalGetElement")
def _get_element(node: OnnxNode) -> Value:
    found: Value = node.inputs[0]
    if found is None or isinstance(found, EmptyOptional):
        raise OpAttributeInvalid(f"OptionalGetElement {node.name} requires a value, got none")
    return found


@onnx_op("OptionalHasElement")
def _has_element(node: OnnxNode) -> RelayExpr:
    found = node.inputs[0] if node.inputs else None
    return constant(not (found is None or isinstance(found, EmptyOptional)), "bool")
