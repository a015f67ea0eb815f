"""Pipelines of models: connections, runs that overlap, libraries, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import cc, pipeline_executor, pipeline_executor_build
from tvm.contrib.pipeline_executor import PipelineModule
from tvm.contrib.pipeline_executor_build import PipelineConfig

SHAPE = (3, 4)


def models() -> tuple[tvm.IRModule, tvm.IRModule, tvm.IRModule]:
    """first: (a + 1, a * w); second: b - c; third: 2 d + e."""
    a, w = relay.var("a", shape=SHAPE), relay.var("w", shape=SHAPE)
    first = relay.Function([a, w], relay.Tuple([a + relay.const(1.0), a * w]))
    b, c = relay.var("b", shape=SHAPE), relay.var("c", shape=SHAPE)
    d, e = relay.var("d", shape=SHAPE), relay.var("e", shape=SHAPE)
    second = relay.Function([b, c], b - c)
    third = relay.Function([d, e], d * relay.const(2.0) + e)
    modules = [tvm.IRModule.from_expr(f) for f in (first, second, third)]
    return modules[0], modules[1], modules[2]


def connected() -> PipelineConfig:
    first, second, third = models()
    config = PipelineConfig()
    # the models are first mentioned in another order than they run in
    config[third]["output"][0].connect(config["output"]["1"])
    config["input"]["data_a"].connect(config[first]["input"]["a"])
    config["input"]["data_c"].connect(config[second]["input"]["c"])
    config["param_group"]["weights"].connect(config[first]["param"])
    config[first]["output"][0].connect(config[second]["input"]["b"])
    config[first]["output"][1].connect(config[third]["input"]["e"])
    config[second]["output"][0].connect(config[third]["input"]["d"])
    config[second]["output"][0].connect(config["output"]["0"])
    for number, model in enumerate((first, second, third)):
        config[model].target = "llvm"
        config[model].name = f"stage{number}"
    return config


def expected(a: np.ndarray, c: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    difference = a + 1 - c
    return [difference, difference * 2 + a * w]


def check_runs(pipeline: PipelineModule) -> None:
    rng = np.random.default_rng(0)
    w = rng.random(SHAPE, "float32")
    pipeline.set_params("weights", {"w": w})
    values = [rng.random((2, *SHAPE), "float32") for _ in range(6)]
    for a, c in values:  # all are under way before the first output is taken
        pipeline.set_input("data_a", tvm.nd.array(a))
        pipeline.set_input("data_c", c)
        pipeline.run()
    assert pipeline.num_executing_pipeline == 6
    for a, c in values:
        for found, wanted in zip(pipeline.get_output(), expected(a, c, w), strict=True):
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    assert pipeline.get_output() == [] == pipeline.get_output(synchronize=False)


def test_runs_follow_one_another_through_the_stages(tmp_path: Path) -> None:
    assert pipeline_executor.pipeline_executor_enabled()
    with tvm.transform.PassContext(opt_level=3):
        factory = pipeline_executor_build.build(connected())
    check_runs(PipelineModule(factory))
    check_runs(PipelineModule.load_library(factory.export_library(tmp_path)))


def test_positions_are_told_by_name() -> None:
    pipeline = PipelineModule(pipeline_executor_build.build(connected()))
    assert pipeline.num_inputs == 2 and pipeline.num_outputs == 2
    assert pipeline.get_input_pipeline_map("data_c") == ["1", "c"]
    assert pipeline.get_params_group_pipeline_map("weights") == 0
    pipeline.set_input("data_a", np.ones(SHAPE, "float32"))
    np.testing.assert_array_equal(pipeline.get_input("data_a").numpy(), np.ones(SHAPE))
    with pytest.raises(ValueError, match="not set: data_c"):
        pipeline.run()
    with pytest.raises(ValueError, match="no input 'data_b'; its inputs are data_a, data_c"):
        pipeline.set_input("data_b", np.ones(SHAPE))


def test_error_of_a_stage_reaches_the_caller_and_the_next_run_goes_well() -> None:
    pipeline = PipelineModule(pipeline_executor_build.build(connected()))
    good, bad = np.ones(SHAPE, "float32"), np.ones((2, 2), "float32")
    pipeline.set_input("data_a", good)
    for value in (bad, good):
        pipeline.set_input("data_c", value)
        pipeline.run()
    with pytest.raises(ValueError, match="needs"):
        pipeline.get_output()
    np.testing.assert_array_equal(pipeline.get_output()[0].numpy(), good)


def test_configuration_as_text_and_values() -> None:
    config = connected()
    text = str(config)
    assert "  |weights: mod0:param" in text and "  |data_c: mod1:c" in text
    assert "  |output(1) : mod2.output(0)" in text
    assert "  |mod0.output(1)-> mod2.e" in text
    values = config.get_config()
    assert {"global_interface_name": "data_a", "mod_idx": 0, "module_interface_name": "a"} in (
        values["input_connection"]
    )
    outputs = [c["pipeline"]["output"] for c in values["module_connection"].values()]
    assert outputs[1] == [
        {
            "output_idx": 0,
            "dependencies": [{"mod_idx": 2, "input_name": "d"}, {"global_output_index": 0}],
        }
    ]


def test_ends_that_a_model_lacks_are_rejected() -> None:
    first, _, _ = models()
    config = PipelineConfig()
    with pytest.raises(RuntimeError, match=r"no output 2, it has \[0, 1\]"):
        config[first]["output"][2]
    with pytest.raises(RuntimeError, match=r"no input 'x', it has \['a', 'w'\]"):
        config[first]["input"]["x"]


def test_parameters_that_are_missing_are_rejected() -> None:
    pipeline = PipelineModule(pipeline_executor_build.build(connected()))
    with pytest.raises(RuntimeError, match="no group of parameters 'other'"):
        pipeline.set_params("other", {})
    with pytest.raises(RuntimeError, match="requires parameters, got None"):
        pipeline.set_params("weights", None)  # type: ignore[arg-type]


def test_libraries_are_made_by_the_compiler_of_their_model(tmp_path: Path) -> None:
    config = connected()
    called = []

    def fcompile(file_name: str, *args: Any, **kwargs: Any) -> None:
        called.append(file_name)
        cc.create_shared(file_name, *args, **kwargs)

    first = next(iter(config.get_config()["module_connection"]))
    config[first].fcompile = fcompile
    assert config.get_config()["module_connection"][first]["fcompile"] is fcompile
    factory = pipeline_executor_build.build(config)
    check_runs(PipelineModule.load_library(factory.export_library(tmp_path)))
    assert [Path(name).name for name in called] == ["lib0.so"]


def test_wrong_connections_are_rejected() -> None:
    first, second, _ = models()
    config = PipelineConfig()
    config[first]["output"][0].connect(config[second]["input"]["b"])
    with pytest.raises(RuntimeError, match="circular"):
        config[second]["output"][0].connect(config[first]["input"]["a"])
    config = PipelineConfig()
    with pytest.raises(RuntimeError, match="cannot be connected"):
        config["input"]["x"].connect(config["output"]["0"])
    with pytest.raises(RuntimeError, match="circular"):
        config[first]["output"][0].connect(config[first]["input"]["a"])
    config["input"]["x"].connect(config[first]["input"]["a"])
    with pytest.raises(RuntimeError, match="connected already"):
        config["input"]["y"].connect(config[first]["input"]["a"])
    with pytest.raises(RuntimeError, match="numbered from 0"):
        pipeline_executor_build.build(config)
    with pytest.raises(RuntimeError, match="not found"):
        config["inputs"]
