"""The root of every value that programs see: IR nodes, arrays, modules, packed functions.

It carries no data and needs no native library; the node kernel and the runtime derive from it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tvm.support.rvalue import ObjectRValueRef


class Object:
    """Base class of nodes and of runtime values.

    Most objects are Python's own. A class that :func:`tvm.register_object` names after a kind that a
    C++ library declares has instances which stand for native objects: they hold the reference.
    """

    __slots__ = ()

    _native: Any = None

    def same_as(self, other: object) -> bool:
        """Whether both names refer to the very same object."""
        if self is other:
            return True
        native = self._native
        return native is not None and native == getattr(other, "_native", None)

    @property
    def handle(self) -> ctypes.c_void_p:
        """Where the object is in memory."""
        native = self._native
        found: ctypes.c_void_p = ctypes.c_void_p(id(self)) if native is None else native.handle
        return found

    def legacy_repr(self) -> str:
        """The text that ``str`` gives."""
        return str(self)

    def _move(self) -> Any:
        """This object as an argument that the callee may take over and change in place.

        An object that stands for a native one is empty afterwards.
        """
        return ObjectRValueRef(self)

    def __init_handle_by_constructor__(self, fconstructor: Callable[..., Any], *args: Any) -> None:
        """Stand for the native object that ``fconstructor(*args)`` makes."""
        made = fconstructor(*args)
        native = getattr(made, "_native", None)
        if native is None:
            raise TypeError(
                f"{type(self).__name__} needs a constructor of native objects, got {type(made).__name__}"
            )
        self._native = native
