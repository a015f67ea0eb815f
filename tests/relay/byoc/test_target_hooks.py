"""Target kinds that take functions at the level of loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.relay.byoc.ways_to_run import RUNS, set_external
from tvm import relay, te
from tvm.relay.traverse import post_order
from tvm.target import register_target_kind

runs = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


@tvm.transform.module_pass(opt_level=0)
class SubtractInsteadOfAdd:
    """Lowers sums of two vectors, with the wrong sign."""

    def transform_module(self, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
        assert tvm.target.Target.current().kind.name == "test_target_hook"
        for gvar, func in mod.functions.items():
            if func.attrs.get("Compiler") == "test_target_hook":
                mod[gvar] = self.lower(func)
        return mod

    def lower(self, func: relay.Function) -> tvm.tir.PrimFunc:
        assert [n.op.name for n in post_order(func.body) if isinstance(n, relay.Call)] == ["add"]
        shape = func.checked_type.ret_type.concrete_shape
        a, b = te.placeholder(shape, name="a"), te.placeholder(shape, name="b")
        c = te.compute(shape, lambda *i: a[i] - b[i], name="c")
        symbol = str(func.attrs["global_symbol"])
        return te.create_prim_func([a, b, c]).with_attr("global_symbol", symbol)


def model() -> tvm.IRModule:
    x0, y0 = relay.var("x0", shape=(8,)), relay.var("y0", shape=(8,))
    func = set_external(relay.Function([x0, y0], x0 + y0), "test_target_hook", "replacement")
    x, y = relay.var("x", shape=(8,)), relay.var("y", shape=(8,))
    return tvm.IRModule.from_expr(relay.exp(relay.Call(func, [x, y])))


def values() -> dict[str, np.ndarray]:
    return {n: np.random.default_rng(i).random(8, "float32") for i, n in enumerate("xy")}


def register(**attrs: object) -> None:
    register_target_kind("test_target_hook", attrs=attrs, override=True)


@runs
def test_loops_of_a_kind_are_compiled_with_ours(run, tmp_path: Path) -> None:
    register(RelayToTIR=SubtractInsteadOfAdd())
    inputs = values()
    expected = np.exp(inputs["x"] - inputs["y"])
    np.testing.assert_allclose(run(model(), inputs, tmp_path), expected, rtol=1e-5)


@runs
def test_a_kind_makes_a_runtime_module_of_its_loops(run, tmp_path: Path) -> None:
    def generate(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.runtime.Module:
        assert target.kind.name == "test_target_hook"
        assert [g.name_hint for g in mod.get_global_vars()] == ["replacement"]
        return tvm.build(mod, target="c")

    register(RelayToTIR=SubtractInsteadOfAdd(), TIRToRuntime=generate)
    inputs = values()
    expected = np.exp(inputs["x"] - inputs["y"])
    np.testing.assert_allclose(run(model(), inputs, tmp_path), expected, rtol=1e-5)


def test_hooks_may_be_names_of_global_functions(tmp_path: Path) -> None:
    tvm.register_func("test.lower_hook", lambda mod: SubtractInsteadOfAdd()(mod), override=True)
    register(RelayToTIR="test.lower_hook")
    assert tvm.target.Target("test_target_hook").get_kind_attr("RelayToTIR") == "test.lower_hook"
    inputs = values()
    expected = np.exp(inputs["x"] - inputs["y"])
    np.testing.assert_allclose(RUNS["graph"](model(), inputs, tmp_path), expected, rtol=1e-5)


def test_a_function_that_was_not_lowered_is_an_error() -> None:
    register(RelayToTIR=lambda mod: mod)
    with pytest.raises(tvm.TVMError, match="must replace replacement by a PrimFunc"):
        relay.build(model(), "llvm")


def test_a_hook_must_return_a_module() -> None:
    register(RelayToTIR=lambda mod: None)
    with pytest.raises(tvm.TVMError, match="must return an IRModule, got NoneType"):
        relay.build(model(), "llvm")
    register(RelayToTIR=SubtractInsteadOfAdd(), TIRToRuntime=lambda mod, target: 3)
    with pytest.raises(tvm.TVMError, match="must return a runtime module, got int"):
        relay.build(model(), "llvm")


def test_kinds_have_options_and_defaults() -> None:
    register_target_kind(
        "example_npu", "ext_dev", options={"lanes": "int", "fast": "bool"}, defaults={"lanes": 4}, override=True
    )  # fmt: skip
    target = tvm.target.Target("example_npu -fast=1")
    assert (target.attrs["lanes"], target.attrs["fast"]) == (4, True)
    assert target.get_target_device_type() == tvm.ext_dev().device_type
    with pytest.raises(ValueError, match="has no option 'lane'"):
        tvm.target.Target("example_npu -lane=1")
    with pytest.raises(ValueError, match="there is a target kind 'example_npu' already"):
        register_target_kind("example_npu")


def sums(symbol: str = "replace_add_with_subtract") -> tvm.IRModule:
    x0, y0 = relay.var("x0", shape=(8,)), relay.var("y0", shape=(8,))
    func = set_external(relay.Function([x0, y0], x0 + y0), "example_target_hook", symbol)
    x, y = relay.var("x", shape=(8,)), relay.var("y", shape=(8,))
    return tvm.IRModule.from_expr(relay.Call(func, [x, y]))


@runs
def test_the_built_in_example_subtracts(run, tmp_path: Path) -> None:
    inputs = values()
    np.testing.assert_allclose(run(sums(), inputs, tmp_path), inputs["x"] - inputs["y"])


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_hooks_see_the_target_that_was_given(executor: str) -> None:
    host = tvm.target.Target("llvm")
    targets = [
        tvm.target.Target("llvm", host=host),
        tvm.target.Target("example_target_hook -example_attribute=42", host=host),
    ]
    lib = relay.build(sums(), targets, executor=relay.backend.Executor(executor))
    module = lib["default"](tvm.cpu())
    inputs = values()
    for name, value in inputs.items():
        module["set_input"](name, tvm.nd.array(value))
    module["run"]()
    expected = inputs["x"] - inputs["y"] - 42
    np.testing.assert_allclose(module["get_output"](0).numpy(), expected, rtol=1e-6)
    vm = tvm.runtime.vm.VirtualMachine(relay.vm.compile(sums(), targets), tvm.cpu())
    np.testing.assert_allclose(vm.run(*inputs.values()).numpy(), expected, rtol=1e-6)


@runs
def test_the_built_in_example_changes_loops_of_marked_functions(run, tmp_path: Path) -> None:
    mod = sums()
    call = mod["main"].body
    marked = relay.Call(call.op.with_attr("tir_to_runtime", True), call.args)
    inputs = values()
    found = run(tvm.IRModule.from_expr(marked), inputs, tmp_path)
    np.testing.assert_allclose(found, inputs["x"] * inputs["y"], rtol=1e-6)


def test_kinds_tell_whether_other_compilers_make_their_code() -> None:
    assert not tvm.target.Target("llvm").get_kind_attr("is_external_codegen")
    assert tvm.target.Target("ccompiler").get_kind_attr("is_external_codegen")
