from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from tvm import autotvm
from tvm.autotvm.tuner import DropletTuner, GATuner, GridSearchTuner, RandomTuner, XGBTuner, metric
from tvm.autotvm.tuner.droplet_tuner import two_sided_p

from .made_up import far_from_16_by_32, tune
from .templates import matmul_task


@pytest.mark.parametrize("tuner_class", [RandomTuner, GridSearchTuner, GATuner])
def test_every_point_is_tried_once(tuner_class: Any) -> None:
    tuner = tuner_class(matmul_task())
    seen = tune(tuner)
    assert sorted(seen) == list(range(42))
    assert str(tuner.best_config).startswith("[('tile_y', [-1, 16]), ('tile_x', [-1, 32])]")
    assert tuner.best_flops == pytest.approx(tuner.task.flop / 1e-3)
    assert tuner.best_measure_pair[0].config is tuner.best_config
    assert not tuner.has_next()


def test_a_grid_goes_in_order_within_its_range() -> None:
    tuner = GridSearchTuner(matmul_task(), range_idx=(5, 9))
    assert tune(tuner) == [5, 6, 7, 8, 9]
    assert set(tune(RandomTuner(matmul_task(), range_idx=(5, 9)))) == {5, 6, 7, 8, 9}
    with pytest.raises(ValueError, match="within 0 and 41"):
        RandomTuner(matmul_task(), range_idx=(5, 42))


@pytest.mark.parametrize("tuner_class", [RandomTuner, GridSearchTuner, GATuner])
def test_points_that_a_filter_leaves_out_are_not_tried(tuner_class: Any) -> None:
    task = matmul_task()
    task.config_space.multi_filter(lambda e: e["tile_y"].size[-1] * e["tile_x"].size[-1] > 64)
    valid = [i for i in range(42) if task.config_space.is_index_valid(i)]
    assert sorted(tune(tuner_class(task))) == valid


def test_the_trials_are_limited_and_stop_early() -> None:
    assert len(tune(GridSearchTuner(matmul_task()), n_trial=10)) == 10
    stopped = tune(GridSearchTuner(matmul_task()), lambda c: 1.0 + c.index, early_stopping=8)
    assert stopped == list(range(8))


def test_a_genetic_search_converges_before_it_has_seen_everything() -> None:
    np.random.seed(0)
    task = matmul_task(1 << 12, 16, 1 << 12)
    tuner = GATuner(task, pop_size=16)
    tune(tuner, n_trial=96)
    assert tuner.best_flops > 0.3 * task.flop / 1e-3


def test_failures_are_counted_and_reported(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tuner = RandomTuner(matmul_task())
    tuner.set_error_threshold(6)
    with caplog.at_level(logging.INFO, logger="autotvm"):
        tune(tuner, lambda config: None, n_trial=12)
    assert "Too many errors happen in the tuning" in caplog.text
    assert "Could not find any valid schedule for task Task(func_name=tests/matmul" in caplog.text
    (report,) = tmp_path.glob("tvm_tuning_errors_*.log")
    assert report.read_text().count("made up") == 12
    assert tuner.best_config is None
    assert not autotvm.GLOBAL_SCOPE.in_tuning


def test_trials_are_logged_at_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="autotvm"):
        tune(GridSearchTuner(matmul_task()), n_trial=2, si_prefix="M")
    assert "No: 1\tMFLOPS: " in caplog.text
    assert "[('tile_y', [-1, 2]), ('tile_x', [-1, 1])],None,1" in caplog.text
    with pytest.raises(ValueError, match="si_prefix"):
        tune(GridSearchTuner(matmul_task()), si_prefix="X")


def test_callbacks_write_logs_and_statistics(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "a.log"
    monitor = autotvm.callback.Monitor()
    seen = tune(
        GridSearchTuner(matmul_task()),
        lambda c: None if c.index == 1 else far_from_16_by_32(c),
        n_trial=6,
        callbacks=[
            autotvm.callback.log_to_file(str(log)),
            monitor,
        ],
    )
    written = [inp.config.index for inp, _ in autotvm.record.load_from_file(log)]
    assert written == seen == list(range(6))
    assert [score > 0 for score in monitor.trial_scores()] == [True, False] + [True] * 4
    assert len(monitor.trial_timestamps()) == 6
    monitor.reset()
    assert len(monitor.trial_scores()) == 0


def test_metrics_of_orders() -> None:
    assert metric.max_curve([1, 3, 2]).tolist() == [1, 3, 3]
    assert metric.mean_curve([1, 3, 2]).tolist() == [1, 2, 2]
    assert metric.recall_curve([0, 2, 1]).tolist() == [1, 0.5, 1]
    assert metric.recall_curve([0, 2, 1], top=1).tolist() == [1, 1, 1]
    assert metric.cover_curve([1, 0, 2]).tolist() == [0, 1, 1]
    assert metric.average_recall([3, 2, 1], [30, 20, 10], 3) == 1
    assert autotvm.utils.get_rank([10, 30, 20]).tolist() == [2, 0, 1]


def test_a_droplet_descends_to_the_valley() -> None:
    task = matmul_task(1 << 10, 16, 1 << 10)
    tuner = DropletTuner(task, start_position=[10, 0])
    seen = tune(tuner)
    assert tuner.best_flops == pytest.approx(task.flop / 1e-3)
    assert len(seen) == len(set(seen)) < len(task.config_space)
    with pytest.raises(ValueError, match="start_position needs a value below"):
        DropletTuner(task, start_position=[11, 0])


def test_a_droplet_goes_on_only_if_the_difference_is_significant() -> None:
    tuner = DropletTuner(matmul_task())
    assert tuner.p_value([1.0], [2.0])
    assert tuner.p_value([1.0, 1.01, 0.99], [2.0, 2.01, 1.99])
    assert not tuner.p_value([1.0, 3.0, 2.0], [1.5, 2.6, 2.2])
    assert tuner.num_to_bin(1) == [0, 1]
    assert tuner.search_space(2)[:4] == [[0, 2], [0, -2], [2, 0], [-2, 0]]


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3), (5, 8), (1, 2)])
def test_the_significance_is_that_of_the_t_test(sizes: tuple[int, int]) -> None:
    random = np.random.RandomState(sum(sizes))
    a, b = random.rand(sizes[0]).tolist() + [0.1], random.rand(sizes[1]).tolist() + [0.7]
    assert two_sided_p(a, b) == pytest.approx(scipy.stats.ttest_ind(a, b).pvalue, abs=1e-9)


def test_a_droplet_whose_start_is_left_out_begins_elsewhere() -> None:
    task = matmul_task()
    task.config_space.multi_filter(lambda e: e["tile_y"].size[-1] > 1)
    tuner = DropletTuner(task)
    seen = tune(tuner)
    assert all(task.config_space.is_index_valid(i) for i in seen)
    assert tuner.best_flops > 0


@pytest.mark.parametrize("tuner_class", [RandomTuner, GATuner, DropletTuner, XGBTuner])
def test_what_the_template_itself_would_take_is_tried_first(tuner_class: Any) -> None:
    task = matmul_task()
    task.config_space.start = 17
    tuner = tuner_class(task)
    assert tuner.next_batch(1)[0].index == 17
