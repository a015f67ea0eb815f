"""ONNX control flow: branches, loops, scans. Loops whose trip count is known are unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import If, Tuple, TupleGetItem, Var
from tvm.relay.frontend.collecting_loops import Trip, collecting_loop, no_rows_of, scan
from tvm.relay.frontend.common import constant, infer_shape, infer_value
from tvm.relay.frontend.indexing import move_axis

from .registry import OnnxNode, Value, ValueRequired, onnx_op

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
    """Unrolled if each trip is known to happen, else a relay loop."""
    try:
        return _unrolled(node)
    except ValueRequired:
        if not node.allow_dynamic or not all(isinstance(v, RelayExpr) for v in node.inputs[2:]):
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
        return [*carried, *[no_rows_of(value) for value in types]]
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


def _looped(node: OnnxNode) -> list[Value]:
    """A loop that asks in each trip whether there is a next one."""
    names = [value.name for value in node.attr("body").input]

    def body(trip: Var, goes_on: Var, states: Sequence[Var]) -> Trip:
        values = [trip, goes_on, *states]
        results = node.import_graph(node.attr("body"), dict(zip(names, values, strict=True)))
        return _scalar(results[0]), results[1 : 1 + len(states)], results[1 + len(states) :]

    goes_on = _scalar(node[1]) if node.has(1) else constant(True, "bool")
    return collecting_loop(
        body, lambda *trip: _goes_on(node, *trip), goes_on, node.inputs[2:], backwards=()
    )


def _goes_on(node: OnnxNode, trip: RelayExpr, goes_on: RelayExpr) -> RelayExpr:
    if not node.has(0):
        return goes_on
    return _op.logical_and(goes_on, _op.less(trip, _scalar(node[0])))


def _scalar(value: RelayExpr) -> RelayExpr:
    return _op.reshape(value, ()) if infer_shape(value) else value


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
    if not isinstance(count, int):
        raise ValueRequired(f"Scan {node.name} requires a batch known at import", inputs[0])
    runs = [
        _scanned(node, [_op.take(x, constant(i, "int64"), 0) for x in inputs]) for i in range(count)
    ]
    return [_op.stack(list(parts), 0) for parts in zip(*runs, strict=True)]


def _scanned(node: OnnxNode, inputs: Sequence[Any]) -> list[Any]:
    body, count = node.attr("body"), node.attr("num_scan_inputs")
    names = [value.name for value in body.input]
    initial, scanned = list(inputs[: len(inputs) - count]), list(inputs[len(inputs) - count :])
    axes = node.attr("scan_input_axes", [0] * count)
    backwards = node.attr("scan_input_directions", node.attr("directions", [0] * count))
    outputs = len(body.output) - len(initial)
    out_axes = node.attr("scan_output_axes", [0] * outputs)
    reverse = [bool(back) for back in node.attr("scan_output_directions", [0] * outputs)]

    def step(position: Any, mirrored: Any, states: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        parts = [
            _op.take(x, mirrored if back else position, axis)
            for x, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        results = node.import_graph(body, dict(zip(names, [*states, *parts], strict=True)))
        return results[: len(states)], results[len(states) :]

    states, columns = scan(step, scanned[0], axes[0], initial, reverse)
    moved = [move_axis(rows, 0, axis) for rows, axis in zip(columns, out_axes, strict=True)]
    return [*states, *moved]
