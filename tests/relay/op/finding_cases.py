"""Cases of operators on distinct elements, Fourier transforms and sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import Array, Case, floats, ints


def unique(data: Array, is_sorted: bool, with_counts: bool) -> list[Array]:
    values: list[Any] = (
        sorted(set(data.tolist())) if is_sorted else list(dict.fromkeys(data.tolist()))
    )
    first = [data.tolist().index(v) for v in values]
    counts = [data.tolist().count(v) for v in values]
    padding = (0, len(data) - len(values))
    found = [
        np.pad(np.array(values, data.dtype), padding),
        np.pad(np.array(first, "int32"), padding),
        np.array([values.index(v) for v in data.tolist()], "int32"),
        np.array([len(values)], "int32"),
        np.pad(np.array(counts, "int32"), padding),
    ]
    return found if with_counts else found[:4]


def fourier(real: Array, imaginary: Array, inverse: bool = False) -> list[Array]:
    found = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    return [part.astype(real.dtype) for part in (found.real, found.imag)]


def windows(
    data: Array, factors: Array, n_fft: int, hop: int, normalized: bool, onesided: bool
) -> Array:
    batch = data.reshape(-1, data.shape[-1])
    weight = np.zeros(n_fft)
    start = (n_fft - len(factors)) // 2
    weight[start : start + len(factors)] = factors
    starts = range(0, data.shape[-1] - n_fft + 1, hop)
    frames = np.stack([batch[:, s : s + n_fft] * weight for s in starts], -1)
    found = np.fft.fft(frames, axis=1) / (n_fft**0.5 if normalized else 1)
    found = found[:, : n_fft // 2 + 1] if onesided else found
    both = np.stack([found.real, found.imag], -1).astype(data.dtype)
    return both if data.ndim == 2 else both[0]


def reshaped(indices: Array, before: Array, after: Array) -> list[Array]:
    marks = np.zeros(before, "int64")
    marks[tuple(indices.T)] = np.arange(len(indices)) + 1
    moved = marks.reshape(after)
    found = np.stack(
        np.unravel_index(np.argsort(moved, None, "stable")[-len(indices) :], moved.shape), -1
    )
    return [found.astype(indices.dtype), np.array(moved.shape, after.dtype)]


def finding_cases() -> list[Case]:
    row = ints(37)
    indices = np.array([[0, 1, 2], [1, 0, 3], [1, 2, 0], [2, 2, 3]], "int64")
    before = np.array([3, 3, 4], "int64")

    def uniques(*options: bool) -> Any:
        return lambda a: relay.unique(a, *options).astuple()

    def stft(*options: Any, **named: Any) -> Any:
        return lambda a, w: relay.stft(a, *options, window=w, **named)

    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("unique", uniques(), (row,), lambda a: unique(a, True, False)),
        ("unique", uniques(True, True), (row.astype("int64"),), lambda a: unique(a, True, True)),
        ("unique", uniques(False, True), (row,), lambda a: unique(a, False, True)),
        ("unique", uniques(False, False), (floats(9),), lambda a: unique(a, False, False)),
        ("unique", uniques(True, True), (ints(1),), lambda a: unique(a, True, True)),
        ("unique", uniques(True, True), (ints(0),), lambda a: unique(a, True, True)),
        ("dft", lambda a, b: relay.dft(a, b).astuple(), (floats(3, 16), floats(3, 16)), fourier),
        ("dft", lambda a, b: relay.dft(a, b, True).astuple(), (floats(2, 2, 60), floats(2, 2, 60)), lambda a, b: fourier(a, b, True)),
        ("dft", lambda a, b: relay.dft(a, b).astuple(), (floats(7), floats(7)), fourier),
        ("dft", lambda a, b: relay.dft(a, b).astuple(), (floats(2, 1), floats(2, 1)), fourier),
        ("dft", lambda a, b: relay.dft(a, b).astuple(), (floats(5, 128).astype("float64"), floats(5, 128).astype("float64")), fourier),
        ("stft", stft(16), (floats(2, 60), floats(16)), lambda a, w: windows(a, w, 16, 4, False, True)),
        ("stft", stft(20, 7, normalized=True, onesided=False), (floats(55), floats(20)), lambda a, w: windows(a, w, 20, 7, True, False)),
        ("stft", stft(16, 5, 10), (floats(3, 40), floats(10)), lambda a, w: windows(a, w, 16, 5, False, True)),
        ("stft", lambda a: relay.stft(a, 12, 3), (floats(1, 30),), lambda a: windows(a, np.ones(12), 12, 3, False, True)),
        ("sparse_reshape", lambda *a: relay.sparse_reshape(*a).astuple(), (indices, before, np.array([9, 4], "int64")), reshaped),
        ("sparse_reshape", lambda *a: relay.sparse_reshape(*a).astuple(), (indices, before, np.array([2, -1, 2, 3], "int64")), reshaped),
        ("sparse_reshape", lambda *a: relay.sparse_reshape(*a).astuple(), (indices, before, np.array([-1], "int64")), reshaped),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected, 1e-4) for name, build, inputs, expected in table]
