"""Unique names, the same whenever the same names are asked for in the same order."""

from __future__ import annotations


class UniqueNames:
    """Hands out names; a taken one gets the next free number as suffix."""

    def __init__(self, taken: dict[str, int] | None = None) -> None:
        self._next: dict[str, int] = dict(taken or {})

    def fresh(self, name: str, separator: str = "_") -> str:
        """``name`` itself, or ``name_1``, ``name_2`` ... if it is taken."""
        if name not in self._next:
            self._next[name] = 1
            return name
        while True:
            candidate = f"{name}{separator}{self._next[name]}"
            self._next[name] += 1
            if candidate not in self._next:
                self._next[candidate] = 1
                return candidate

    def reserve(self, name: str) -> None:
        self._next.setdefault(name, 1)

    def __contains__(self, name: object) -> bool:
        return name in self._next
