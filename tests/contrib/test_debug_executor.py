"""The debugging executor: every tensor kept, times by node, dumps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tvm
import tvm.runtime.ndarray as nd
from tests.contrib.test_graph_executor import W, X, factory, graph
from tvm import relay
from tvm.contrib.debugger import debug_executor
from tvm.contrib.debugger.debug_executor import GraphModuleDebug
from tvm.contrib.graph_executor import GraphModule
from tvm.relay.frontend.common import set_span
from tvm.runtime import Module, load_param_dict, load_param_dict_from_file, profiling
from tvm.runtime.profiler_vm import VirtualMachineProfiler
from tvm.runtime.vm import Executable


def shared_storage() -> str:
    """The graph with all results in one place."""
    attrs = json.loads(graph())["attrs"]
    attrs["storage_id"] = ["list_int", [0, 1, 2, 2, 2]]
    return graph(attrs=attrs)


@pytest.fixture
def module(library: Module, tmp_path: Path) -> GraphModuleDebug:
    executor = debug_executor.create(shared_storage(), library, nd.cpu(), str(tmp_path))
    executor.set_input(x=X, w=W)
    return executor


def test_intermediate_results_keep_their_memory(module: GraphModuleDebug) -> None:
    np.testing.assert_array_equal(module.debug_get_output("double").numpy(), 2 * (X + W))
    np.testing.assert_array_equal(module.get_node_output(2).numpy(), X + W)
    out = nd.empty((2, 2))
    assert module.debug_get_output(2, out) is out
    np.testing.assert_array_equal(out.numpy(), X + W)
    np.testing.assert_array_equal(module.get_output(1).numpy(), (X + W).ravel())
    with pytest.raises(AttributeError, match="'nope'"):
        module.debug_get_output("nope")
    with pytest.raises(ValueError, match="5 nodes, got index 9"):
        module.debug_get_output(9)


def test_nodes_run_one_by_one(module: GraphModuleDebug) -> None:
    assert [module.execute_next_node() for _ in range(6)] == [0, 1, 2, 3, 4, 0]
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    module.set_input(x=W)
    module.execute_node(3)  # its input is not computed anew
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))


def test_times_of_nodes(module: GraphModuleDebug) -> None:
    times = module.run_individual(number=2, repeat=3, min_repeat_ms=0)
    assert [len(each) for each in times] == [3] * 5
    assert times[0] == [0, 0, 0] and all(t > 0 for t in times[2] + times[3])
    result = module.run_individual_node(2, number=1, repeat=2)
    assert len(result.results) == 2 and result.mean > 0
    with pytest.raises(ValueError, match="5 nodes"):
        module.run_individual_node(7)


def test_a_run_prints_a_table_and_leaves_files(
    module: GraphModuleDebug, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.run(number=1, min_repeat_ms=0, x=X)
    table = capsys.readouterr().out
    assert "Node Name" in table and "double" in table and "Total_time" in table
    folder = tmp_path / "_tvmdbg_device_CPU_0"
    dump = json.loads((folder / "_tvmdbg_graph_dump.json").read_text())
    assert dump["nodes"][2]["inputs"] == ["x", "w"] and dump["nodes"][2]["shape"] == [2, 2]
    trace = json.loads((folder / "_tvmdbg_execution_trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in trace[::2]] == ["x", "w", "sum", "double", "flat"]
    assert [event["ph"] for event in trace] == ["B", "E"] * 5
    tensors = load_param_dict((folder / "output_tensors.params").read_bytes())
    np.testing.assert_array_equal(
        tensors["double____topo-index:3____output-num:0"].numpy(), 2 * (X + W)
    )
    assert len(tensors) == 5


def test_profile_reports_every_operator(module: GraphModuleDebug) -> None:
    class Collector(profiling.MetricCollector):
        def start(self, dev: object) -> int:
            return 1

        def stop(self, started: object) -> dict[str, profiling.Metric]:
            return {"Events": profiling.Count(7)}

    report = module.profile([Collector()], x=X)
    assert [each["Name"] for each in report.calls] == ["add", "twice"]
    assert report.calls[0]["Argument Shapes"] == ", ".join(["float32[2, 2]"] * 3)
    assert report.calls[1]["Events"] == profiling.Count(7)
    total = report.device_metrics["cpu0"]["Duration (us)"]
    assert isinstance(total, profiling.Duration) and total.value > 0
    assert "Events" in str(report)


def test_factories_make_debugging_executors(library: Module) -> None:
    made = factory(library, w=W)["debug_create"]("default", nd.cpu())
    module = GraphModuleDebug(made, [nd.cpu()], graph(), None)
    report = module.profile(x=X)
    assert len(report.calls) == 2
    np.testing.assert_array_equal(module.get_output(0).numpy(), 2 * (X + W))
    folder = module._dump_path
    assert folder.exists()
    module.exit()
    assert not folder.exists()
    with pytest.raises(ValueError, match="holds the model 'default', got 'other'"):
        factory(library)["debug_create"]("other", nd.cpu())


def test_nodes_share_no_memory(module: GraphModuleDebug) -> None:
    for _ in range(5):
        module.execute_next_node()
    outputs = [module.get_node_output(i) for i in range(4)]
    assert len({output.data_address for output in outputs}) == 4
    for output, expected in zip(outputs, (X, W, X + W, 2 * (X + W)), strict=True):
        np.testing.assert_array_equal(output.numpy(), expected)


def test_every_output_of_a_node_with_several(tmp_path: Path) -> None:
    x = relay.var("x", shape=(4, 2))
    parts = relay.split(x, 2, axis=0)
    body = relay.Tuple([relay.nn.relu(parts[0]), parts[1]])
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    module = debug_executor.create(
        lib.get_graph_json(), lib.get_lib(), tvm.cpu(), dump_root=str(tmp_path)
    )
    values = np.arange(8, dtype="float32").reshape(4, 2) - 4
    plain = GraphModule(lib["default"](tvm.cpu()))
    plain.run(x=values)
    module.run(number=1, min_repeat_ms=0, x=values)
    for i in range(2):
        np.testing.assert_array_equal(
            module.get_output(i).numpy(), plain.get_output(i).numpy(), strict=True
        )
    dumped = load_param_dict_from_file(module._dump_path / "output_tensors.params")
    assert any(name.endswith("output-num:1") for name in dumped)
    module.exit()


def test_what_the_debugging_executor_rejects(module: GraphModuleDebug, library: Module) -> None:
    with pytest.raises(RuntimeError, match="needs a node's index or name, got float"):
        module.debug_get_output(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the node has 1 outputs, got index 3"):
        module.get_node_output(2, 3)
    with pytest.raises(ValueError, match="number >= 1, got 0"):
        module.run_individual_node(2, number=0)
    with pytest.raises(RuntimeError, match=r"the graph needs a device of kind cpu"):
        debug_executor.create(graph(), library, nd.cuda())


def test_parameters_are_shared_with_executors_only(module: GraphModuleDebug) -> None:
    with pytest.raises(TypeError, match="share_params needs a GraphModule, got dict"):
        module.share_params({}, b"")  # type: ignore[arg-type]


def test_times_of_tiny_operators_add_up_to_the_run() -> None:
    x = relay.var("x", shape=(1,))
    y = x
    for _ in range(200):
        y = relay.annotation.stop_fusion(relay.add(y, relay.const(1.0)))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), "llvm")
    module = debug_executor.create(lib.get_graph_json(), lib.get_lib(), tvm.cpu())
    report = module.profile(x=np.zeros(1, "float32"))
    module.exit()
    total = report.device_metrics["cpu0"]["Duration (us)"].value
    spent = sum(call["Duration (us)"].value for call in report.calls)
    assert len(report.calls) >= 200 and 0.8 * total <= spent <= total


def test_rows_of_a_profile_list_the_nodes_of_the_model() -> None:
    x = relay.var("x", shape=(2, 8))
    body = x
    for layer in ("first", "second"):
        product = set_span(relay.nn.dense(body, relay.const(np.ones((8, 8), "float32"))), layer)
        body = set_span(relay.nn.relu(product), f"{layer}.act")
    lib = relay.build(relay.Function([x], body), "llvm")
    module = GraphModuleDebug(
        lib["debug_create"]("default", nd.cpu()), [nd.cpu()], lib.graph_json, ""
    )
    report = module.profile(x=np.ones((2, 8), "float32"))
    kernels = [call for call in report.calls if not call["Name"].startswith("VM::")]
    assert [call["Model Nodes"] for call in kernels] == ["first, first.act", "second, second.act"]
    assert "first, first.act, second, second.act" in report.table(wide=True)


def test_rows_of_the_virtual_machine_list_the_nodes_of_the_model() -> None:
    x = relay.var("x", shape=(2, 8))
    body = x
    for layer in ("first", "second"):  # which are one kernel
        product = set_span(relay.nn.dense(body, relay.const(np.ones((8, 8), "float32"))), layer)
        body = set_span(relay.nn.relu(product), f"{layer}.act")
    program = relay.vm.compile(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    loaded = Executable.load_exec(*program.save())
    report = VirtualMachineProfiler(loaded, nd.cpu()).profile(np.ones((2, 8), "float32"))
    kernels = [call for call in report.calls if not call["Name"].startswith("VM::")]
    assert [call["Model Nodes"] for call in kernels] == ["first, first.act", "second, second.act"]


def test_what_replaces_a_node_of_the_model_keeps_its_name() -> None:
    x = relay.var("x", shape=(1, 16, 8, 8))
    weight = relay.const(np.ones((16, 16, 3, 3), "float32"))
    made = set_span(relay.nn.conv2d(x, weight, padding=(1, 1)), "conv")
    four = [relay.const(np.full(16, value, "float32")) for value in (1.5, 1, 2, 3)]
    made = set_span(relay.nn.batch_norm(made, *four)[0], "norm")
    lib = relay.build(relay.Function([x], made), "llvm -mcpu=skylake")
    named = [node["attrs"].get("sources") for node in json.loads(lib.graph_json)["nodes"][1:]
             if node["op"] == "tvm_op"]  # fmt: skip
    assert "conv, norm" in named
