"""The compiler `ccompiler`: C text that becomes part of the library."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.relay.byoc.ways_to_run import RUNS, exported, set_external
from tvm import relay
from tvm._ffi import libinfo
from tvm.contrib import graph_executor
from tvm.micro import export_model_library_format
from tvm.relay.op.annotation import compiler_begin, compiler_end
from tvm.relay.transform import AnnotateTarget, MergeCompilerRegions, PartitionGraph

runs = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def random(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    return (np.random.default_rng(seed).random(shape) * 10).astype(dtype)


@runs
def test_one_operator(run, tmp_path: Path) -> None:
    x0, y0 = relay.var("x0", shape=(8, 8)), relay.var("y0", shape=(8, 8))
    func = set_external(relay.Function([x0, y0], x0 + y0), "ccompiler", "ccompiler_0")
    x, y = relay.var("x", shape=(8, 8)), relay.var("y", shape=(8, 8))
    mod = tvm.IRModule.from_expr(relay.Call(func, [x, y]))
    inputs = {"x": random(8, 8), "y": random(8, 8, seed=1)}
    np.testing.assert_array_equal(run(mod, inputs, tmp_path), inputs["x"] + inputs["y"])


@runs
def test_constants_are_given_to_c_text(run, tmp_path: Path) -> None:
    values = random(8, 8, seed=3)
    x0 = relay.var("x0", shape=(8, 8))
    body = x0 * x0 - relay.const(values)
    func = set_external(relay.Function([x0], body), "ccompiler", "ccompiler_0")
    x = relay.var("x", shape=(8, 8))
    mod = tvm.IRModule.from_expr(relay.sqrt(relay.Call(func, [x]) * relay.Call(func, [x])))
    inputs = {"x": random(8, 8)}
    expected = np.abs(inputs["x"] * inputs["x"] - values)
    np.testing.assert_allclose(run(mod, inputs, tmp_path), expected, rtol=1e-5)


def test_constants_are_parameters_of_no_executor() -> None:
    x0 = relay.var("x0", shape=(8, 8))
    body = x0 + relay.const(random(8, 8))
    func = set_external(relay.Function([x0], body), "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8, 8))]))
    assert relay.build(mod, "llvm").get_params() == {}
    compiler = relay.backend.vm.VMCompiler()
    compiler.lower(mod, "llvm")
    compiler.codegen()
    assert list(compiler.get_params()) == ["ccompiler_0_const_0"]


@runs
def test_integers(run, tmp_path: Path) -> None:
    x0, y0 = (relay.var(n, shape=(8, 8), dtype="int32") for n in ("x0", "y0"))
    func = set_external(relay.Function([x0, y0], x0 * y0), "ccompiler", "ccompiler_0")
    x, y = (relay.var(n, shape=(8, 8), dtype="int32") for n in ("x", "y"))
    mod = tvm.IRModule.from_expr(relay.Call(func, [x, y]))
    inputs = {n: random(8, 8, seed=i, dtype="int32") for i, n in enumerate("xy")}
    np.testing.assert_array_equal(run(mod, inputs, tmp_path), inputs["x"] * inputs["y"])


@runs
def test_operands_of_one_element(run, tmp_path: Path) -> None:
    x0 = relay.var("x0", shape=(8, 8))
    func = relay.Function([x0], relay.const(2.0) * x0 - relay.const(np.ones((1, 1), "float32")))
    func = set_external(func, "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8, 8))]))
    inputs = {"x": random(8, 8)}
    np.testing.assert_allclose(run(mod, inputs, tmp_path), 2 * inputs["x"] - 1, rtol=1e-6)


def test_the_target_of_the_kind_gives_the_first_lines_of_the_text() -> None:
    x0 = relay.var("x0", shape=(8,))
    func = set_external(relay.Function([x0], x0 + x0), "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    header = tvm.target.Target({"kind": "ccompiler", "header": "#define MODEL 1"})
    lib = relay.build(mod, [tvm.target.Target("llvm"), header])
    (text,) = [m.get_source() for m in lib.lib.imported_modules if m.type_key == "c"]
    assert text.startswith("#define MODEL 1\n")


def test_two_regions_with_ours_between_them(tmp_path: Path) -> None:
    x = relay.var("x", shape=(10, 10))
    w = [relay.var(f"w{i}", shape=(10, 10)) for i in range(4)]
    a = compiler_begin(x, "ccompiler"), *[compiler_begin(v, "ccompiler") for v in w]
    first = compiler_end((a[0] + a[1]) - a[2], "ccompiler")
    second = compiler_end((a[0] + a[3]) * a[4], "ccompiler")
    body = relay.concatenate([first, relay.exp(second)], axis=0)
    mod = PartitionGraph()(tvm.IRModule.from_expr(relay.Function([x, *w], body)))
    assert sorted(f.attrs["Compiler"] for f in mod.functions.values() if "Compiler" in f.attrs) == [
        "ccompiler",
        "ccompiler",
    ]
    inputs = {v.name_hint: random(10, 10, seed=i) / 10 for i, v in enumerate([x, *w])}
    x, *w = inputs.values()
    expected = np.concatenate([x + w[0] - w[1], np.exp((x + w[2]) * w[3])])
    np.testing.assert_allclose(RUNS["graph"](mod, inputs, tmp_path), expected, rtol=1e-5)


def test_several_results_leave_one_region(tmp_path: Path) -> None:
    x, y = relay.var("x", shape=(4, 4)), relay.var("y", shape=(4, 4))
    a = relay.add(x, y)
    b = relay.multiply(a, y)
    func = relay.Function([x, y], relay.concatenate([a, b], axis=1))
    passes = [AnnotateTarget("ccompiler"), MergeCompilerRegions(), PartitionGraph()]
    mod = tvm.transform.Sequential(passes)(tvm.IRModule.from_expr(func))
    inputs = {"x": random(4, 4), "y": random(4, 4, seed=1)}
    total = inputs["x"] + inputs["y"]
    expected = np.concatenate([total, total * inputs["y"]], axis=1)
    np.testing.assert_array_equal(RUNS["graph"](mod, inputs, tmp_path), expected)


def test_broadcasts_are_not_taken() -> None:
    x = relay.var("x", shape=(4, 4))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    passes = [AnnotateTarget("ccompiler"), PartitionGraph()]
    assert len(tvm.transform.Sequential(passes)(mod).functions) == 1


def test_other_operators_are_rejected() -> None:
    x0 = relay.var("x0", shape=(8,))
    func = set_external(relay.Function([x0], relay.exp(x0)), "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    with pytest.raises(tvm.TVMError, match="takes add, subtract, multiply .* got exp"):
        relay.build(mod, "llvm")


def test_a_function_without_a_name_is_rejected() -> None:
    x0 = relay.var("x0", shape=(8,))
    func = relay.Function([x0], x0 + x0).with_attr("Compiler", "ccompiler")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    with pytest.raises(tvm.TVMError, match="for the compiler ccompiler requires a name"):
        relay.build(mod, "llvm")


def test_text_says_before_it_is_compiled_that_it_cannot_run() -> None:
    x0 = relay.var("x0", shape=(8,))
    func = set_external(relay.Function([x0], x0 + x0), "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    with pytest.raises(tvm.TVMError, match="'ccompiler_0' is C text, which cannot run before"):
        module.run(x=np.zeros(8, "float32"))


def test_an_unknown_constant_is_an_error() -> None:
    @tvm.register_func("relay.ext.forgetful", override=True)
    def generate(func: relay.Function) -> tvm.runtime.Module:
        symbol = str(func.attrs["global_symbol"])
        return tvm.runtime._ffi_api.CSourceModuleCreate("", "c", [symbol], ["weights"])

    x0 = relay.var("x0", shape=(8,))
    func = set_external(relay.Function([x0], x0 + x0), "forgetful", "f")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    with pytest.raises(tvm.TVMError, match=r"asks for the constant 'weights', .* have \[\]"):
        relay.build(mod, "llvm")


def test_the_updater_names_constants(tmp_path: Path) -> None:
    seen = []

    @tvm.register_func("relay.ext.ccompiler.constant_updater", override=True)
    def update(func: relay.Function, symbol: str) -> dict[str, tvm.nd.NDArray]:
        seen.append((type(func), symbol))
        return {f"{symbol}_weights": tvm.nd.array(np.full((2, 2), 5, "float32"))}

    try:
        x0 = relay.var("x0", shape=(2, 2))
        body = x0 + relay.const(np.zeros((2, 2), "float32"))
        func = set_external(relay.Function([x0], body), "ccompiler", "ccompiler_0")
        mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(2, 2))]))
        lib = exported(relay.build(mod, "llvm"), tmp_path)
    finally:
        tvm._ffi.registry.remove_global_func("relay.ext.ccompiler.constant_updater")
    assert seen[0] == (relay.Function, "ccompiler_0")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.ones((2, 2), "float32"))
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.full((2, 2), 6))


def test_programs_in_c_call_it_with_pointers(tmp_path: Path) -> None:
    x0, y0 = relay.var("x0", shape=(8,)), relay.var("y0", shape=(8,))
    func = set_external(relay.Function([x0, y0], x0 * y0), "ccompiler", "ccompiler_0")
    x, y = relay.var("x", shape=(8,)), relay.var("y", shape=(8,))
    mod = tvm.IRModule.from_expr(relay.Call(func, [x, y]) + relay.const(1.0))
    executor = relay.backend.Executor("aot", {"interface-api": "c", "unpacked-api": True})
    lib = relay.build(mod, "c", executor=executor, runtime=relay.backend.Runtime("crt"))
    modules = lib.lib._collect_from_import_tree(lambda m: True)
    for number, module in enumerate(modules):
        (tmp_path / f"{number}.c").write_text(module.get_source())
    export_model_library_format(lib, tmp_path / "model.tar")
    with tarfile.open(tmp_path / "model.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    header = tmp_path / "codegen/host/include"
    (tmp_path / "main.c").write_text(MAIN)
    sources = [str(tmp_path / f"{n}.c") for n in range(len(modules))]
    options = [f"-I{header}", *[f"-I{path}" for path in libinfo.find_include_path()]]
    program = tmp_path / "program"
    subprocess.run(["gcc", "-o", program, tmp_path / "main.c", *sources, *options], check=True)
    assert (
        subprocess.run([program], capture_output=True, text=True).stdout == "1 4 9 16 25 36 49 64 "
    )


MAIN = r"""
#include <stdio.h>
#include "tvmgen_default.h"
void* TVMBackendAllocWorkspace(int t, int d, uint64_t n, int c, int b) { static double pool[512]; return pool; }
int TVMBackendFreeWorkspace(int t, int d, void* p) { return 0; }
int main(void) {
  float x[8], y[8], out[8];
  for (int i = 0; i < 8; ++i) x[i] = i, y[i] = i + 2;
  struct tvmgen_default_inputs inputs = {.x = x, .y = y};
  struct tvmgen_default_outputs outputs = {.output = out};
  if (tvmgen_default_run(&inputs, &outputs)) return 1;
  for (int i = 0; i < 8; ++i) printf("%g ", out[i]);
  return 0;
}
"""


def test_programs_in_c_cannot_have_constants_from_outside() -> None:
    x0 = relay.var("x0", shape=(8,))
    body = x0 + relay.const(random(8))
    func = set_external(relay.Function([x0], body), "ccompiler", "ccompiler_0")
    mod = tvm.IRModule.from_expr(relay.Call(func, [relay.var("x", shape=(8,))]))
    with pytest.raises(tvm.TVMError, match=r'Runtime\("crt"\) requires code that is whole'):
        relay.build(mod, "c", runtime=relay.backend.Runtime("crt", {"system-lib": True}))
