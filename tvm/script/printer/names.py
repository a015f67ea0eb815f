"""Names of variables and buffers in a script: unique where they are visible."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

_NOT_IDENTIFIER = re.compile(r"[^0-9A-Za-z_]")
_RESERVED = {*keyword.kwlist, "range", "print", "float", "int", "bool", "min", "max"}


class Names:
    """Texts for nodes. A name is free again when the scope that took it ends."""

    def __init__(self, reserved: Sequence[str]) -> None:
        self.texts: dict[Any, str] = {}
        self._taken: dict[str, None] = dict.fromkeys([*_RESERVED, *reserved])
        self._next: dict[str, int] = {}
        self._scopes: list[list[tuple[Any, str]]] = [[]]

    def define(self, node: Any, hint: str) -> str:
        """A fresh name for ``node``, near to ``hint``."""
        name = self.fresh(hint)
        self.bind(node, name)
        self._scopes[-1][-1] = (node, name)
        return name

    def bind(self, node: Any, text: str) -> None:
        """Write ``node`` as ``text`` as long as the current scope lasts."""
        self.texts[node] = text
        self._scopes[-1].append((node, ""))

    def fresh(self, hint: str) -> str:
        """Take a name."""
        base = _NOT_IDENTIFIER.sub("_", hint) or "v"
        if base[0].isdigit():
            base = f"_{base}"
        name = base
        if name in self._taken:
            number = self._next.get(base, 1)
            while (name := f"{base}_{number}") in self._taken:
                number += 1
            self._next[base] = number + 1
        self._taken[name] = None
        return name

    def enter(self) -> None:
        """Open a scope."""
        self._scopes.append([])

    def leave(self) -> None:
        """Close a scope: its names are free again."""
        for node, name in reversed(self._scopes.pop()):
            self.texts.pop(node, None)
            if name:
                self._taken.pop(name, None)
                base = name.rpartition("_")[0]
                if base in self._next:
                    del self._next[base]
