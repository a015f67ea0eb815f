"""Values that classic programs name: text, shapes and tagged tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tvm.runtime.object import Object


class String(str, Object):
    """Text; an ordinary ``str``."""

    __slots__ = ()


class ShapeTuple(tuple[int, ...], Object):
    """The extents of a shape."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int]) -> ShapeTuple:
        return super().__new__(cls, [int(extent) for extent in shape])


class ADT(Object):
    """A tag and fields."""

    __slots__ = ("_fields", "tag")

    def __init__(self, tag: int, fields: Iterable[Any]) -> None:
        self.tag = tag
        self._fields = tuple(fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getitem__(self, index: Any) -> Any:
        return self._fields[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._fields)

    def __repr__(self) -> str:
        return f"ADT(tag={self.tag}, fields={list(self._fields)})"


def tuple_object(fields: Iterable[Any] | None = None) -> ADT:
    """A tuple: tagged 0."""
    return ADT(0, fields or ())
