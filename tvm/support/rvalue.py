"""Arguments that are given away."""

from __future__ import annotations

from typing import Any


class ObjectRValueRef:
    """An object as an argument that the callee may take over: what ``obj._move()`` gives."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj
