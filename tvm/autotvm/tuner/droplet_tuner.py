"""Droplet search: from one point always on to a neighbour that is significantly faster.

point (4, 7): measure (5, 7), (3, 7), (4, 8), (4, 6), ... and go on from the fastest
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, variance
from typing import Any

from .tuner import Tuner

# of more knobs than this only one at a time is changed
_JOINT_KNOBS = 10


class DropletTuner(Tuner):
    """Descends to the nearest valley.

    Parameters
    ----------
    task : Task
        The task.
    start_position : list of int, optional
        The values of the knobs to begin with; by default those that the template itself would take,
        or the first ones.
    pvalue : float
        How likely a difference may be chance to count as significant.
    """

    def __init__(
        self, task: Any, start_position: Sequence[int] | None = None, pvalue: float = 0.05
    ) -> None:
        super().__init__(task)
        self.dims = list(self.space.dims)
        usual = self.space.point2knob(next(iter(self.starts()), 0))
        start = usual if start_position is None else list(start_position)
        if len(start) != len(self.dims) or not all(
            0 <= place < count for place, count in zip(start, self.dims, strict=True)
        ):
            raise ValueError(
                f"start_position needs a value below {self.dims} for each knob, got {start}"
            )
        index = self.space.knob2point(start)
        if not self.space.is_index_valid(index):
            index = self.space.get_rand_index()
            start = self.space.point2knob(index)
        self.pvalue = pvalue
        # its index, the values of its knobs, and its costs
        self.best_choice: tuple[int, list[int], Sequence[float]] = (index, start, ())
        self.visited: dict[int, None] = {index: None}
        self.execution, self.total_execution = 1, max(self.dims, default=1)
        self.batch = 16
        # what to measure, and what is being measured
        self.next: list[tuple[int, list[int]]] = [(index, start)]
        self.waiting: dict[int, list[int]] = {}

    def num_to_bin(self, value: int, factor: int = 1) -> list[int]:
        """The digits of a number in base two, times a factor: a direction.

        Parameters
        ----------
        value : int
            The number, of as many digits as there are knobs.
        factor : int
            How far to go.
        """
        return [(value >> place & 1) * factor for place in reversed(range(len(self.dims)))]

    def search_space(self, factor: int = 1) -> list[list[int]]:
        """The directions to neighbours: one knob changed first, then several together.

        Parameters
        ----------
        factor : int
            How far to go.
        """
        count = len(self.dims)
        together = range(1, 1 << count) if count <= _JOINT_KNOBS else [1 << i for i in range(count)]
        ordered = sorted(together, key=lambda value: bin(value).count("1"))
        return [self.num_to_bin(value, sign * factor) for value in ordered for sign in (1, -1)]

    def next_pos(self, new_positions: Iterable[Sequence[int]]) -> list[tuple[int, list[int]]]:
        """The points in these directions from the best one that were not tried before.

        Parameters
        ----------
        new_positions : list of list of int
            The directions.
        """
        found = []
        for direction in new_positions:
            moved = zip(self.best_choice[1], direction, self.dims, strict=True)
            knob = [min(max(place + step, 0), count - 1) for place, step, count in moved]
            index = self.space.knob2point(knob)
            if index not in self.visited and self.space.is_index_valid(index):
                self.visited[index] = None
                found.append((index, knob))
        return found

    def p_value(self, elem_1: Sequence[float], elem_2: Sequence[float]) -> bool:
        """Whether the means of two samples differ significantly; a single value always does.

        Parameters
        ----------
        elem_1, elem_2 : list of float
            The samples.
        """
        if len(elem_1) <= 1 or len(elem_2) <= 1:
            return True
        return two_sided_p(elem_1, elem_2) <= self.pvalue

    def next_batch(self, batch_size: int) -> list[Any]:
        self.batch = batch_size
        taken, self.next = self.next[:batch_size], self.next[batch_size:]
        self.waiting = dict(taken)
        return [self.space.get(index) for index, _ in taken]

    def speculation(self) -> None:
        """Fill up the batch with points farther away."""
        while len(self.next) < self.batch and self.execution < self.total_execution:
            self.execution += 1
            self.next += self.next_pos(self.search_space(self.execution))

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        is_better = False
        for inp, res in zip(inputs, results, strict=True):
            if res.error_no != 0:
                continue
            best = self.best_choice[2]
            if not best or (fmean(res.costs) < fmean(best) and self.p_value(best, res.costs)):
                index = inp.config.index
                knob = self.waiting.get(index) or self.space.point2knob(index)
                self.best_choice = (index, knob, res.costs)
                is_better = True
        if is_better:
            # what was planned around the point before is farther away now
            self.next = self.next_pos(self.search_space()) + self.next
            self.execution = 1
        self.speculation()

    def has_next(self) -> bool:
        return bool(self.next)

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Nothing is learned from records."""

    def take_over(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        known = dict.fromkeys([inp.config.index for inp in inputs])
        self.next = [(index, knob) for index, knob in self.next if index not in known]
        self.visited.update(known)
        self.update(inputs, results)


def two_sided_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Student's t-test: how likely means differ so much by chance if the samples are alike."""
    freedom = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * variance(a) + (len(b) - 1) * variance(b)) / freedom
    distance = abs(fmean(a) - fmean(b))
    if pooled == 0:
        return 1.0 if distance == 0 else 0.0
    t = distance / math.sqrt(pooled * (1 / len(a) + 1 / len(b)))
    return 1.0 - _share_within(t, freedom)


def _share_within(t: float, freedom: int) -> float:
    """The share of Student's distribution between -t and t.

    It is a finite sum for whole degrees of freedom: with tan(x) = t / sqrt(freedom), for odd ones
    2/pi (x + sin x (cos x + 2/3 cos^3 x + ...)), for even ones sin x (1 + 1/2 cos^2 x + ...).
    """
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    if freedom == 1:
        return 2 * angle / math.pi
    term = cosine if freedom % 2 else 1.0
    total = term
    for power in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= (power - 1) / power * cosine * cosine
        total += term
    if freedom % 2:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
