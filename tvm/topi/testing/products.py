"""Matrix products, attention and recurrent cells in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import RuntimeValueError

from .normalization import softmax_python

Array = np.ndarray


def dense(
    x: Array, y: Array, bias: Array | None, use_bias: bool = False, use_relu: bool = False,
    out_dtype: Any = None,
) -> Array:  # fmt: skip
    """x @ y.T, with a bias and a rectifier if wanted."""
    dtype = x.dtype if out_dtype is None else out_dtype
    out = x.astype(dtype) @ y.T.astype(dtype)
    if use_bias and bias is not None:
        out = out + bias
    return np.asarray(np.maximum(out, 0) if use_relu else out)


def batch_matmul(
    x: Array, y: Array, out_dtype: Any = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """A batch of matrix products."""
    dtype = x.dtype if out_dtype is None else out_dtype
    left = x.swapaxes(1, 2) if trans_x else x
    right = y.swapaxes(1, 2) if trans_y else y
    return np.asarray(np.matmul(left.astype(dtype), right.astype(dtype)))


def attention_python(
    q: Array, k: Array, v: Array, bias: Array | None, qk_scale: float, causal: str | None,
    window_size: int | None = None, layout: str = "BSNH",
) -> list[Array]:  # fmt: skip
    """Attention: the result, and the weights' logits.

    Parameters
    ----------
    causal : str, optional
        "TopLeft" or "BottomRight": where the mask's diagonal begins or ends.
    window_size : int, optional
        How many keys up to its own a query sees.
    """
    if layout not in ("BSNH", "BNSH"):
        raise RuntimeValueError(f"a layout of BSNH or BNSH is required, got {layout!r}")
    queries, keys, values = [x.swapaxes(1, 2) if layout == "BSNH" else x for x in (q, k, v)]
    repeats = queries.shape[1] // keys.shape[1]
    keys, values = [np.repeat(x, repeats, 1) for x in (keys, values)]
    scores = queries @ keys.swapaxes(2, 3) * qk_scale
    scores = scores if bias is None else scores + bias
    if causal not in (None, "none"):
        rows, columns = scores.shape[-2:]
        offset = columns - rows if causal == "BottomRight" else 0
        distance = np.arange(rows)[:, None] + offset - np.arange(columns)
        seen = distance >= 0
        if window_size is not None:
            seen &= distance < window_size
        scores = np.where(seen, scores, -np.inf)
    out = softmax_python(scores, -1) @ values
    return [out.swapaxes(1, 2) if layout == "BSNH" else out, scores]


def lstm_python(
    Xs: Array, Wi: Array, Wh: Array, Bi: Array | None = None, Bh: Array | None = None,
    h_init: Array | None = None, c_init: Array | None = None, proj: Array | None = None,
    p_i: Array | None = None, p_f: Array | None = None, p_o: Array | None = None,
    f_act: str = "sigmoid", g_act: str = "tanh", h_act: str = "tanh", reverse: bool = False,
    weight_layout: str = "IFGO",
) -> list[Array]:  # fmt: skip
    """An LSTM over (length, batch, inputs): the hidden states and the cells' states, as computed.

    The weights are (4 * hidden, ...) in the order of `weight_layout`.
    """
    functions: dict[str, Callable[[Array], Array]] = {
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
    }
    length, batch, _ = Xs.shape
    hidden = Wi.shape[0] // 4
    out_size = hidden if proj is None else proj.shape[0]
    h = np.zeros((batch, out_size), Xs.dtype) if h_init is None else h_init
    c = np.zeros((batch, hidden), Xs.dtype) if c_init is None else c_init
    positions = [weight_layout.index(gate) for gate in "IFGO"]
    outs, cells = (
        np.zeros((length, batch, out_size), Xs.dtype),
        np.zeros((length, batch, hidden), Xs.dtype),
    )
    for t, x in enumerate(Xs[::-1] if reverse else Xs):
        gates = x @ Wi.T + h @ Wh.T
        for bias in (Bi, Bh):
            gates = gates if bias is None else gates + bias
        parts = np.split(gates, 4, 1)
        i, f, g, o = [parts[position] for position in positions]
        i = functions[f_act](i if p_i is None else i + p_i * c)
        f = functions[f_act](f if p_f is None else f + p_f * c)
        c = f * c + i * functions[g_act](g)
        o = functions[f_act](o if p_o is None else o + p_o * c)
        h = o * functions[h_act](c)
        h = h if proj is None else h @ proj.T
        outs[t], cells[t] = h, c
    return [outs, cells]
