"""Arrays, maps, text, shapes and tagged tuples, as classic programs name them.

Python's own containers are the containers of this package: IR nodes hold tuples and dicts, and a
packed call hands a list or a dict to a Python callback as it is. ``Array`` and ``Map`` are the classic
names for them, in two ways:

* ``isinstance(value, Array)`` holds for tuples and lists, ``isinstance(value, Map)`` for dicts, since
  they answer to everything that the classic containers do: length, iteration, indices from both ends,
  slices, ``items``, ``get``, ``in``;
* ``Array(items)`` and ``Map(items)``, which :func:`tvm.runtime.convert` makes, are a tuple and a dict
  that also do what only the classic ones did: they do not change, have ``same_as``, hash, print as
  ``[1, 2]``, and a slice of an array is a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from tvm._ffi.registry import get_global_func
from tvm.runtime.object import Object


def getitem_helper(obj: Any, elem_getter: Callable[[Any, int], Any], length: int, idx: Any) -> Any:
    """The element at an index, or the list of those of a slice.

    Parameters
    ----------
    obj : object
        The container.
    elem_getter : function
        ``elem_getter(obj, i)`` for ``0 <= i < length``.
    length : int
        How many elements there are.
    idx : int or slice
        Counted from the end if negative.
    """
    if isinstance(idx, slice):
        return [elem_getter(obj, i) for i in range(*idx.indices(length))]
    if not -length <= idx < length:
        raise IndexError(f"index {idx} is out of range: there are {length} elements")
    return elem_getter(obj, idx % length)


class _StringMeta(type):
    """``isinstance(text, String)`` holds for any text."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, str)


class String(str, Object, metaclass=_StringMeta):
    """Text; an ordinary ``str``."""

    __slots__ = ()


class ShapeTuple(tuple[int, ...], Object):
    """The extents of a shape."""

    __slots__ = ()

    def __new__(cls, shape: Iterable[int]) -> ShapeTuple:
        return super().__new__(cls, [int(extent) for extent in shape])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class _ArrayMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple)


class Array(tuple[Any, ...], Object, metaclass=_ArrayMeta):
    """A sequence that does not change."""

    __slots__ = ()

    type_key = "Array"

    def __getitem__(self, index: Any) -> Any:
        return getitem_helper(self, tuple.__getitem__, len(self), index)

    def __add__(self, other: Any) -> Array:
        return Array([*self, *other])

    def __radd__(self, other: Any) -> Array:
        return Array([*other, *self])

    def __repr__(self) -> str:
        return repr(list(self))


class _MapMeta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (dict, MappingProxyType))


def _reject_change(self: Map, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError("a Map does not change; make a new one: Map({**old, key: value})")


class Map(dict[Any, Any], Object, metaclass=_MapMeta):
    """A mapping that does not change; it keeps the order of its items."""

    __slots__ = ()

    type_key = "Map"

    __setitem__ = __delitem__ = __ior__ = _reject_change
    clear = pop = popitem = setdefault = update = _reject_change

    def items(self) -> list[tuple[Any, Any]]:  # type: ignore[override]
        """The keys with their values, as a list."""
        return list(super().items())

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return Map, (dict(self),)


class ADT(Object):
    """A tag and fields.

    Parameters
    ----------
    tag : int
        The constructor's number.
    fields : iterable
        The values.
    """

    __slots__ = ("_fields", "_native", "tag")

    def __init__(self, tag: int, fields: Iterable[Any]) -> None:
        self.tag = int(tag)
        self._native = None
        self._fields: tuple[Any, ...] | None = tuple(fields)

    @property
    def fields(self) -> tuple[Any, ...]:
        """The values; those of a native object are fetched when they are first asked for."""
        if self._fields is None:
            size = get_global_func("runtime.NativeADTSize")
            field = get_global_func("runtime.NativeADTField")
            self._fields = tuple([field(self, i) for i in range(size(self))])
        return self._fields

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: Any) -> Any:
        return getitem_helper(self.fields, tuple.__getitem__, len(self), index)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)

    def __repr__(self) -> str:
        return f"ADT(tag={self.tag}, fields={list(self.fields)})"


def adt_of_native(native: Any) -> ADT:
    """The Python side of a native tuple."""
    adt = ADT.__new__(ADT)
    adt._native = native
    adt._fields = None
    adt.tag = get_global_func("runtime.NativeADTTag")(adt)
    return adt


def tuple_object(fields: Iterable[Any] | None = None) -> ADT:
    """A tuple: tagged 0."""
    return ADT(0, fields or ())


def make_map(value: Mapping[Any, Any]) -> Map:
    """A map, whose keys must be objects, text or numbers."""
    for key in value:
        if not isinstance(key, (Object, str, int, float)):
            raise ValueError(f"Map needs objects, text or numbers as keys, got {type(key)}")
    return Map(value)
