"""Names of variables and buffers in a script: unique where they are visible."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

_NOT_IDENTIFIER = re.compile(r"[^0-9A-Za-z_]")
# what the text itself says by name
_RESERVED = (*keyword.kwlist, "range")


class Names:
    """The names that are taken; they are free again when their scope ends."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken: dict[str, None] = dict.fromkeys([*_RESERVED, *reserved])
        self._next: dict[str, int] = {}  # the numbers below are taken, by the name without one

    def take(self, hint: str) -> str:
        """A free name near to ``hint``, which is taken from now on."""
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

    def free(self, name: str) -> None:
        """Let others have a name."""
        self._taken.pop(name, None)
        self._next.pop(name.rpartition("_")[0], None)
