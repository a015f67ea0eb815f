"""Who gets which server of a tracker."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any


class Scheduler:
    """Decides who gets which server."""

    def put(self, value: Any) -> None:
        """Offer a server."""
        raise NotImplementedError

    def request(self, user: str, priority: int, callback: Callable[[Any], bool]) -> None:
        """Ask for one; ``callback`` gets it, and tells whether it could be used."""
        raise NotImplementedError

    def remove(self, value: Any) -> None:
        """Take an offer back."""
        raise NotImplementedError

    def summary(self) -> dict[str, int]:
        """How many are free and how many wait."""
        raise NotImplementedError


class PriorityScheduler(Scheduler):
    """Gives servers to those of the highest priority, and among them to who came first.

    Parameters
    ----------
    key : str
        The kind of machine.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._count = itertools.count()
        self._values: list[Any] = []
        self._requests: list[tuple[int, int, Callable[[Any], bool]]] = []

    def _schedule(self) -> None:
        while self._requests and self._values:
            value = self._values.pop(0)
            *_, callback = heapq.heappop(self._requests)
            if not callback(value):
                self._values.insert(0, value)

    def put(self, value: Any) -> None:
        """Offer a server."""
        self._values.append(value)
        self._schedule()

    def request(self, user: str, priority: int, callback: Callable[[Any], bool]) -> None:
        """Ask for one; ``callback`` gets it, and tells whether it could be used."""
        heapq.heappush(self._requests, (-priority, next(self._count), callback))
        self._schedule()

    def cancel(self, callbacks: set[Callable[[Any], bool]]) -> None:
        """Forget the requests of these callbacks."""
        self._requests = [each for each in self._requests if each[2] not in callbacks]
        heapq.heapify(self._requests)

    def remove(self, value: Any) -> None:
        """Take an offer back."""
        if value in self._values:
            self._values.remove(value)
            self._schedule()

    def summary(self) -> dict[str, int]:
        """How many are free and how many wait."""
        return {"free": len(self._values), "pending": len(self._requests)}
