"""Windows over spatial axes, for the references: padding, dilation, and all positions of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def spread(value: Any, rank: int) -> tuple[int, ...]:
    """One number for each spatial axis."""
    return (int(value),) * rank if np.ndim(value) == 0 else tuple([int(v) for v in value])


def pads(padding: Any, kernel: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) for each axis, from numbers, "VALID" or "SAME" (of stride 1)."""
    rank = len(kernel)
    if isinstance(padding, str):
        total = [k - 1 if padding == "SAME" else 0 for k in kernel]
        return [(n - n // 2, n // 2) for n in total]
    numbers = spread(padding, rank)
    ends = numbers[rank:] if len(numbers) == 2 * rank else numbers[:rank]
    return list(zip(numbers[:rank], ends, strict=True))


def dilate_python(
    input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: Any = None
) -> Array:
    """Elements `strides` apart from each other, with a value between them."""
    shape = [(n - 1) * s + 1 if n else 0 for n, s in zip(input_np.shape, strides, strict=True)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple([slice(None, None, s) for s in strides])] = input_np
    return out


def dilate_np(x: Array, dilation: int) -> Array:
    """Elements of the last axis `dilation` apart, with zeros between them."""
    return dilate_python(x, (*[1] * (x.ndim - 1), dilation))


def windows_of(data: Array, kernel: Sequence[int], strides: Sequence[int]) -> Array:
    """(N, C, positions..., window...) of data (N, C, spatial...)."""
    rank = len(kernel)
    view = np.lib.stride_tricks.sliding_window_view(data, tuple(kernel), tuple(range(2, rank + 2)))
    steps = [slice(None, None, s) for s in strides]
    kept = (slice(None), slice(None), *steps)
    return view[kept]


def convolve(
    data: Array, weight: Array, strides: Any, padding: Any, dilation: Any = 1, groups: int = 1
) -> Array:
    """Data (N, C, spatial...) by a weight (O, C / groups, window...)."""
    # a product for each position of the window: all windows side by side would fill the memory
    rank, sums = data.ndim - 2, _sum_dtype(data, weight)
    window, jumps, steps = weight.shape[2:], spread(strides, rank), spread(dilation, rank)
    reach = [(k - 1) * d + 1 for k, d in zip(window, steps, strict=True)]
    padded = np.pad(data.astype(sums), [(0, 0), (0, 0), *pads(padding, reach)])
    shape = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, jumps, strict=True)]
    factors = weight.astype(sums).reshape(groups, -1, *weight.shape[1:])
    total = np.zeros((len(data), *factors.shape[:2], int(np.prod(shape))), sums)
    for at in np.ndindex(*window):
        first = [i * d for i, d in zip(at, steps, strict=True)]
        columns = padded[_every(first, shape, jumps)].reshape(len(data), groups, -1, total.shape[3])
        total += _product(_at_last_axes(factors, at), columns)
    return total.reshape(len(data), len(weight), *shape).astype(np.result_type(data, weight))


def convolve_transposed(
    data: Array, weight: Array, strides: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """The adjoint of `convolve`; the weight is (C, O / groups, window...)."""
    rank, sums = data.ndim - 2, _sum_dtype(data, weight)
    shape, window, jumps = data.shape[2:], weight.shape[2:], spread(strides, rank)
    extra, around = spread(output_padding, rank), pads(padding, window)
    full = [(n - 1) * s + k + e for n, s, k, e in zip(shape, jumps, window, extra, strict=True)]
    factors = weight.astype(sums).reshape(groups, -1, *weight.shape[1:]).swapaxes(1, 2)
    columns = data.astype(sums).reshape(len(data), groups, factors.shape[2], -1)
    total = np.zeros((len(data), groups * factors.shape[1], *full), sums)
    for at in np.ndindex(*window):
        part = _product(_at_last_axes(factors, at), columns)
        total[_every(at, shape, jumps)] += part.reshape(*total.shape[:2], *shape)
    inside = [slice(b, n - a) for n, (b, a) in zip(full, around, strict=True)]
    kept = (slice(None), slice(None), *inside)
    return total[kept].astype(np.result_type(data, weight))


def _sum_dtype(data: Array, weight: Array) -> Any:
    """Halves are summed in float32, and rounded once."""
    dtype = np.result_type(data, weight)
    return np.dtype("float32") if dtype == np.float16 else dtype


def _every(first: Sequence[int], counts: Sequence[int], steps: Sequence[int]) -> tuple[slice, ...]:
    """So many elements of each spatial axis, `steps` apart."""
    zipped = zip(first, counts, steps, strict=True)
    return (slice(None), slice(None), *[slice(b, b + (n - 1) * s + 1, s) for b, n, s in zipped])


def _at_last_axes(x: Array, at: Sequence[int]) -> Array:
    positions: Any = (..., *at)
    return np.asarray(x[positions])


def _product(factors: Array, columns: Array) -> Array:
    # many products of one channel are faster by broadcasting
    return np.asarray(factors * columns if factors.shape[-1] == 1 else factors @ columns)
