"""A run with inputs that were never set says so; names that no input has are told."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import knobs, relay
from tvm.contrib.debugger.debug_executor import GraphModuleDebug
from tvm.contrib.graph_executor import GraphModule
from tvm.runtime.executor import AotModule

ONES = np.ones((2, 3), "float32")


def program() -> tvm.IRModule:
    data = relay.var("data", shape=(2, 3))
    weight = relay.var("weight", shape=(4, 3))
    return tvm.IRModule.from_expr(relay.Function([data, weight], relay.nn.dense(data, weight)))


def library(executor: str = "graph", **params: Any) -> Any:
    options = {"executor": relay.backend.Executor(executor)}
    return relay.build(program(), "llvm", params=params or None, **options)


def graph_module() -> GraphModule:
    return GraphModule(library()["default"](tvm.cpu()))


@pytest.fixture(params=["graph", "aot", "debug"])
def module(request: pytest.FixtureRequest) -> Any:
    if request.param == "aot":
        return AotModule(library("aot")["default"](tvm.cpu()))
    if request.param == "graph":
        return graph_module()
    lib = library()
    executor = lib["debug_create"]("default", tvm.cpu())
    return GraphModuleDebug(executor, [tvm.cpu()], lib.get_graph_json(), None)


def run(module: Any) -> None:
    module.module["run"]()


def test_the_first_run_names_the_inputs_that_were_never_set(module: Any) -> None:
    with pytest.warns(UserWarning) as caught:
        run(module)
    (warning,) = caught
    assert "'data' (2, 3) float32" in str(warning.message)
    assert "'weight' (4, 3) float32" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(module)


def test_an_input_that_was_never_set_is_an_error_under_the_strict_knob(module: Any) -> None:
    module.set_input("data", ONES)
    with knobs.STRICT_INPUTS.scope(True):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"an input was never set: 'weight' \(4, 3\)"):
                run(module)
        module.set_input("weight", np.ones((4, 3), "float32"))
        run(module)
    assert module.get_output(0).numpy().tolist() == [[3] * 4] * 2


def test_an_input_whose_memory_was_handed_out_counts_as_set() -> None:
    module = graph_module()
    for name in ("data", "weight"):
        module.get_input(name)[:] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.run()


def test_a_weight_that_was_built_in_is_not_missed() -> None:
    lib = library(weight=np.ones((4, 3), "float32"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GraphModule(lib["default"](tvm.cpu())).run(data=ONES)


def test_a_misspelt_input_is_told_though_the_right_one_was_set() -> None:
    module = graph_module()
    module.set_input(data=ONES, weight=np.ones((4, 3), "float32"))
    with pytest.warns(UserWarning, match="no inputs 'dat' .did you mean 'data'"):
        module.run(dat=ONES)
    with pytest.warns(UserWarning, match="no inputs 'wieght' .did you mean 'weight'"):
        module.set_input(wieght=np.ones((4, 3), "float32"))


def test_parameters_that_were_folded_away_are_passed_over() -> None:
    module = graph_module()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.set_input(conv1_bias=ONES)


@pytest.mark.parametrize("build", [relay.build, relay.vm.compile])
def test_a_misspelt_parameter_is_told_when_the_model_is_built(build: Any) -> None:
    with pytest.warns(UserWarning, match="no parameters 'wieght' .did you mean 'weight'"):
        build(program(), "llvm", params={"wieght": np.ones((4, 3), "float32")})


def test_a_misspelt_parameter_is_told_when_parameters_are_loaded() -> None:
    module = graph_module()
    blob = tvm.runtime.save_param_dict({"wieght": np.ones((4, 3), "float32")})
    with pytest.warns(UserWarning, match="no inputs 'wieght' .did you mean 'weight'"):
        module.load_params(blob)
