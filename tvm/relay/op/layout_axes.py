"""How layouts spread through operators that name axes.

nn.conv1d -> squeeze -> add -> expand_dims -> nn.conv1d        NCHW16c, NCW16c, NCW16c, NCHW16c
nn.conv2d -> split(axis=3)  in NHWC    becomes    nn.conv2d -> split(axis=1)  in NCHW

What a rule is asked stands in `layout.py`. An operator that would part a block does not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.ir.attrs import Attrs
from tvm.ir.type import Type

from .layout import Layouts, data_layouts, has_blocks, layout_names
from .registry import InferLayout, LayoutChoice
from .types import Dim, Shape, shape_of_type

_CHANNELS = "C"  # of vectors beside the data
_SPATIAL = "WHDABEF"


def layout_along_axis(outputs: int = 1) -> InferLayout[Any]:
    """Operators along one axis, with vectors beside the data and the results: softmax, batch_norm."""

    def rule(
        attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        if ends is None:
            return None
        source, target = ends
        vector = tir.layout(_CHANNELS)
        inputs = [
            vector if len(shape_of_type(ty)) == 1 else None for ty in arg_types[1 : len(old_in)]
        ]
        if source != target:
            if has_blocks(target):
                return None
            letter = source[attrs["axis"] % len(source)]
            attrs = attrs.replace(axis=target.index_of(letter))
        return LayoutChoice((target, *inputs), (target, *(vector,) * (outputs - 1)), attrs)

    return rule


def layout_along_axes(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Operators along axes that keep the shape."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    if ends is None:
        return None
    source, target = ends
    if source != target and attrs.axis is not None:
        letters = [source[axis % len(source)] for axis in attrs.axis]
        if any([target.factor_of(letter) > 0 for letter in letters]):
            return None
        attrs = attrs.replace(axis=tuple([target.index_of(letter) for letter in letters]))
    return LayoutChoice((target,), (target,), attrs)


def layout_with_two_axes(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Two tensors of one rank, each with vectors along an axis of its own or single elements."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    rank = len(shape_of_type(arg_types[0]))
    if ends is None or len(shape_of_type(arg_types[1])) != rank:
        return None
    source, target = ends
    if new_in is not None and target == source and old_in[1] == source and new_in[1] is not None:
        target = new_in[1]
    if source != target:
        for key, first in (("lhs_axis", 2), ("rhs_axis", 4)):
            if all([not shape_of_type(ty) for ty in arg_types[first : first + 2]]):
                continue
            letter = source[attrs[key] % rank]
            if target.factor_of(letter) > 0:
                return None
            attrs = attrs.replace(**{key: target.index_of(letter)})
    return LayoutChoice((target, target, *[None] * (len(old_in) - 2)), (target,), attrs)


def layout_expanded(axis_of: Callable[[Attrs, int], int]) -> InferLayout[Attrs]:
    """Axes of extent 1 come in beside channels in blocks; `axis_of(attrs, rank)` is where."""

    def rule(
        attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        rank = len(shape_of_type(arg_types[0]))
        if ends is None or has_blocks(ends[0]):
            return None
        source, target = ends
        axis, free = axis_of(attrs, rank), [c for c in _SPATIAL if c not in source]
        if axis < 2 or attrs.num_newaxis > len(free):
            return None
        added = list(reversed(free[: attrs.num_newaxis]))
        before = tir.layout("".join([*[*source][:axis], *added, *[*source][axis:]]))
        if new_in is None:
            return LayoutChoice((source,), (before,))
        if not has_blocks(target):
            return None
        names = layout_names(target)
        place = target.index_of(source[axis - 1]) + 1
        after = tir.layout("".join([*names[:place], *added, *names[place:]]))
        return LayoutChoice((target,), (after,), attrs.replace(axis=place))

    return rule


def layout_squeezed(axes_of: Callable[[Attrs, Shape], Sequence[int]]) -> InferLayout[Attrs]:
    """Axes of extent 1 go away."""

    def rule(
        attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        if ends is None:
            return None
        source, target = ends
        gone = [source[axis] for axis in axes_of(attrs, shape_of_type(arg_types[0]))]
        if any([target.factor_of(letter) > 0 for letter in gone]):
            return None
        left = _without(target, gone)
        if source != target:
            attrs = attrs.replace(axis=tuple([target.index_of(letter) for letter in gone]))
        return None if left is None else LayoutChoice((target,), (left,), attrs)

    return rule


def layout_reduced(
    axes_of: Callable[[Attrs, int], Sequence[int]], gives_positions: bool = False
) -> InferLayout[Attrs]:
    """Axes are summed up; a second argument has the shape of the data with the axes kept.

    Positions along several axes follow from the order of the axes, which has to stay.
    """

    def rule(
        attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        if ends is None:
            return None
        source, target = ends
        rank = len(source)
        gone = [source[axis] for axis in axes_of(attrs, rank)]
        if gives_positions and not _same_order(source, target, gone):
            return None
        kept = tir.layout(
            "".join([f"1{n[-1]}" if _is_block_of(n, gone) else n for n in layout_names(target)])
        )
        left = kept if attrs.keepdims else _without(target, gone)
        if left is None or any([len(shape_of_type(ty)) != rank for ty in arg_types]):
            return None
        if source != target and attrs.axis is not None:
            # with `exclude` the attribute names the axes that stay
            named = [c for c in source if (c in gone) != attrs.exclude]
            places = [i for i, c in enumerate(target) if c.upper() in named]
            attrs = attrs.replace(axis=tuple(places))
        return LayoutChoice((target, *(kept,) * (len(old_in) - 1)), (left,), attrs)

    return rule


def layout_sliced(
    ranges_of: Callable[[Attrs, Shape], list[tuple[Dim, Dim, int]]],
) -> InferLayout[Any]:
    """Slices of whole blocks; `ranges_of` gives (begin, extent, stride) of each axis."""

    def rule(
        attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        if ends is None or ends[0] == ends[1]:
            return ends and LayoutChoice((ends[1],), (ends[1],))
        source, target = ends
        shape = shape_of_type(arg_types[0])
        if not all([isinstance(extent, int) for extent in shape]):
            return None
        if has_blocks(target):
            moved = _sliced_blocks(attrs, source, target, ranges_of(attrs, shape))
        else:
            moved = _sliced_axes(attrs, source, target, shape)
        return None if moved is None else LayoutChoice((target,), (target,), moved)

    return rule


def _sliced_axes(attrs: Any, source: tir.Layout, target: tir.Layout, shape: Shape) -> Any:
    """The attributes of a slice with its axes in another order."""
    if attrs.axes is not None:
        axes = [target.index_of(source[axis % len(source)]) for axis in attrs.axes]
        return attrs.replace(axes=tuple(axes))
    ends: Sequence[Any] = [-1] * len(shape) if attrs.slice_mode == "size" else shape
    values = []
    for given, missing in (
        (attrs.begin, [0] * len(shape)),
        (attrs.end, ends),
        (attrs.strides, [attrs.strides[0] if len(attrs.strides) == 1 else 1] * len(shape)),
    ):
        full = [*given, *missing[len(given) :]]
        values.append(tuple([full[source.index_of(letter)] for letter in target]))
    return attrs.replace(begin=values[0], end=values[1], strides=values[2])


def _sliced_blocks(
    attrs: Any, source: tir.Layout, target: tir.Layout, ranges: Sequence[tuple[Any, Any, int]]
) -> Any:
    """The attributes of a slice of whole blocks, None if one is parted."""
    begins: list[Any] = []
    ends: list[Any] = []
    strides: list[int] = []
    axes: list[int] = []
    asked = [source[axis % len(source)] for axis in attrs.axes or range(len(source))]
    for place, name in enumerate(layout_names(target)):
        letter = name[-1]
        if letter not in asked:
            if letter.islower() and letter.upper() in asked and attrs.axes is None:
                begins, ends, strides = [*begins, 0], [*ends, int(name[:-1])], [*strides, 1]
            continue
        begin, count, stride = ranges[source.index_of(letter)]
        block = target.factor_of(letter)
        if stride < 1:
            return None
        if block > 0:
            if stride != 1 or begin % block or count % block:
                return None
            begin, count = begin // block, count // block
        begins.append(begin)
        ends.append(begin + count * stride)
        strides.append(stride)
        axes.append(place)
    return attrs.replace(
        begin=tuple(begins), end=tuple(ends), strides=tuple(strides), slice_mode="end",
        axes=None if attrs.axes is None else tuple(axes),
    )  # fmt: skip


def layout_split(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Parts of whole blocks, or of another axis."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    shape, cuts = shape_of_type(arg_types[0]), attrs.indices_or_sections
    count = cuts if isinstance(cuts, int) else len(cuts) + 1
    if ends is None or count == 1:
        return None
    source, target = ends
    axis = attrs.axis % len(shape)
    extent, letter = shape[axis], source[axis]
    block = target.factor_of(letter) if source != target else -1
    if block > 0:
        if not isinstance(extent, int):
            return None
        if isinstance(cuts, int):
            if extent % (cuts * block):
                return None
        elif any([cut % block for cut in (*cuts, extent)]):
            return None
        else:
            attrs = attrs.replace(indices_or_sections=tuple([cut // block for cut in cuts]))
    if source != target:
        attrs = attrs.replace(axis=target.index_of(letter))
    return LayoutChoice((target,), (target,) * count, attrs)


def layout_transposed(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Another order of axes: the result has the layout that it had, the way there changes."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    if ends is None:
        return None
    source, target = ends
    rank = len(source)
    order = range(rank - 1, -1, -1) if attrs.axes is None else attrs.axes
    letters = [source[axis % rank] for axis in order]
    if source != target:
        if has_blocks(target):
            return None
        attrs = attrs.replace(axes=tuple([target.index_of(letter) for letter in letters]))
    elif has_blocks(source):
        return None
    return LayoutChoice((target,), (tir.layout("".join(letters)),), attrs)


def layout_sliced_like(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Two tensors of known layouts; the axes along which they are cut have no blocks."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    if ends is None or old_in[1] is None:
        return None
    source, target = ends
    if source == target:
        return LayoutChoice((source, old_in[1]), (source,))
    if old_in[1] != source or not attrs.axes:
        return None
    letters = [source[axis % len(source)] for axis in attrs.axes]
    if any([target.factor_of(letter) > 0 for letter in letters]):
        return None
    moved = attrs.replace(axes=tuple([target.index_of(letter) for letter in letters]))
    return LayoutChoice((target, target), (target,), moved)


def layout_padded(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Padding of axes without blocks."""
    ends = _data_of_rank(new_in, old_in, arg_types)
    if ends is None:
        return None
    source, target = ends
    if source != target:
        widths = {c: tuple(width) for c, width in zip(source, attrs.pad_width, strict=True)}
        blocks = [c.upper() for c in target if c.islower()]
        if any([any(widths[letter]) for letter in blocks]):
            return None
        attrs = attrs.replace(pad_width=tuple([widths.get(c, (0, 0)) for c in target]))
    return LayoutChoice((target, *[None] * (len(old_in) - 1)), (target,), attrs)


def _data_of_rank(
    new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> tuple[tir.Layout, tir.Layout] | None:
    """The layouts that the first argument had and has, if they name its axes."""
    ends = data_layouts(new_in, old_in)
    if ends is None:
        return None
    source, target = ends
    if len(source) != len(shape_of_type(arg_types[0])) or (
        has_blocks(source) and ends[0] != ends[1]
    ):
        return None
    return ends if source == target or set(source.primal_axes) == set(target.primal_axes) else None


def _is_block_of(name: str, letters: Sequence[str]) -> bool:
    return name[-1].islower() and name[-1].upper() in letters


def _without(of: tir.Layout, gone: Sequence[str]) -> tir.Layout | None:
    """The layout without some axes and their blocks; None if a block would lose its axis."""
    names = [name for name in layout_names(of) if name[-1] not in gone]
    names = [name for name in names if not _is_block_of(name, gone)]
    capitals = [name for name in names if name.isupper()]
    if any([name[-1].upper() not in capitals for name in names]):
        return None
    return tir.layout("".join(names))


def _same_order(source: tir.Layout, target: tir.Layout, letters: Sequence[str]) -> bool:
    """Whether elements follow each other along these axes as before."""
    before = [c for c in source if c in letters]
    after = [c for c in target if c.upper() in letters]
    if len(letters) == 1:
        return [c.upper() for c in after] in ([letters[0]], [letters[0]] * 2)
    return before == after
