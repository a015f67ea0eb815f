"""Recurrent cells: the step of each, and cells unrolled over a sequence for importers of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import const

Activation = Callable[[RelayExpr], RelayExpr]
Steps = Sequence[RelayExpr]


def lstm_step(
    gates: Sequence[RelayExpr],
    cell: RelayExpr,
    functions: Sequence[Activation] = (_op.sigmoid, _op.tanh, _op.tanh),
    peepholes: Sequence[RelayExpr | None] = (None, None, None),
    bounded: Activation = lambda x: x,
    is_coupled: bool = False,
) -> tuple[RelayExpr, RelayExpr]:
    """The hidden and the cell state behind a step of long short-term memory.

    Parameters
    ----------
    gates : input, forget, cell and output gate, before their activations.
    functions : activations of gates, of the new cell, and of the cell state.
    peepholes : weights by which the gates input, forget and output see the cell.
    bounded : what is done to gates before their activations.
    is_coupled : whether the forget gate is one less the input gate.
    """
    activate, activate_new, activate_cell = functions

    def opened(gate: RelayExpr, seen: RelayExpr, peephole: RelayExpr | None) -> RelayExpr:
        return activate(bounded(gate if peephole is None else gate + peephole * seen))

    i, f, g, o = gates
    taken = opened(i, cell, peepholes[0])
    kept = _one_less(taken) if is_coupled else opened(f, cell, peepholes[1])
    cell = kept * cell + taken * activate_new(bounded(g))
    return opened(o, cell, peepholes[2]) * activate_cell(cell), cell


def gru_state(update: RelayExpr, new: RelayExpr, hidden: RelayExpr) -> RelayExpr:
    """The hidden state of a gated recurrent unit: as much of the old one as the update gate says."""
    return _one_less(update) * new + update * hidden


def _one_less(x: RelayExpr) -> RelayExpr:
    ty = infer_type_of(x)
    assert isinstance(ty, TensorType)
    return const(1.0, str(ty.dtype)) - x


def _gates(x: RelayExpr, weight: RelayExpr, bias: RelayExpr | None) -> RelayExpr:
    found = _op.nn.dense(x, weight)
    return found if bias is None else found + bias


def _in_order(input_seqs: Steps, backwards: bool) -> Steps:
    return list(reversed(input_seqs)) if backwards else input_seqs


def rnn_cell(
    input_seqs: Steps,
    hidden_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    backwards: bool = False,
    act: Activation = _op.tanh,
) -> tuple[list[RelayExpr], RelayExpr]:
    """The hidden states of a plain recurrent layer, in the order computed, and the last one.

    Parameters
    ----------
    input_seqs : the steps, each (batch, features).
    hidden_state : (batch, hidden).
    w_inp, w_hid, b_inp, b_hid : weights (hidden, features) and (hidden, hidden), and biases.
    backwards : whether the last step comes first.
    act : the activation.
    """
    outputs = []
    for x in _in_order(input_seqs, backwards):
        hidden_state = act(_gates(x, w_inp, b_inp) + _gates(hidden_state, w_hid, b_hid))
        outputs.append(hidden_state)
    return outputs, hidden_state


def gru_cell(
    input_seqs: Steps,
    hidden_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    rz_act: Activation = _op.sigmoid,
    n_act: Activation = _op.tanh,
    backwards: bool = False,
    linear_before_reset: bool = True,
    sequence_lens: RelayExpr | None = None,
) -> tuple[list[RelayExpr], RelayExpr]:
    """The same for gated recurrent units: the gates are reset, update and new, in that order.

    Parameters
    ----------
    rz_act, n_act : activations of the first two gates, and of the new state.
    linear_before_reset : whether the reset gate is applied behind the weights, not before.
    sequence_lens : how many steps of each row of the batch count; rows that ended keep their state.
    """
    outputs = []
    count = len(input_seqs)
    for step, x in enumerate(_in_order(input_seqs, backwards)):
        xr, xz, xn = _op.split(_gates(x, w_inp, b_inp), 3, -1)
        if linear_before_reset:
            hr, hz, hn = _op.split(_gates(hidden_state, w_hid, b_hid), 3, -1)
            new = n_act(xn + rz_act(xr + hr) * hn)
        else:
            wr, wz, wn = _op.split(w_hid, 3, 0)
            br, bz, bn = (None, None, None) if b_hid is None else _op.split(b_hid, 3, -1)
            hr, hz = _gates(hidden_state, wr, br), _gates(hidden_state, wz, bz)
            new = n_act(xn + _gates(rz_act(xr + hr) * hidden_state, wn, bn))
        following = (hidden_state - new) * rz_act(xz + hz) + new
        if sequence_lens is not None:
            position = const(count - 1 - step if backwards else step, "int32")
            counts = _op.expand_dims(_op.less(position, _op.cast(sequence_lens, "int32")), 1)
            following = _op.where(counts, following, hidden_state)
        hidden_state = following
        outputs.append(hidden_state)
    return outputs, hidden_state


def lstm_cell(
    input_seqs: Steps,
    hidden_state: RelayExpr,
    cell_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    proj: RelayExpr | None = None,
    p_i: RelayExpr | None = None,
    p_f: RelayExpr | None = None,
    p_o: RelayExpr | None = None,
    f_act: Activation = _op.sigmoid,
    g_act: Activation = _op.tanh,
    h_act: Activation = _op.tanh,
    backwards: bool = False,
) -> tuple[list[RelayExpr], RelayExpr, RelayExpr]:
    """The same for long short-term memory, with the last cell state: gates input, forget, cell, output.

    Parameters
    ----------
    proj : a projection of the hidden state.
    p_i, p_f, p_o : peepholes of the gates.
    f_act, g_act, h_act : activations of gates, of the new cell, and of the cell state.
    """
    outputs = []
    for x in _in_order(input_seqs, backwards):
        gates = _gates(x, w_inp, b_inp) + _gates(hidden_state, w_hid, b_hid)
        i, f, g, o = _op.split(gates, 4, -1)
        functions, peepholes = (f_act, g_act, h_act), (p_i, p_f, p_o)
        hidden_state, cell_state = lstm_step((i, f, g, o), cell_state, functions, peepholes)
        if proj is not None:
            hidden_state = _op.nn.dense(hidden_state, proj)
        outputs.append(hidden_state)
    return outputs, hidden_state, cell_state
