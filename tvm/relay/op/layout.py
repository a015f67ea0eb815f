"""How data layouts spread through operators that compute nothing in them.

A rule gets the layouts that the producers of the arguments chose (None: plain), and says which
layouts the operator takes and gives. `NCHW16c` is the 4-d layout with channels in blocks of 16.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.ir.attrs import Attrs
from tvm.ir.type import Type

from .registry import LayoutChoice
from .types import shape_of_type


def layout_any(
    attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Element-wise operators of one argument: whatever comes."""
    return LayoutChoice((in_layouts[0],), (in_layouts[0],))


def layout_broadcast(
    attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Broadcasting operators: all arguments in the first blocked layout found.

    An argument of lower rank takes the tail of the layout: (64, 1, 1) beside NCHW16c becomes
    CHW16c, (4, 1, 1, 16).
    """
    chosen = _blocked(in_layouts)
    if chosen is None:
        return None
    axes = "".join([str(a) for a in primal_axes(chosen)])
    wanted: list[tir.Layout | None] = []
    for given, ty in zip(in_layouts, arg_types, strict=True):
        found = _operand_layout(chosen, axes, given, shape_of_type(ty))
        if found is False:
            return None
        wanted.append(found)  # type: ignore[arg-type]
    if not any(wanted):
        return None  # single elements, left as they are
    return LayoutChoice(tuple(wanted), (chosen,))


def layout_bound(
    attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Operators with a `layout` attribute that keep it: pooling, resizing."""
    chosen = in_layouts[0]
    plain = attrs["layout"]
    if "out_layout" in attrs and attrs["out_layout"] not in ("", plain):
        return None
    if chosen is None or not same_primal_axes(chosen, tir.layout(plain)):
        return None
    if _splits_spatial_axis(chosen):
        return None
    result = {"out_layout": ""} if "out_layout" in attrs else {}
    out = attrs.replace(layout=chosen.name, **result)
    return LayoutChoice((chosen,), (chosen,), out)


def layout_concatenate(
    attrs: Attrs, in_layouts: Sequence[tir.Layout | None], arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """Concatenation: along blocked channels only if every part is a whole number of blocks."""
    fields = arg_types[0].fields
    chosen = _blocked(in_layouts)
    rank = len(fields[0].shape)
    if chosen is None or len(primal_axes(chosen)) != rank:
        return None
    axis = primal_axes(chosen)[attrs["axis"] % rank]
    factor = chosen.factor_of(axis)
    if factor > 0:
        position = attrs["axis"] % rank
        for field in fields:
            extent = shape_of_type(field)[position]
            if not isinstance(extent, int) or extent % factor:
                return None
    moved = attrs.replace(axis=chosen.index_of(axis))
    return LayoutChoice((chosen,) * len(fields), (chosen,), moved)


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


def _blocked(layouts: Sequence[tir.Layout | None]) -> tir.Layout | None:
    for found in layouts:
        if found is not None and has_blocks(found):
            return found
    return None


def _operand_layout(
    chosen: tir.Layout, axes: str, given: tir.Layout | None, shape: tuple[object, ...]
) -> tir.Layout | bool | None:
    """The layout one operand must have; None: leave it; False: it cannot be had."""
    if all(d == 1 for d in shape):
        return None
    if len(shape) > len(axes):
        return False
    own = axes[len(axes) - len(shape) :]
    if len(own) == len(axes) and own == "".join(sorted(axes)) and given is chosen:
        return chosen
    name = own
    for letter, factor in _blocks(chosen):
        if letter.upper() not in own:
            return False  # its last axis would meet the blocks
        extent = shape[own.index(letter.upper())]
        if extent == 1:
            name += f"1{letter}"
        elif isinstance(extent, int) and extent % factor == 0:
            name += f"{factor}{letter}"
        else:
            return False
    if name.lower() == name.upper():
        return False
    return tir.layout(_reordered(chosen, own) + name[len(own) :])


def _reordered(chosen: tir.Layout, own: str) -> str:
    return "".join([a for a in primal_axes(chosen) if a in own])


def _blocks(of: tir.Layout) -> list[tuple[str, int]]:
    found = []
    for letter in of.name:
        if letter.islower():
            found.append((letter, int(of.factor_of(letter.upper()))))
    return found
