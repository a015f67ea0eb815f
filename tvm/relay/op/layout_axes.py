"""How layouts spread through operators that name axes.

nn.conv1d -> squeeze -> add -> expand_dims -> nn.conv1d        NCHW16c, NCW16c, NCW16c, NCHW16c
nn.conv2d -> split(axis=3)  in NHWC    becomes    nn.conv2d -> split(axis=1)  in NCHW

What a rule is asked stands in `layout.py`. An operator that would part a block does not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tir
from tvm.ir.attrs import Attrs
from tvm.ir.type import TensorType, Type

from .attributes import as_ints
from .layout import Layouts, data_layouts, has_blocks, layout_names
from .registry import InferLayout, LayoutChoice
from .types import Dim, Shape, are_known, shape_of_type

_CHANNELS = "C"  # of vectors beside the data
_SPATIAL = "WHDABEF"


@dataclass(frozen=True)
class Move:
    """The layouts that the first argument had and has, which name its axes, and what stands beside it."""

    source: tir.Layout
    target: tir.Layout
    shapes: tuple[Shape, ...]  # of the arguments that are tensors
    beside: Layouts  # the layouts that the other arguments had
    wanted: Layouts | None  # and those that they come in now, None if nothing was chosen yet

    def axes(self, letters: Sequence[str]) -> tuple[int, ...]:
        """Where axes stand now."""
        return as_ints([self.target.index_of(letter) for letter in letters])

    def has_blocks_of(self, letters: Sequence[str]) -> bool:
        """Whether one of the axes is in blocks now."""
        return any([self.target.factor_of(letter) > 0 for letter in letters])

    def choice(self, attrs: Attrs, *results: tir.Layout) -> LayoutChoice:
        """The data in its new layout alone, the other arguments in any; the results by default too."""
        inputs = (self.target, *[None] * len(self.beside))
        return LayoutChoice(inputs, results or (self.target,), attrs)


def of_data(rule: Callable[[Any, Move], LayoutChoice | None]) -> InferLayout[Any]:
    """A rule for data whose axes its layouts name; others keep theirs."""

    def infer(
        attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
    ) -> LayoutChoice | None:
        ends = _data_of_rank(new_in, old_in, arg_types)
        if ends is None:
            return None
        shapes = tuple([shape_of_type(ty) for ty in arg_types if isinstance(ty, TensorType)])
        return rule(attrs, Move(*ends, shapes, old_in[1:], new_in and new_in[1:]))

    infer.__doc__ = rule.__doc__
    return infer


def layout_along_axis(outputs: int = 1) -> InferLayout[Any]:
    """Operators along one axis, with vectors beside the data and the results: softmax, batch_norm."""

    @of_data
    def rule(attrs: Attrs, move: Move) -> LayoutChoice | None:
        vector = tir.layout(_CHANNELS)
        beside = move.shapes[1 : len(move.beside) + 1]
        inputs = [vector if len(shape) == 1 else None for shape in beside]
        if move.source != move.target:
            if has_blocks(move.target):
                return None
            letter = move.source[attrs["axis"] % len(move.source)]
            attrs = attrs.replace(axis=move.target.index_of(letter))
        results = (move.target, *(vector,) * (outputs - 1))
        return LayoutChoice((move.target, *inputs), results, attrs)

    return rule


@of_data
def layout_along_axes(attrs: Any, move: Move) -> LayoutChoice | None:
    """Operators along axes that keep the shape."""
    if move.source != move.target and attrs.axis is not None:
        letters = [move.source[axis % len(move.source)] for axis in attrs.axis]
        if move.has_blocks_of(letters):
            return None
        attrs = attrs.replace(axis=move.axes(letters))
    return move.choice(attrs)


@of_data
def layout_with_two_axes(attrs: Any, move: Move) -> LayoutChoice | None:
    """Two tensors of one rank, each with vectors along an axis of its own or single elements."""
    rank, source, target = len(move.source), move.source, move.target
    if len(move.shapes[1]) != rank:
        return None
    if move.wanted is not None and target == source and move.beside[0] == source:
        target = move.wanted[0] or target
    if source != target:
        for key, first in (("lhs_axis", 2), ("rhs_axis", 4)):
            if not any(move.shapes[first : first + 2]):
                continue
            letter = source[attrs[key] % rank]
            if target.factor_of(letter) > 0:
                return None
            attrs = attrs.replace(**{key: target.index_of(letter)})
    others = [None] * (len(move.beside) - 1)
    return LayoutChoice((target, target, *others), (target,), attrs)


def layout_expanded(axis_of: Callable[[Attrs, int], int]) -> InferLayout[Attrs]:
    """Axes of extent 1 come in beside channels in blocks; `axis_of(attrs, rank)` is where."""

    @of_data
    def rule(attrs: Attrs, move: Move) -> LayoutChoice | None:
        source, target = move.source, move.target
        axis, free = axis_of(attrs, len(source)), [c for c in _SPATIAL if c not in source]
        if has_blocks(source) or axis < 2 or attrs.num_newaxis > len(free):
            return None
        added = list(reversed(free[: attrs.num_newaxis]))
        before = tir.layout("".join([*[*source][:axis], *added, *[*source][axis:]]))
        if move.wanted is None:
            return LayoutChoice((source,), (before,))
        if not has_blocks(target):
            return None
        names = layout_names(target)
        position = target.index_of(source[axis - 1]) + 1
        after = tir.layout("".join([*names[:position], *added, *names[position:]]))
        return move.choice(attrs.replace(axis=position), after)

    return rule


def layout_squeezed(axes_of: Callable[[Attrs, Shape], Sequence[int]]) -> InferLayout[Attrs]:
    """Axes of extent 1 go away."""

    @of_data
    def rule(attrs: Attrs, move: Move) -> LayoutChoice | None:
        gone = [move.source[axis] for axis in axes_of(attrs, move.shapes[0])]
        if move.has_blocks_of(gone) or (left := _without(move.target, gone)) is None:
            return None
        if move.source != move.target:
            attrs = attrs.replace(axis=move.axes(gone))
        return move.choice(attrs, left)

    return rule


def layout_reduced(
    axes_of: Callable[[Attrs, int], Sequence[int]], gives_positions: bool = False
) -> InferLayout[Attrs]:
    """Axes are summed up; a second argument has the shape of the data with the axes kept.

    Positions along several axes follow from the order of the axes, which has to stay.
    """

    @of_data
    def rule(attrs: Attrs, move: Move) -> LayoutChoice | None:
        source, target, rank = move.source, move.target, len(move.source)
        gone = [source[axis] for axis in axes_of(attrs, rank)]
        if gives_positions and not _same_order(source, target, gone):
            return None
        kept = tir.layout(
            "".join([f"1{n[-1]}" if _is_block_of(n, gone) else n for n in layout_names(target)])
        )
        left = kept if attrs.keepdims else _without(target, gone)
        if left is None or any([len(shape) != rank for shape in move.shapes]):
            return None
        if source != target and attrs.axis is not None:
            # with `exclude` the attribute names the axes that stay
            named = [c for c in source if (c in gone) != attrs.exclude]
            positions = [i for i, c in enumerate(target) if c.upper() in named]
            attrs = attrs.replace(axis=as_ints(positions))
        return LayoutChoice((target, *(kept,) * len(move.beside)), (left,), attrs)

    return rule


def layout_sliced(
    ranges_of: Callable[[Attrs, Shape], list[tuple[Dim, Dim, int]]],
) -> InferLayout[Any]:
    """Slices of full blocks; `ranges_of` gives (begin, extent, stride) of each axis."""

    @of_data
    def rule(attrs: Any, move: Move) -> LayoutChoice | None:
        source, target, shape = move.source, move.target, move.shapes[0]
        if source == target:
            return LayoutChoice((target,), (target,))
        if not are_known(shape):
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
        return attrs.replace(axes=as_ints(axes))
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
    """The attributes of a slice of full blocks, None if one is parted."""
    begins: list[Any] = []
    ends: list[Any] = []
    strides: list[int] = []
    axes: list[int] = []
    asked = [source[axis % len(source)] for axis in attrs.axes or range(len(source))]
    for position, name in enumerate(layout_names(target)):
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
        axes.append(position)
    return attrs.replace(
        begin=tuple(begins), end=tuple(ends), strides=tuple(strides), slice_mode="end",
        axes=None if attrs.axes is None else tuple(axes),
    )  # fmt: skip


@of_data
def layout_split(attrs: Any, move: Move) -> LayoutChoice | None:
    """Parts of full blocks, or of another axis."""
    source, target, shape = move.source, move.target, move.shapes[0]
    cuts = attrs.indices_or_sections
    count = cuts if isinstance(cuts, int) else len(cuts) + 1
    if count == 1:
        return None
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
            attrs = attrs.replace(indices_or_sections=as_ints([cut // block for cut in cuts]))
    if source != target:
        attrs = attrs.replace(axis=target.index_of(letter))
    return move.choice(attrs, *(target,) * count)


@of_data
def layout_transposed(attrs: Any, move: Move) -> LayoutChoice | None:
    """Another order of axes: the result has the layout that it had, the way there changes."""
    source, rank = move.source, len(move.source)
    if has_blocks(move.target):
        return None
    order = range(rank - 1, -1, -1) if attrs.axes is None else attrs.axes
    letters = [source[axis % rank] for axis in order]
    if source != move.target:
        attrs = attrs.replace(axes=move.axes(letters))
    return move.choice(attrs, tir.layout("".join(letters)))


@of_data
def layout_sliced_like(attrs: Any, move: Move) -> LayoutChoice | None:
    """Two tensors of known layouts; the axes along which they are cut have no blocks."""
    source, target, like = move.source, move.target, move.beside[0]
    if like is None:
        return None
    if source == target:
        return LayoutChoice((source, like), (source,))
    if like != source or not attrs.axes:
        return None
    letters = [source[axis % len(source)] for axis in attrs.axes]
    if move.has_blocks_of(letters):
        return None
    return LayoutChoice((target, target), (target,), attrs.replace(axes=move.axes(letters)))


@of_data
def layout_padded(attrs: Any, move: Move) -> LayoutChoice | None:
    """Padding of axes without blocks."""
    if move.source != move.target:
        widths = {c: tuple(width) for c, width in zip(move.source, attrs.pad_width, strict=True)}
        blocks = [c.upper() for c in move.target if c.islower()]
        if any([any(widths[letter]) for letter in blocks]):
            return None
        attrs = attrs.replace(pad_width=tuple([widths.get(c, (0, 0)) for c in move.target]))
    return move.choice(attrs)


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
