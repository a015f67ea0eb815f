"""Windows over spatial axes, for the references: padding, dilation, and all places of a window."""

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


def places(data: Array, kernel: Sequence[int], strides: Sequence[int]) -> Array:
    """(N, C, places..., window...) of data (N, C, spatial...)."""
    rank = len(kernel)
    view = np.lib.stride_tricks.sliding_window_view(data, tuple(kernel), tuple(range(2, rank + 2)))
    return view[(slice(None), slice(None), *[slice(None, None, s) for s in strides])]


def convolve(
    data: Array, weight: Array, strides: Any, padding: Any, dilation: Any = 1, groups: int = 1
) -> Array:
    """Data (N, C, spatial...) by a weight (O, C / groups, window...)."""
    rank = data.ndim - 2
    steps = spread(dilation, rank)
    wide = dilate_python(weight, (1, 1, *steps))
    around = pads(padding, wide.shape[2:])
    padded = np.pad(data, [(0, 0), (0, 0), *around])
    found = places(padded, wide.shape[2:], spread(strides, rank))
    axes = list(range(2, rank + 2))
    parts = []
    for part, factors in zip(np.split(found, groups, 1), np.split(wide, groups, 0), strict=True):
        over = [a + rank for a in axes]
        product = np.tensordot(part, factors, ([1, *over], [1, *axes]))
        parts.append(np.moveaxis(product, -1, 1))
    return np.concatenate(parts, 1)


def convolve_transposed(
    data: Array, weight: Array, strides: Any, padding: Any, output_padding: Any, groups: int = 1
) -> Array:
    """The adjoint of `convolve`; the weight is (C, O / groups, window...)."""
    rank = data.ndim - 2
    kernel = weight.shape[2:]
    around = pads(padding, kernel)
    extra = spread(output_padding, rank)
    wide = dilate_python(data, (1, 1, *spread(strides, rank)))
    outer = [(k - 1 - b, k - 1 - a + e) for k, (b, a), e in zip(kernel, around, extra, strict=True)]
    wide = np.pad(wide, [(0, 0), (0, 0), *[(max(b, 0), max(a, 0)) for b, a in outer]])
    # padding wider than the window cuts off elements
    cuts = [
        slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(wide.shape[2:], outer, strict=True)
    ]
    wide = wide[(slice(None), slice(None), *cuts)]
    flipped = np.flip(weight, tuple(range(2, rank + 2)))
    turned = [np.swapaxes(w, 0, 1) for w in np.split(flipped, groups, 0)]
    return convolve(wide, np.concatenate(turned, 0), 1, 0, 1, groups)
