"""Programs as numbered nodes: tvm.autotvm.graph_tuner.utils."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm import autotvm, relay, te
from tvm.autotvm.graph_tuner import DPTuner
from tvm.autotvm.graph_tuner.utils import (
    bind_inputs,
    expr2graph,
    get_direct_ancestor,
    get_in_nodes,
    get_out_nodes,
    has_multiple_inputs,
)

CONV = [relay.op.get("nn.conv2d")]
SHAPES = {"data": (1, 8, 10, 10), "w0": (8, 8, 1, 1), "w1": (8, 8, 1, 1)}


def nodes_of(body: relay.Expr) -> list[dict[str, Any]]:
    func = relay.Function(relay.analysis.free_vars(body), body)
    names = {param.name_hint for param in func.params}
    found: list[dict[str, Any]] = []
    shapes = {name: shape for name, shape in SHAPES.items() if name in names}
    expr2graph(bind_inputs(func, shapes), CONV, {}, found, tvm.target.Target("llvm"))
    return found


def test_ways_between_nodes() -> None:
    data, w0, w1 = relay.var("data"), relay.var("w0"), relay.var("w1")
    first = relay.nn.conv2d(data, w0)
    joined = relay.add(first, data) * relay.const(2.0)
    nodes = nodes_of(relay.nn.conv2d(joined, w1))
    # parameters first: data, w0, w1, conv2d, add, constant, multiply, conv2d
    assert [getattr(node["op"], "name", None) for node in nodes] == [
        None, None, None, "nn.conv2d", "add", None, "multiply", "nn.conv2d",
    ]  # fmt: skip
    assert nodes[3]["workloads"][0][0].startswith("conv2d_")
    assert has_multiple_inputs(nodes, 4, ["data"], ())
    assert not has_multiple_inputs(nodes, 3, ["data"], ())
    ways = get_in_nodes(nodes, CONV, ["data"])
    assert ways == {3: [0], 4: [3, 0], 7: [4]}
    assert get_out_nodes(ways) == {0: [3, 4], 3: [4], 4: [7], 7: []}


def test_what_joins_nothing_tuned_is_as_an_input() -> None:
    data = relay.var("data")
    nodes = nodes_of(relay.add(relay.log(data), relay.sqrt(data)))
    assert get_direct_ancestor(nodes, {}, CONV, 3, ["data"]) == [0]
    assert get_in_nodes(nodes, CONV, ["data"]) == {}


def test_transforms_in_proportion_to_those_measured() -> None:
    x = relay.var("data", shape=(1, 16, 8, 8))
    func = relay.Function([x], relay.nn.conv2d(x, relay.const(np.ones((16, 16, 1, 1), "float32"))))
    (task,) = autotvm.task.extract_from_program(func, {}, "llvm", ops=(CONV[0],))
    args = (te.placeholder((1, 4, 8, 8, 4), name="t"), "NCHW4c", "NCHW")
    transform = autotvm.task.create("layout_transform", args, "llvm")
    result = autotvm.MeasureResult((1.0,), 0, 0.1, 0.0)
    log = [(autotvm.MeasureInput("llvm", transform, None), result)]
    entity = [["tile_ic", "sp", [-1, 8]], ["tile_oc", "sp", [-1, 8]]]
    config = {"index": 0, "code_hash": None, "entity": entity}
    chosen = autotvm.ConfigEntity.from_json_dict(config)
    records = [(autotvm.MeasureInput("llvm", task, chosen), result)]
    shapes = {"data": (1, 16, 8, 8)}
    tuner = DPTuner(func, shapes, records, CONV, "llvm", verbose=False, log_file=None)
    tuner.benchmark_layout_transform(layout_records=log, infer_layout=True)
    seconds = tuner.layout_transform_perf_records
    assert seconds and all(value == 1.0 for value in seconds.values())  # as many elements
