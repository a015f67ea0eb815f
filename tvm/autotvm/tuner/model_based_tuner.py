"""Tuners with a cost model: it learns from what was measured, and an optimizer finds its maxima."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.autotvm.env import GLOBAL_SCOPE

from .tuner import Tuner

# of each plan so much is tried at random, so that the model is not only told what it believes
_RANDOM_SHARE = 0.05


class FeatureCache:
    """Features by kind and point; cost models that learn from each other share one."""

    def __init__(self) -> None:
        self.feature_cache: dict[Any, dict[Any, Any]] = {}

    def get(self, key: Any) -> dict[Any, Any]:
        """The features of a kind, by point.

        Parameters
        ----------
        key : str
            The kind.
        """
        return self.feature_cache.setdefault(key, {})

    def size(self, key: Any) -> int:
        """How many features of a kind there are.

        Parameters
        ----------
        key : str
            The kind.
        """
        return len(self.feature_cache.get(key, ()))

    def clear(self, key: Any) -> None:
        """Forget the features of a kind.

        Parameters
        ----------
        key : str
            The kind.
        """
        self.feature_cache.pop(key, None)


class CostModel:
    """Predicts how fast configurations are."""

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        """Learn from measured points.

        Parameters
        ----------
        xs : list of int
            The points.
        ys : list of float
            Their speeds.
        plan_size : int
            How many points the tuner takes from the top.
        """
        raise NotImplementedError()

    def fit_log(self, records: Iterable[Any], plan_size: int, min_seed_records: int = 500) -> bool:
        """Learn from records; tells whether there were enough.

        Parameters
        ----------
        records : list of (MeasureInput, MeasureResult)
            The records.
        plan_size : int
            How many points the tuner takes from the top.
        min_seed_records : int
            Fewer are not enough.
        """
        raise NotImplementedError()

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> np.ndarray[Any, Any]:
        """Scores of points; more is faster.

        Parameters
        ----------
        xs : list of int
            The points.
        output_margin : bool
            Whether to leave the scores untransformed.
        """
        raise NotImplementedError()

    def load_basemodel(self, base_model: CostModel) -> None:
        """Learn only what differs from another model.

        Parameters
        ----------
        base_model : CostModel
            The other model.
        """
        raise NotImplementedError()

    def spawn_base_model(self) -> CostModel:
        """A model of the same kind, to learn from records of other tasks."""
        raise NotImplementedError()


class ModelOptimizer:
    """Finds the points that a cost model likes best."""

    def find_maximums(self, model: CostModel, num: int, exclusive: Any) -> list[int]:
        """Points of high scores, the highest first.

        Parameters
        ----------
        model : CostModel
            The model.
        num : int
            How many points.
        exclusive : set of int
            Points that are not wanted.
        """
        raise NotImplementedError()


class ModelBasedTuner(Tuner):
    """Measures what a cost model likes, and teaches it.

    Parameters
    ----------
    task : Task
        The task.
    cost_model : CostModel
        Predicts scores.
    model_optimizer : ModelOptimizer
        Finds the highest.
    plan_size : int
        After so many trials the model learns and a new plan is made.
    diversity_filter_ratio : int, optional
        From so many times as many points the most diverse are taken.
    """

    def __init__(
        self,
        task: Any,
        cost_model: CostModel,
        model_optimizer: ModelOptimizer,
        plan_size: int,
        diversity_filter_ratio: int | None = None,
    ) -> None:
        super().__init__(task)
        if diversity_filter_ratio is not None and diversity_filter_ratio < 1:
            raise ValueError(
                f"diversity_filter_ratio must be at least 1, got {diversity_filter_ratio}"
            )
        self.cost_model = cost_model
        self.model_optimizer = model_optimizer
        self.plan_size = plan_size
        self.diversity_filter_ratio = diversity_filter_ratio
        self.trials: list[int] = self.starts()
        self.trial_pt = 0
        self.visited: set[int] = set()
        self.xs: list[int] = []
        self.ys: list[float] = []
        self.flops_max = 0.0
        self.train_ct = 0

    def has_next(self) -> bool:
        return len(self.visited) < len(self.space)

    def next_batch(self, batch_size: int) -> list[Any]:
        configs: list[Any] = []
        while len(configs) < batch_size and self.has_next():
            index = self._next_index()
            self.visited.add(index)
            configs.append(self.space.get(index))
        return configs

    def _next_index(self) -> int:
        planned = len(self.trials) - int(_RANDOM_SHARE * len(self.trials))
        while self.trial_pt < planned:
            index = self.trials[self.trial_pt]
            self.trial_pt += 1
            if index not in self.visited and self.space.is_index_valid(index):
                return index
        return int(self.space.get_rand_index(to_exclude=self.visited))

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        for inp, res in zip(inputs, results, strict=True):
            is_good = res.error_no == 0
            self.xs.append(inp.config.index)
            self.ys.append(inp.task.flop / np.mean(res.costs) if is_good else 0.0)
            self.flops_max = max(self.flops_max, self.ys[-1])
            # records of an earlier run continue it
            self.visited.add(inp.config.index)
        if len(self.xs) >= self.plan_size * (self.train_ct + 1) and self.flops_max > 1e-6:
            self.cost_model.fit(self.xs, self.ys, self.plan_size)
            self._plan(self.cost_model)
            self.train_ct += 1

    def _plan(self, model: CostModel) -> None:
        ratio = self.diversity_filter_ratio or 1
        found = self.model_optimizer.find_maximums(model, self.plan_size * ratio, self.visited)
        if self.diversity_filter_ratio and found:
            scores = model.predict(found)
            knobs = [self.space.point2knob(index) for index in found]
            picked = submodular_pick(0 * scores, knobs, self.plan_size)
            found = [found[place] for place in picked]
        self.trials = found
        self.trial_pt = 0

    def load_history(self, data_set: Iterable[Any], min_seed_records: int = 500) -> None:
        before, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, True
        try:
            base_model = self.cost_model.spawn_base_model()
            if not base_model.fit_log(data_set, self.plan_size, min_seed_records):
                return
            if self.train_ct == 0:
                self._plan(base_model)
                self.trials = list(dict.fromkeys([*self.starts(), *self.trials]))
            self.cost_model.load_basemodel(base_model)
        finally:
            GLOBAL_SCOPE.in_tuning = before


def submodular_pick(
    scores: Any, knobs: Sequence[Sequence[int]], n_pick: int, knob_weight: float = 1.0
) -> list[int]:
    """Pick points greedily, by their scores and by the values of knobs that no other picked point has.

    Parameters
    ----------
    scores : list of float
        The scores.
    knobs : list of list of int
        The values of each point's knobs.
    n_pick : int
        How many to pick.
    knob_weight : float
        What a new value counts.

    Returns
    -------
    list of int
        Which points, in the order in which they were picked.
    """
    left = dict.fromkeys(range(len(knobs)))
    seen: Mapping[int, set[int]] = {place: set() for place in range(len(knobs[0]) if knobs else 0)}

    def gain(point: int) -> float:
        fresh = sum([value not in seen[place] for place, value in enumerate(knobs[point])])
        return float(scores[point]) + knob_weight * fresh

    picked: list[int] = []
    while left and len(picked) < n_pick:
        best = max(left, key=gain)
        del left[best]
        picked.append(best)
        for place, value in enumerate(knobs[best]):
            seen[place].add(value)
    return picked
