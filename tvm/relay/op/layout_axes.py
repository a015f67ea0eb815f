"""How blocked layouts spread through operators that name axes.

nn.conv1d -> squeeze -> add -> expand_dims -> nn.conv1d        NCHW16c, NCW16c, NCW16c, NCHW16c

The rules are for channels in blocks, NCW16c or NCHW16c: the other axes stay where they are, and
an operator that does not part a block computes what it did on the plain tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tir
from tvm.ir.attrs import Attrs
from tvm.ir.type import Type

from .layout import primal_axes
from .registry import InferLayout, LayoutChoice
from .types import Dim, Shape, shape_of_type

_AXES = {2: "NC", 3: "NCW", 4: "NCHW", 5: "NCDHW"}


def layout_expanded(axis_of: Callable[[Attrs, int], int]) -> InferLayout[Attrs]:
    """Axes of extent 1 come in behind the channels; `axis_of(attrs, rank)` is where."""

    def rule(
        attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        block, rank = _channel_block(in_layouts[0]), len(shape_of_type(arg_types[0]))
        axis = axis_of(attrs, rank)
        wider = _blocked(rank + attrs.num_newaxis, block)
        if wider is None or axis < 2:
            return None
        return LayoutChoice((in_layouts[0],), (wider,), attrs.replace(axis=axis))

    return rule


def layout_squeezed(axes_of: Callable[[Attrs, Shape], Sequence[int]]) -> InferLayout[Attrs]:
    """Axes of extent 1 behind the channels go away."""

    def rule(
        attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        block, shape = _channel_block(in_layouts[0]), shape_of_type(arg_types[0])
        gone = axes_of(attrs, shape)
        narrower = _blocked(len(shape) - len(gone), block)
        if narrower is None or {0, 1} & {*gone}:
            return None
        return LayoutChoice((in_layouts[0],), (narrower,), attrs.replace(axis=tuple(gone)))

    return rule


def layout_reduced(axes_of: Callable[[Attrs, int], Sequence[int]]) -> InferLayout[Attrs]:
    """Axes behind the channels are summed up; further arguments have the shape of the first."""

    def rule(
        attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        chosen, rank = in_layouts[0], len(shape_of_type(arg_types[0]))
        block, axes = _channel_block(chosen), axes_of(attrs, rank)
        left = _blocked(rank if attrs.keepdims else rank - len(axes), block)
        same_rank = all([len(shape_of_type(ty)) == rank for ty in arg_types])
        if left is None or {0, 1} & {*axes} or not same_rank:
            return None
        named = attrs.replace(axis=tuple(axes), exclude=False)
        return LayoutChoice((chosen,) * len(arg_types), (left,), named)

    return rule


def layout_sliced(
    ranges_of: Callable[[Attrs, Shape], list[tuple[Dim, Dim, int]]],
) -> InferLayout[Attrs]:
    """Slices of whole blocks of channels; `ranges_of` gives (begin, extent, stride) of each axis."""

    def rule(
        attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        chosen = in_layouts[0]
        block, shape = _channel_block(chosen), shape_of_type(arg_types[0])
        if not block or not all([isinstance(extent, int) for extent in shape]):
            return None
        ranges = ranges_of(attrs, shape)
        begin, count, stride = ranges[1]
        if stride != 1 or begin % block or count % block or any([r[2] < 1 for r in ranges]):
            return None
        ranges[1] = (begin // block, count // block, 1)
        new = attrs.replace(
            begin=tuple([r[0] for r in ranges]),
            end=tuple([r[0] + r[1] * r[2] for r in ranges]),
            strides=tuple([r[2] for r in ranges]),
            slice_mode="end",
            axes=None,
        )
        return LayoutChoice((chosen,), (chosen,), new)

    return rule


def layout_split(
    attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Parts of whole blocks of channels, or of another axis."""
    chosen = in_layouts[0]
    block, shape = _channel_block(chosen), shape_of_type(arg_types[0])
    axis, cuts = attrs.axis % len(shape), attrs.indices_or_sections
    count = cuts if isinstance(cuts, int) else len(cuts) + 1
    new = attrs.replace(axis=axis)
    if not block or count == 1 or not isinstance(shape[axis], int):
        return None
    if axis == 1 and isinstance(cuts, int):
        if shape[1] % (cuts * block):
            return None
    elif axis == 1:
        if any([cut % block for cut in (*cuts, shape[1])]):
            return None
        new = new.replace(indices_or_sections=tuple([cut // block for cut in cuts]))
    return LayoutChoice((chosen,), (chosen,) * count, new)


def _channel_block(of: tir.Layout | None) -> int:
    """The block of a layout such as NCHW16c; 0 of any other."""
    if of is None:
        return 0
    expected = _AXES.get(len(primal_axes(of)), "")
    block = int(of.factor_of("C")) if expected and "c" in of.name else 0
    return block if of.name == f"{expected}{block}c" else 0


def _blocked(rank: int, block: int) -> tir.Layout | None:
    if not block or rank not in _AXES:
        return None
    return tir.layout(f"{_AXES[rank]}{block}c")
