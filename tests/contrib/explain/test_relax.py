"""What a report says of a model of relax is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tests.contrib.explain.conftest import small_relax_model
from tvm import relax
from tvm.contrib import explain
from tvm.contrib.explain import Kernel, Report
from tvm.relax.pipeline import kernel_passes, lowering_passes
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def kernel_with(report: Report, operator: str) -> Kernel:
    (found,) = [k for k in report.kernels if operator in k.operators]
    return found


def test_every_operator_knows_the_kernel_that_serves_it(relax_report: Report) -> None:
    built = relax_report.built.nodes
    served = {n.op: {built[i].op for i in n.others} for n in relax_report.imported.nodes}
    assert list(served) == [
        "input", "nn.conv2d", "add", "nn.relu", "nn.adaptive_avg_pool2d", "reshape", "matmul",
        "nn.softmax", "cumsum", "multiply",
    ]  # fmt: skip
    (conv,) = [op for op in served["nn.conv2d"] if "conv2d" in op]
    assert conv in served["add"] and conv in served["nn.relu"]
    assert served["cumsum"] == {"cumsum"} and served["nn.softmax"] == {"nn.softmax"}
    assert any(["dense" in op for op in served["matmul"]])
    names = [n.name for n in relax_report.imported.nodes]
    assert names[:4] == ["x", "conv", "added", "positive"]


def test_links_between_the_graphs_go_both_ways(relax_report: Report) -> None:
    one, other = relax_report.imported, relax_report.built
    for here, there in ((one, other), (other, one)):
        for i, node in enumerate(here.nodes):
            assert all([i in there.nodes[k].others for k in node.others])


def test_edges_follow_values_through_views(relax_report: Report) -> None:
    @I.ir_module
    class Views:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
            with R.dataflow():
                sums = R.cumsum(x, axis=1)
                row = R.reshape(sums, (6,))
                result = R.cumsum(row, axis=0)
                R.output(result)
            return result

    found = explain.explain(Views, repeat=0, detailed=0)
    assert [n.op for n in found.imported.nodes] == ["input", "cumsum", "reshape", "cumsum"]
    assert [n.op for n in found.built.nodes] == ["input", "cumsum", "cumsum"]
    assert found.built.edges == [(0, 1), (1, 2)]
    sums, result = [life for life in found.memory.lives if life.node > 0]
    assert (sums.first, sums.last, result.first) == (0, 1, 1) and sums.storage != result.storage


def test_a_value_with_two_readers_has_two_edges(relax_report: Report) -> None:
    built = relax_report.built
    at = {n.op: i for i, n in enumerate(built.nodes)}
    assert {start for start, end in built.edges if end == at["multiply"]} == {
        at["nn.softmax"], at["cumsum"],
    }  # fmt: skip


def test_kernels_know_their_calls(relax_report: Report) -> None:
    for number, kernel in enumerate(relax_report.kernels):
        assert kernel.calls == len(kernel.nodes) > 0
        nodes = [relax_report.built.nodes[i] for i in kernel.nodes]
        assert all([node.kernel == number for node in nodes])
        assert kernel.seconds == pytest.approx(sum([node.seconds for node in nodes])) and nodes
        assert kernel.seconds > 0 and kernel.bytes > 0
    assert relax_report.seconds == pytest.approx(sum([k.seconds for k in relax_report.kernels]))


def test_operations_bytes_and_roof_of_a_product(relax_report: Report) -> None:
    (name,) = [k.name for k in relax_report.kernels if "dense" in k.name]
    product = next(k for k in relax_report.kernels if k.name == name)
    assert product.flops >= 2 * 8 * 10
    (call,) = product.nodes
    built = relax_report.built
    read = [t for start, end in built.edges if end == call for t in built.nodes[start].outputs]
    node = built.nodes[call]
    assert product.bytes == sum([t.bytes for t in (*read, *node.weights, *node.outputs)])
    assert product.bytes >= 4 * (8 + 8 * 10 + 10)
    machine = relax_report.machine
    assert machine.flops and machine.bandwidth
    times = product.flops / machine.flops, product.bytes / machine.bandwidth
    assert product.roof_seconds == max(times)


def test_memory_is_what_the_pass_planned(relax_report: Report) -> None:
    mod, params = small_relax_model()
    sizes: list[int] = []

    with tvm.target.Target("llvm"):
        lowered = relax.transform.BindParams("main", params)(mod)
        lowered = tvm.transform.Sequential([*kernel_passes(), *lowering_passes()[:6]])(lowered)
    for block in lowered["main"].body.blocks:
        for binding in block.bindings:
            call: Any = binding.value
            if getattr(call, "op", None) is tvm.ir.Op.get("relax.memory.alloc_storage"):
                sizes.append(int(call.args[0].values[0]))
    memory = relax_report.memory
    assert [s.bytes for s in memory.storages if s.kind == "input"] == [4 * 3 * 12 * 12]
    own = [s.bytes for s in memory.storages if s.kind in ("intermediate", "output")]
    assert sorted(own) == sorted(sizes)
    assert memory.planned == sum(own) + 4 * 3 * 12 * 12
    assert memory.peak == max(memory.live) == memory.live[memory.peak_step] <= memory.planned
    assert [s.bytes for s in memory.storages if s.kind == "output"] == [40]


def test_tensors_that_live_at_once_never_share_storage(relax_report: Report) -> None:
    lives = relax_report.memory.lives
    assert len({life.storage for life in lives}) < len(lives)
    for i, one in enumerate(lives):
        for other in lives[i + 1 :]:
            apart = one.last < other.first or other.last < one.first
            assert apart or one.storage != other.storage


def test_weights_are_those_that_kernels_read(relax_report: Report) -> None:
    total = sum([w.tensor.bytes for w in relax_report.weights])
    assert total == relax_report.memory.weights >= 4 * (8 * 3 * 25 + 8 + 80)
    for weight in relax_report.weights:
        assert weight.tensor in relax_report.built.nodes[weight.node].weights
        assert weight.original > 0


def test_kernels_of_the_library_and_loop_programs_have_their_code(relax_report: Report) -> None:
    conv = next(k for k in relax_report.kernels if any(["conv2d" in op for op in k.operators]))
    assert [code.language for code in conv.codes] == ["te", "tir", "llvm", "assembly"]
    assert all([code.text for code in conv.codes])
    te, tir = (conv.codes[i].text.splitlines() for i in (0, 1))
    stored = [i for i, line in enumerate(tir) if "T_relu" in line and "] = " in line]
    assert stored and all([te[conv.codes[1].lines[i] - 1].startswith("T_relu[") for i in stored])
    sums = {code.language: code for code in kernel_with(relax_report, "cumsum").codes}
    assert "no te schedule" in sums["te"].note and "cumsum" in sums["tir"].text
    assert any([line > 0 for line in sums["assembly"].lines])


def test_passes_of_relax_relay_and_loops_tell_what_they_changed(relax_report: Report) -> None:
    runs = {run.name: run for run in relax_report.passes}
    (change,) = [c for c in runs["LegalizeOps"].changes if c.function == "main"]
    assert any([line.startswith("-") and "R.cumsum" in line for line in change.diff.splitlines()])
    assert any([run.changes for run in relax_report.passes if run.name == "AlterOpLayout"])
    assert any([run.changed for run in relax_report.passes if run.name == "tir.VectorizeLoop"])
    assert any([c.function == "cumsum" for run in relax_report.passes for c in run.changes])
    assert "compiling" in relax_report.phases and all(
        [s >= 0 for s in relax_report.phases.values()]
    )


def test_results_take_the_place_of_inputs_that_are_overwritten() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def doubled(A: T.Buffer((8,), "float32")):
            for i in range(8):
                with T.block("twice"):
                    v = T.axis.spatial(8, i)
                    A[v] = A[v] * T.float32(2)

        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
            cls = Module
            with R.dataflow():
                y = R.exp(x)
                z = R.call_tir_inplace(
                    cls.doubled, (y,), inplace_indices=[0], out_sinfo=R.Tensor((8,), "float32")
                )
                R.output(z)
            return z

    found = explain.explain(Module, repeat=1, detailed=0)
    exp, doubled = (i for i, n in enumerate(found.built.nodes) if n.op in ("exp", "doubled"))
    places = {life.node: life.storage for life in found.memory.lives}
    assert places[exp] == places[doubled]
    assert found.kernels[found.built.nodes[doubled].kernel].seconds > 0


def test_given_inputs_are_used_and_unknown_ones_rejected() -> None:
    mod, params = small_relax_model()
    value = np.ones((1, 3, 12, 12), "float32")
    found = explain.explain(mod, params, inputs={"x": value}, repeat=1, detailed=0)
    assert found.seconds > 0
    with pytest.raises(ValueError, match=r"main has the inputs \['x'\], got values of \['y'\]"):
        explain.explain(mod, params, inputs={"y": value}, repeat=1, detailed=0)


def test_nothing_is_measured_for_other_machines() -> None:
    mod, params = small_relax_model()
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
    found = explain.explain(mod, params, target, detailed=0)
    assert "is not this machine" in found.machine.note and found.seconds == 0
    assert all([k.codes[-1].language == "assembly" and k.codes[-1].text for k in found.kernels])


def test_open_shapes_and_control_flow_are_rejected() -> None:
    @I.ir_module
    class Open:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            return R.exp(x)

    @I.ir_module
    class Choice:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor(
            (4,), "float32"
        ):
            if c:
                y = R.exp(x)
            else:
                y = R.negative(x)
            return y

    with pytest.raises(tvm.error.OpNotImplemented, match="explain requires known shapes, got x"):
        explain.explain(Open)
    with pytest.raises(tvm.error.OpNotImplemented, match="without control flow .*, got If"):
        explain.explain(Choice)
    bound = relax.transform.BindSymbolicVars({"n": 2})(Open)
    assert explain.explain(bound, repeat=0, detailed=0).built.nodes[1].op == "exp"
