"""Data layouts such as ``NCHW16c``: capital letters are axes, small ones parts split from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, leaf
from tvm.support.dtype import dtype as as_dtype

from . import op as _op
from .expr import IntImm, IterVar, Range, Var, as_exprs, const

_AXIS = re.compile(r"(\d*)([A-Za-z])")


class Layout(Node):
    """The order of an array's axes.

    Parameters
    ----------
    name : str
        Letters, small ones with their size before them; ``"__undef__"`` is an unknown layout.
    dtype : str
        The data type of the axes' variables.
    """

    name: str
    axes: tuple[IterVar, ...] = leaf(default=())

    def __init__(self, name: str, dtype: Any = "int32") -> None:
        if dtype is None or not as_dtype(dtype).is_int:
            raise RuntimeTypeError(f"layout requires a signed integer dtype, got {dtype}")
        self._init(name, () if name == "__undef__" else _axes_of(name, dtype))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.axes)

    def __iter__(self) -> Iterator[str]:
        return iter([axis.var.name for axis in self.axes])

    def __contains__(self, axis: object) -> bool:
        """Whether the letter is an axis; a size before a small one is ignored."""
        return isinstance(axis, str) and any(name == axis[-1:] for name in self)

    def __getitem__(self, index: int) -> str:
        if index >= len(self):
            raise IndexError(f"layout {self.name} has {len(self)} axes, got index {index}")
        return self.axes[index].var.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.name == other.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def index_of(self, axis: str) -> int:
        """The position of an axis, -1 if it is not there."""
        letters = list(self)
        return letters.index(axis) if axis in letters else -1

    def factor_of(self, axis: str) -> int:
        """The size of the parts split from an axis, -1 if there are none."""
        sizes = self.parts(axis)
        return _product(sizes) if sizes else -1

    def parts(self, axis: str) -> list[int]:
        """The sizes of the parts split from an axis, outer ones first."""
        small = axis.lower()
        extents = [a.dom.extent for a in self.axes if a.dom is not None and a.var.name == small]
        return [extent.value for extent in extents if isinstance(extent, IntImm)]

    @property
    def primal_axes(self) -> list[str]:
        """The capital letters."""
        return [letter for letter in self if letter.isupper()]


def _axes_of(name: str, dtype: Any) -> tuple[IterVar, ...]:
    axes: list[IterVar] = []
    position = 0
    for match in _AXIS.finditer(name):
        size, letter = match.groups()
        if match.start() != position or (letter.isupper() == bool(size)):
            raise _bad_layout(name)
        position = match.end()
        extent = const(int(size), dtype) if size else Var(f"{letter}_shape", dtype)
        dom = Range.from_min_extent(const(0, dtype), extent)
        axes.append(IterVar(dom, Var(letter, dtype), IterVar.DataPar))
    letters = [axis.var.name for axis in axes]
    capitals = [letter for letter in letters if letter.isupper()]
    if position != len(name) or len(set(capitals)) != len(capitals):
        raise _bad_layout(name)
    if missing := [
        letter for letter in letters if letter.islower() and letter.upper() not in capitals
    ]:
        raise RuntimeValueError(
            f"layout requires an axis {missing[0].upper()} beside its part {missing[0]}, got {name!r}"
        )
    return tuple(axes)


def _bad_layout(name: str) -> ValueError:
    return RuntimeValueError(
        f"layout requires capital letters, and small ones with their sizes, as in NCHW16c; got {name!r}"
    )


def _product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


class BijectiveLayout(Node):
    """The way from one layout to another and back.

    Parameters
    ----------
    src_layout, dst_layout : Layout or str
        Two layouts with the same axes.
    """

    src_layout: Layout = leaf()
    dst_layout: Layout = leaf()

    def __init__(self, src_layout: Layout | str, dst_layout: Layout | str) -> None:
        src, dst = layout(src_layout), layout(dst_layout)
        if not _are_convertible(src, dst):
            raise RuntimeValueError(
                f"a bijective layout requires the same axes, got {src} and {dst}"
            )
        self._init(src, dst)

    def forward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at an index of the source goes."""
        return _move_index(self.src_layout, self.dst_layout, index)

    def backward_index(self, index: Sequence[Any]) -> list[PrimExpr]:
        """Where the element at an index of the destination comes from."""
        return _move_index(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """The shape in the destination layout, parts that are not full rounded up."""
        return _move_shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape: Sequence[Any]) -> list[PrimExpr]:
        """The shape in the source layout."""
        return _move_shape(self.dst_layout, self.src_layout, shape)


def _move_index(src: Layout, dst: Layout, index: Sequence[Any]) -> list[PrimExpr]:
    values = as_exprs(index)
    if len(values) != len(src):
        raise RuntimeValueError(f"layout {src} requires {len(src)} indices, got {len(values)}")
    whole: dict[str, PrimExpr] = {}
    for letter in src.primal_axes:
        value = values[src.index_of(letter)]
        positions = [i for i, a in enumerate(src) if a == letter.lower()]
        for position, size in zip(positions, src.parts(letter), strict=True):
            value = _op.add(_op.multiply(value, size), values[position])
        whole[letter] = value
    seen: dict[str, int] = {}
    result = []
    for letter in dst:
        sizes = dst.parts(letter)
        value = whole[letter.upper()]
        if letter.isupper():
            result.append(_op.floordiv(value, _product(sizes)))
            continue
        rank = seen.get(letter, 0)
        seen[letter] = rank + 1
        inner = _product(sizes[rank + 1 :])
        result.append(_op.floormod(_op.floordiv(value, inner), sizes[rank]))
    return result


def _move_shape(src: Layout, dst: Layout, shape: Sequence[Any]) -> list[PrimExpr]:
    extents = as_exprs(shape)
    if len(extents) != len(src):
        raise RuntimeValueError(f"layout {src} requires {len(src)} extents, got {len(extents)}")
    result = []
    seen: dict[str, int] = {}
    for letter in dst:
        if letter.isupper():
            whole = _op.multiply(extents[src.index_of(letter)], _product(src.parts(letter)))
            result.append(_op.ceildiv(whole, _product(dst.parts(letter))))
            continue
        rank = seen.get(letter, 0)
        seen[letter] = rank + 1
        result.append(const(dst.parts(letter)[rank], extents[0].dtype))
    return result


def layout(layout_str: Layout | str, dtype: Any = "int32") -> Layout:
    """A layout by its name."""
    if isinstance(layout_str, Layout):
        return layout_str
    is_usual = type(layout_str) is str and type(dtype) is str
    return _named(layout_str, dtype) if is_usual else Layout(layout_str, dtype)


_named = lru_cache(maxsize=256)(Layout)  # each convolution of a model asks for the same few


def bijective_layout(src_layout: Layout | str, dst_layout: Layout | str) -> BijectiveLayout | None:
    """The way from one layout to another and back; None if their axes differ."""
    src, dst = layout(src_layout), layout(dst_layout)
    return BijectiveLayout(src, dst) if _are_convertible(src, dst) else None


def _are_convertible(src: Layout, dst: Layout) -> bool:
    return len(src) > 0 and sorted(src.primal_axes) == sorted(dst.primal_axes)
