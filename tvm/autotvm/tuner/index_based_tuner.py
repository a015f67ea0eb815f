"""Tuners that learn nothing: all points in their order, or at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .tuner import Tuner


class IndexBaseTuner(Tuner):
    """The base of tuners that go by indices.

    Parameters
    ----------
    task : Task
        The task.
    range_idx : (int, int), optional
        The first and the last index to try.
    """

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        if range_idx is not None and not (isinstance(range_idx, tuple) and len(range_idx) == 2):
            raise ValueError(f"range_idx must be None or (int, int), got {range_idx}")
        last = self.space.range_length - 1
        first, final = range_idx or (0, last)
        if not 0 <= first <= final <= last:
            raise ValueError(f"range_idx must be within 0 and {last}, got {range_idx}")
        self.begin_idx, self.end_idx = first, final + 1
        self.range_length = self.end_idx - self.begin_idx
        self.visited: set[int] = set()
        self.visited_max: int = self.space.subrange_length(self.begin_idx, self.end_idx)

    def has_next(self) -> bool:
        return len(self.visited) < self.visited_max

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Nothing is learned from records."""

    def take_over(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        indices = [inp.config.index for inp in inputs]
        self.visited.update([i for i in indices if self.begin_idx <= i < self.end_idx])

    def _visit(self, index: int) -> Any:
        self.visited.add(index)
        return self.space.get(index)


class GridSearchTuner(IndexBaseTuner):
    """Tries all points in their order."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task, range_idx)
        self._last = self.begin_idx - 1  # the point that was tried last

    def starts(self) -> list[int]:
        """None: the order is that of the points."""
        return []

    def next_batch(self, batch_size: int) -> list[Any]:
        configs: list[Any] = []
        while len(configs) < batch_size and self.has_next():
            self._last = self.index
            configs.append(self._visit(self._last))
        return configs

    @property
    def index(self) -> int:
        """The point that is tried next; the end of the range if there is none."""
        after = range(self._last + 1, self.end_idx)
        return next((index for index in after if self._is_fresh(index)), self.end_idx)

    def _is_fresh(self, index: int) -> bool:
        return index not in self.visited and self.space.is_index_valid(index)


class RandomTuner(IndexBaseTuner):
    """Tries points at random, each once."""

    def next_batch(self, batch_size: int) -> list[Any]:
        count = min(batch_size, self.visited_max - len(self.visited))
        return [self._visit(self._choose()) for _ in range(count)]

    def _choose(self) -> int:
        fresh = [index for index in self.starts() if index not in self.visited]
        if fresh and self.begin_idx <= fresh[0] < self.end_idx:
            return fresh[0]
        return int(self.space.get_rand_index(self.begin_idx, self.end_idx, self.visited))
