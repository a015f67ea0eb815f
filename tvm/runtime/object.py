"""The root of every value that programs see: IR nodes, arrays, modules, packed functions.

It carries no data and needs no native library; the node kernel and the runtime derive from it.
"""

from __future__ import annotations


class Object:
    """Base class of nodes and of runtime values."""

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether both names refer to the very same object."""
        return self is other
