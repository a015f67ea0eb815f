"""What a report says of a small model is right."""

from __future__ import annotations

import json
from math import prod

import numpy as np
import pytest

import tvm
from tests.contrib.explain.conftest import small_model
from tvm import relay
from tvm.contrib import explain
from tvm.contrib.explain import Kernel, Report
from tvm.relay.backend.graph import Graph
from tvm.relay.backend.memory_plan import StoragePlan
from tvm.script import ir as I
from tvm.script import relax as R


def kernel_with(report: Report, operator: str) -> Kernel:
    (found,) = [k for k in report.kernels if operator in k.operators]
    return found


def test_every_operator_knows_the_kernel_that_serves_it(report: Report) -> None:
    served = {
        node.op: {report.built.nodes[i].op for i in node.others} for node in report.imported.nodes
    }
    (conv,) = [op for op in served["nn.relu"] if "conv2d" in op]
    assert conv in served["nn.conv2d"] and conv in served["nn.bias_add"]
    assert served["nn.softmax"] == {"nn.softmax"}
    assert any(["dense" in op for op in served["nn.dense"]])


def test_links_between_the_graphs_go_both_ways(report: Report) -> None:
    for here, there in ((report.imported, report.built), (report.built, report.imported)):
        for i, node in enumerate(here.nodes):
            assert all([i in there.nodes[other].others for other in node.others])


def test_kernels_know_their_calls(report: Report) -> None:
    for number, kernel in enumerate(report.kernels):
        assert kernel.calls == len(kernel.nodes) > 0
        assert all([report.built.nodes[i].kernel == number for i in kernel.nodes])
        total = sum([report.built.nodes[i].seconds for i in kernel.nodes])
        assert kernel.seconds == pytest.approx(total) and total > 0
    assert report.seconds == pytest.approx(sum([k.seconds for k in report.kernels]))


def test_operations_and_bytes_of_a_product(report: Report) -> None:
    product = next(k for k in report.kernels if any(["dense" in op for op in k.operators]))
    assert product.flops >= 2 * 8 * 10
    (node,) = [report.built.nodes[i] for i in product.nodes]
    sources = [report.built.nodes[a] for a, b in report.built.edges if b == product.nodes[0]]
    tensors = [*node.outputs, *node.weights, *[t for s in sources for t in s.outputs]]
    assert product.bytes == sum([t.bytes for t in tensors])
    assert all([t.bytes == prod(t.shape) * 4 for t in tensors])


def test_roof_is_the_longer_of_operations_and_bytes(report: Report) -> None:
    machine = report.machine
    assert machine.flops and machine.bandwidth
    for kernel in report.kernels:
        times = kernel.flops / machine.flops, kernel.bytes / machine.bandwidth
        assert kernel.roof_seconds == max(times)
        assert kernel.bound == ("memory" if times[1] > times[0] else "compute")


def test_memory_is_what_was_planned(report: Report, plans: list[tuple[Graph, StoragePlan]]) -> None:
    ((graph, plan),) = plans
    inputs = [ref for ref in graph.entries() if graph.nodes[ref.node].is_input]
    weights = {plan.storage_ids[ref] for ref in inputs if graph.nodes[ref.node].name != "x"}
    expected = sum([size for i, size in enumerate(plan.sizes) if i not in weights])
    assert report.memory.planned == expected
    assert [s.bytes for s in report.memory.storages] == plan.sizes
    assert report.memory.peak == max(report.memory.live) <= report.memory.planned
    assert report.memory.live[report.memory.peak_step] == report.memory.peak


def test_tensors_that_live_at_once_never_share_storage(report: Report) -> None:
    lives = report.memory.lives
    for i, one in enumerate(lives):
        for other in lives[i + 1 :]:
            apart = one.last < other.first or other.last < one.first
            is_view = one.node == other.node
            assert apart or is_view or one.storage != other.storage


def test_weights_are_listed_with_their_packed_sizes(report: Report) -> None:
    assert sum([w.tensor.bytes for w in report.weights]) >= 4 * (8 * 3 * 25 + 8 + 80)
    readers = [report.built.nodes[w.node] for w in report.weights]
    assert all(
        [w.tensor in reader.weights for w, reader in zip(report.weights, readers, strict=True)]
    )


def test_lines_are_linked_from_te_to_assembly(report: Report) -> None:
    kernel = next(k for k in report.kernels if any(["conv2d" in op for op in k.operators]))
    codes = {code.language: code for code in kernel.codes}
    assert list(codes) == ["te", "tir", "llvm", "assembly"]
    te, tir = (codes[name].text.splitlines() for name in ("te", "tir"))
    stored = [i for i, line in enumerate(tir) if "T_relu" in line and "] = " in line]
    assert stored
    for i in stored:
        assert te[codes["tir"].lines[i] - 1].startswith("T_relu[")
    for name, word in (("llvm", "store "), ("assembly", "mov")):
        code = codes[name]
        lines = code.text.splitlines()
        assert len(code.lines) == len(lines) and "!dbg" not in code.text
        origins = [o for o, line in zip(code.lines, lines, strict=True) if word in line]
        assert {o - 1 for o in origins} & set(stored)
        assert all([0 <= o <= len(tir) for o in code.lines])


def test_operators_of_constants_alone_are_folded() -> None:
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(8,))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.tanh(x + relay.exp(w))))
    with tvm.transform.PassContext(opt_level=3):
        params = {"w": np.ones(8, "float32")}
        found = explain.explain(mod, params, repeat=0, detailed=0)
    assert {n.op for n in found.imported.nodes if n.is_folded} == {"exp"}
    assert all([n.others for n in found.imported.nodes if n.op in ("add", "tanh")])


def test_choices_know_what_they_were_chosen_among() -> None:
    x, w = relay.var("x", shape=(1, 16, 14, 14)), relay.var("w", shape=(32, 16, 1, 1))
    conv = relay.nn.conv2d(x, w, channels=32, kernel_size=1)
    mod = tvm.IRModule.from_expr(relay.Function([x, w], conv))
    with tvm.transform.PassContext(opt_level=3):
        found = explain.explain(mod, None, "llvm -mcpu=x86-64-v3", repeat=0, detailed=0)
    choices = [choice for kernel in found.kernels for choice in kernel.choices]
    assert choices
    for choice in choices:
        costs = [candidate.cost for candidate in choice.candidates]
        assert costs == sorted(costs) and len(costs) <= choice.count
        assert choice.origin == "cost model" and choice.candidates[0].tile == choice.tile


def test_passes_tell_what_they_changed(report: Report) -> None:
    runs = {run.name: run for run in report.passes}
    (change,) = runs["SimplifyInference"].changes
    assert "+  %" in change.diff and "bias_add" in change.diff and "span=" not in change.diff
    assert runs["tir.VectorizeLoop"].changed > 0 and runs["tir.VectorizeLoop"].runs > 1
    shown = {change.function for run in report.passes for change in run.changes}
    loops = {name for name in shown if name.startswith("tvmgen")}
    assert loops == {k.name for k in sorted(report.kernels, key=lambda k: -k.seconds)[:2]}


def test_nothing_is_measured_for_other_machines() -> None:
    mod, params = small_model()
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
    found = explain.explain(mod, params, target, detailed=0)
    assert "is not this machine" in found.machine.note and found.seconds == 0
    assert all([k.roof_seconds is None for k in found.kernels])
    assert any([code.language == "assembly" and code.text for code in found.kernels[0].codes])


def test_code_of_gpus_says_that_its_lines_are_not_linked() -> None:
    x = relay.var("x", shape=(64,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    found = explain.explain(mod, None, "opencl", repeat=0)
    codes = {code.language: code for code in found.kernels[0].codes}
    assert "__kernel" in codes["opencl"].text and "cannot be linked" in codes["opencl"].note


def test_the_record_is_json(report: Report) -> None:
    read = json.loads(report.to_json())
    assert read["version"] == 1
    assert read["kernels"][0]["codes"][1]["language"] == "tir"


def test_numbers_below_zero_are_rejected() -> None:
    mod, params = small_model()
    with pytest.raises(ValueError, match=r"explain requires numbers of at least 0, got repeat=-1"):
        explain.explain(mod, params, repeat=-1)


def test_code_in_c_is_shown_and_not_measured() -> None:
    mod, params = small_model()
    found = explain.explain(mod, params, "c", detailed=0)
    languages = {code.language: code.text for code in found.kernels[0].codes}
    assert "for " in languages["tir"] and "int32_t" in languages["c"]
    assert found.seconds == 0 and "measured where their text is compiled" in found.machine.note


def test_functions_of_relax_beside_relay_are_rejected() -> None:
    @I.ir_module
    class Module:
        @R.function
        def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    mod["other"] = Module["other"]
    with pytest.raises(tvm.error.OpNotImplemented, match="requires functions of relay, got other"):
        explain.explain(mod)
