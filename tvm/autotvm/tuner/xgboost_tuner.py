"""The tuner with gradient-boosted trees as its cost model."""

from __future__ import annotations

from typing import Any

from .model_based_tuner import ModelBasedTuner, ModelOptimizer
from .sa_model_optimizer import SimulatedAnnealingOptimizer
from .xgboost_cost_model import XGBoostCostModel


class XGBTuner(ModelBasedTuner):
    """Measures what a model of boosted trees likes, and teaches it.

    Parameters
    ----------
    task : Task
        The task.
    plan_size : int
        After so many trials the model learns and a new plan is made.
    feature_type : str
        "itervar" describes the loops, "knob" the values of the knobs, "curve" the use of buffers. Knobs
        are quick and suit one task, the other two suit learning from other tasks too.
    loss_type : str
        "reg" predicts speeds, "rank" and "rank-binary" orders.
    num_threads : int, optional
        Of the training.
    optimizer : str or ModelOptimizer
        "sa" is simulated annealing.
    diversity_filter_ratio : int, optional
        From so many times as many points the most diverse are taken.
    log_interval : int
        After so many steps a line is logged; 0 for none.
    """

    def __init__(
        self,
        task: Any,
        plan_size: int = 64,
        feature_type: str = "itervar",
        loss_type: str = "reg",
        num_threads: int | None = None,
        optimizer: Any = "sa",
        diversity_filter_ratio: int | None = None,
        log_interval: int = 50,
    ) -> None:
        cost_model = XGBoostCostModel(task, feature_type, loss_type, num_threads, log_interval // 2)
        if optimizer == "sa":
            # features of lowered programs cost milliseconds each, so that fewer points walk
            steps = (500, 128, 50) if feature_type == "knob" else (100, 32, 20)
            n_iter, parallel_size, early_stop = steps
            optimizer = SimulatedAnnealingOptimizer(
                task,
                n_iter=n_iter,
                parallel_size=parallel_size,
                early_stop=early_stop,
                log_interval=log_interval,
            )
        elif not isinstance(optimizer, ModelOptimizer):
            raise ValueError(f"optimizer must be 'sa' or a ModelOptimizer, got {optimizer!r}")
        super().__init__(task, cost_model, optimizer, plan_size, diversity_filter_ratio)

    def tune(self, *args: Any, **kwargs: Any) -> None:
        """As of :meth:`Tuner.tune`; the processes that extract features end with it."""
        try:
            super().tune(*args, **kwargs)
        finally:
            self.cost_model.close_pool()  # type: ignore[attr-defined]
