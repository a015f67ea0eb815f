from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm
from tvm.autotvm.tuner import SimulatedAnnealingOptimizer, XGBTuner
from tvm.autotvm.tuner.model_based_tuner import CostModel, submodular_pick
from tvm.autotvm.tuner.xgboost_cost_model import (
    CustomCallback,
    XGBoostCostModel,
    xgb_average_recalln_curve_score,
    xgb_cover_curve_score,
    xgb_max_curve_score,
    xgb_null_score,
    xgb_recallk_curve_score,
    xgb_recalln_curve_score,
)

from .made_up import far_from_16_by_32, tune
from .templates import matmul_task, record_of


def speeds(task: Any, points: Any) -> list[float]:
    return [1 / far_from_16_by_32(task.config_space.get(point)) for point in points]


@pytest.mark.parametrize("feature_type", ["knob", "itervar", "curve"])
def test_a_model_puts_the_points_into_their_order(feature_type: str) -> None:
    np.random.seed(0)
    task = matmul_task(256, 16, 256)
    points = list(range(len(task.config_space)))
    learned, asked = points[::2], points[1::2]
    model = XGBoostCostModel(task, feature_type, num_threads=1)
    model.fit(learned, speeds(task, learned), plan_size=16)
    order = np.argsort(-model.predict(asked))
    truth = np.array(speeds(task, asked))
    assert truth[order[:5]].mean() > 1.5 * truth.mean()


@pytest.mark.parametrize("loss_type", ["reg", "rank", "rank-binary"])
def test_every_loss_finds_the_fastest_sooner_than_chance(loss_type: str) -> None:
    np.random.seed(1)
    task = matmul_task(1 << 10, 16, 1 << 10)
    tuner = XGBTuner(task, plan_size=12, feature_type="knob", loss_type=loss_type, num_threads=1)
    seen = tune(tuner, n_trial=60)
    assert len(seen) == len(set(seen)) == 60
    assert tuner.train_ct >= 4
    assert tuner.best_flops >= task.flop / 2.1e-3


def test_every_point_of_a_small_space_is_tried_with_failures_among_them() -> None:
    task = matmul_task(4, 4, 8)
    tuner = XGBTuner(
        task, plan_size=4, feature_type="knob", num_threads=1, diversity_filter_ratio=2
    )

    def cost(config: Any) -> float | None:
        return None if config.index % 5 == 0 else far_from_16_by_32(config)

    assert sorted(tune(tuner, cost)) == list(range(12))


def test_records_of_another_shape_are_learned_from() -> None:
    np.random.seed(2)
    before, task = matmul_task(128, 16, 128), matmul_task(256, 16, 256)
    records = [
        record_of(before, i, far_from_16_by_32(before.config_space.get(i)))
        for i in range(len(before.config_space))
    ]
    tuner = XGBTuner(task, plan_size=8, feature_type="itervar", num_threads=1)
    tuner.load_history(records, min_seed_records=len(records) + 1)
    assert tuner.trials == []
    tuner.load_history(records, min_seed_records=10)
    assert len(tuner.trials) == 8
    chosen = np.array(speeds(task, tuner.trials))
    assert chosen.mean() > np.mean(speeds(task, range(len(task.config_space))))
    tune(tuner, n_trial=16)
    assert tuner.cost_model.base_model is not None
    assert tuner.train_ct == 2


def test_records_of_an_interrupted_run_continue_it() -> None:
    task = matmul_task(4, 4, 8)
    tuner = XGBTuner(task, plan_size=64, feature_type="knob")
    inputs, results = zip(*[record_of(task, i, 1.0) for i in range(6)], strict=True)
    tuner.update(inputs, results)
    assert sorted(tune(tuner)) == list(range(6, 12))


def test_unknown_kinds_and_a_missing_package_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    task = matmul_task(4, 4, 8)
    with pytest.raises(RuntimeError, match="Invalid feature type loops"):
        XGBTuner(task, feature_type="loops")
    with pytest.raises(RuntimeError, match="Invalid loss type hinge"):
        XGBTuner(task, loss_type="hinge")
    with pytest.raises(ValueError, match="optimizer must be 'sa'"):
        XGBTuner(task, optimizer="gradient")
    with pytest.raises(ValueError, match="diversity_filter_ratio"):
        XGBTuner(task, diversity_filter_ratio=0)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(
        tvm.TVMError, match=r"requires the package xgboost[\s\S]*classic-tvm\[xgboost\]"
    ):
        XGBTuner(task)


class KnownModel(CostModel):
    """Knows the speeds."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def predict(self, xs: Any, output_margin: bool = False) -> np.ndarray[Any, Any]:
        return np.array(speeds(self.task, xs))


def test_annealing_finds_the_maxima_and_leaves_out_what_is_not_wanted() -> None:
    np.random.seed(0)
    task = matmul_task(1 << 8, 16, 1 << 8)
    optimizer = SimulatedAnnealingOptimizer(task, n_iter=200, parallel_size=8, log_interval=0)
    points = range(len(task.config_space))
    ordered = sorted(points, key=lambda i: -speeds(task, [i])[0])
    found = optimizer.find_maximums(KnownModel(task), 4, {ordered[0]})
    assert ordered[0] not in found
    assert speeds(task, found) == sorted(speeds(task, found), reverse=True)
    assert speeds(task, found[:1])[0] == pytest.approx(speeds(task, [ordered[1]])[0])


def test_diverse_points_are_picked() -> None:
    knobs = [(0, 0), (0, 0), (1, 1), (0, 1)]
    assert submodular_pick([0, 0, 0, 0], knobs, 2) == [0, 2]
    assert submodular_pick([0, 5, 0, 0], knobs, 1) == [1]
    assert submodular_pick([0, 0, 0, 0], knobs, 9) == [0, 2, 1, 3]


class Labels:
    """What boosted trees have of a data set."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def get_label(self) -> np.ndarray[Any, Any]:
        return np.array(self.values)


def test_measures_of_predicted_orders() -> None:
    predicted, labels = [4.0, 3.0, 2.0, 1.0], Labels([10.0, 40.0, 30.0, 20.0])
    assert xgb_max_curve_score(0)(predicted, labels) == ("Smax@0", 0.25)
    assert xgb_recalln_curve_score(1)(predicted, labels) == ("recall@1", 0.5)
    assert xgb_average_recalln_curve_score(2)(predicted, labels) == ("a-recall@2", 0.25)
    assert xgb_recallk_curve_score(1, 1)(predicted, labels) == ("recall@1", 1.0)
    assert xgb_cover_curve_score(3)(predicted, labels) == ("cover@3", 1.0)
    assert xgb_null_score(3)(predicted, labels) == ("null", 0.0)


def test_training_stops_when_the_measure_stays(tmp_path: Path) -> None:
    class Model:
        def predict(self, data: Any) -> list[float]:
            return [1.0, 0.0]

    log = tmp_path / "rounds.log"
    watch = CustomCallback(
        4, "tr-Smax@0", [xgb_max_curve_score(0)], evals=[(Labels([2.0, 1.0]), "tr")],
        log_file=str(log), maximize=True,
    )  # fmt: skip
    stops = [watch.after_iteration(Model(), epoch, {}) for epoch in range(6)]
    assert stops == [False, False, False, False, True, False]
    assert log.read_text().splitlines()[0] == "[0]\ttr-Smax@0: 1.000000"


def test_annealing_works_in_a_space_of_few_points() -> None:
    task = matmul_task(2, 4, 2)
    tuner = XGBTuner(task, plan_size=2, feature_type="knob", num_threads=1)
    assert sorted(tune(tuner)) == list(range(4))
    assert isinstance(tuner.best_config, autotvm.ConfigEntity)


def test_other_processes_extract_the_same_features(monkeypatch: pytest.MonkeyPatch) -> None:
    task = matmul_task(8, 4, 8)
    here = XGBoostCostModel(task, "itervar", num_threads=1)
    there = XGBoostCostModel(task, "itervar", num_threads=1)
    expected = here._features_of(range(5))
    monkeypatch.setattr("tvm.autotvm.tuner.xgboost_cost_model._WORTH_A_POOL", 1)
    monkeypatch.setattr("tvm.autotvm.tuner.xgboost_cost_model.cpu_count", lambda: 1)
    assert np.array_equal(there._features_of(range(5)), expected)
    there.close_pool()
