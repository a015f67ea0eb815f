"""Ways from an object to one of its parts: ``<root>.body[1].extent``."""

from __future__ import annotations

from typing import Any

from .object import Object


class ObjectPath(Object):
    """A way to a part; it grows by `attr`, `array_index`, `map_value` and the steps to what is missing.

    Start at `ObjectPath.root()`. Paths of equal steps are equal.
    """

    __slots__ = ("_key", "_length", "_parent")

    def __init__(self, parent: ObjectPath | None = None, key: Any = None) -> None:
        self._parent = parent
        self._key = key
        self._length: int = 1 if parent is None else parent._length + 1

    @staticmethod
    def root(root_name: str | None = None) -> RootPath:
        """The object itself, shown as ``<root>`` or by a name."""
        return RootPath(None, root_name)

    @property
    def parent(self) -> ObjectPath | None:
        """The path without its last step; None for a root."""
        return self._parent

    def __len__(self) -> int:
        return self._length

    def get_prefix(self, length: int) -> ObjectPath:
        """The path of the first steps; the root is one.

        Raises
        ------
        IndexError
            If the path has fewer steps, or `length` is less than 1.
        """
        if length < 1:
            raise IndexError(f"Prefix length must be at least 1, got {length} for {self}")
        if length > len(self):
            raise IndexError(
                f"Attempted to get a prefix longer than the path itself, got {length} for {self}, "
                f"which has {len(self)} steps"
            )
        path = self
        for _ in range(len(self) - length):
            assert path._parent is not None
            path = path._parent
        return path

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether `other` leads through this part."""
        return len(self) <= len(other) and other.get_prefix(len(self)) == self

    def attr(self, attr_key: str | None) -> ObjectPath:
        """On to a field; None: to one whose name is not known."""
        if attr_key is None:
            return UnknownAttributeAccessPath(self)
        return AttributeAccessPath(self, attr_key)

    def array_index(self, index: int) -> ArrayIndexPath:
        """On to an element."""
        return ArrayIndexPath(self, int(index))

    def missing_array_element(self, index: int) -> MissingArrayElementPath:
        """On to an element that the array does not have, another one does."""
        return MissingArrayElementPath(self, int(index))

    def map_value(self, key: Any) -> MapValuePath:
        """On to the value of a key."""
        return MapValuePath(self, key)

    def missing_map_entry(self) -> MissingMapEntryPath:
        """On to an entry that the map does not have, another one does."""
        return MissingMapEntryPath(self)

    def follow(self, value: Any) -> Any:
        """The part of `value`.

        Raises
        ------
        AttributeError, IndexError, KeyError
            If there is none.
        """
        for path in self._steps()[1:]:
            value = path._take(value)
        return value

    def _take(self, value: Any) -> Any:
        raise KeyError(str(self))  # what is missing

    def _step(self) -> str:
        raise NotImplementedError

    def _steps(self) -> list[ObjectPath]:
        steps: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            steps.append(path)
            path = path._parent
        return steps[::-1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectPath) or len(self) != len(other):
            return NotImplemented if not isinstance(other, ObjectPath) else False
        pairs = zip(self._steps(), other._steps(), strict=True)
        return all(type(a) is type(b) and a._key == b._key for a, b in pairs)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return "".join([path._step() for path in self._steps()])

    __repr__ = __str__


class RootPath(ObjectPath):
    """The object itself."""

    def _step(self) -> str:
        return "<root>" if self._key is None else str(self._key)


class AttributeAccessPath(ObjectPath):
    """A field."""

    def _take(self, value: Any) -> Any:
        return getattr(value, self._key)

    def _step(self) -> str:
        return f".{self._key}"


class UnknownAttributeAccessPath(ObjectPath):
    """A field whose name is not known."""

    def _step(self) -> str:
        return ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """An element of an array."""

    def _take(self, value: Any) -> Any:
        return value[self._key]

    def _step(self) -> str:
        return f"[{self._key}]"


class MissingArrayElementPath(ObjectPath):
    """An element that the array does not have."""

    def _step(self) -> str:
        return f"[<missing element #{self._key}>]"


class MapValuePath(ObjectPath):
    """The value of a key."""

    def _take(self, value: Any) -> Any:
        return value[self._key]

    def _step(self) -> str:
        key = self._key
        return f'["{key}"]' if isinstance(key, str) else f"[{key!r}]"


class MissingMapEntryPath(ObjectPath):
    """An entry that the map does not have."""

    def _step(self) -> str:
        return "[<missing entry>]"


class ObjectPathPair(Object):
    """A way in each of two objects that are compared."""

    __slots__ = ("_lhs", "_rhs")

    def __init__(self, lhs_path: ObjectPath, rhs_path: ObjectPath) -> None:
        self._lhs = lhs_path
        self._rhs = rhs_path

    @property
    def lhs_path(self) -> ObjectPath:
        """In the first object."""
        return self._lhs

    @property
    def rhs_path(self) -> ObjectPath:
        """In the second object."""
        return self._rhs
