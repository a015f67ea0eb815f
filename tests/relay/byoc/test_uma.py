"""Back ends that are put together from registrations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.relay.byoc.ways_to_run import exported
from tvm import relay, te, tir
from tvm.relay.backend import Executor, Runtime
from tvm.relay.backend.contrib.uma import PassPhase, UMABackend, uma_available
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.tir import stmt_functor

HEADER = """
#include <stdint.h>
static int32_t test_hw_product(float* a, float* b, float* out, int rows, int units, int inner) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < units; ++j) {
      out[i * units + j] = 1000;  /* a trace of who computed it */
      for (int k = 0; k < inner; ++k) out[i * units + j] += a[i * inner + k] * b[j * inner + k];
    }
  return 0;
}
"""


@tvm.tir.transform.prim_func_pass(opt_level=2)
class CallTheHardware:
    """One call in the place of the loops of a product."""

    def transform_function(
        self, func: tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext
    ) -> tir.PrimFunc:
        blocks: list[str] = []
        loops: list[tir.For] = []

        def look(node: object) -> None:
            if isinstance(node, tir.Block):
                blocks.append(node.name_hint)
            elif isinstance(node, tir.For):
                loops.append(node)

        stmt_functor.post_order_visit(func.body, look)
        assert blocks == ["T_matmul", "root"]
        inner, units, rows = [loop.extent for loop in loops]
        args = [func.buffer_map[p].data for p in func.params] + [rows, units, inner]
        call = tir.Evaluate(tir.call_extern("int32", "test_hw_product", *args))

        def replace(node: tir.Stmt) -> tir.Stmt | None:
            return call if node.same_as(loops[-1]) else None

        body = stmt_functor.ir_transform(func.body, None, replace, ["tir.For"])
        return func.with_body(body)


def backend(name: str, folder: Path | None = None) -> UMABackend:
    class Backend(UMABackend):
        def __init__(self) -> None:
            super().__init__()
            self._register_target_attr("lanes", 4)
            self._register_target_attr("fast", False)
            self._register_target_attr("label")
            self._register_pattern("dense", is_op("nn.dense")(wildcard(), wildcard()))
            if folder is not None:
                (folder / "hw.h").write_text(HEADER)
                self._register_tir_pass(PassPhase.TIR_PHASE_0, CallTheHardware())
                self._register_codegen(fmt="c", includes=lambda: f'#include "{folder}/hw.h"')

        @property
        def target_name(self) -> str:
            return name

    return Backend()


def model() -> tvm.IRModule:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    return tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"x": rng.random((2, 3), "float32"), "w": rng.random((4, 3), "float32")}


def result(lib: tvm.runtime.Module, folder: Path) -> np.ndarray:
    module = exported(lib, folder)["default"](tvm.cpu())
    for name, value in values().items():
        module["set_input"](name, tvm.nd.array(value))
    module["run"]()
    return module["get_output"](0).numpy()


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_the_hardware_computes_what_the_pattern_matches(executor: str, tmp_path: Path) -> None:
    assert uma_available()
    name = f"test_hw_{executor}"
    made = backend(name, tmp_path)
    made.register()
    mod = made.partition(model())
    assert [f.attrs["Compiler"] for f in mod.functions.values() if "Compiler" in f.attrs] == [name]
    target = tvm.target.Target(name, host=tvm.target.Target("c"))
    lib = relay.build(mod, target, executor=Executor(executor))
    expected = values()["x"] @ values()["w"].T + 1000
    np.testing.assert_allclose(result(lib, tmp_path), expected, rtol=1e-5)


def test_a_pass_schedules_blocks_beside_constants(tmp_path: Path) -> None:
    @tvm.tir.transform.prim_func_pass(opt_level=0)
    class Schedule:
        def transform_function(
            self, func: tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext
        ) -> tir.PrimFunc:
            schedule = tir.Schedule(func)
            schedule.reorder(*schedule.get_loops(schedule.get_block("T_matmul"))[:2][::-1])
            return schedule.mod["main"]

    made = backend("test_hw_constants")
    made._register_tir_pass(PassPhase.TIR_PHASE_0, Schedule())
    made.register()
    mod = made.partition(model(), {"w": tvm.nd.array(values()["w"])})
    targets = [tvm.target.Target("llvm"), tvm.target.Target("test_hw_constants")]
    module = exported(relay.build(mod, targets), tmp_path)["default"](tvm.cpu())
    module["set_input"]("x", tvm.nd.array(values()["x"]))
    module["run"]()
    expected = values()["x"] @ values()["w"].T
    np.testing.assert_allclose(module["get_output"](0).numpy(), expected, rtol=1e-5)


def test_programs_in_c_call_the_part_with_pointers(tmp_path: Path) -> None:
    made = backend("test_hw_c", tmp_path)
    made.register()
    mod = made.partition(model())
    lib = relay.build(
        mod,
        tvm.target.Target("test_hw_c", host="c"),
        executor=Executor("aot", {"unpacked-api": True, "interface-api": "c"}),
        runtime=Runtime("crt"),
    )
    part = lib.lib.imported_modules[0].imported_modules[0].get_source()
    assert "test_hw_product(" in part and "TVMValue*" not in part.split("#endif")[-1]


def test_a_strategy_gives_the_loops_on_the_accelerator_alone(tmp_path: Path) -> None:
    def compute(attrs, inputs, out_type):
        product = tvm.topi.nn.dense(*inputs)
        return [te.compute(out_type.shape, lambda i, j: product[i, j] + 7.0)]

    def strategy(attrs, inputs, out_type, target):
        found = relay.op.OpStrategy()
        found.add_implementation(compute, lambda attrs, outs, target: None)
        return found

    made = backend("test_hw_strategy")
    made._register_operator_strategy("nn.dense", strategy)
    made.register()
    targets = [tvm.target.Target("llvm"), tvm.target.Target("test_hw_strategy")]
    expected = values()["x"] @ values()["w"].T
    lib = relay.build(made.partition(model()), targets)
    np.testing.assert_allclose(result(lib, tmp_path), expected + 7, rtol=1e-5)
    lib = relay.build(model(), "llvm")
    np.testing.assert_allclose(result(lib, tmp_path), expected, rtol=1e-5)


def test_passes_run_before_and_after_the_partition() -> None:
    seen: list[tuple[str, int]] = []

    def noting(label: str) -> tvm.transform.Pass:
        @tvm.transform.module_pass(opt_level=0)
        def note(mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
            seen.append((label, len(mod.functions)))
            return mod

        return note

    made = backend("test_hw_passes")
    for phase in (PassPhase.POST_PARTITIONING_1, PassPhase.PRE_PARTITIONING):
        made._register_relay_pass(phase, noting(phase.name))
    made.register()
    made.partition(model())
    assert seen == [("PRE_PARTITIONING", 1), ("POST_PARTITIONING_1", 2)]
    with pytest.raises(ValueError, match="a pass on loops requires a phase TIR_PHASE_0"):
        made._register_tir_pass(PassPhase.PRE_PARTITIONING, CallTheHardware())


def test_options_of_the_target_have_defaults() -> None:
    made = backend("test_hw_options")
    made.register()
    target = tvm.target.Target("test_hw_options -fast=1")
    assert [target.attrs[name] for name in ("lanes", "fast", "label")] == [4, True, ""]
    with pytest.raises(TypeError, match="Only String, Integer, or Bool are supported"):
        made._register_target_attr("scale", 0.5)
    with pytest.raises(tvm.TVMError, match="Target is already registered: test_hw_options"):
        backend("test_hw_options").register()


def test_what_a_back_end_leaves_needs_a_target() -> None:
    made = backend("test_hw_alone")
    made.register()
    with pytest.raises(tvm.TVMError, match="requires a target for what test_hw_alone leaves"):
        relay.build(made.partition(model()), tvm.target.Target("test_hw_alone"))
