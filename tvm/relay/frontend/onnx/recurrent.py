"""ONNX LSTM, GRU and RNN: unrolled over time, or a loop over a dynamic sequence length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend import composites
from tvm.relay.frontend.cells import gru_state, lstm_step
from tvm.relay.frontend.collecting_loops import recurrence
from tvm.relay.frontend.common import constant, infer_shape, scalar_like
from tvm.relay.frontend.dynamic_extents import extent, reshaped, with_static_extents

from .quantized import dynamically_quantized, integer_dense
from .registry import OnnxNode, onnx_op

Activation = Callable[[RelayExpr], RelayExpr]
Project = tuple[RelayExpr, RelayExpr]
Step = Callable[[RelayExpr, list[RelayExpr]], list[RelayExpr]]
Cell = tuple[Project, Step, list[RelayExpr]]


# the functions by name, with their own parameters
_ACTIVATIONS: dict[str, tuple[Callable[..., RelayExpr], Sequence[float]]] = {
    "Sigmoid": (_op.sigmoid, ()),
    "Tanh": (_op.tanh, ()),
    "Relu": (_op.nn.relu, ()),
    "Affine": (composites.affine, (1.0, 0.0)),
    "LeakyRelu": (_op.nn.leaky_relu, (0.01,)),
    "ThresholdedRelu": (composites.threshold, (1.0,)),
    "ScaledTanh": (composites.scaled_tanh, (1.0, 1.0)),
    "HardSigmoid": (composites.hard_sigmoid, (0.2, 0.5)),
    "Elu": (composites.elu, (1.0,)),
    "Softsign": (composites.softsign, ()),
    "Softplus": (composites.softplus, ()),
}


@onnx_op("LSTM", "GRU", "RNN", "com.microsoft.DynamicQuantizeLSTM")
def _recurrent(node: OnnxNode) -> list[RelayExpr]:
    """Outputs ``Y`` (steps, directions, batch, hidden) and the last states."""
    if node.attr("layout", 0):
        return _batch_first(node)
    batch = node.shape(0)[1]
    direction = node.attr("direction", "forward")
    passes = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    cells = {"GRU": _gru_cell, "RNN": _rnn_cell}
    cell = cells.get(node.op_type, _lstm_cell)
    sequences, states = [], []
    for index, backwards in enumerate(passes):
        projection, step, initial = cell(node, index, batch)
        gates = _projected(node, index, *projection)
        outputs, state = recurrence(gates, initial, partial(_advanced, node, step), backwards)
        sequences.append(outputs)
        states.append([_of_begun(node, value) for value in state])
    result = [_op.stack(sequences, 1)]
    result += [_op.stack(list(kind), 0) for kind in zip(*states, strict=True)]
    return result[: max(node.output_count, 1)]


def _advanced(
    node: OnnxNode, step: Step, time: RelayExpr, x: RelayExpr, state: list[RelayExpr]
) -> tuple[RelayExpr, list[RelayExpr]]:
    """The output of a step, and the state behind it: those that have ended keep theirs."""
    new = step(x, state)
    if not node.has(4):
        return new[0], new
    runs = _is_running(node, time, new[0])
    output = _op.where(runs, new[0], _op.zeros_like(new[0]))
    return output, [_op.where(runs, n, old) for n, old in zip(new, state, strict=True)]


def _batch_first(node: OnnxNode) -> list[RelayExpr]:
    """Layout 1: the batch is the first axis of all."""
    inputs = list(node.inputs)
    for i in (0, 5, 6):
        if node.has(i):
            inputs[i] = _op.transpose(inputs[i], (1, 0, 2))
    attrs = {**node.attrs, "layout": 0}
    results = _recurrent(replace(node, inputs=inputs, attrs=attrs))
    first = _op.transpose(results[0], (2, 0, 1, 3))
    return [first, *[_op.transpose(state, (1, 0, 2)) for state in results[1:]]]


def _is_running(node: OnnxNode, time: RelayExpr, like: RelayExpr) -> RelayExpr:
    """Which sequences of the batch have a step ``time``."""
    mask = _op.greater(node[4], _op.cast(time, node.dtype(4)))
    return _op.broadcast_to_like(_op.expand_dims(mask, 1), like)


def _of_begun(node: OnnxNode, state: RelayExpr) -> RelayExpr:
    """The last state: zeros for sequences of no steps, as in ONNX Runtime."""
    if not node.has(4) or not (node.has(5) or node.has(6)):
        return state
    begun = _is_running(node, constant(0, "int64"), state)
    return _op.where(begun, state, _op.zeros_like(state))


def _clipped(node: OnnxNode, x: RelayExpr) -> RelayExpr:
    """What goes into activations, kept within bounds if the node says so."""
    bound = node.attr("clip")
    return _op.clip(x, -bound, bound) if bound else x


def _weights(
    node: OnnxNode, index: int, gates: int
) -> tuple[RelayExpr, RelayExpr, RelayExpr, RelayExpr]:
    """W, R, and the biases Wb, Rb of one direction."""
    hidden = node.attr("hidden_size")
    number = constant(index, "int64")
    w, r = _op.take(node[1], number, 0), _op.take(node[2], number, 0)
    if node.op_type == "DynamicQuantizeLSTM":
        w, r = _op.transpose(w, (1, 0)), _op.transpose(r, (1, 0))
    if not node.has(3):
        zero = _op.full(scalar_like(0.0, node[0]), (gates * hidden,), node.dtype(0))
        return w, r, zero, zero
    wb, rb = _op.split(_op.take(node[3], number, 0), 2, 0)
    return w, r, wb, rb


def _product(node: OnnxNode, x: RelayExpr, weight: RelayExpr, index: int, at: int) -> RelayExpr:
    """The product with a weight; integers have scale and zero point of a direction at an input."""
    if node.op_type != "DynamicQuantizeLSTM":
        return _op.nn.dense(x, weight)
    number = constant(index, "int64")
    scale, point = [_op.take(node[i], number, 0) for i in (at, at + 1)]
    data, step, zero = dynamically_quantized(x)
    leading = [extent(x, axis) for axis in range(len(infer_shape(x)) - 1)]
    rows = _op.reshape(data, (-1, infer_shape(x)[-1]))
    total = integer_dense(rows, weight, _op.cast(zero, "int32"), _op.cast(point, "int32"))
    scaled = _op.cast(total, "float32") * (step * scale)
    return reshaped(scaled, [*leading, infer_shape(weight)[0]])


def _projected(node: OnnxNode, index: int, weight: RelayExpr, bias: RelayExpr) -> RelayExpr:
    """The inputs' part of the gates: one product for all steps."""
    steps = node.shape(0)[0]
    if not isinstance(steps, int):
        return _product(node, node[0], weight, index, 8) + bias
    product = _product(node, _op.reshape(node[0], (-3, 0)), weight, index, 8) + bias
    return _op.reshape(product, (steps, -1, infer_shape(product)[1]))


def _initial(node: OnnxNode, input_index: int, index: int, batch: Any) -> RelayExpr:
    if node.has(input_index):
        return _op.take(node[input_index], constant(index, "int64"), 0)
    size, zero = node.attr("hidden_size"), scalar_like(0.0, node[0])
    if isinstance(batch, int):
        return _op.full(zero, (batch, size), node.dtype(0))
    count = _op.strided_slice(_op.shape_of(node[0], "int64"), [1], [2])
    shape = _op.concatenate([count, constant([size], "int64")], 0)
    return with_static_extents(_op.full(zero, shape, node.dtype(0)), [None, size])


def _functions(node: OnnxNode, index: int, defaults: list[str]) -> list[Activation]:
    """The activations of a direction.

    Each takes the next alpha and the next beta, if it has one: a Tanh between two HardSigmoids takes none.
    """
    names = list(node.attr("activations") or defaults * 2)
    given = [iter(node.attr(f"activation_{name}", [])) for name in ("alpha", "beta")]
    found = []
    for name in names[: (index + 1) * len(defaults)]:
        if name not in _ACTIVATIONS:
            raise node.unsupported(f"the activation {name!r}")
        function, own = _ACTIVATIONS[name]
        parameters = [next(values, default) for values, default in zip(given, own, strict=False)]
        found.append(_applied(function, parameters))
    return found[index * len(defaults) :]


def _applied(function: Callable[..., RelayExpr], parameters: Sequence[float]) -> Activation:
    return lambda x: function(x, *parameters)


def _lstm_cell(node: OnnxNode, index: int, batch: Any) -> Cell:
    w, r, wb, rb = _weights(node, index, 4)
    functions = _functions(node, index, ["Sigmoid", "Tanh", "Tanh"])
    peepholes: list[RelayExpr | None] = [None] * 3
    if node.has(7):
        i, o, f = _op.split(_op.take(node[7], constant(index, "int64"), 0), 3, 0)
        peepholes = [i, f, o]

    def step(x: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
        h, c = state
        i, o, f, g = _op.split(x + _product(node, h, r, index, 10), 4, 1)
        is_coupled = bool(node.attr("input_forget", 0))
        bounded = partial(_clipped, node)
        return list(lstm_step((i, f, g, o), c, functions, peepholes, bounded, is_coupled))

    state = [_initial(node, 5, index, batch), _initial(node, 6, index, batch)]
    return (w, wb + rb), step, state


def _gru_cell(node: OnnxNode, index: int, batch: Any) -> Cell:
    w, r, wb, rb = _weights(node, index, 3)
    f, g = _functions(node, index, ["Sigmoid", "Tanh"])
    rz, rr, rh = _op.split(r, 3, 0)
    rbz, rbr, rbh = _op.split(rb, 3, 0)

    def step(x: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
        h = state[0]
        xz, xr, xh = _op.split(x, 3, 1)
        z = f(_clipped(node, xz + _op.nn.dense(h, rz) + rbz))
        reset = f(_clipped(node, xr + _op.nn.dense(h, rr) + rbr))
        if node.attr("linear_before_reset", 0):
            candidate = xh + reset * (_op.nn.dense(h, rh) + rbh)
        else:
            candidate = xh + _op.nn.dense(reset * h, rh) + rbh
        return [gru_state(z, g(_clipped(node, candidate)), h)]

    return (w, wb), step, [_initial(node, 5, index, batch)]


def _rnn_cell(node: OnnxNode, index: int, batch: Any) -> Cell:
    w, r, wb, rb = _weights(node, index, 1)
    (f,) = _functions(node, index, ["Tanh"])

    def step(x: RelayExpr, state: list[RelayExpr]) -> list[RelayExpr]:
        return [f(_clipped(node, x + _op.nn.dense(state[0], r)))]

    return (w, wb + rb), step, [_initial(node, 5, index, batch)]
