"""What tests of tuning are written with."""

from pathlib import Path

from tvm import autotvm
from tvm.autotvm.record import ApplyHistoryBest
from tvm.testing.autotvm import DummyRunner, get_sample_records, get_sample_task


def test_a_task_is_tuned_without_measuring() -> None:
    task, _ = get_sample_task(32)
    option = autotvm.measure_option(autotvm.LocalBuilder(), DummyRunner())
    tuner = autotvm.tuner.GridSearchTuner(task, range_idx=(3, 6))
    assert tuner.index == 3
    tuner.tune(n_trial=2, measure_option=option)
    assert tuner.visited == {3, 4} and tuner.index == 5
    tuner.tune(n_trial=2, measure_option=option)
    assert tuner.index == tuner.end_idx and not tuner.has_next()


def test_the_best_of_the_records_is_found() -> None:
    task, target = get_sample_task()
    records = get_sample_records(3)
    best = ApplyHistoryBest(records).query(target, task.workload)
    assert best.index == records[0][0].config.index


def test_records_lie_in_files_of_any_path_class(tmp_path: Path) -> None:
    class OtherPath:
        def __fspath__(self) -> str:
            return str(tmp_path / "records.log")

    with open(OtherPath(), "w", encoding="utf-8") as file:
        autotvm.callback.log_to_file(file)(None, *zip(*get_sample_records(2), strict=True))
    task, target = get_sample_task()
    assert ApplyHistoryBest(OtherPath()).query(target, task.workload).index == 0


def test_a_generation_counts_as_visited() -> None:
    tuner = autotvm.tuner.GATuner(get_sample_task()[0], pop_size=8)
    assert tuner.visited == set(tuner.genes)
