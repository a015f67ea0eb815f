"""Drawn calls of operators that sort, look up, rearrange and sample."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from tvm import relay
from tvm.topi import testing as ref

from .drawing import FLOATS, NUMBERS, Array, Draw, Drawn
from .vision_cases import greedy


def _order(data: Array, axis: int, is_ascend: bool) -> Array:
    # int64 holds the negation of every dtype that is drawn
    key = data if data.dtype.kind == "f" else data.astype("int64")
    return np.argsort(key if is_ascend else -key, axis, "stable")


def sorts(d: Draw) -> Drawn:
    shape, dtype = d.shape(), d.pick(*NUMBERS)
    axis, up = d.axis(len(shape)), d.flag()
    data = d.array(shape, dtype)
    order = _order(data, axis, up)
    values = np.take_along_axis(data, order, axis)
    kind = d.pick("sort", "argsort", "topk")
    if kind == "sort":
        return lambda a: relay.sort(a, axis, up), [data], values
    index = d.pick("int32", "int64", "float32")
    if kind == "argsort":
        return lambda a: relay.argsort(a, axis, up, index), [data], order.astype(index)
    k = d.number(0, shape[axis])
    cut = range(k or shape[axis])
    found = [np.take(values, cut, axis), np.take(order, cut, axis).astype(index)]
    return lambda a: relay.topk(a, k, axis, "both", up, index).astuple(), [data], found


def searches(d: Draw) -> Drawn:
    lead = d.shape(0, 2)
    count, wanted = d.number(0, 6), d.number(0, 6)
    dtype, right = d.pick(*NUMBERS[1:]), d.flag()
    rows = np.sort(d.array((*lead, count), dtype), -1)
    values = d.array((*lead, wanted), dtype)
    expected = ref.searchsorted_ref(rows, values, right, "int32")
    return (
        lambda r, v: relay.searchsorted(r, v, right), [rows, values],
        expected,
    )  # fmt: skip


def uniques(d: Draw) -> Drawn:
    data = d.array((d.number(0, 30),), d.pick(*NUMBERS))
    is_sorted = d.flag()
    values: list[Any] = (
        sorted(set(data.tolist())) if is_sorted else list(dict.fromkeys(data.tolist()))
    )
    pad = (0, len(data) - len(values))
    listed = data.tolist()
    expected = [
        np.pad(np.array(values, data.dtype), pad),
        np.pad(np.array([listed.index(v) for v in values], "int32"), pad),
        np.array([values.index(v) for v in listed], "int32"),
        np.array([len(values)], "int32"),
        np.pad(np.array([listed.count(v) for v in values], "int32"), pad),
    ]
    return lambda a: relay.unique(a, is_sorted, True).astuple(), [data], expected


def sequences(d: Draw) -> Drawn:
    shape = d.shape(2, 4, 1)
    dtype, axis = d.pick(*NUMBERS), d.number(0, 1)
    data = d.array(shape, dtype)
    if d.flag():
        lengths = d.array((shape[1 - axis],), "int32", 0, shape[axis] + 1)
        expected = ref.sequence_mask(data, lengths, 3, axis)
        return lambda a, n: relay.sequence_mask(a, n, 3, axis), [data, lengths], expected
    lengths = d.array((shape[1 - axis],), "int32", 0, shape[axis] + 1)
    expected = data.copy()
    for b, n in enumerate(lengths):
        row = np.moveaxis(expected, (1 - axis, axis), (0, 1))[b]
        row[:n] = row[:n][::-1].copy()
    return (
        lambda a, n: relay.reverse_sequence(a, n, axis, 1 - axis), [data, lengths], expected
    )  # fmt: skip


def diagonals(d: Draw) -> Drawn:
    lead, rows, columns = d.shape(0, 2, 1), d.number(1, 6), d.number(1, 6)
    low = d.number(1 - rows, columns - 1)
    high = d.number(low, columns - 1)
    align = "_".join([d.pick("LEFT", "RIGHT") for _ in range(2)])
    longest = max(min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1))
    shape = (*lead, longest) if low == high else (*lead, high - low + 1, longest)
    data, diagonal = d.array((*lead, rows, columns), "float32"), d.array(shape, "float32")
    expected = ref.matrix_set_diag(data, diagonal, (low, high), align)
    return (
        lambda a, d: relay.matrix_set_diag(a, d, (low, high), align), [data, diagonal], expected
    )  # fmt: skip


def windows(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    axis = d.axis(len(shape))
    covered = shape[axis % len(shape) :]
    extents = [d.number(1, n) for n in covered]
    steps = [d.number(1, 3) for _ in covered]
    data = d.array(shape, d.pick(*NUMBERS))
    first = axis % len(shape)
    view = np.lib.stride_tricks.sliding_window_view(
        data, tuple(extents), tuple(range(first, len(shape)))
    )
    expected = view[(*[slice(None)] * first, *[slice(None, None, s) for s in steps])]
    return lambda a: relay.sliding_window(a, axis, extents, steps), [data], expected


def sums(d: Draw) -> Drawn:
    letters = string.ascii_lowercase[: d.number(1, 4)]
    extents = {letter: d.number(1, 5) for letter in letters}
    terms = [
        "".join(d.some(letters, 1))
        for _ in range(d.number(1, 3))
    ]  # fmt: skip
    used = sorted(set("".join(terms)))
    out = "".join(d.some(used))
    equation = f"{','.join(terms)}->{out}"
    arrays = [d.array([extents[x] for x in term], "float64") for term in terms]
    return (
        lambda *a: relay.einsum(list(a), equation), arrays, np.einsum(equation, *arrays)
    )  # fmt: skip


def transforms(d: Draw) -> Drawn:
    shape = (*d.shape(0, 2), d.number(1, 48))
    inverse, dtype = d.flag(), d.pick(*FLOATS[1:])
    real, imaginary = d.array(shape, dtype), d.array(shape, dtype)
    found = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    expected = [found.real.astype(dtype), found.imag.astype(dtype)]
    return lambda a, b: relay.dft(a, b, inverse).astuple(), [real, imaginary], expected


def sums_to(d: Draw) -> Drawn:
    shape = d.shape(1, 4, 1)
    kept = [d.pick(1, n) for n in shape]
    target = tuple(kept[d.number(0, len(shape) - 1) :])
    data = d.array(shape, "float64")
    lead = len(shape) - len(target)
    over = tuple([i for i, n in enumerate(target) if n == 1])
    expected = data.sum(tuple(range(lead))).sum(over, keepdims=True)
    return lambda a: relay.collapse_sum_to(a, relay.const(target)), [data], expected


def lookups(d: Draw) -> Drawn:
    shape = d.shape(1, 3, 1)
    data = d.array(shape, d.pick(*NUMBERS))
    kind = d.pick("adv_index", "unravel_index", "invert_permutation")
    if kind == "adv_index":
        count = d.number(1, len(shape))
        places = d.shape(1, 2, 1)
        indices = [d.array(places, "int64", 0, n) for n in shape[:count]]
        return lambda *a: relay.adv_index(list(a)), [data, *indices], data[tuple(indices)]
    if kind == "unravel_index":
        flat = d.array((d.number(1, 9),), "int64", 0, int(np.prod(shape)))
        expected = np.array(np.unravel_index(flat, shape))
        extents = np.array(shape, "int64")
        return lambda a: relay.unravel_index(a, relay.const(extents)), [flat], expected
    order = np.array(d.order(d.number(1, 9)), "int32")
    return relay.op.transform.invert_permutation, [order], np.argsort(order).astype("int32")


def suppressions_of_classes(d: Draw) -> Drawn:
    batch, classes, count = d.number(1, 3), d.number(1, 3), d.number(0, 6) * 4
    corners = d.array((batch, count, 4), "float32", 0, 1)
    size = batch * classes * count
    rng = d.rng()
    scores = (rng.permutation(size) / max(size, 1)).reshape(batch, classes, count).astype("float32")
    most, limit = d.number(-1, 5), d.pick(0.1, 0.4, 0.7)
    found = [
        (b, c, j)
        for b in range(batch)
        for c in range(classes)
        for j in greedy(
            [j for j in np.argsort(-scores[b, c], kind="stable") if scores[b, c, j] > 0.25],
            corners[b], lambda k, j, common: common > limit, most,
        )
    ]  # fmt: skip
    rows = np.zeros((size, 3), "int64")
    rows[: len(found)] = np.reshape(found, (-1, 3))
    return (
        lambda b, s: relay.vision.all_class_non_max_suppression(b, s, most, limit, 0.25).astuple(),
        [corners, scores],
        [rows, np.array([len(found)], "int64")],
    )


def samples(d: Draw) -> Drawn:
    data = d.array([d.number(1, 5) for _ in range(4)], "float32")
    grid = d.array((len(data), 2, d.number(1, 4), 3), "float32", -1.4, 1.4)
    method = d.pick("nearest", "bilinear", "bicubic")
    padding = d.pick("zeros", "border", "reflection")
    align = d.flag()
    return (
        lambda a, g: relay.image.grid_sample(a, g, method, "NCHW", padding, align),
        [data, grid],
        ref.grid_sample_python(data, grid, method, "NCHW", padding, align),
    )


SEARCHING = (
    sorts, searches, uniques, sequences, diagonals, windows, sums, transforms, sums_to, lookups,
    suppressions_of_classes, samples,
)  # fmt: skip
