"""The recurrence of an LSTM over a sequence, as a scan.

i, f, o = sigmoid of (x Wi + h Wh + biases), g = tanh of the same
c' = f * c + i * g
h' = o * tanh(c'), projected if there is a projection
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tvm import te, tir
from tvm.error import RuntimeValueError

from ..utils import dims, require_equal

_ORDERS = "IFGO"


def lstm(
    Xs: te.Tensor,
    Wi: te.Tensor,
    Wh: te.Tensor,
    Bi: te.Tensor | None = None,
    Bh: te.Tensor | None = None,
    h_init: te.Tensor | None = None,
    c_init: te.Tensor | None = None,
    proj: te.Tensor | None = None,
    p_i: te.Tensor | None = None,
    p_f: te.Tensor | None = None,
    p_o: te.Tensor | None = None,
    f_act: Callable[[Any], Any] = tir.sigmoid,
    g_act: Callable[[Any], Any] = tir.tanh,
    h_act: Callable[[Any], Any] = tir.tanh,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> tuple[te.Tensor, te.Tensor]:
    """Hidden states (length, batch, hidden or projected) and cell states of all steps.

    Parameters
    ----------
    Xs : te.Tensor
        (length, batch, inputs)
    Wi, Wh : te.Tensor
        (4 * hidden, inputs) and (4 * hidden, hidden or projected)
    Bi, Bh : te.Tensor, optional
        Biases, (4 * hidden,).
    h_init, c_init : te.Tensor, optional
        States before the first step, zeros by default.
    proj : te.Tensor, optional
        (projected, hidden)
    p_i, p_f, p_o : te.Tensor, optional
        Peepholes from the cell to the gates, (hidden,).
    f_act, g_act, h_act : callable
        The activations of gates, of the candidate and of the cell.
    reverse : bool
        Go through the sequence from its end.
    weight_layout : str
        The order of the gates in the weights, a permutation of "IFGO".
    """
    _check(Xs, Wi, Wh, weight_layout)
    length, batch, _ = dims(Xs.shape)
    hidden, carried, dtype = dims(Wi.shape)[0] // 4, dims(Wh.shape)[1], Xs.dtype
    # step 0 of the states is what was before the first step of the sequence
    h_state = te.placeholder((length + 1, batch, carried), dtype, name="h_state")
    c_state = te.placeholder((length + 1, batch, hidden), dtype, name="c_state")
    gates = _Gates(
        _projected(Xs, Wi, "from_inputs"),
        _from_the_step_before(h_state, Wh),
        [bias for bias in (Bi, Bh) if bias is not None],
        {"I": p_i, "F": p_f, "O": p_o},
        {letter: weight_layout.index(letter) * hidden for letter in _ORDERS},
        reverse,
    )

    def next_cell(t: Any, b: Any, j: Any) -> Any:
        before, at = c_state(t - 1, b, j), (t, b, j)
        kept = f_act(gates.value("F", at, before)) * before
        return kept + f_act(gates.value("I", at, before)) * g_act(gates.value("G", at, before))

    c_next = te.compute((length + 1, batch, hidden), next_cell, name="c_next")

    def output(t: Any, b: Any, j: Any) -> Any:
        cell = c_next(t, b, j)
        return f_act(gates.value("O", (t, b, j), cell)) * h_act(cell)

    h_next = te.compute((length + 1, batch, hidden), output, name="h_next")
    if proj is not None:
        h_next = _projected(h_next, proj, "h_projected")
    first = [
        _before_the_first(h_init, (batch, carried), dtype, "h_init"),
        _before_the_first(c_init, (batch, hidden), dtype, "c_init"),
    ]
    h_all, c_all = te.scan(first, [h_next, c_next], [h_state, c_state], name="lstm")
    return _without_first(h_all, "hidden"), _without_first(c_all, "cell")


def _check(Xs: te.Tensor, Wi: te.Tensor, Wh: te.Tensor, weight_layout: str) -> None:
    if sorted(weight_layout) != sorted(_ORDERS):
        raise RuntimeValueError(
            f"lstm requires a weight_layout of the letters IFGO, got {weight_layout!r}"
        )
    require_equal("lstm", "inputs of the width of Wi", Xs.shape[2], Wi.shape[1])
    require_equal("lstm", "Wi and Wh of as many rows", Wi.shape[0], Wh.shape[0])


class _Gates(NamedTuple):
    """What the gates of every step are sums of."""

    from_inputs: te.Tensor  # (length, batch, 4 * hidden)
    from_hidden: te.Tensor  # (length + 1, batch, 4 * hidden)
    biases: Sequence[te.Tensor]
    peepholes: Mapping[str, te.Tensor | None]
    first: Mapping[str, int]  # where a gate begins in the weights
    reverse: bool

    def value(self, letter: str, at: tuple[Any, Any, Any], cell: Any) -> Any:
        """A gate at a step, a batch and a unit, before its activation."""
        t, b, j = at
        g = self.first[letter] + j
        source = dims(self.from_inputs.shape)[0] - t if self.reverse else t - 1
        value = self.from_inputs(source, b, g) + self.from_hidden(t, b, g)
        for bias in self.biases:
            value = value + bias(g)
        peephole = self.peepholes.get(letter)
        return value if peephole is None else value + peephole(j) * cell


def _from_the_step_before(state: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """The state of every step but the last, by the lines of a matrix, for the step behind it."""
    steps, batch, width = dims(state.shape)
    k = te.reduce_axis((0, width), name="k")
    return te.compute(
        (steps, batch, dims(weight.shape)[0]),
        lambda t, b, g: te.sum(state(t - 1, b, k.var) * weight(g, k.var), axis=k),
        name="from_hidden",
    )


def _projected(x: te.Tensor, weight: te.Tensor, name: str) -> te.Tensor:
    """Every step of a sequence by the lines of a matrix."""
    steps, batch, width = dims(x.shape)
    k = te.reduce_axis((0, width), name="k")
    return te.compute(
        (steps, batch, dims(weight.shape)[0]),
        lambda t, b, j: te.sum(x(t, b, k.var) * weight(j, k.var), axis=k),
        name=name,
    )


def _before_the_first(
    state: te.Tensor | None, shape: tuple[Any, Any], dtype: str, name: str
) -> te.Tensor:
    zero = tir.const(0, dtype)
    return te.compute(
        (1, *shape), lambda _, b, j: zero if state is None else state(b, j), name=name
    )


def _without_first(states: te.Tensor, name: str) -> te.Tensor:
    steps, batch, width = dims(states.shape)
    return te.compute((steps - 1, batch, width), lambda t, b, j: states(t + 1, b, j), name=name)
