from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, relay
from tvm.autotvm.graph_tuner import DPTuner, PBQPTuner, get_infer_layout
from tvm.autotvm.graph_tuner.network import ChoiceNetwork, solve_by_reduction, solve_exactly
from tvm.autotvm.measure import MeasureErrorNo, MeasureResult, Runner

from .records import record, weight


def random_network(random: np.random.RandomState, variables: int, share: float) -> ChoiceNetwork:
    network = ChoiceNetwork()
    for v in range(variables):
        network.add_variable(v, random.rand(random.randint(1, 4)))
    for a, b in itertools.combinations(range(variables), 2):
        if random.rand() < share:
            network.add_pair(b, a, random.rand(len(network.choices[b]), len(network.choices[a])))
    return network


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_solution_is_that_of_trying_everything(seed: int) -> None:
    network = random_network(np.random.RandomState(seed), 6, 0.5)
    ranges = [range(len(costs)) for costs in network.choices.values()]
    best = min(network.cost(dict(enumerate(c))) for c in itertools.product(*ranges))
    assert network.cost(solve_exactly(network)) == pytest.approx(best)
    guessed = solve_by_reduction(network)
    assert best <= network.cost(guessed) + 1e-12
    assert sorted(guessed) == list(range(6))


def test_reductions_are_exact_for_chains_and_rings() -> None:
    random = np.random.RandomState(0)
    for is_ring in (False, True):
        network = ChoiceNetwork()
        for v in range(8):
            network.add_variable(v, random.rand(3))
        for v in range(7 + is_ring):
            network.add_pair(v, (v + 1) % 8, random.rand(3, 3))
        exact = network.cost(solve_exactly(network))
        assert network.cost(solve_by_reduction(network)) == pytest.approx(exact)


def test_too_many_joined_operators_are_left_to_reductions() -> None:
    network = ChoiceNetwork()
    for v in range(9):
        network.add_variable(v, np.ones(10))
    for a, b in itertools.combinations(range(9), 2):
        network.add_pair(a, b, np.ones((10, 10)))
    with pytest.raises(tvm.TVMError, match=r"table of the choices of 9 operators[\s\S]*PBQPTuner"):
        solve_exactly(network)
    assert len(solve_by_reduction(network)) == 9


class SizedRunner(Runner):
    """A transform takes a second for each element of its first argument."""

    def get_build_kwargs(self) -> dict[str, Any]:
        return {}

    def run(self, measure_inputs: Any, build_results: Any) -> list[Any]:
        return [
            MeasureResult((float(np.prod(inp.task.args[0][1])),), MeasureErrorNo.NO_ERROR, 0.1, 0.0)
            for inp in measure_inputs
        ]


def residual() -> relay.Function:
    """Two convolutions and a shortcut."""
    x = relay.var("data", shape=(1, 16, 8, 8))
    first = relay.nn.relu(relay.nn.conv2d(x, weight(16, 16, 3, 3), padding=1))
    second = relay.nn.conv2d(first, weight(16, 16, 1, 1))
    joined = relay.add(second, first)
    return relay.Function([x], relay.nn.batch_flatten(relay.nn.max_pool2d(joined)))


def blocked(task: Any, block: int, seconds: float) -> Any:
    """A record of a convolution in blocks of channels."""
    entity = [["tile_ic", "sp", [-1, block]], ["tile_oc", "sp", [-1, block]]]
    config = {"index": block, "code_hash": None, "entity": entity}
    inp = autotvm.MeasureInput(task.target, task, autotvm.ConfigEntity.from_json_dict(config))
    return inp, autotvm.MeasureResult((seconds,), 0, 0.1, 0.0)


@pytest.fixture
def tasks() -> list[Any]:
    return autotvm.task.extract_from_program(
        residual(), {}, "llvm", ops=(relay.op.get("nn.conv2d"),)
    )


def tuned(tuner_class: Any, records: Any, tmp_path: Path) -> Any:
    tuner = tuner_class(
        residual(), {"data": (1, 16, 8, 8)}, records, [relay.op.get("nn.conv2d")], "llvm",
        verbose=False, log_file=str(tmp_path / "graph_tuner.log"),
    )  # fmt: skip
    tuner.benchmark_layout_transform(runner=SizedRunner(1, 1), timeout=60)
    tuner.run()
    return tuner


@pytest.mark.parametrize("tuner_class", [DPTuner, PBQPTuner])
def test_cheap_transforms_let_each_operator_have_its_fastest_record(
    tuner_class: Any, tasks: list[Any], tmp_path: Path
) -> None:
    one, two = tasks
    assert len(one.args[1][1]) == len(two.args[1][1]) == 4
    for gain, blocks in ((1e6, [8, 16]), (1.0, [8, 8])):
        records = [
            blocked(one, 8, 1.0), blocked(one, 16, 1.0 + gain),
            blocked(two, 8, 1.0 + 0.9 * gain), blocked(two, 16, 1.0),
        ]  # fmt: skip
        tuner = tuned(tuner_class, records, tmp_path)
        chosen = tuner.get_optimal_records()
        assert [inp.config.index for inp, _ in chosen] == blocks
    key = ((1, 16, 8, 8), "NCHW", "NCHW8c")
    assert tuner.layout_transform_perf_records[key] == 1024.0
    assert "Finished: 2 operators" in (tmp_path / "graph_tuner.log").read_text()


def test_the_chosen_records_are_written_and_applied(tasks: list[Any], tmp_path: Path) -> None:
    records = [record(task) for task in tasks]
    tuner = tuned(DPTuner, records, tmp_path)
    log = str(tmp_path / "graph.log")
    tuner.write_opt_sch2record_file(log)
    written = [inp.task.workload for inp, _ in autotvm.record.load_from_file(log)]
    assert written == [task.workload for task in tasks]
    func = residual()
    data = np.random.default_rng(1).normal(size=(1, 16, 8, 8)).astype("float32")
    expected = relay.create_executor("graph", target="llvm").evaluate(func)(data).numpy()
    with autotvm.apply_graph_best(log):
        found = relay.create_executor("graph", target="llvm").evaluate(func)(data).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_transforms_are_measured_or_taken_from_records(tasks: list[Any], tmp_path: Path) -> None:
    data = tvm.te.placeholder((1, 16, 8, 8))
    known = autotvm.task.create("layout_transform", (data, "NCHW", "NCHW8c"), "llvm")
    inp = autotvm.MeasureInput(known.target, known, known.config_space.get(0))
    tuner = DPTuner(
        residual(), {}, [blocked(task, 8, 1.0) for task in tasks], ["nn.conv2d"], "llvm",
        verbose=False, log_file=None,
    )  # fmt: skip
    with pytest.raises(tvm.TVMError, match="was not measured"):
        tuner.run()
    with pytest.raises(RuntimeError, match="needs the device_key"):
        tuner.benchmark_layout_transform(use_rpc=True)
    result = autotvm.MeasureResult((7.0,), 0, 0.1, 0.0)
    tuner.benchmark_layout_transform(min_exec_num=2, timeout=60, layout_records=[(inp, result)])
    seconds = tuner.layout_transform_perf_records
    assert seconds[((1, 16, 8, 8), "NCHW", "NCHW8c")] == 7.0
    assert all(0 < value < 1 for key, value in seconds.items() if key[1] != "NCHW")


def test_missing_records_and_inputs_are_told(tasks: list[Any]) -> None:
    options: dict[str, Any] = {"verbose": False, "log_file": None, "log_level": logging.INFO}
    conv = [relay.op.get("nn.conv2d")]
    with pytest.raises(tvm.TVMError, match="needs records of every operator"):
        DPTuner(residual(), {}, [blocked(tasks[0], 8, 1.0)], conv, "llvm", **options)
    with pytest.raises(ValueError, match="has no input 'date'.*data"):
        DPTuner(residual(), {"date": (1, 16, 8, 8)}, [], conv, "llvm", **options)
    with pytest.raises(ValueError, match=r"Cannot find infer layout for task dense_pack\.x86"):
        get_infer_layout("dense_pack.x86")
    records = [blocked(task, 8, 1.0) for task in tasks]
    with pytest.raises(tvm.TVMError, match=r"before run\(\)"):
        DPTuner(residual(), {}, records, conv, "llvm", **options).get_optimal_records()
