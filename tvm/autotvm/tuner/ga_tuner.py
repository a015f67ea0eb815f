"""A genetic algorithm: knobs are genes, fast configurations have more children."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tvm.autotvm.measure.interface import MeasureErrorNo

from .tuner import Tuner


class GATuner(Tuner):
    """Breeds configurations.

    Parameters
    ----------
    task : Task
        The task.
    pop_size : int
        How many there are in a generation.
    elite_num : int
        How many of the best ever take part in each generation.
    mutation_prob : float
        With which probability a knob of a child is changed at random.
    """

    def __init__(
        self, task: Any, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1
    ) -> None:
        super().__init__(task)
        if elite_num > pop_size:
            raise ValueError(f"elite_num must be at most pop_size {pop_size}, got {elite_num}")
        self.pop_size = min(pop_size, len(self.space))
        self.elite_num = min(elite_num, self.pop_size)
        self.mutation_prob = mutation_prob
        self.visited: set[int] = set()
        self.genes: list[int] = []
        self.scores: list[float] = []
        self.elites: list[tuple[float, int]] = []
        self.trial_pt = 0
        first = dict.fromkeys([*self.starts(), *self.space.sample_ints(self.pop_size)])
        self._enlist(list(first)[: self.pop_size])

    def has_next(self) -> bool:
        return self.trial_pt < len(self.genes)

    def next_batch(self, batch_size: int) -> list[Any]:
        batch = self.genes[self.trial_pt : self.trial_pt + batch_size]
        self.trial_pt += len(batch)
        return [self.space.get(index) for index in batch]

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            is_good = res.error_no == MeasureErrorNo.NO_ERROR
            self.scores.append(inp.task.flop / np.mean(res.costs) if is_good else 0.0)
        # a generation breeds when all of it has been measured
        if self.genes and len(self.scores) >= len(self.genes):
            self._breed()

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        """Nothing is learned from records."""

    def take_over(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        # the records are a generation that has been measured
        self.visited = set()
        self._enlist([inp.config.index for inp in inputs])
        self.update(inputs, results)
        if fresh := [index for index in self.starts() if index not in self.visited]:
            self._enlist([*fresh, *self.genes])

    def _enlist(self, indices: Sequence[int]) -> None:
        """Make these points the generation."""
        self.genes = list(indices)
        self.visited.update(indices)
        self.scores = []
        self.trial_pt = 0

    def _breed(self) -> None:
        measured = zip(self.scores, self.genes, strict=True)
        parents = [*measured, *self.elites]
        self.elites = sorted({*parents}, reverse=True)[: self.elite_num]
        left = len(self.space) - len(self.visited)
        children: dict[int, None] = {}
        scores = np.array([score for score, _ in parents]) + 1e-8
        shares = scores / scores.sum()
        knobs = [self.space.point2knob(index) for _, index in parents]
        for _ in range(min(self.pop_size, left)):
            mother, father = np.random.choice(len(knobs), size=2, p=shares)
            child = self._mutated(self._crossed(knobs[mother], knobs[father]))
            if child in self.visited or child in children or not self.space.is_index_valid(child):
                child = self.space.get_rand_index(to_exclude=self.visited | children.keys())
            children[child] = None
        self._enlist(list(children))

    def _crossed(self, mother: Sequence[int], father: Sequence[int]) -> list[int]:
        """The first knobs of one, the others of the other."""
        cut = int(np.random.randint(len(mother))) if len(mother) else 0
        return [*mother[:cut], *father[cut:]]

    def _mutated(self, knob: Sequence[int]) -> int:
        changed = [
            int(np.random.randint(count)) if np.random.random() < self.mutation_prob else place
            for place, count in zip(knob, self.space.dims, strict=True)
        ]
        return int(self.space.knob2point(changed))
