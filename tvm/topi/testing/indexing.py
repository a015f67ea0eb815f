"""Slices, gathers and rearrangements in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def _slices(
    shape: Sequence[int], begin: Sequence[int], end: Sequence[int], strides: Any, axes: Any
) -> tuple[slice, ...]:
    steps = list(strides or []) + [1] * (len(begin) - len(strides or []))
    found = [slice(None)] * len(shape)
    for i, axis in enumerate(axes if axes is not None else range(len(begin))):
        last = end[i] if i < len(end) else shape[axis]
        if steps[i] < 0 and last is not None and last < -shape[axis]:
            last = None
        found[axis] = slice(begin[i], last, steps[i])
    return tuple(found)


def strided_slice_python(
    data: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None,
    slice_mode: str = "end", axes: Sequence[int] | None = None,
) -> Array:  # fmt: skip
    """data[begin:end:strides]; with "size", `end` holds extents, -1 for the rest."""
    if slice_mode == "size":
        positions = range(len(begin)) if axes is None else axes
        end = [
            data.shape[axis] if n < 0 else b + n
            for axis, b, n in zip(positions, begin, end, strict=True)
        ]
        strides = None
    return data[_slices(data.shape, begin, end, strides, axes)]


def strided_set_python(
    data: Array, v: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
) -> Array:
    """data[begin:end:strides] = v"""
    out = data.copy()
    out[_slices(data.shape, begin, end, strides, None)] = v
    return np.asarray(out)


def slice_axis_python(data: Array, axis: int, begin: int, end: int | None = None) -> Array:
    """A slice of one axis."""
    found = [slice(None)] * data.ndim
    found[axis] = slice(begin, end)
    return data[tuple(found)]


def gather_python(data: Array, axis: int, indices: Array) -> Array:
    """Elements by their positions along one axis."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np: Array, indices_np: Array) -> Array:
    """Slices by index tuples, which stand along the first axis; floats are cut to integers."""
    return np.asarray(a_np[tuple(indices_np.astype("int64"))])


def one_hot(
    indices: Array, on_value: Any, off_value: Any, depth: int, axis: int, dtype: Any
) -> Array:
    """A new axis with `on_value` where the index is, `off_value` elsewhere."""
    hits = indices[..., None] == np.arange(depth)
    return np.asarray(np.moveaxis(np.where(hits, on_value, off_value), -1, axis).astype(dtype))


def sequence_mask(data: Array, valid_length: Array, mask_value: float, axis: int) -> Array:
    """One value behind the end of each sequence; the axes are (length, batch) or (batch, length)."""
    length = np.arange(data.shape[axis])
    inside = length[:, None] < valid_length if axis == 0 else length < valid_length[:, None]
    return np.where(inside.reshape(inside.shape + (1,) * (data.ndim - 2)), data, mask_value).astype(
        data.dtype
    )


def matrix_set_diag(
    input_np: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT"
) -> Array:
    """Replace diagonals of the last two axes."""
    low, high = (k, k) if isinstance(k, int) else (int(k[0]), int(k[1]))
    rows, columns = input_np.shape[-2:]
    out = input_np.copy()
    given = diagonal[..., None, :] if low == high and diagonal.ndim < input_np.ndim else diagonal
    above, below = align.split("_")
    for n, offset in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        is_right = (above if offset >= 0 else below) == "RIGHT"
        start = given.shape[-1] - length if is_right else 0
        i = np.arange(length)
        out[..., i - min(offset, 0), i + max(offset, 0)] = given[..., n, start : start + length]
    return np.asarray(out)


def searchsorted_ref(sorted_sequence: Array, values: Array, right: bool, out_dtype: Any) -> Array:
    """Where values would be inserted in sorted rows."""
    side: Any = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    found = np.zeros(values.shape, out_dtype)
    for row in np.ndindex(*values.shape[:-1]):
        found[row] = np.searchsorted(sorted_sequence[row], values[row], side)
    return found


def depth_to_space_python(data: Array, block_size: int, mode: str = "DCR") -> Array:
    """Channels to patches of positions."""
    batch, channels, height, width = data.shape
    depth = channels // block_size**2
    if mode == "DCR":
        parts = data.reshape(batch, block_size, block_size, depth, height, width)
        moved = parts.transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(batch, depth, block_size, block_size, height, width)
        moved = parts.transpose(0, 1, 4, 2, 5, 3)
    return np.asarray(moved.reshape(batch, depth, height * block_size, width * block_size))


def space_to_depth_python(data: Array, block_size: int) -> Array:
    """Patches of positions to channels."""
    batch, channels, height, width = data.shape
    size = block_size
    parts = data.reshape(batch, channels, height // size, size, width // size, size)
    moved = parts.transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(moved.reshape(batch, channels * size**2, height // size, width // size))


def space_to_batch_nd_python(
    data: Array, block_shape: Sequence[int], pad_before: Sequence[int], pad_after: Sequence[int],
    pad_value: float = 0,
) -> Array:  # fmt: skip
    """Blocks of the axes behind the batch to the batch."""
    count = len(block_shape)
    around = [(0, 0), *zip(pad_before, pad_after, strict=True)]
    around += [(0, 0)] * (data.ndim - 1 - count)
    padded = np.pad(data, around, constant_values=pad_value)
    batch, *rest = padded.shape
    shape = [batch]
    for n, size in zip(rest, block_shape, strict=False):
        shape += [n // size, size]
    blocks = [2 * i + 2 for i in range(count)]
    positions = [2 * i + 1 for i in range(count)]
    parts = padded.reshape(*shape, *rest[count:])
    behind = list(range(1 + 2 * count, parts.ndim))
    moved = parts.transpose(*blocks, 0, *positions, *behind)
    extents = [n // size for n, size in zip(rest, block_shape, strict=False)]
    return np.asarray(moved.reshape(-1, *extents, *rest[count:]))


def batch_to_space_nd_python(
    data: Array, block_shape: Sequence[int], crop_begin_list: Sequence[int],
    crop_end_list: Sequence[int],
) -> Array:  # fmt: skip
    """Parts of the batch to blocks of the axes behind it."""
    count = len(block_shape)
    batch, *rest = data.shape
    outer = batch // int(np.prod(block_shape))
    parts = data.reshape(*block_shape, outer, *rest)
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    moved = parts.transpose(*order, *range(2 * count + 1, parts.ndim))
    extents = [n * size for n, size in zip(rest, block_shape, strict=False)]
    whole = moved.reshape(outer, *extents, *rest[count:])
    cuts = [
        slice(b, n - e) for n, b, e in zip(extents, crop_begin_list, crop_end_list, strict=True)
    ]
    kept = (slice(None), *cuts)
    return np.asarray(whole[kept])
