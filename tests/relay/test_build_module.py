"""`relay.build` as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.executors import run_library
from tvm import relay
from tvm.contrib import graph_executor
from tvm.error import TVMError
from tvm.ir.pass_names import RELAY_PASSES
from tvm.relay import pipeline

RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def dense_relu() -> relay.Function:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(5, 8))
    return relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w) + relay.const(0.5)))


def build(func: relay.Function, level: int = 3, **params: np.ndarray) -> object:
    with tvm.transform.PassContext(opt_level=level):
        return relay.build(tvm.IRModule.from_expr(func), target="llvm", params=params)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_dense_relu_at_every_level(level: int) -> None:
    x, w = random(2, 8), random(5, 8)
    expected = np.maximum(x @ w.T + 0.5, 0)
    (bound,) = run_library(build(dense_relu(), level, w=w), x=x)
    np.testing.assert_allclose(bound, expected, rtol=1e-5, atol=1e-6)
    (free,) = run_library(build(dense_relu(), level), x=x, w=w)
    np.testing.assert_allclose(free, expected, rtol=1e-5, atol=1e-6)


def test_graph_json_has_the_classic_form() -> None:
    lib = build(dense_relu(), 0, w=random(5, 8))
    graph = json.loads(lib.get_graph_json())
    assert [n["op"] for n in graph["nodes"]] == ["null", "null", "tvm_op", "tvm_op", "tvm_op"]
    assert graph["arg_nodes"] == [0, 1]
    assert graph["heads"] == [[4, 0, 0]]
    assert graph["node_row_ptr"] == [0, 1, 2, 3, 4, 5]
    assert graph["attrs"]["shape"] == ["list_shape", [[2, 8], [5, 8], [2, 5], [2, 5], [2, 5]]]
    assert graph["attrs"]["dltype"] == ["list_str", ["float32"] * 5]
    kernel = graph["nodes"][2]
    assert kernel["name"] == kernel["attrs"]["func_name"] == "tvmgen_default_fused_nn_dense"
    assert kernel["attrs"]["num_inputs"] == "2"
    assert kernel["inputs"] == [[0, 0, 0], [1, 0, 0]]


def test_factory_unpacks_to_graph_library_and_parameters() -> None:
    graph, lib, params = build(dense_relu(), w=random(5, 8))
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.set_input(**params)
    x = random(2, 8)
    module.set_input("x", x)
    module.run()
    assert module.get_output(0).shape == (2, 5)


def test_tuple_result_and_shared_values() -> None:
    x = relay.var("x", shape=(4, 6))
    y = relay.exp(x)
    func = relay.Function([x], relay.Tuple([y, relay.sum(y, axis=1), relay.reshape(y, (6, 4))]))
    value = random(4, 6)
    a, b, c = run_library(build(func), x=value)
    np.testing.assert_allclose(a, np.exp(value), rtol=1e-5)
    np.testing.assert_allclose(b, np.exp(value).sum(1), rtol=1e-5)
    np.testing.assert_allclose(c, np.exp(value).reshape(6, 4), rtol=1e-5)


def test_results_that_are_inputs_or_constants() -> None:
    x = relay.var("x", shape=(3,))
    constant = random(3)
    value = random(3)
    func = relay.Function([x], relay.Tuple([x, relay.const(constant), x]))
    a, b, c = run_library(build(func), x=value)
    np.testing.assert_array_equal(a, value)
    np.testing.assert_array_equal(b, constant)
    np.testing.assert_array_equal(c, value)


def test_reshaped_result_may_be_written_to_the_callers_array() -> None:
    x = relay.var("x", shape=(2, 6))
    value = random(2, 6)
    lib = build(
        relay.Function([x], relay.reshape(relay.nn.softmax(relay.reshape(x, (3, 4))), (12,)))
    )
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    given, wanted = tvm.nd.array(value), tvm.nd.empty((12,))
    module.module["set_input_zero_copy"]("x", given)
    module.module["set_output_zero_copy"](0, wanted)
    module.run()
    e = np.exp(value.reshape(3, 4))
    expected = (e / e.sum(1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(wanted.numpy(), expected, rtol=1e-5)


def test_equal_layers_share_one_kernel() -> None:
    x = relay.var("x", shape=(2, 8))
    body: relay.Expr = x
    for _ in range(4):
        body = relay.nn.relu(relay.nn.dense(body, relay.const(random(8, 8))))
    lib = build(relay.Function([x], body))
    graph = json.loads(lib.get_graph_json())
    names = {n["attrs"]["func_name"] for n in graph["nodes"] if n["op"] == "tvm_op"}
    assert len(names) == 1


def test_building_twice_gives_the_same_graph_and_code() -> None:
    func, w = dense_relu(), random(5, 8)
    first, second = build(func, w=w), build(func, w=w)
    assert first.get_graph_json() == second.get_graph_json()
    assert first.get_lib().get_source("ll") == second.get_lib().get_source("ll")


def test_build_takes_a_function_and_the_current_target() -> None:
    with tvm.target.Target("llvm"):
        lib = relay.build(dense_relu(), params={"w": random(5, 8)})
    assert lib.libmod_name == "default"


def test_mod_name_is_part_of_kernel_names() -> None:
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(dense_relu(), target="llvm", mod_name="tiny")
    assert "tvmgen_tiny_fused_" in lib.get_graph_json()
    assert lib["tiny"](tvm.cpu()) is not None


def test_export_and_load_in_a_fresh_process(tmp_path: Path) -> None:
    w, x = random(5, 8), random(2, 8)
    path = tmp_path / "model.so"
    build(dense_relu(), w=w).export_library(str(path))
    np.save(tmp_path / "x.npy", x)
    program = (
        "import sys, numpy as np, tvm\n"
        "from tvm.contrib import graph_executor\n"
        "lib = tvm.runtime.load_module(sys.argv[1])\n"
        "m = graph_executor.GraphModule(lib['default'](tvm.cpu()))\n"
        "m.set_input('x', np.load(sys.argv[2])); m.run()\n"
        "np.save(sys.argv[3], m.get_output(0).numpy())\n"
        "assert 'tvm.relay' not in sys.modules\n"
    )
    args = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    subprocess.run([sys.executable, "-c", program, *args], check=True)
    expected = np.maximum(x @ w.T + 0.5, 0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-6)


def test_optimize_returns_the_optimised_module() -> None:
    mod, params = relay.optimize(dense_relu(), target="llvm", params={"w": random(5, 8)})
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    assert params == {}


def test_values_of_another_precision_are_bound_as_the_parameter_says() -> None:
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.exp(x))
    for value in (np.array([1.5, 2.0]), tvm.nd.array(np.array([1.5, 2.0]))):
        bound = relay.build_module.bind_params_by_name(func, {"x": value})
        data = bound.body.args[0].data
        assert data.dtype == "float32" and data.numpy().tolist() == [1.5, 2.0]


def test_bind_params_by_name_checks_shape_and_names() -> None:
    func = dense_relu()
    with pytest.raises(ValueError, match=r"parameter w must be float32 of shape \(5, 8\)"):
        relay.build_module.bind_params_by_name(func, {"w": random(4, 8)})
    a, b = relay.var("a", shape=(1,)), relay.var("a", shape=(1,))
    with pytest.raises(ValueError, match="two parameters"):
        relay.build_module.bind_params_by_name(relay.Function([a, b], a + b), {"a": random(1)})


def test_module_without_main_is_rejected() -> None:
    mod = tvm.IRModule({"mian": dense_relu()})
    with pytest.raises(TVMError, match=r"requires a function called .main."):
        relay.build(mod, target="llvm")


def test_control_flow_is_rejected_with_a_hint() -> None:
    c, x = relay.var("c", "bool"), relay.var("x", shape=(2,))
    func = relay.Function([c, x], relay.If(c, relay.exp(x), x))
    with pytest.raises(TVMError, match="cannot run If"):
        relay.build(func, target="llvm")


def test_unknown_shape_is_rejected() -> None:
    x = relay.var("x", relay.TensorType((relay.Any(), 2), "float32"))
    with pytest.raises(TVMError, match="constant shapes"):
        relay.build(relay.Function([x], relay.exp(x)), target="llvm")


def test_unknown_executors_and_options_are_rejected() -> None:
    with pytest.raises(TVMError, match="not defined"):
        relay.Executor("grpah")
    with pytest.raises(TVMError, match="not available"):
        relay.Executor("graph", {"link": True})


def test_create_executor_evaluates_functions_and_expressions() -> None:
    x, w = random(2, 8), random(5, 8)
    expected = np.maximum(x @ w.T + 0.5, 0)
    func = dense_relu()
    executor = relay.create_executor("graph", tvm.IRModule.from_expr(func), params={"w": w})
    np.testing.assert_allclose(executor.evaluate()(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        executor.evaluate()(x=x, w=w).numpy(), expected, rtol=1e-5, atol=1e-6
    )
    v = relay.var("v", shape=(2,))
    found = relay.create_executor("debug").evaluate(v + v, {v: np.ones(2, "float32")})
    np.testing.assert_array_equal(found.numpy(), [2, 2])
    pair = relay.create_executor("debug").evaluate(relay.Function([v], relay.Tuple([v, v + v])))
    assert [list(r.numpy()) for r in pair(np.ones(2, "float32"))] == [[1, 1], [2, 2]]


def test_create_executor_checks_arguments() -> None:
    executor = relay.create_executor("graph", tvm.IRModule.from_expr(dense_relu()))
    with pytest.raises(ValueError, match="missing"):
        executor.evaluate()(random(2, 8))
    with pytest.raises(ValueError, match="takes 2 arguments"):
        executor.evaluate()(1, 2, 3)
    with pytest.raises(ValueError, match="by position and by name"):
        executor.evaluate()(random(2, 8), x=random(2, 8), w=random(5, 8))
    with pytest.raises(RuntimeError, match="graph"):
        relay.create_executor("grahp")


def test_parameters_survive_their_bytes() -> None:
    params = {"a": tvm.nd.array(random(2, 3)), "b": tvm.nd.array(np.arange(3))}
    back = relay.load_param_dict(relay.save_param_dict(params))
    assert list(back) == ["a", "b"]
    np.testing.assert_array_equal(back["a"].numpy(), params["a"].numpy())


def test_parameters_of_one_name_are_different_inputs() -> None:
    a, b = relay.var("a", shape=(2,)), relay.var("a", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([a, b], a - b))
    lib = relay.build(mod, "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    assert list(module.get_input_info()[0]) == ["a", "a_1"]
    run = relay.create_executor("graph", mod).evaluate()
    five, two = np.full(2, 5, "float32"), np.full(2, 2, "float32")
    np.testing.assert_array_equal(run(five, two).numpy(), five - two)


def test_executors_have_their_classic_names_in_build_module() -> None:
    assert relay.build_module.create_executor is relay.create_executor
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    run = relay.build_module.GraphExecutor(mod, tvm.cpu(), tvm.target.Target("llvm")).evaluate()
    np.testing.assert_allclose(run(np.zeros(2, "float32")).numpy(), [1, 1])


@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_positions_of_extremes_of_fused_sums(op: str) -> None:
    x = relay.var("x", shape=(6, 5), dtype="int32")
    values = np.random.default_rng(0).integers(-5, 6, (6, 5)).astype("int32")
    for offset in (-2, 2):
        func = relay.Function([x], getattr(relay, op)(x + relay.const(offset), axis=[-1]))
        run = relay.create_executor("graph", mod=tvm.IRModule.from_expr(func)).evaluate()
        np.testing.assert_array_equal(run(values).numpy(), getattr(values, op)(-1))


def test_every_pass_of_the_pipelines_can_be_disabled_before_it_ran() -> None:
    mod = tvm.IRModule()
    passes = [*pipeline.graph_passes(), *pipeline.vm_optimization(mod), *pipeline.memory_passes()]
    assert {p.info.name for p in passes} <= RELAY_PASSES
    with tvm.transform.PassContext(disabled_pass=["FuseAttention", "WideAccumulation"]):
        pass


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_records_of_schedules_are_kept_with_the_kernels(executor: str) -> None:
    x = relay.var("x", shape=(4, 8))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x)))
    for is_kept in (False, True):
        with tvm.transform.PassContext(config={"te.keep_schedule_record": is_kept}):
            lib = relay.build(mod, "llvm", executor=relay.backend.Executor(executor))
        (kernel,) = [f for n, f in lib.function_metadata.items() if n != "__tvm_main__"]
        (source,) = kernel.relay_primfuncs.values()
        assert ("schedule" in source.attrs) == is_kept
    schedule = source.attrs["schedule"]
    assert len(schedule.primitive_record) == len(schedule.schedule_record) > 1
