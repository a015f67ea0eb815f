"""Moving tensors between data layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import te, tir

from . import tag
from .utils import dims


def layout_transform(
    array: te.Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None"
) -> te.Tensor:
    """Bring a tensor from one data layout to another."""
    if src_layout == dst_layout:
        return array
    source, target = layout_parts(src_layout), layout_parts(dst_layout)
    shape = _target_shape(dims(array.shape), source, target)

    def element(*i: Any) -> Any:
        at = dict(zip([letter for letter, _ in target], i, strict=True))
        blocks = {letter: size for letter, size in target if letter.islower()}
        whole: dict[str, Any] = {}
        for letter in [c for c, _ in source if c.isupper()]:
            index, small = at[letter], letter.lower()
            if small in blocks:
                index = index * blocks[small] + at[small]
            whole[letter] = index
        return array(*[_source_index(letter, size, source, whole) for letter, size in source])

    return te.compute(
        shape,
        element,
        name="T_layout_trans",
        tag=tag.INJECTIVE,
        attrs={"src_layout": src_layout, "dst_layout": dst_layout},
    )


def _source_index(
    letter: str, size: int, source: list[tuple[str, int]], whole: dict[str, Any]
) -> Any:
    if letter.islower():
        return tir.indexmod(whole[letter.upper()], size)
    blocks = dict(source)
    block = blocks.get(letter.lower())
    return whole[letter] if block is None else tir.indexdiv(whole[letter], block)


def _target_shape(
    shape: tuple[Any, ...], source: list[tuple[str, int]], target: list[tuple[str, int]]
) -> list[Any]:
    extents: dict[str, Any] = {}
    for (letter, _), extent in zip(source, shape, strict=True):
        axis = letter.upper()
        extents[axis] = extents[axis] * extent if axis in extents else extent
    blocks = dict(target)
    found = []
    for letter, size in target:
        if letter.islower():
            found.append(size)
            continue
        block = blocks.get(letter.lower(), 1)
        found.append(extents[letter] if block == 1 else extents[letter] // block)
    return found


def transform_array(array: np.ndarray, src_layout: str, dst_layout: str) -> np.ndarray:
    """The same on the host: split the blocks off, permute, merge."""
    source, target = layout_parts(src_layout), layout_parts(dst_layout)
    extents: dict[str, int] = {}
    for (letter, _), extent in zip(source, array.shape, strict=True):
        extents[letter.upper()] = extents.get(letter.upper(), 1) * extent
    plain = _to_plain(array, source)
    axes = [letter for letter, _ in source if letter.isupper()]
    blocks = {letter.upper(): size for letter, size in target if letter.islower()}
    split_shape: list[int] = []
    positions: dict[str, int] = {}
    for axis in axes:
        size = blocks.get(axis)
        if size is None:
            positions[axis] = len(split_shape)
            split_shape.append(extents[axis])
            continue
        positions[axis], positions[axis.lower()] = len(split_shape), len(split_shape) + 1
        split_shape += [extents[axis] // size, size]
    order = [positions[letter] for letter, _ in target]
    return np.ascontiguousarray(plain.reshape(split_shape).transpose(order))


def _to_plain(array: np.ndarray, source: list[tuple[str, int]]) -> np.ndarray:
    """Merge the blocks of every axis."""
    letters = [letter for letter, _ in source]
    order: list[int] = []
    shape: list[int] = []
    for letter in letters:
        if letter.islower():
            continue
        order.append(letters.index(letter))
        extent = array.shape[order[-1]]
        if letter.lower() in letters:
            order.append(letters.index(letter.lower()))
            extent *= array.shape[order[-1]]
        shape.append(extent)
    return array.transpose(order).reshape(shape)


def layout_parts(layout: str) -> list[tuple[str, int]]:
    """The dimensions of a layout as (letter, block size); 0 for the axes proper."""
    found: list[tuple[str, int]] = []
    size = 0
    for char in layout:
        if char.isdigit():
            size = size * 10 + int(char)
        else:
            found.append((char, size))
            size = 0
    return found


def axis_positions(layout: str, spatial: str) -> list[int]:
    """The positions of spatial axes in a layout, block sizes aside."""
    letters = [c for c in layout if c.isalpha()]
    return [letters.index(axis) for axis in spatial]
