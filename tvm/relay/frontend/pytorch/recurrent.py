"""PyTorch LSTM, GRU and RNN, unrolled over time where the number of steps is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.cells import gru_state, lstm_step
from tvm.relay.frontend.collecting_loops import recurrence
from tvm.relay.frontend.common import constant, infer_shape

from .products import linear
from .quantized_layers import dynamic_dense, packed_cell
from .registry import Converter, torch_ops

Weights = list[Any]
State = list[RelayExpr]
Cell = Callable[[RelayExpr, State, Weights], State]


def _projected(x: RelayExpr, weight: Any, bias: Any = None) -> RelayExpr:
    """The product with a weight; packed ones compute it themselves, and hold their bias."""
    if isinstance(weight, RelayExpr):
        return linear(x, weight, bias)
    product: RelayExpr = weight(x)
    return product


def _lstm_cell(projected: RelayExpr, state: State, weights: Weights) -> State:
    """The gates in torch's order: input, forget, cell, output."""
    h, c = state
    gates = projected + _projected(h, weights[1], weights[3])
    i, f, g, o = _op.split(gates, 4, 1)
    h, c = lstm_step((i, f, g, o), c)
    return [h if weights[4] is None else linear(h, weights[4]), c]


def _gru_cell(projected: RelayExpr, state: State, weights: Weights) -> State:
    """The gates in torch's order: reset, update, new."""
    (h,) = state
    xr, xz, xn = _op.split(projected, 3, 1)
    hr, hz, hn = _op.split(_projected(h, weights[1], weights[3]), 3, 1)
    update = _op.sigmoid(xz + hz)
    new = _op.tanh(xn + _op.sigmoid(xr + hr) * hn)
    return [gru_state(update, new, h)]


def _rnn_cell(activation: Callable[[RelayExpr], RelayExpr]) -> Cell:
    def cell(projected: RelayExpr, state: State, weights: Weights) -> State:
        return [activation(projected + _projected(state[0], weights[1], weights[3]))]

    return cell


def _packed_weights(cells: Any) -> list[Any]:
    if not isinstance(cells, list) or any([isinstance(cell, RelayExpr) for cell in cells]):
        raise OpAttributeUnImplemented("recurrent layers require a batch of padded sequences")
    return [part for cell in cells for part in (*packed_cell(cell), None, None)]


def _single_step(cell: Cell) -> Converter:
    """One step of a cell on its own, with packed weights of dynamic quantisation."""

    def convert(x: RelayExpr, state: Any, *packed: Any) -> Any:
        by_input, by_state = [dynamic_dense(p, reduce_range=True) for p in packed[:2]]
        states = state if isinstance(state, list) else [state]
        found = cell(by_input(x), states, [by_input, by_state, None, None, None])
        return found if isinstance(state, list) else found[0]

    return convert


def _layers(
    x: RelayExpr, states: list[RelayExpr], cell: Cell, weights: list[Any], has_biases: bool,
    layers: int, dropout: float = 0.0, train: bool = False, bidirectional: bool = False,
    batch_first: bool = False,
) -> list[RelayExpr]:  # fmt: skip
    """Layers one after the other; the outputs and the last states."""
    if len(infer_shape(x)) != 3 or not isinstance(weights, list):
        raise OpAttributeUnImplemented("recurrent layers require a batch of padded sequences")
    directions = 2 if bidirectional else 1
    per_layer = len(weights) // (layers * directions)
    sequence = _op.transpose(x, (1, 0, 2)) if batch_first else x
    last: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            own = weights[index * per_layer : (index + 1) * per_layer]
            own = _complete(own, has_biases)
            start = [_op.take(s, constant(index, "int64"), 0) for s in states]
            steps, state = _layer(sequence, start, cell, own, backwards=direction == 1)
            outputs.append(steps)
            last.append(state)
        sequence = outputs[0] if directions == 1 else _op.concatenate(outputs, 2)
    result = _op.transpose(sequence, (1, 0, 2)) if batch_first else sequence
    return [result, *[_op.stack(list(kind), 0) for kind in zip(*last, strict=True)]]


def _complete(weights: Weights, has_biases: bool) -> Weights:
    """Input and state weights, their biases, and the projection of an LSTM; absent ones None."""
    plain = weights[:4] if has_biases else [*weights[:2], None, None]
    projections = weights[4 if has_biases else 2 :]
    return [*plain, projections[0] if projections else None]


def _layer(
    sequence: RelayExpr, state: State, cell: Cell, weights: Weights, backwards: bool
) -> tuple[RelayExpr, State]:
    """The inputs of all steps are projected at once, outside the recurrence."""

    def step(_: RelayExpr, x: RelayExpr, states: State) -> tuple[RelayExpr, State]:
        new = cell(x, states, weights)
        return new[0], new

    return recurrence(_projected(sequence, weights[0], weights[2]), state, step, backwards)


torch_ops({
    "lstm": lambda x, states, *args: _layers(x, states, _lstm_cell, *args),
    "gru": lambda x, state, *args: _layers(x, [state], _gru_cell, *args),
    "rnn_tanh": lambda x, state, *args: _layers(x, [state], _rnn_cell(_op.tanh), *args),
    "rnn_relu": lambda x, state, *args: _layers(x, [state], _rnn_cell(_op.nn.relu), *args),
    "quantized_lstm": lambda x, states, cells, has_biases, *args: _layers(
        x, states, _lstm_cell, _packed_weights(cells), True, *args[:5]
    ),
    "quantized_gru": lambda x, state, cells, has_biases, *args: _layers(
        x, [state], _gru_cell, _packed_weights(cells), True, *args
    ),
    "quantized::quantized_lstm_cell_dynamic": _single_step(_lstm_cell),
    "quantized::quantized_gru_cell_dynamic": _single_step(_gru_cell),
    "quantized::quantized_rnn_tanh_cell_dynamic": _single_step(_rnn_cell(_op.tanh)),
    "quantized::quantized_rnn_relu_cell_dynamic": _single_step(_rnn_cell(_op.nn.relu)),
})  # fmt: skip
