"""How data layouts spread through operators that compute nothing in them.

A rule is asked twice. At first, with `new_in` None, it says which layouts the operator takes and
gives in the program as it is, from the layouts of the arguments where they are known. Then it gets
the layouts `new_in` that the arguments were brought to, and says which layouts the operator takes
and gives now, and its attributes in them. None: the operator cannot follow. A layout that is None
is unknown, an argument of which stays as it was.

`NCHW16c` is the 4-d layout with channels in blocks of 16.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.ir.attrs import Attrs
from tvm.ir.type import Type

from .registry import LayoutChoice
from .types import expect_tuple, shape_of_type

Layouts = Sequence[tir.Layout | None]


def layout_any(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Element-wise operators: all arguments in the first layout known."""
    given = old_in if new_in is None else new_in
    chosen = next((found for found in given if found is not None), None)
    return None if chosen is None else LayoutChoice((chosen,) * len(old_in), (chosen,))


def layout_data(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Element-wise operators of their first argument; the others are parameters."""
    ends = data_layouts(new_in, old_in)
    if ends is None:
        return None
    return LayoutChoice((ends[1], *[None] * (len(old_in) - 1)), (ends[1],))


def data_layouts(
    new_in: Layouts | None, old_in: Layouts, index: int = 0
) -> tuple[tir.Layout, tir.Layout] | None:
    """The layouts that an argument had and has, if they are known."""
    old = old_in[index]
    new = old if new_in is None else new_in[index]
    return None if old is None or new is None else (old, new)


def layout_broadcast(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Broadcasting operators: all arguments in the layout of the one that moved.

    An argument of lower rank gets axes of extent 1: (64, 1, 1) beside NCHW16c becomes NCHW, and
    then NCHW16c. A single element fits into any layout.
    """
    given = old_in if new_in is None else new_in
    shapes = [shape_of_type(ty) for ty in arg_types]
    if new_in is None:
        return _broadcast_as_it_is(given, shapes)
    widest = max([len(shape) for shape in shapes])
    wide = [i for i, shape in enumerate(shapes) if len(shape) == widest and given[i] is not None]
    # an argument that moved decides, so that none moves back
    moved = [i for i in wide if given[i] != old_in[i]]
    leader = next(iter([*moved, *wide]), None)
    chosen = None if leader is None else given[leader]
    if leader is None or chosen is None:
        return None
    wanted: list[tir.Layout | None] = []
    for i, shape in enumerate(shapes):
        own = chosen if i == leader else _operand_layout(chosen, old_in[i], shape)
        if own is None:
            return None
        wanted.append(given[i] if all([extent == 1 for extent in shape]) and i != leader else own)
    return LayoutChoice(tuple(wanted), (chosen,))


def _broadcast_as_it_is(
    given: Layouts, shapes: Sequence[tuple[object, ...]]
) -> LayoutChoice | None:
    """One known layout names the axes of the other arguments too, counted from the last."""
    rank = max([len(shape) for shape in shapes])
    known = [found for found, shape in zip(given, shapes, strict=True) if len(shape) == rank]
    chosen = next((found for found in known if found is not None), None)
    if chosen is None or len(chosen) != rank:
        return None
    wanted = [
        tail_of(chosen, len(shape)) if found is None else found
        for found, shape in zip(given, shapes, strict=True)
    ]
    return LayoutChoice(tuple(wanted), (chosen,))


def tail_of(of: tir.Layout, count: int) -> tir.Layout | None:
    """The last axes of a layout; None if a block among them is without its axis."""
    parts = layout_names(of)[len(of) - count :]
    return None if any([_is_orphan(part, parts) for part in parts]) else tir.layout("".join(parts))


def _is_orphan(part: str, parts: Sequence[str]) -> bool:
    return part[-1].islower() and part[-1].upper() not in parts


def layout_names(of: tir.Layout) -> list[str]:
    """The axes with the sizes of blocks: N, C, H, W, 16c."""
    names = []
    for axis in of.axes:
        letter = axis.var.name
        extent = axis.dom.extent if letter.islower() and axis.dom is not None else ""
        names.append(f"{extent}{letter}")
    return names


def _operand_layout(
    chosen: tir.Layout, own: tir.Layout | None, shape: tuple[object, ...]
) -> tir.Layout | None:
    """The layout of one operand beside that of the others; None: it cannot be had.

    Axes along which the operand has a single element are in blocks of one.
    """
    if own is None or not set(own.primal_axes) <= set(chosen.primal_axes):
        return tir.layout("") if all([extent == 1 for extent in shape]) else None
    if own == chosen:
        return chosen
    if len(own) != len(shape):
        return None
    extents: dict[str, object] = dict.fromkeys(chosen.primal_axes, 1)
    for letter, extent in zip(own, shape, strict=True):
        if extent != 1 or letter.upper() not in extents:
            extents[letter.upper()] = extent
    names = [
        f"1{name[-1]}" if name[-1].islower() and extents[name[-1].upper()] == 1 else name
        for name in layout_names(chosen)
    ]
    return tir.layout("".join(names))


def layout_bound(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Operators with a `layout` attribute that keep it: pooling, resizing.

    A result in a layout that the program asks for keeps it, and so does the data.
    """
    plain = tir.layout(attrs["layout"])
    out = str(attrs["out_layout"]) if "out_layout" in attrs else ""
    rest = (None,) * (len(old_in) - 1)
    as_it_is = LayoutChoice((plain, *rest), (tir.layout(out or plain.name),))
    if new_in is None or out:
        return as_it_is
    chosen = new_in[0]
    if chosen is None or chosen == plain or old_in[0] != plain:
        return as_it_is
    if not same_primal_axes(chosen, plain) or _splits_spatial_axis(chosen):
        return as_it_is
    return LayoutChoice((chosen, *rest), (chosen,), attrs.replace(layout=chosen.name))


def layout_named(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Operators in the layouts that their attributes name, whatever comes: convolutions."""
    keys = ("data_layout", "kernel_layout") if "data_layout" in attrs else ("layout",)
    named = [tir.layout(str(attrs[key])) if key in attrs else None for key in keys]
    out = str(attrs["out_layout"]) if "out_layout" in attrs else ""
    inputs = (*named, *[None] * len(old_in))[: len(old_in)]
    return LayoutChoice(inputs, (tir.layout(out) if out else named[0],))


def layout_concatenate(
    attrs: Attrs, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Concatenation: along blocked channels only if every part is an integral number of blocks."""
    fields = expect_tuple(arg_types[0], "concatenate")
    given = old_in if new_in is None else new_in
    rank = len(shape_of_type(fields[0]))
    count = len(fields)
    old = next((found for found in old_in[:count] if found is not None), None)
    if old is None or len(old) != rank:
        return None
    moved = [x for x, before in zip(given, old_in, strict=True) if x != before][:count]
    chosen = next((x for x in (*moved, *given[:count]) if x is not None and len(x) >= rank), None)
    rest = (None,) * (len(old_in) - count)  # scales and zero points
    position = attrs["axis"] % rank
    if chosen is None or not set(old) <= set(chosen) or (has_blocks(old) and chosen != old):
        return None
    axis = old[position]
    factor = chosen.factor_of(axis)
    if factor > 0 and chosen != old:
        for field in fields:
            extent = shape_of_type(field)[position]
            if not isinstance(extent, int) or extent % factor:
                return None
    moved_attrs = attrs if chosen == old else attrs.replace(axis=chosen.index_of(axis))
    return LayoutChoice((*(chosen,) * count, *rest), (chosen,), moved_attrs)


def primal_axes(of: tir.Layout) -> list[str]:
    """The axes proper of a layout: N, C, H, W of NCHW16c."""
    return [c for c in of.name if c.isalpha() and c.isupper()]


def same_primal_axes(a: tir.Layout, b: tir.Layout) -> bool:
    """Whether two layouts describe tensors of the same axes."""
    return sorted(primal_axes(a)) == sorted(primal_axes(b))


def has_blocks(of: tir.Layout) -> bool:
    """Whether some axis is split into blocks."""
    return any(c.islower() for c in of.name)


def _splits_spatial_axis(of: tir.Layout) -> bool:
    return any(c.islower() and c != "c" for c in of.name)
