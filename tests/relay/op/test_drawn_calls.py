"""Operators that sort, look up, rearrange and sample, on drawn shapes, dtypes and attributes."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.topi import testing as ref

from .vision_cases import greedy

Array = np.ndarray
# what to build, its inputs, and what is expected
Drawn = tuple[Callable[..., Any], Sequence[Array], Any]
FLOATS = ("float16", "float32", "float64")
NUMBERS = (*FLOATS, "int8", "uint8", "int16", "int32", "int64")
EXTENTS = st.integers(0, 6)


def _array(draw: Any, shape: Sequence[int], dtype: str, low: float = -4, high: float = 5) -> Array:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if np.dtype(dtype).kind == "f":
        return rng.uniform(low, high, shape).astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else int(low), int(high), shape).astype(dtype)


def _shape(draw: Any, low: int = 1, high: int = 4, least: int = 0) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(least, 6), min_size=low, max_size=high)))


def _axis(draw: Any, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def _order(data: Array, axis: int, is_ascend: bool) -> Array:
    # int64 holds the negation of every dtype that is drawn
    key = data if data.dtype.kind == "f" else data.astype("int64")
    return np.argsort(key if is_ascend else -key, axis, "stable")


@st.composite
def sorts(draw: Any) -> Drawn:
    shape, dtype = _shape(draw), draw(st.sampled_from(NUMBERS))
    axis, up = _axis(draw, len(shape)), draw(st.booleans())
    data = _array(draw, shape, dtype)
    order = _order(data, axis, up)
    values = np.take_along_axis(data, order, axis)
    kind = draw(st.sampled_from(("sort", "argsort", "topk")))
    if kind == "sort":
        return lambda a: relay.sort(a, axis, up), [data], values
    index = draw(st.sampled_from(("int32", "int64", "float32")))
    if kind == "argsort":
        return lambda a: relay.argsort(a, axis, up, index), [data], order.astype(index)
    k = draw(st.integers(0, shape[axis]))
    cut = range(k or shape[axis])
    found = [np.take(values, cut, axis), np.take(order, cut, axis).astype(index)]
    return lambda a: relay.topk(a, k, axis, "both", up, index).astuple(), [data], found


@st.composite
def searches(draw: Any) -> Drawn:
    lead = _shape(draw, 0, 2)
    count, wanted = draw(EXTENTS), draw(EXTENTS)
    dtype, right = draw(st.sampled_from(NUMBERS[1:])), draw(st.booleans())
    rows = np.sort(_array(draw, (*lead, count), dtype), -1)
    values = _array(draw, (*lead, wanted), dtype)
    expected = ref.searchsorted_ref(rows, values, right, "int32")
    return (
        lambda r, v: relay.searchsorted(r, v, right), [rows, values],
        expected,
    )  # fmt: skip


@st.composite
def uniques(draw: Any) -> Drawn:
    data = _array(draw, (draw(st.integers(0, 30)),), draw(st.sampled_from(NUMBERS)))
    is_sorted = draw(st.booleans())
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


@st.composite
def sequences(draw: Any) -> Drawn:
    shape = _shape(draw, 2, 4, 1)
    dtype, axis = draw(st.sampled_from(NUMBERS)), draw(st.integers(0, 1))
    data = _array(draw, shape, dtype)
    if draw(st.booleans()):
        lengths = _array(draw, (shape[1 - axis],), "int32", 0, shape[axis] + 1)
        expected = ref.sequence_mask(data, lengths, 3, axis)
        return lambda a, n: relay.sequence_mask(a, n, 3, axis), [data, lengths], expected
    lengths = _array(draw, (shape[1 - axis],), "int32", 0, shape[axis] + 1)
    expected = data.copy()
    for b, n in enumerate(lengths):
        row = np.moveaxis(expected, (1 - axis, axis), (0, 1))[b]
        row[:n] = row[:n][::-1].copy()
    return (
        lambda a, n: relay.reverse_sequence(a, n, axis, 1 - axis), [data, lengths], expected
    )  # fmt: skip


@st.composite
def diagonals(draw: Any) -> Drawn:
    lead, rows, columns = _shape(draw, 0, 2, 1), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    low = draw(st.integers(1 - rows, columns - 1))
    high = draw(st.integers(low, columns - 1))
    align = "_".join([draw(st.sampled_from(("LEFT", "RIGHT"))) for _ in range(2)])
    longest = max(min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1))
    shape = (*lead, longest) if low == high else (*lead, high - low + 1, longest)
    data, diagonal = _array(draw, (*lead, rows, columns), "float32"), _array(draw, shape, "float32")
    expected = ref.matrix_set_diag(data, diagonal, (low, high), align)
    return (
        lambda a, d: relay.matrix_set_diag(a, d, (low, high), align), [data, diagonal], expected
    )  # fmt: skip


@st.composite
def windows(draw: Any) -> Drawn:
    shape = _shape(draw, 1, 4, 1)
    axis = _axis(draw, len(shape))
    covered = shape[axis % len(shape) :]
    extents = [draw(st.integers(1, n)) for n in covered]
    steps = [draw(st.integers(1, 3)) for _ in covered]
    data = _array(draw, shape, draw(st.sampled_from(NUMBERS)))
    first = axis % len(shape)
    view = np.lib.stride_tricks.sliding_window_view(
        data, tuple(extents), tuple(range(first, len(shape)))
    )
    expected = view[(*[slice(None)] * first, *[slice(None, None, s) for s in steps])]
    return lambda a: relay.sliding_window(a, axis, extents, steps), [data], expected


@st.composite
def sums(draw: Any) -> Drawn:
    letters = string.ascii_lowercase[: draw(st.integers(1, 4))]
    extents = {letter: draw(st.integers(1, 5)) for letter in letters}
    terms = [
        "".join(draw(st.permutations(draw(st.lists(st.sampled_from(letters), unique=True, min_size=1)))))
        for _ in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    used = sorted(set("".join(terms)))
    out = "".join(draw(st.lists(st.sampled_from(used), unique=True)))
    equation = f"{','.join(terms)}->{out}"
    arrays = [_array(draw, [extents[x] for x in term], "float64") for term in terms]
    return (
        lambda *a: relay.einsum(list(a), equation), arrays, np.einsum(equation, *arrays)
    )  # fmt: skip


@st.composite
def transforms(draw: Any) -> Drawn:
    shape = (*_shape(draw, 0, 2), draw(st.integers(1, 48)))
    inverse, dtype = draw(st.booleans()), draw(st.sampled_from(FLOATS[1:]))
    real, imaginary = _array(draw, shape, dtype), _array(draw, shape, dtype)
    found = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    expected = [found.real.astype(dtype), found.imag.astype(dtype)]
    return lambda a, b: relay.dft(a, b, inverse).astuple(), [real, imaginary], expected


@st.composite
def sums_to(draw: Any) -> Drawn:
    shape = _shape(draw, 1, 4, 1)
    kept = [draw(st.sampled_from((1, n))) for n in shape]
    target = tuple(kept[draw(st.integers(0, len(shape) - 1)) :])
    data = _array(draw, shape, "float64")
    lead = len(shape) - len(target)
    over = tuple([i for i, n in enumerate(target) if n == 1])
    expected = data.sum(tuple(range(lead))).sum(over, keepdims=True)
    return lambda a: relay.collapse_sum_to(a, relay.const(target)), [data], expected


@st.composite
def lookups(draw: Any) -> Drawn:
    shape = _shape(draw, 1, 3, 1)
    data = _array(draw, shape, draw(st.sampled_from(NUMBERS)))
    kind = draw(st.sampled_from(("adv_index", "unravel_index", "invert_permutation")))
    if kind == "adv_index":
        count = draw(st.integers(1, len(shape)))
        places = _shape(draw, 1, 2, 1)
        indices = [_array(draw, places, "int64", 0, n) for n in shape[:count]]
        return lambda *a: relay.adv_index(list(a)), [data, *indices], data[tuple(indices)]
    if kind == "unravel_index":
        flat = _array(draw, (draw(st.integers(1, 9)),), "int64", 0, int(np.prod(shape)))
        expected = np.array(np.unravel_index(flat, shape))
        extents = np.array(shape, "int64")
        return lambda a: relay.unravel_index(a, relay.const(extents)), [flat], expected
    order = np.array(draw(st.permutations(range(draw(st.integers(1, 9))))), "int32")
    return relay.op.transform.invert_permutation, [order], np.argsort(order).astype("int32")


@st.composite
def suppressions(draw: Any) -> Drawn:
    batch, classes, count = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(EXTENTS) * 4
    corners = _array(draw, (batch, count, 4), "float32", 0, 1)
    size = batch * classes * count
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    scores = (rng.permutation(size) / max(size, 1)).reshape(batch, classes, count).astype("float32")
    most, limit = draw(st.integers(-1, 5)), draw(st.sampled_from((0.1, 0.4, 0.7)))
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


@st.composite
def regions(draw: Any) -> Drawn:
    batch, channels, height, width = [draw(st.integers(1, 7)) for _ in range(4)]
    layout = draw(st.sampled_from(("NCHW", "NHWC")))
    data = _array(draw, (batch, channels, height, width), "float32")
    count = draw(st.integers(0, 4))
    corners = np.sort(_array(draw, (count, 2, 2), "float32", -2, 9), 1).reshape(count, 4)
    rois = np.concatenate([_array(draw, (count, 1), "float32", 0, 1) * 0, corners], 1)
    size = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    ratio, scale = draw(st.sampled_from((-1, 1, 2))), draw(st.sampled_from((0.25, 1.0)))
    mode = draw(st.sampled_from(("avg", "max")))
    expected = ref.roi_align_nchw_python(data, rois, size, scale, ratio, mode)
    if layout == "NHWC":
        data, expected = [np.ascontiguousarray(x.transpose(0, 2, 3, 1)) for x in (data, expected)]
    return (
        lambda a, r: relay.vision.roi_align(a, r, size, scale, ratio, layout, mode),
        [data, rois], expected,
    )  # fmt: skip


@st.composite
def samples(draw: Any) -> Drawn:
    data = _array(draw, [draw(st.integers(1, 5)) for _ in range(4)], "float32")
    grid = _array(draw, (len(data), 2, draw(st.integers(1, 4)), 3), "float32", -1.4, 1.4)
    method = draw(st.sampled_from(("nearest", "bilinear", "bicubic")))
    padding = draw(st.sampled_from(("zeros", "border", "reflection")))
    align = draw(st.booleans())
    return (
        lambda a, g: relay.image.grid_sample(a, g, method, "NCHW", padding, align),
        [data, grid],
        ref.grid_sample_python(data, grid, method, "NCHW", padding, align),
    )


@st.composite
def resizes(draw: Any) -> Drawn:
    data = _array(draw, [draw(st.integers(1, 6)) for _ in range(4)], "float32")
    size = [draw(st.integers(1, 9)) for _ in range(2)]
    method = draw(st.sampled_from(("nearest_neighbor", "linear", "cubic")))
    mode = draw(st.sampled_from(("half_pixel", "align_corners", "asymmetric")))
    factors = [s / n for s, n in zip(size, data.shape[2:], strict=True)]
    return (
        lambda a: relay.image.resize2d(a, size, method=method, coordinate_transformation_mode=mode),
        [data],
        ref.resize2d_python(data, factors, "NCHW", method, mode),
    )


FAMILIES = {
    s.__name__: s
    for s in (
        sorts, searches, uniques, sequences, diagonals, windows, sums, transforms, sums_to, lookups,
        suppressions, regions, samples, resizes,
    )
}  # fmt: skip


def _run(build: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    params = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(arrays)]
    mod = tvm.IRModule.from_expr(relay.Function(params, build(*params)))
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(**{f"x{i}": a for i, a in enumerate(arrays)})
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


@pytest.mark.parametrize("family", FAMILIES)
@settings(
    max_examples=6, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(data=st.data())
def test_drawn_calls_agree_with_numpy(family: str, data: st.DataObject) -> None:
    build, arrays, expected = data.draw(FAMILIES[family]())
    wanted = expected if isinstance(expected, list) else [expected]
    found = _run(build, arrays)
    assert [f.shape for f in found] == [w.shape for w in wanted]
    for have, want in zip(found, wanted, strict=True):
        assert have.dtype == want.dtype
        if have.dtype.kind == "f":
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=2e-4)
        else:
            np.testing.assert_array_equal(have, want)
