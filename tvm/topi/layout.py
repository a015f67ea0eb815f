"""Moving tensors between data layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import te, tir
from tvm.auto_scheduler.layout_rewrite import layouts_of_texts
from tvm.error import RuntimeValueError

from . import tag
from .utils import dims, prod

Parts = list[tuple[str, int]]


def layout_transform(
    array: te.Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None"
) -> te.Tensor:
    """Bring a tensor from one data layout to another."""
    if src_layout == dst_layout:
        return array
    source, target = layout_parts(src_layout), layout_parts(dst_layout)
    shape = _target_shape(dims(array.shape), source, target)

    def element(*i: Any) -> Any:
        whole: dict[str, Any] = {}
        # parts follow their axis, outer ones first
        for (letter, size), index in sorted(zip(target, i, strict=True), key=lambda p: p[0][1] > 0):
            axis = letter.upper()
            whole[axis] = whole[axis] * size + index if size else index
        return array(*[_source_index(position, source, whole) for position in range(len(source))])

    return te.compute(
        shape,
        element,
        name="T_layout_trans",
        tag=tag.INJECTIVE,
        attrs={"src_layout": src_layout, "dst_layout": dst_layout},
    )


def auto_scheduler_layout_transform(
    array: te.Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None"
) -> te.Tensor:
    """Bring a tensor to a layout that a state of the auto-scheduler reads it in.

    Parameters
    ----------
    array : te.Tensor
        The tensor.
    src_layout, dst_layout : str
        The extents and axes of the dimensions, such as ``"64k64j"`` and ``"4j64k16j"``.
    """
    source, target = layouts_of_texts(src_layout, dst_layout)
    if dims(array.shape) != tuple(source.new_shape):
        raise RuntimeValueError(f"layout {src_layout} needs another shape than {dims(array.shape)}")
    return te.compute(
        target.new_shape,
        lambda *i: array(*source.new_indices(target.old_indices(i))),
        name="auto_scheduler_layout_trans",
        tag=tag.INJECTIVE,
        attrs={"src_layout": src_layout, "dst_layout": dst_layout},
    )


def _source_index(position: int, source: Parts, whole: dict[str, Any]) -> Any:
    letter, size = source[position]
    inner = prod(_blocks(source[position + 1 :] if size else source, letter))
    index = whole[letter.upper()]
    index = index if inner == 1 else tir.indexdiv(index, inner)
    return tir.indexmod(index, size) if size else index


def _blocks(parts: Parts, axis: str) -> list[int]:
    """The sizes of an axis's parts, outer ones first."""
    return [size for letter, size in parts if letter == axis.lower()]


def _target_shape(shape: tuple[Any, ...], source: Parts, target: Parts) -> list[Any]:
    extents: dict[str, Any] = {}
    for (letter, _), extent in zip(source, shape, strict=True):
        axis = letter.upper()
        extents[axis] = extents[axis] * extent if axis in extents else extent
    found = []
    for letter, size in target:
        block = size or prod(_blocks(target, letter))
        is_whole = not size and block == 1
        found.append(size or (extents[letter] if is_whole else extents[letter] // block))
    return found


def transform_array(array: np.ndarray, src_layout: str, dst_layout: str) -> np.ndarray:
    """The same on the host: split the blocks off, permute, merge; a view where there is one."""
    source, target = layout_parts(src_layout), layout_parts(dst_layout)
    plain = _to_plain(array, source)
    axes = [letter for letter, _ in source if letter.isupper()]
    split_shape: list[int] = []
    positions: dict[str, list[int]] = {}
    for axis, extent in zip(axes, plain.shape, strict=True):
        blocks = _blocks(target, axis)
        positions[axis] = [len(split_shape)]
        positions[axis.lower()] = [len(split_shape) + 1 + i for i in range(len(blocks))]
        split_shape += [extent // prod(blocks), *blocks]
    order = [positions[letter].pop(0) for letter, _ in target]
    return np.asarray(plain.reshape(split_shape).transpose(order))


def _to_plain(array: np.ndarray, source: Parts) -> np.ndarray:
    """Merge the blocks of every axis."""
    letters = [letter for letter, _ in source]
    order: list[int] = []
    shape: list[int] = []
    for axis in [letter for letter in letters if letter.isupper()]:
        positions = [i for i, c in enumerate(letters) if c == axis]
        positions += [i for i, c in enumerate(letters) if c == axis.lower()]
        order += positions
        shape.append(prod([array.shape[i] for i in positions]))
    return np.asarray(array.transpose(order).reshape(shape))


def layout_parts(layout: str) -> Parts:
    """The dimensions of a layout as (letter, block size); 0 for the axes proper."""
    found: Parts = []
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
    if any([axis not in letters or axis.lower() in letters for axis in spatial]):
        raise RuntimeValueError(
            f"Unsupported layout {layout}: the axes {', '.join(spatial)} are required, without blocks"
        )
    return [letters.index(axis) for axis in spatial]
