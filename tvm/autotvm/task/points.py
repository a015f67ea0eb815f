"""The points of a space, each numbered by one integer, in which the first knob varies fastest.

A filter may leave points out: their numbers, the indices, stay unused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from tvm.autotvm.task.transforms import TransformSpace

_UNKNOWN, _VALID, _INVALID = 0, 1, 2
# of spaces with more points than this, a byte each, it is not remembered which ones the filter keeps
_REMEMBERED = 1 << 28
# how many points are tried at random before all are looked through
_RANDOM_TRIES = 64


class PointSpace:
    """Knobs, and the points that they make."""

    def __init__(self) -> None:
        self.space_map: dict[str, TransformSpace] = {}
        self._collect = True
        self._filter: Callable[[Any], bool] | None = None
        self._validity: bytearray | None = None
        self._dims: list[int] = []
        self._range_length = 1
        self._length: int | None = None

    def _add_knob(self, name: str, space: TransformSpace) -> None:
        self.space_map[name] = space
        self._dims = [len(space) for space in self.space_map.values()]
        self._range_length = math.prod(self._dims)
        self.clear_cache()

    def multi_filter(self, filter: Callable[[Any], bool]) -> None:
        """Leave out points by several knobs at once.

        Parameters
        ----------
        filter : function
            Takes a :class:`ConfigEntity` and tells whether to keep it.
        """
        if self._collect:
            self._filter = filter
            self.clear_cache()

    @property
    def dims(self) -> list[int]:
        """How many values each knob has."""
        return list(self._dims)

    @property
    def range_length(self) -> int:
        """How many indices there are, points that a filter leaves out among them."""
        return self._range_length

    def __len__(self) -> int:
        """How many points there are."""
        if self._length is None:
            self._length = self.subrange_length(0, None)
        return self._length

    def subrange_length(self, start: int, end: int | None) -> int:
        """How many points have an index of ``start`` or more and below ``end``."""
        start, end = self._checked_range(start, end)
        if self._filter is None:
            return end - start
        return sum([self.is_index_valid(index) for index in range(start, end)])

    def is_index_valid(self, index: int) -> bool:
        """Whether the space has a point of that index."""
        if not 0 <= index < self._range_length:
            return False
        if self._filter is None:
            return True
        if self.range_length > _REMEMBERED:
            return bool(self._filter(self._entity(index)))
        if self._validity is None:
            self._validity = bytearray(self.range_length)
        if self._validity[index] == _UNKNOWN:
            keep = self._filter(self._entity(index))
            self._validity[index] = _VALID if keep else _INVALID
        return self._validity[index] == _VALID

    def clear_cache(self) -> None:
        """Forget which points the filter has kept."""
        self._validity = None
        self._length = None

    def get_rand_index(
        self,
        start: int | None = None,
        end: int | None = None,
        to_exclude: Iterable[int] | None = None,
    ) -> int:
        """A random point.

        Parameters
        ----------
        start, end : int, optional
            The range of indices, without the end.
        to_exclude : set of int, optional
            Points that are not wanted.
        """
        start, end = self._checked_range(start, end)
        # a mapping is looked into as it is: it may hold all that was tried so far
        given = to_exclude or ()
        unwanted = given if isinstance(given, (Set, Mapping)) else frozenset(given)
        for _ in range(_RANDOM_TRIES):
            index = int(np.random.randint(start, end, dtype=np.int64)) if end > start else start
            if index not in unwanted and self.is_index_valid(index):
                return index
        left = [i for i in range(start, end) if i not in unwanted and self.is_index_valid(i)]
        if not left:
            raise ValueError(f"the space has no other point of an index from {start} to {end}")
        return left[np.random.randint(len(left))]

    def get_next_index(
        self, index: int, n: int = 1, start: int | None = None, end: int | None = None
    ) -> int | None:
        """The ``n``-th point after an index (before it, if negative); None if there is none.

        Parameters
        ----------
        index : int
            Where to start; it is not counted.
        n : int
            How many points to go.
        start, end : int, optional
            The range of indices, without the end.
        """
        start, end = self._checked_range(start, end)
        step = 1 if n > 0 else -1
        for _ in range(abs(n)):
            index += step
            if self._filter is not None:
                while start <= index < end and not self.is_index_valid(index):
                    index += step
            if not start <= index < end:
                return None
        return index

    def point2knob(self, point: int) -> list[int]:
        """For each knob, which of its values an index stands for."""
        knob = []
        for count in self._dims:
            point, place = divmod(point, count)
            knob.append(place)
        return knob

    def knob2point(self, knob: Sequence[int]) -> int:
        """The index that stands for these values of the knobs."""
        point, stride = 0, 1
        for place, count in zip(knob, self._dims, strict=True):
            point += int(place) * stride
            stride *= count
        return point

    def sample_ints(self, m: int) -> list[int]:
        """Different random points.

        Parameters
        ----------
        m : int
            How many.
        """
        if m > (available := len(self)):
            raise ValueError(f"the space has {available} points, {m} different ones are wanted")
        if 2 * m > available:
            points = [index for index in range(self.range_length) if self.is_index_valid(index)]
            return [points[place] for place in np.random.permutation(available)[:m]]
        chosen: dict[int, None] = {}
        while len(chosen) < m:
            chosen[self.get_rand_index()] = None
        return list(chosen)

    def random_walk(self, point: int) -> int:
        """A point in which one knob has another value; the same point if there is none.

        Parameters
        ----------
        point : int
            Where to start.
        """
        dims = self._dims
        movable = [place for place, count in enumerate(dims) if count > 1]
        if not movable:
            return point
        start = self.point2knob(point)
        for _ in range(_RANDOM_TRIES):
            place = movable[np.random.randint(len(movable))]
            value = int(np.random.randint(dims[place] - 1))
            value += value >= start[place]
            walked = self.knob2point([*start[:place], value, *start[place + 1 :]])
            if self.is_index_valid(walked):
                return walked
        return self.get_rand_index() if len(self) else point

    def get(self, index: int) -> Any:
        """The configuration of an index.

        Parameters
        ----------
        index : int
            Below :attr:`range_length`.
        """
        if not 0 <= index < self._range_length:
            raise IndexError(f"Index out of range: size {self.range_length}, got index {index}")
        if not self.is_index_valid(index):
            raise IndexError(f"Index does not correspond to a valid config: {index}")
        return self._entity(index)

    def _checked_range(self, start: int | None, end: int | None) -> tuple[int, int]:
        length = self.range_length
        start, end = 0 if start is None else start, length if end is None else end
        if not 0 <= start <= end <= length:
            raise ValueError(
                f"indices go from 0 to {length}, the range from {start} to {end} does not"
            )
        return start, end

    def _entity(self, index: int) -> Any:
        """The configuration of an index."""
        raise NotImplementedError()
