"""Simulated annealing: many points walk at random, uphill by preference, less and less downhill."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from .model_based_tuner import CostModel, ModelOptimizer

logger = logging.getLogger("autotvm")

# all points of a space are looked at if there are not more than so many for each that would walk
_SEARCHED_WHOLE = 8


class SimulatedAnnealingOptimizer(ModelOptimizer):
    """Finds the points that a cost model likes best.

    Parameters
    ----------
    task : Task
        The task.
    n_iter : int
        How many steps each point walks.
    temp : float or (float, float)
        The temperature, or the first and the last one.
    persistent : bool
        Whether the next search begins where this one ended.
    parallel_size : int
        How many points walk.
    early_stop : int
        Stop when so many steps have found nothing better.
    log_interval : int
        After so many steps a line is logged; 0 for none.
    """

    def __init__(
        self,
        task: Any,
        n_iter: int = 500,
        temp: Any = (1, 0),
        persistent: bool = True,
        parallel_size: int = 128,
        early_stop: int = 50,
        log_interval: int = 50,
    ) -> None:
        self.task = task
        self.n_iter = n_iter
        self.temp = temp
        self.persistent = persistent
        self.parallel_size = min(parallel_size, len(task.config_space))
        self.early_stop = early_stop or 1 << 30
        self.log_interval = log_interval
        self.points: list[int] | None = None

    def find_maximums(self, model: CostModel, num: int, exclusive: Any) -> list[int]:
        started = time.perf_counter()
        space = self.task.config_space
        if space.range_length <= _SEARCHED_WHOLE * self.parallel_size:
            return self._enumerate_space(model, num, exclusive)
        points = self.points if self.persistent else None
        points = list(points or space.sample_ints(self.parallel_size))
        scores = model.predict(points)
        best = _Best(num, exclusive)
        best.add(points, scores)
        first, last = self.temp if isinstance(self.temp, (tuple, list)) else (self.temp, self.temp)
        step = changed = 0
        while step < self.n_iter and step < changed + self.early_stop:
            temperature = first - (first - last) * step / (self.n_iter + 1)
            walked = [space.random_walk(point) for point in points]
            new_scores = model.predict(walked)
            chance = np.exp(np.minimum((new_scores - scores) / (temperature + 1e-5), 1))
            for place in np.nonzero(np.random.random(len(chance)) < chance)[0]:
                points[place], scores[place] = walked[place], new_scores[place]
            step += 1
            if best.add(walked, new_scores):
                changed = step
            if self.log_interval and step % self.log_interval == 0:
                logger.debug("SA iter: %d\tlast_update: %d\t%s", step, changed, best)
        logger.debug("SA iter: %d\t%s\telapsed: %.2f", step, best, time.perf_counter() - started)
        if self.persistent:
            self.points = points
        return best.points()

    def _enumerate_space(self, model: CostModel, num: int, exclusive: Any) -> list[int]:
        space = self.task.config_space
        points = [point for point in range(space.range_length) if space.is_index_valid(point)]
        best = _Best(num, exclusive)
        best.add(points, model.predict(points))
        return best.points()


class _Best:
    """The points of the highest scores, each once."""

    def __init__(self, count: int, exclusive: Any) -> None:
        self.count = count
        self.exclusive = exclusive
        self.heap: list[tuple[float, int]] = []
        self.inside: set[int] = set()

    def add(self, points: Sequence[int], scores: Any) -> bool:
        """Take what is among the best; whether anything was."""
        is_changed = False
        for point, score in zip(points, scores, strict=True):
            if point in self.inside or point in self.exclusive:
                continue
            if len(self.heap) < self.count:
                heapq.heappush(self.heap, (float(score), point))
            elif score > self.heap[0][0]:
                self.inside.discard(heapq.heapreplace(self.heap, (float(score), point))[1])
            else:
                continue
            self.inside.add(point)
            is_changed = True
        return is_changed

    def points(self) -> list[int]:
        return [point for _, point in sorted(self.heap, reverse=True)]

    def __str__(self) -> str:
        return f"max: {max(self.heap, default=(0, 0))[0]:.4f}, points: {len(self.heap)}"
