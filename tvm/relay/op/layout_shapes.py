"""Shapes and tensors in data layouts: `NCHW16c` of (1, 4, 56, 56, 16) is N=1, C=64, H=56, W=56."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from tvm import te, topi
from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs

from .attributes import padding_pairs
from .types import Dim, Shape, apply, expect, largest, show

_PART = re.compile(r"(\d*)([a-zA-Z])")


def layout_parts(layout: str) -> list[tuple[str, int]]:
    """The dimensions of a layout as (letter, block size); 0 for the axes proper."""
    if not isinstance(layout, str):
        raise OpAttributeInvalid(f"a layout such as NCHW or NCHW16c is required, got {layout!r}")
    parts = [(letter, int(size or 0)) for size, letter in _PART.findall(layout)]
    if "".join([f"{size or ''}{letter}" for letter, size in parts]) != layout or not parts:
        raise OpAttributeInvalid(f"a layout such as NCHW or NCHW16c is required, got {layout!r}")
    return parts


def plain_layout(name: str) -> str:
    """The layout without its blocks: `NCHW16c` gives `NCHW`."""
    return re.sub(r"\d+[a-z]", "", name)


def expect_layouts(attrs: Attrs, who: str, *pairs: tuple[str, str]) -> None:
    """Accept these pairs of layouts of data and kernel."""
    given = (attrs.data_layout, attrs.kernel_layout)
    known = " or ".join([" and ".join(pair) for pair in pairs])
    expect(given in pairs, f"{who} requires layouts {known}, got {' and '.join(given)}")


def axes_extents(shape: Sequence[Dim], layout: str, who: str) -> dict[str, Dim]:
    """The extent of each axis proper."""
    parts = layout_parts(layout)
    expect(
        len(parts) == len(shape),
        f"{who} requires {len(parts)} dimensions for layout {layout}, got {show(tuple(shape))}",
    )
    extents: dict[str, Dim] = {}
    for (letter, _), extent in zip(parts, shape, strict=True):
        axis = letter.upper()
        extents[axis] = apply(lambda a, b: a * b, extents.get(axis, 1), extent)
    return extents


def shape_in_layout(extents: Mapping[str, Dim], layout: str) -> Shape:
    """The shape that axes of these extents have in a layout."""
    parts = layout_parts(layout)
    blocks: dict[str, int] = {}
    for letter, size in parts:
        if letter.islower():
            blocks[letter.upper()] = blocks.get(letter.upper(), 1) * size
    out: list[Dim] = []
    for letter, size in parts:
        if letter.islower():
            out.append(size)
        else:
            block = blocks.get(letter, 1)
            out.append(apply(lambda e, b=block: e // b, extents[letter]))
    return tuple(out)


def window_counts(
    have: Mapping[str, Dim],
    window: Mapping[str, Dim],
    spatial: str,
    padding: object,
    strides: Sequence[int],
    dilation: Sequence[int],
) -> dict[str, Dim]:
    """How many positions a window has along each spatial axis."""
    rank = len(spatial)
    pads = padding_pairs(padding, rank)

    def count(i: int, extent: Dim, size: Dim) -> Dim:
        reach = (size - 1) * dilation[i] + 1
        return largest((extent + (pads[i] + pads[i + rank]) - reach) // strides[i] + 1, 0)

    return {
        axis: apply(partial(count, i), have[axis], window[axis]) for i, axis in enumerate(spatial)
    }


def is_blocked(layout: str) -> bool:
    """Whether an axis is split into blocks."""
    return any(c.islower() for c in layout)


def axis_of(layout: str, letter: str) -> int:
    """The position of an axis (or block) in a layout."""
    for position, (found, _) in enumerate(layout_parts(layout)):
        if found == letter:
            return position
    raise OpAttributeInvalid(f"layout {layout} has no axis {letter}")


def moved(x: te.Tensor, source: str, target: str) -> te.Tensor:
    """A tensor of one layout in another one."""
    return x if source == target else topi.layout_transform(x, source, target)
