"""Pooling in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import RuntimeValueError

from .windows import spread, windows_of

Array = np.ndarray


def pad_tensor(
    np_arr: Array, pad_value: float, padding_before: Sequence[int], padding_after: Sequence[int],
    dtype: Any,
) -> Array:  # fmt: skip
    """Data (N, C, spatial...) with a value around its spatial axes."""
    around = [(0, 0), (0, 0), *zip(padding_before, padding_after, strict=True)]
    return np.pad(np_arr.astype(dtype), around, constant_values=pad_value)


def get_slice(
    spatial_dimensions: int,
    pad_np: Array,
    dim_coord: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """The window at one position of padded data with channels first."""
    windows = [
        slice(c * s, c * s + (k - 1) * d + 1, d)
        for c, s, k, d in zip(dim_coord, strides, kernel, dilation, strict=True)
    ]
    window = (slice(None), slice(None), *windows[:spatial_dimensions])
    return pad_np[window]


def poolnd_python(
    np_data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: Any = "float32",
    layout: str | None = None,
) -> Array:
    """The greatest element ("max") or the average ("avg") of each window.

    Parameters
    ----------
    np_data : numpy.ndarray
        (N, C, spatial...), or with channels last, as `layout` says.
    kernel, strides, dilation, padding_before, padding_after : sequence of int
        One number for each spatial axis.
    pool_type : str
        "max" or "avg".
    count_include_pad : bool
        Whether padding counts in averages.
    ceil_mode : bool
        Whether windows may lie partly behind the padding.
    """
    is_last = layout is not None and layout.endswith("C")
    data = np.moveaxis(np_data, -1, 1) if is_last else np_data
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    after = list(padding_after)
    if ceil_mode:
        for axis, (n, b) in enumerate(zip(data.shape[2:], padding_before, strict=True)):
            left = (n + b + after[axis] - reach[axis]) % strides[axis]
            after[axis] += (strides[axis] - left) % strides[axis]

    def windows(array: Array, value: float, behind: float) -> Array:
        own = pad_tensor(array, value, padding_before, padding_after, "float64")
        extra = [a - p for a, p in zip(after, padding_after, strict=True)]
        found = windows_of(
            pad_tensor(own, behind, [0] * len(kernel), extra, "float64"), reach, strides
        )
        kept: Any = (..., *[slice(None, None, d) for d in dilation])
        return np.asarray(found[kept])

    over = tuple(range(-len(kernel), 0))
    if pool_type == "max":
        out = windows(data, -np.inf, -np.inf).max(over)
        # of nothing but padding: padding counts, or the least value that there is
        nothing = 0 if count_include_pad else _least(dtype)
        out = np.where(np.isneginf(out), nothing, out)
    elif pool_type == "avg":
        # what lies behind the padding never counts
        weight = windows(np.ones_like(data, "float64"), float(count_include_pad), 0.0).sum(over)
        out = windows(data, 0.0, 0.0).sum(over) / np.maximum(weight, 1)
    else:
        raise RuntimeValueError(f"a pool_type of max or avg is required, got {pool_type!r}")
    return np.asarray((np.moveaxis(out, 1, -1) if is_last else out).astype(dtype))


def _least(dtype: Any) -> float:
    kind = np.dtype(dtype)
    return float(np.finfo(kind).min if kind.kind == "f" else np.iinfo(kind).min)


def adaptive_pool_channel_first(
    np_data: Array, out_size: Sequence[int], pool_op: str, np_op: Callable[..., Any]
) -> Array:
    """Pooling of (N, C, spatial...) to a size, by a function of numpy such as `np.mean`."""
    out = np.zeros((*np_data.shape[:2], *out_size), np_data.dtype)
    for at in np.ndindex(*out_size):
        bins = [
            slice(i * n // size, -(-(i + 1) * n // size))
            for i, n, size in zip(at, np_data.shape[2:], out_size, strict=True)
        ]
        window, pixel = (slice(None), slice(None), *bins), (slice(None), slice(None), *at)
        out[pixel] = np_op(np_data[window], tuple(range(2, np_data.ndim)))
    return out


def adaptive_pool_channel_last(
    np_data: Array, out_size: Sequence[int], pool_op: str, np_op: Callable[..., Any]
) -> Array:
    """As `adaptive_pool_channel_first`, with channels last."""
    first = adaptive_pool_channel_first(np.moveaxis(np_data, -1, 1), out_size, pool_op, np_op)
    return np.moveaxis(first, 1, -1)


def adaptive_pool(np_data: Array, out_size: Any, pool_type: str, layout: str) -> Array:
    """Pooling to a size; "max" or "avg"."""
    operations: dict[str, Callable[..., Any]] = {"max": np.max, "avg": np.mean}
    size = spread(out_size, np_data.ndim - 2)
    function = adaptive_pool_channel_last if layout.endswith("C") else adaptive_pool_channel_first
    return function(np_data, size, pool_type, operations[pool_type])


def pool_grad_nchw(
    a_np: Array,
    out_grad_np: Array,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    pool_type: str,
    ceil_mode: bool,
    count_include_pad: bool = True,
) -> Array:
    """The gradient of pooling; padding is (top, left, bottom, right)."""
    height, width = a_np.shape[2:]
    grad = np.zeros(a_np.shape, "float64")
    for y, x in np.ndindex(*out_grad_np.shape[2:]):
        top, left = y * strides[0] - padding[0], x * strides[1] - padding[1]
        bottom = min(top + pool_size[0], height + padding[2])
        right = min(left + pool_size[1], width + padding[3])
        whole = (bottom - top) * (right - left)
        rows = slice(max(top, 0), max(min(bottom, height), 0))
        columns = slice(max(left, 0), max(min(right, width), 0))
        window = a_np[:, :, rows, columns]
        given = out_grad_np[:, :, y, x]
        if window.size == 0:
            continue  # nothing but padding
        if pool_type == "avg":
            count = whole if count_include_pad else window.shape[2] * window.shape[3]
            grad[:, :, rows, columns] += (given / max(count, 1))[..., None, None]
        else:
            flat = window.reshape(*window.shape[:2], -1)
            mask = np.arange(flat.shape[2]) == flat.argmax(2)[..., None]
            grad[:, :, rows, columns] += (mask * given[..., None]).reshape(window.shape)
    return grad.astype(a_np.dtype)


__all__ = [
    "adaptive_pool",
    "adaptive_pool_channel_first",
    "adaptive_pool_channel_last",
    "pad_tensor",
    "pool_grad_nchw",
    "get_slice",
    "poolnd_python",
]
