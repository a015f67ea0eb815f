"""Cases of operators on sequences, places, diagonals and fixed-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import Array, Case, _erf, _softmax, floats, ints


def _masked(x: Array, lengths: Array) -> Array:
    out = x.copy()
    for batch, length in enumerate(lengths):
        out[length:, batch] = -1.5
    return out


def _reversed(x: Array, lengths: Array) -> Array:
    out = x.copy()
    for batch, length in enumerate(lengths):
        out[batch, :length] = x[batch, :length][::-1]
    return out


def _set(*slices: slice) -> Any:
    def assign(x: Array, v: Array) -> Array:
        out = x.copy()
        out[slices] = v
        return out

    return assign


def _with_diagonals(x: Array, d: Array, low: int, high: int, above: str, below: str) -> Array:
    out = x.copy()
    rows, columns = x.shape[-2:]
    for which in range(low, high + 1):
        places = [(r, r + which) for r in range(rows) if 0 <= r + which < columns]
        row = d[..., high - which, :] if d.ndim == x.ndim else d
        side = above if which >= 0 else below
        shift = row.shape[-1] - len(places) if side == "RIGHT" and d.ndim == x.ndim else 0
        for k, (r, c) in enumerate(places):
            out[..., r, c] = row[..., k + shift]
    return out


def _multiplied(x: Array, multiplier: Array, shift: Array) -> Array:
    product = x.astype("int64") * multiplier.astype("int64")
    half = 1 << (30 - shift.astype("int64"))
    return ((product + half) >> (31 - shift.astype("int64"))).astype("int32")


def sequence_cases() -> list[Case]:
    lengths = np.array([2, 0, 4], "int32")
    matrix, square = floats(2, 3, 5), floats(3, 3)
    return [
        Case("sequence_mask", lambda x, n: relay.sequence_mask(x, n, -1.5), (floats(4, 3, 2), lengths), _masked),
        Case("sequence_mask", lambda x, n: relay.sequence_mask(x, n, -1.5, 1), (floats(3, 4), lengths), lambda x, n: _masked(x.T.copy(), n).T),
        Case("reverse_sequence", relay.reverse_sequence, (floats(3, 4, 2), lengths), _reversed),
        Case("sliding_window", lambda x: relay.sliding_window(x, 1, [2, 3], [1, 2]), (floats(2, 4, 7),), lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 2))[:, :, ::2]),
        Case("matrix_set_diag", relay.matrix_set_diag, (matrix, floats(2, 3)), lambda x, d: _with_diagonals(x, d, 0, 0, "", "")),
        Case("matrix_set_diag", lambda x, d: relay.matrix_set_diag(x, d, -1), (square, floats(2)), lambda x, d: _with_diagonals(x, d, -1, -1, "", "")),
        Case("matrix_set_diag", lambda x, d: relay.matrix_set_diag(x, d, (-1, 3), "LEFT_RIGHT"), (matrix, floats(2, 5, 3)), lambda x, d: _with_diagonals(x, d, -1, 3, "LEFT", "RIGHT")),
        Case("matrix_set_diag", lambda x, d: relay.matrix_set_diag(x, d, (-2, 4)), (matrix, floats(2, 7, 3)), lambda x, d: _with_diagonals(x, d, -2, 4, "RIGHT", "LEFT")),
    ]  # fmt: skip


def place_cases() -> list[Case]:
    order = np.array([3, 0, 2, 1], "int32")
    points = np.array([[0, 1], [2, 3]], "int32")
    i, j = ints(4, 1, low=-3, high=3), ints(5, low=0, high=4)

    def dense(where: Array, values: Array) -> Array:
        out = np.full((3, 4), 0.5, "float32")
        out[where[:, 0], where[:, 1]] = values
        return out

    return [
        Case("strided_set", lambda x, v: relay.strided_set(x, v, [1, -1], [3, -7], [1, -2]), (floats(4, 6), floats(2, 3)), _set(slice(1, 3), slice(-1, -7, -2))),
        Case("strided_set", lambda x, v: relay.strided_set(x, v, [-3], [9]), (floats(5, 2), floats(3, 2)), _set(slice(-3, 9))),
        Case("sparse_to_dense", lambda p, v: relay.sparse_to_dense(p, (3, 4), v, 0.5), (points, floats(2)), dense),
        Case("invert_permutation", relay.op.transform.invert_permutation, (order,), lambda o: np.argsort(o).astype("int32")),
        Case("adv_index", lambda x, i, j: relay.adv_index([x, i, j]), (floats(3, 4, 2), i, j), lambda x, i, j: x[i, j]),
        Case("unravel_index", lambda i: relay.unravel_index(i, (2, 3, 4)), (ints(5, low=0, high=24),), lambda i: np.array(np.unravel_index(i, (2, 3, 4))).astype("int32")),
        Case("unravel_index", lambda i: relay.unravel_index(i, (2, 3)), (ints(low=0, high=6),), lambda i: np.array(np.unravel_index(i, (2, 3))).astype("int32")),
        Case("collapse_sum_to", lambda x: relay.op.transform.collapse_sum_to(x, (3, 1)), (floats(2, 3, 5),), lambda x: x.sum((0, 2))[:, None], 1e-4),
    ]  # fmt: skip


def product_of_sums_cases() -> list[Case]:
    rows: list[tuple[str, list[Array]]] = [
        ("bij,bjk->bik", [floats(2, 3, 4), floats(2, 4, 5)]),
        ("...i,ij->...j", [floats(2, 3, 4), floats(4, 5)]),
        ("ii->i", [floats(4, 4)]),
        ("ij,jk,kl", [floats(2, 3), floats(3, 4), floats(4, 5)]),
        ("i,j->ij", [floats(3), floats(17)]),
        ("ij->", [floats(3, 4)]),
    ]
    cases = [
        Case(
            "einsum",
            lambda *x, e=equation: relay.einsum(x, e),
            tuple(factors),
            lambda *x, e=equation: np.einsum(e, *x),
            1e-4,
        )
        for equation, factors in rows
    ]
    numbers = ints(3, 5, low=-100000, high=100000)
    multipliers = ints(5, low=1 << 30, high=(1 << 31) - 1)
    shifts = ints(5, low=0, high=5)
    cases += [
        Case("fixed_point_multiply", lambda x: relay.fixed_point_multiply(x, 1717986918, 2), (numbers,), lambda x: _multiplied(x, np.array(1717986918), np.array(2))),
        Case("fixed_point_multiply_per_axis", lambda x, m, r: relay.op.tensor.fixed_point_multiply_per_axis(x, m, relay.const([0] * 5), r, False, True, [1]), (numbers, multipliers, shifts), lambda x, m, r: _multiplied(x, m, -r)),
        Case("fast_exp", relay.op.fast_exp, (floats(3, 9),), np.exp),
        Case("fast_tanh", relay.op.fast_tanh, (floats(3, 9),), np.tanh),
        Case("fast_erf", relay.op.fast_erf, (floats(3, 9),), _erf),
        Case("nn.fast_softmax", relay.nn.fast_softmax, (floats(3, 9),), _softmax),
    ]  # fmt: skip
    return cases


def setting_cases() -> list[Case]:
    return sequence_cases() + place_cases() + product_of_sums_cases()
