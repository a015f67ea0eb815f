"""The Model Library Format: what is in it, and programs in C that use it."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.micro.c_programs import compile_program, definition, main_text, run_program, unpacked
from tests.relay.backend.random_graphs import RandomGraph
from tvm import micro, relay, te
from tvm.contrib import graph_executor
from tvm.relay.backend import Executor, Runtime

RNG = np.random.default_rng(0)
CRT = Runtime("crt")
C_INTERFACE = Executor("aot", {"interface-api": "c", "unpacked-api": True})


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


X, W = random(2, 8), random(5, 8)


def model() -> relay.Function:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(5, 8))
    y = relay.nn.dense(x, w)
    return relay.Function([x, w], relay.Tuple([relay.nn.relu(y), relay.nn.softmax(y), x]))


def expected() -> list[np.ndarray]:
    y = X @ W.T
    e = np.exp(y)
    return [np.maximum(y, 0), e / e.sum(1, keepdims=True), X]


def build(executor: Executor = C_INTERFACE, target: str = "c", **options: object) -> object:
    given = {"runtime": CRT, "params": {"w": W}, **options}
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(tvm.IRModule.from_expr(model()), target, executor=executor, **given)


def check(found: list[np.ndarray]) -> None:
    for got, wanted in zip(found, expected(), strict=True):
        np.testing.assert_allclose(got, wanted.reshape(-1), rtol=1e-5, atol=1e-6)


def files(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}


def outputs() -> dict[str, np.ndarray]:
    return {f"output{i}": value for i, value in enumerate(expected())}


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_program_calls_the_model_with_structures(target: str, tmp_path: Path) -> None:
    tree = unpacked(build(target=target), tmp_path)
    check(run_program(compile_program(tree, main_text({"x": X}, outputs()))))


@pytest.mark.parametrize("unpacked_kernels", [False, True])
def test_program_calls_the_packed_function(unpacked_kernels: bool, tmp_path: Path) -> None:
    executor = Executor("aot", {"interface-api": "packed", "unpacked-api": unpacked_kernels})
    tree = unpacked(build(executor), tmp_path)
    results = expected()
    shapes = [X.shape, *[r.shape for r in results]]
    program = (
        "#include <stdio.h>\n#include <tvm/runtime/c_backend_api.h>\n"
        "int32_t tvmgen_default_run(TVMValue*, int*, int, TVMValue*, int*, void*);\n"
        + definition("a0", X)
        + "".join([definition(f"a{i}", np.zeros_like(r)) for i, r in enumerate(results, 1)])
        + "int main(void) {\n"
        + "".join([f"  int64_t s{i}[] = {{{s[0]}, {s[1]}}};\n" for i, s in enumerate(shapes)])
        + "  DLTensor t[] = {"
        + ", ".join([f"{{a{i}, {{kDLCPU, 0}}, 2, {{2, 32, 1}}, s{i}, 0, 0}}" for i in range(4)])
        + "};\n  TVMValue args[4], result;\n  int codes[4], code;\n"
        "  for (int i = 0; i < 4; ++i) { args[i].v_handle = &t[i]; codes[i] = kTVMDLTensorHandle; }\n"
        "  if (tvmgen_default_run(args, codes, 4, &result, &code, 0) != 0) return 1;\n"
        + "".join(
            f'  for (int i = 0; i < {r.size}; ++i) printf("%.9g ", a{n}[i]);\n  printf("\\n");\n'
            for n, r in enumerate(results, 1)
        )
        + "  return 0;\n}\n"
    )
    check(run_program(compile_program(tree, program)))


def test_workspace_comes_from_memory_of_the_program(tmp_path: Path) -> None:
    x = relay.var("x", shape=(40, 40))
    body = relay.nn.softmax(relay.nn.dense(x, relay.const(random(40, 40))))
    body = relay.nn.dense(body, relay.const(random(40, 40)))
    mod = tvm.IRModule.from_expr(relay.Function([x], body))
    lib = relay.build(mod, "c", executor=C_INTERFACE, runtime=CRT)
    value = random(40, 40)
    reference = relay.create_executor("graph", mod, tvm.cpu(), "llvm").evaluate()(value).numpy()
    tree = unpacked(lib, tmp_path)
    program = main_text({"x": value}, {"output": reference}).replace(
        "int main(void) {\n",
        "#include <tvm/runtime/crt/platform.h>\n#include <tvm/runtime/crt/stack_allocator.h>\n"
        "static uint8_t memory[TVMGEN_DEFAULT_WORKSPACE_SIZE + 4096];\n"
        "static tvm_workspace_t workspace;\n"
        "tvm_crt_error_t TVMPlatformMemoryAllocate(size_t size, DLDevice dev, void** out) {\n"
        "  (void)dev;\n  return StackMemoryManager_Allocate(&workspace, (int32_t)size, out);\n}\n"
        "tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {\n"
        "  (void)dev;\n  return StackMemoryManager_Free(&workspace, ptr);\n}\n"
        "int main(void) {\n  StackMemoryManager_Init(&workspace, memory, sizeof(memory));\n",
    )
    (found,) = run_program(compile_program(tree, program))
    np.testing.assert_allclose(found, reference.reshape(-1), rtol=1e-4, atol=1e-6)


def test_two_models_in_one_program(tmp_path: Path) -> None:
    tree = unpacked([build(mod_name="first"), build(mod_name="second")], tmp_path)
    metadata = json.loads((tree / "metadata.json").read_text())
    assert sorted(metadata["modules"]) == ["first", "second"]
    one = main_text({"x": X}, outputs(), "first")
    program = one.replace("#include <stdio.h>", "#include <stdio.h>\n#include <tvmgen_second.h>")
    program = program.replace(
        "  return 0;\n}\n",
        "  struct tvmgen_second_inputs in2 = {x};\n"
        "  struct tvmgen_second_outputs out2 = {output0, output1, output2};\n"
        "  return tvmgen_second_run(&in2, &out2);\n}\n",
    )
    check(run_program(compile_program(tree, program)))


def test_files_of_a_model_with_a_c_interface(tmp_path: Path) -> None:
    found = files(unpacked(build(mod_name="tiny"), tmp_path))
    assert {
        "metadata.json",
        "src/tiny.relay",
        "parameters/tiny.params",
        "codegen/host/include/tvmgen_tiny.h",
        "codegen/host/src/tiny_lib0.c",
        "codegen/host/src/tiny_lib1.c",
        "runtime/include/dlpack/dlpack.h",
        "runtime/include/tvm/runtime/c_runtime_api.h",
        "runtime/src/runtime.c",
    } <= found


def test_metadata_tells_memory_and_arguments(tmp_path: Path) -> None:
    tree = unpacked(build(mod_name="tiny"), tmp_path)
    metadata = json.loads((tree / "metadata.json").read_text())
    assert metadata["version"] == 7
    tiny = metadata["modules"]["tiny"]
    assert tiny["model_name"] == "tiny" and tiny["executors"] == ["aot"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", tiny["export_datetime"])
    assert len(tiny["target"]) == 1 and tiny["target"][0].startswith("c ")
    (main,) = tiny["memory"]["functions"]["main"]
    assert main["inputs"] == {"x": {"dtype": "float32", "size": 64}}
    assert main["outputs"]["output1"] == {"dtype": "float32", "size": 40}
    assert main["io_size_bytes"] == 64 + 40 + 40 + 64
    assert main["constants_size_bytes"] == W.nbytes and main["device"] == 1
    assert main["workspace_size_bytes"] >= 40
    names = [f["function_name"] for f in tiny["memory"]["functions"]["operator_functions"]]
    assert all(name.startswith("tvmgen_tiny_fused_") for name in names) and names


def test_graph_and_parameters_of_the_graph_executor(tmp_path: Path) -> None:
    lib = build(Executor("graph"), "llvm", runtime=Runtime("cpp"), mod_name="tiny")
    tree = unpacked(lib, tmp_path)
    assert (tree / "codegen/host/lib/tiny_lib0.o").is_file()
    graph = (tree / "executor-config/graph/tiny.graph").read_text()
    params = (tree / "parameters/tiny.params").read_bytes()
    module = graph_executor.create(graph, lib.lib, tvm.cpu())
    module.load_params(params)
    module.run(x=X)
    np.testing.assert_allclose(module.get_output(0).numpy(), expected()[0], rtol=1e-5, atol=1e-6)
    memory = json.loads((tree / "metadata.json").read_text())["modules"]["tiny"]["memory"]
    assert memory["sids"][0] == {"storage_id": 0, "size_bytes": 64, "input_binding": "x"}
    assert memory["functions"]["main"][0]["inputs"] == {"x": {"dtype": "float32", "size": 64}}


def test_names_that_c_does_not_know_are_changed() -> None:
    x, y = relay.var("in:0", shape=(2,)), relay.var("float", shape=(2,))
    lib = relay.build(relay.Function([x, y], x + y), "c", executor=C_INTERFACE, runtime=CRT)
    text = lib.lib.get_source()
    assert "void* in_0;" in text and "void* v_float;" in text


def test_function_registers_itself_in_a_system_library(tmp_path: Path) -> None:
    runtime = Runtime("crt", {"system-lib": True})
    lib = build(Executor("graph"), "c", runtime=runtime)
    tree = unpacked(lib, tmp_path)
    program = (
        "#include <stdio.h>\n#include <tvm/runtime/c_backend_api.h>\n"
        "int main(void) {\n  TVMFunctionHandle f;\n"
        '  if (TVMBackendGetFuncFromEnv(0, "tvmgen_default_fused_nn_softmax", &f) != 0) return 1;\n'
        '  return TVMBackendGetFuncFromEnv(0, "other", &f) == 0;\n}\n'
    )
    assert run_program(compile_program(tree, program)) == []


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_graphs_agree_with_the_graph_executor(seed: int, tmp_path: Path) -> None:
    graph = RandomGraph(seed)
    mod, inputs = graph.module(), graph.inputs()
    with tvm.transform.PassContext(opt_level=seed % 4):
        reference = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
        lib = relay.build(mod, "c", executor=C_INTERFACE, runtime=CRT)
    reference.run(**inputs)
    count = reference.get_num_outputs()
    wanted = [reference.get_output(i).numpy() for i in range(count)]
    names = ["output"] if count == 1 else [f"output{i}" for i in range(count)]
    program = main_text(inputs, dict(zip(names, wanted, strict=True)))
    found = run_program(compile_program(unpacked(lib, tmp_path), program))
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, value.reshape(-1), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_exported_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unique names"):
        micro.export_model_library_format([build(), build()], tmp_path / "a.tar")
    with pytest.raises(ValueError, match="one runtime"):
        others = [build(), relay.build(model(), "llvm", mod_name="b")]
        micro.export_model_library_format(others, tmp_path / "a.tar")
    with pytest.raises(TypeError, match=r"what relay\.build returns"):
        micro.export_model_library_format("model", tmp_path / "a.tar")


def test_archive_has_no_folders_of_this_machine(tmp_path: Path) -> None:
    path = micro.export_model_library_format(build(), tmp_path / "a.tar")
    with tarfile.open(path) as tar:
        names = tar.getnames()
    assert "metadata.json" in names and not any(name.startswith("/") for name in names)


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_operators_have_an_archive_of_their_own(target: str, tmp_path: Path) -> None:
    a, b = te.placeholder((2,), "int8", "A"), te.placeholder((1,), "int8", "B")
    c = te.compute((2,), lambda i: a[i] + b[0], "C")
    built = tvm.build(te.create_schedule(c.op), [a, b, c], target, runtime=CRT, name="add")
    tree = unpacked(built, tmp_path)
    metadata = json.loads((tree / "metadata.json").read_text())
    assert metadata["style"] == "operator" and metadata["model_name"] == "add"
    assert metadata["target"] == [str(t) for t in built.ir_module_by_target]
    assert metadata["memory"]["add"] == [
        {"dtype": "int8", "input_binding": name, "shape": [size], "size_bytes": size}
        for name, size in (("A", 2), ("B", 1), ("C", 2))
    ]
    code = "codegen/host/src/lib0.c" if target == "c" else "codegen/host/lib/lib0.o"
    assert files(tree) == {"metadata.json", "src/tir-1.txt", code}
