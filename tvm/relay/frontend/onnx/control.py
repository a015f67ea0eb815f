"""ONNX control flow: branches, loops, scans. Loops whose trip count is known are unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay import op as _op
from tvm.relay.expr import Call, If, Tuple, TupleGetItem, Var
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, infer_type, infer_value
from tvm.relay.loops import while_loop
from tvm.relay.ty import Any as AnyDim
from tvm.tir import IntImm

from .registry import Items, OnnxNode, Value, ValueRequired, onnx_op

# an unrolled loop is a program of that many copies of its body
_MOST_TRIPS = 20_000


@onnx_op("If")
def _if(node: OnnxNode) -> list[Value]:
    """A constant condition chooses the branch here; another becomes a relay ``If``."""
    chosen = node.value(0)
    branches = [node.attr("then_branch"), node.attr("else_branch")]
    if chosen is not None:
        return node.import_graph(branches[0 if chosen.reshape(()) else 1], {})
    then, other = [node.import_graph(branch, {}) for branch in branches]
    if not all(isinstance(value, RelayExpr) for value in [*then, *other]):
        node.require_value(0, "the condition of branches that give sequences")
    condition = node[0] if not node.shape(0) else _op.squeeze(node[0])
    if len(then) != len(other):
        raise TVMError(f"If {node.name} requires branches with as many outputs as each other")
    if len(then) == 1:
        return [If(condition, then[0], other[0])]
    result = If(condition, Tuple(then), Tuple(other))
    return [TupleGetItem(result, i) for i in range(len(then))]


@onnx_op("Loop")
def _loop(node: OnnxNode) -> list[Value]:
    """Unrolled if each trip is known to happen, else a relay loop where the run may decide."""
    try:
        return _unrolled(node)
    except ValueRequired:
        if not node.is_late or not all(isinstance(v, RelayExpr) for v in node.inputs[2:]):
            raise
        return _looped(node)


def _unrolled(node: OnnxNode) -> list[Value]:
    body = node.attr("body")
    names = [value.name for value in body.input]
    limit = node.require_scalar(0, "the trip count") if node.has(0) else None
    goes_on = bool(node.require_scalar(1, "the condition")) if node.has(1) else True
    carried = list(node.inputs[2:])
    pieces: list[list[RelayExpr]] = [[] for _ in body.output[1 + len(carried) :]]
    trip = 0
    while goes_on and (limit is None or trip < limit):
        if trip == _MOST_TRIPS:
            raise node.unsupported(f"more than {_MOST_TRIPS} trips")
        results = _run_body(node, names, trip, carried)
        carried = results[1 : 1 + len(carried)]
        for piece, result in zip(pieces, results[1 + len(carried) :], strict=True):
            piece.append(result)
        goes_on = _known_condition(node, results[0])
        trip += 1
    if trip == 0 and pieces:
        types = _run_body(node, names, 0, carried)[1 + len(carried) :]
        return [*carried, *[_nothing_of(value) for value in types]]
    return [*carried, *[_op.stack(piece, 0) for piece in pieces]]


def _run_body(
    node: OnnxNode, names: Sequence[str], trip: int, carried: Sequence[Value]
) -> list[Any]:
    values = [constant(trip, "int64"), constant(True, "bool"), *carried]
    return node.import_graph(node.attr("body"), dict(zip(names, values, strict=True)))


def _known_condition(node: OnnxNode, condition: RelayExpr) -> bool:
    value = infer_value(condition, node.values)
    if value is None:
        raise ValueRequired(
            f"Loop {node.name} requires a condition that is constant in each trip", condition
        )
    return bool(np.asarray(value).reshape(()))


def _nothing_of(value: RelayExpr) -> RelayExpr:
    """No elements along a new first axis."""
    return constant(np.zeros((0, *infer_shape(value)), infer_dtype(value)))


def _looped(node: OnnxNode) -> list[Value]:
    """A loop that asks in each trip whether there is a next one; what it collects grows by rows."""
    states = [Var(f"state{i}", infer_type(value)) for i, value in enumerate(node.inputs[2:])]
    while True:
        trip = Var("trip", TensorType((), "int64")), Var("goes_on", TensorType((), "bool"))
        values = [*trip, *states]
        names = [value.name for value in node.attr("body").input]
        results = node.import_graph(node.attr("body"), dict(zip(names, values, strict=True)))
        wider = [
            Var(state.name_hint, _common_type(infer_type(state), infer_type(result)))
            for state, result in zip(states, results[1 : 1 + len(states)], strict=True)
        ]
        if all(
            len(_open_axes(new)) == len(_open_axes(old))
            for new, old in zip(wider, states, strict=True)
        ):
            break
        states = wider
    pieces = [_collected_type(value) for value in results[1 + len(states) :]]
    collected = [Var(f"collected{i}", ty) for i, ty in enumerate(pieces)]
    grown = [
        _op.concatenate([rows, _op.expand_dims(piece, 0)], 0)
        for rows, piece in zip(collected, results[1 + len(states) :], strict=True)
    ]
    one = constant(1, "int64")
    following = [trip[0] + one, _scalar(results[0]), *results[1 : 1 + len(states)], *grown]
    loop = while_loop(
        lambda *_: _goes_on(node, *trip), [*trip, *states, *collected], lambda *_: following
    )
    goes_on = _scalar(node[1]) if node.has(1) else constant(True, "bool")
    rows = [_nothing_of(piece) for piece in results[1 + len(states) :]]
    last = Call(loop, [constant(0, "int64"), goes_on, *node.inputs[2:], *rows])
    return [TupleGetItem(last, 2 + i) for i in range(len(states) + len(collected))]


def _goes_on(node: OnnxNode, trip: RelayExpr, goes_on: RelayExpr) -> RelayExpr:
    if not node.has(0):
        return goes_on
    return _op.logical_and(goes_on, _op.less(trip, _scalar(node[0])))


def _scalar(value: RelayExpr) -> RelayExpr:
    return _op.reshape(value, ()) if infer_shape(value) else value


def _open_axes(value: RelayExpr) -> list[int]:
    return [i for i, dim in enumerate(infer_shape(value)) if not isinstance(dim, int)]


def _common_type(before: TensorType, after: TensorType) -> TensorType:
    """The type of both: dimensions that differ are open."""
    if len(before.shape) != len(after.shape) or before.dtype != after.dtype:
        raise OpAttributeUnImplemented(
            f"Loop requires values whose rank and element type stay, got {before} and then {after}"
        )
    dims = [
        int(a) if isinstance(a, IntImm) and isinstance(b, IntImm) and int(a) == int(b) else AnyDim()
        for a, b in zip(before.shape, after.shape, strict=True)
    ]
    return TensorType(dims, before.dtype)


def _collected_type(piece: RelayExpr) -> TensorType:
    ty = infer_type(piece)
    return TensorType([AnyDim(), *ty.shape], ty.dtype)


@onnx_op("Scan")
def _scan(node: OnnxNode) -> list[Value]:
    if node.opset < 9:
        return _batched_scan(node)
    return _scanned(node, node.inputs)


def _batched_scan(node: OnnxNode) -> list[Value]:
    """Scans of opset 8 have a batch, and an optional length for each of its items."""
    if node.has(0):
        raise node.unsupported("sequence lengths")
    inputs = [value for value in node.inputs[1:] if value is not None]
    count = infer_shape(inputs[0])[0]
    runs = [
        _scanned(node, [_op.take(x, constant(i, "int64"), 0) for x in inputs]) for i in range(count)
    ]
    return [_op.stack(list(parts), 0) for parts in zip(*runs, strict=True)]


def _scanned(node: OnnxNode, inputs: Sequence[Any]) -> list[Any]:
    body, count = node.attr("body"), node.attr("num_scan_inputs")
    names = [value.name for value in body.input]
    state, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    outputs = len(body.output) - len(state)
    axes = node.attr("scan_input_axes", [0] * count)
    backwards = node.attr("scan_input_directions", node.attr("directions", [0] * count))
    length = infer_shape(scanned[0])[axes[0]]
    if not isinstance(length, int):
        raise ValueRequired(f"Scan {node.name} requires a length known at import", scanned[0])
    pieces: list[list[RelayExpr]] = [[] for _ in range(outputs)]
    for step in range(length):
        parts = [
            _op.take(x, constant(length - 1 - step if back else step, "int64"), axis)
            for x, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        results = node.import_graph(body, dict(zip(names, [*state, *parts], strict=True)))
        state = results[: len(state)]
        for piece, result in zip(pieces, results[len(state) :], strict=True):
            piece.append(result)
    out_axes = node.attr("scan_output_axes", [0] * outputs)
    reverse = node.attr("scan_output_directions", [0] * outputs)
    return [*state, *[
        _op.stack(piece[::-1] if back else piece, axis)
        for piece, axis, back in zip(pieces, out_axes, reverse, strict=True)
    ]]  # fmt: skip


@onnx_op("SequenceMap")
def _sequence_map(node: OnnxNode) -> list[Items]:
    """The body on each element; sequences go in step, tensors are given whole."""
    body = node.attr("body")
    names = [value.name for value in body.input]
    results = []
    for i in range(len(node.items(0))):
        values = [v.fields[i] if isinstance(v, Items) else v for v in node.inputs]
        results.append(node.import_graph(body, dict(zip(names, values, strict=True))))
    return [Items(tuple([row[k] for row in results])) for k in range(len(body.output))]
