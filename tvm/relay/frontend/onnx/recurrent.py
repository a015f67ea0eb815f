"""ONNX LSTM, GRU and RNN, unrolled over time."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, scalar_like

from .registry import OnnxNode, onnx_op

_ACTIVATIONS: dict[str, Callable[[RelayExpr], RelayExpr]] = {
    "Sigmoid": _op.sigmoid,
    "Tanh": _op.tanh,
    "Relu": _op.nn.relu,
}


@onnx_op("LSTM", "GRU", "RNN")
def _recurrent(node: OnnxNode) -> list[RelayExpr]:
    """Outputs ``Y`` (steps, directions, batch, hidden) and the last states."""
    if node.attr("layout", 0) or node.has(4) or node.has(7) or node.attr("clip"):
        raise node.unsupported("layout 1, sequence lengths, peepholes or clipping")
    _, batch, _ = node.shape(0)
    direction = node.attr("direction", "forward")
    passes = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    run = {"LSTM": _run_lstm, "GRU": _run_gru, "RNN": _run_rnn}[node.op_type]
    sequences, states = [], []
    for index, backwards in enumerate(passes):
        outputs, state = run(node, index, backwards, batch)
        sequences.append(_op.stack(outputs[::-1] if backwards else outputs, 0))
        states.append(state)
    result = [_op.stack(sequences, 1)]
    result += [_op.stack(list(kind), 0) for kind in zip(*states, strict=True)]
    return result[: max(node.output_count, 1)]


def _weights(
    node: OnnxNode, index: int, gates: int
) -> tuple[RelayExpr, RelayExpr, RelayExpr, RelayExpr]:
    """W, R, and the biases Wb, Rb of one direction."""
    hidden = node.attr("hidden_size")
    number = constant(index, "int64")
    w, r = _op.take(node[1], number, 0), _op.take(node[2], number, 0)
    if not node.has(3):
        zero = _op.full(scalar_like(0.0, node[1]), (gates * hidden,), node.dtype(1))
        return w, r, zero, zero
    wb, rb = _op.split(_op.take(node[3], number, 0), 2, 0)
    return w, r, wb, rb


def _projected(
    node: OnnxNode, weight: RelayExpr, bias: RelayExpr, backwards: bool
) -> list[RelayExpr]:
    """The inputs' part of the gates, in the order of the steps: one product for all of them."""
    steps, batch, size = node.shape(0)
    rows = _op.reshape(node[0], (steps * batch, size))
    gates = _op.reshape(_op.nn.dense(rows, weight) + bias, (steps, batch, -1))
    found = [_op.squeeze(x, [0]) for x in _op.split(gates, steps, 0)]
    return found[::-1] if backwards else found


def _initial(node: OnnxNode, input_index: int, index: int, batch: int) -> RelayExpr:
    if node.has(input_index):
        return _op.take(node[input_index], constant(index, "int64"), 0)
    return _op.full(scalar_like(0.0, node[0]), (batch, node.attr("hidden_size")), node.dtype(0))


def _functions(
    node: OnnxNode, index: int, defaults: list[str]
) -> list[Callable[[RelayExpr], RelayExpr]]:
    names = node.attr("activations") or defaults * 2
    chosen = names[index * len(defaults) : (index + 1) * len(defaults)]
    if unknown := [name for name in chosen if name not in _ACTIVATIONS]:
        raise node.unsupported(f"activations {unknown}")
    return [_ACTIVATIONS[name] for name in chosen]


def _run_lstm(
    node: OnnxNode, index: int, backwards: bool, batch: int
) -> tuple[list[RelayExpr], list[RelayExpr]]:
    w, r, wb, rb = _weights(node, index, 4)
    h, c = _initial(node, 5, index, batch), _initial(node, 6, index, batch)
    f, g, k = _functions(node, index, ["Sigmoid", "Tanh", "Tanh"])
    outputs = []
    for x in _projected(node, w, wb + rb, backwards):
        gates = x + _op.nn.dense(h, r)
        i, o, forget, cell = _op.split(gates, 4, 1)
        c = f(forget) * c + f(i) * g(cell)
        h = f(o) * k(c)
        outputs.append(h)
    return outputs, [h, c]


def _run_gru(
    node: OnnxNode, index: int, backwards: bool, batch: int
) -> tuple[list[RelayExpr], list[RelayExpr]]:
    w, r, wb, rb = _weights(node, index, 3)
    h = _initial(node, 5, index, batch)
    f, g = _functions(node, index, ["Sigmoid", "Tanh"])
    one = scalar_like(1.0, node[0])
    rz, rr, rh = _op.split(r, 3, 0)
    rbz, rbr, rbh = _op.split(rb, 3, 0)
    outputs = []
    for x in _projected(node, w, wb, backwards):
        xz, xr, xh = _op.split(x, 3, 1)
        z = f(xz + _op.nn.dense(h, rz) + rbz)
        reset = f(xr + _op.nn.dense(h, rr) + rbr)
        if node.attr("linear_before_reset", 0):
            candidate = g(xh + reset * (_op.nn.dense(h, rh) + rbh))
        else:
            candidate = g(xh + _op.nn.dense(reset * h, rh) + rbh)
        h = (one - z) * candidate + z * h
        outputs.append(h)
    return outputs, [h]


def _run_rnn(
    node: OnnxNode, index: int, backwards: bool, batch: int
) -> tuple[list[RelayExpr], list[RelayExpr]]:
    w, r, wb, rb = _weights(node, index, 1)
    h = _initial(node, 5, index, batch)
    (f,) = _functions(node, index, ["Tanh"])
    outputs = []
    for x in _projected(node, w, wb + rb, backwards):
        h = f(x + _op.nn.dense(h, r))
        outputs.append(h)
    return outputs, [h]
