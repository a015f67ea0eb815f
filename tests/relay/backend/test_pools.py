"""Models whose allocations have places in memory pools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.executors import outputs_of
from tests.micro.c_programs import compile_program, definition, main_text, run_program, unpacked
from tests.relay.backend.random_graphs import RandomGraph
from tvm import relay
from tvm.contrib import graph_executor
from tvm.error import TVMError
from tvm.ir.memory_pools import (
    ConstantMemoryPools,
    ConstantPoolInfo,
    PoolInfoProperties,
    WorkspaceMemoryPools,
    WorkspacePoolInfo,
)
from tvm.relay.backend import Executor, Runtime
from tvm.runtime.executor import AotModule
from tvm.target import Target

RNG = np.random.default_rng(0)
C_INTERFACE = Executor("aot", {"interface-api": "c", "unpacked-api": True})
UNPACKED = Executor("aot", {"interface-api": "packed", "unpacked-api": True})
MAIN = "tvmgen_default___tvm_main__"
ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


X = random(40, 40)


def model() -> tvm.IRModule:
    x = relay.var("x", shape=(40, 40))
    w = [relay.const(value) for value in np.random.default_rng(1).random((3, 40, 40), "float32")]
    y = relay.nn.dense(relay.nn.softmax(relay.nn.dense(x, w[0])), w[1])
    return tvm.IRModule.from_expr(relay.Function([x], y + relay.nn.dense(y, w[2])))


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return relay.create_executor("graph", model(), target="llvm").evaluate()(X).numpy()


def workspace(target: str, *pools: tuple[str, int]) -> WorkspaceMemoryPools:
    return WorkspaceMemoryPools(
        [WorkspacePoolInfo(n, [Target(target)], PoolInfoProperties(size)) for n, size in pools]
    )


def build(target: str = "llvm", algorithm: str = "greedy_by_size", **options: object) -> object:
    given = {"executor": Executor("aot"), **options}
    config = {"tir.usmp.enable": True, "tir.usmp.algorithm": algorithm}
    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(options.pop("mod", None) or model(), target, **given)


def sizes(lib: object) -> dict[str, int]:
    return {p.name: p.size for p in lib.executor_codegen_metadata.interface.pools}


def run(lib: object, **inputs: np.ndarray) -> list[np.ndarray]:
    module = AotModule(lib["default"](tvm.cpu()))  # type: ignore[index]
    module.run(**inputs)
    return outputs_of(module)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_executor_brings_one_pool(algorithm: str, expected: np.ndarray) -> None:
    lib = build(algorithm=algorithm)
    assert sizes(lib) == {"global_workspace": 2 * X.nbytes}
    np.testing.assert_allclose(run(lib, x=X)[0], expected, rtol=1e-5)
    text = lib.lowered_ir_mods[lib.target][MAIN].script()
    assert "T.allocate(" not in text and "global_workspace[" in text


def test_pools_are_filled_in_order(expected: np.ndarray, tmp_path: Path) -> None:
    pools = workspace("llvm", ("small", X.nbytes), ("large", -1))
    flash = ConstantMemoryPools([ConstantPoolInfo("flash", [Target("llvm")])])
    lib = build(workspace_memory_pools=pools, constant_memory_pools=flash)
    assert sizes(lib) == {"flash": 3 * X.nbytes, "small": X.nbytes, "large": X.nbytes}
    allocated = lib.lowered_ir_mods[lib.target][MAIN].attrs["pool_args"]
    assert [(p.pool.pool_name, p.pool_var_idx) for p in allocated] == [
        ("flash", 2), ("small", 3), ("large", 4),
    ]  # fmt: skip
    assert [c.byte_offset for c in allocated[0].pool.constant_info_arr] == [0, 6400, 12800]
    lib.export_library(str(tmp_path / "model.so"))
    for built in (lib, tvm.runtime.load_module(str(tmp_path / "model.so"))):
        np.testing.assert_allclose(run(built, x=X)[0], expected, rtol=1e-5)


def test_pools_enable_the_planning(expected: np.ndarray) -> None:
    executor = Executor("aot")
    pools = workspace("llvm", ("sram", -1))
    lib = relay.build(model(), "llvm", executor=executor, workspace_memory_pools=pools)
    assert sizes(lib)["sram"] >= X.nbytes
    np.testing.assert_allclose(run(lib, x=X)[0], expected, rtol=1e-5)


def test_users_algorithm_is_called(expected: np.ndarray) -> None:
    seen = []

    @tvm.register_func("tests.one_behind_the_other", override=True)
    def one_behind_the_other(buffers: list[object], memory_pressure: int) -> dict[object, object]:
        seen.append(memory_pressure)
        places, offset = {}, 0
        for buffer in buffers:
            places[buffer] = tvm.tir.usmp.utils.PoolAllocation(buffer.pool_candidates[0], offset)
            offset += -(-buffer.size_bytes // buffer.alignment) * buffer.alignment
        return places

    config = {
        "tir.usmp.enable": True,
        "tir.usmp.custom_algorithm": "tests.one_behind_the_other",
    }
    with tvm.transform.PassContext(opt_level=3, config=config):
        lib = relay.build(model(), "llvm", executor=Executor("aot"))
    assert seen == [2 * X.nbytes] and sizes(lib)["global_workspace"] == 3 * X.nbytes
    np.testing.assert_allclose(run(lib, x=X)[0], expected, rtol=1e-5)


def test_library_for_c_brings_its_pool(expected: np.ndarray, tmp_path: Path) -> None:
    lib = build("c", executor=C_INTERFACE, runtime=Runtime("crt"))
    tree = unpacked(lib, tmp_path)
    assert "AllocWorkspace(" not in (tree / "codegen/host/src/default_lib1.c").read_text()
    (found,) = run_program(compile_program(tree, main_text({"x": X}, {"output": expected})))
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-4)


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_program_in_c_brings_the_pools(target: str, expected: np.ndarray, tmp_path: Path) -> None:
    pools = workspace(target, ("sram", X.nbytes), ("dram", -1))
    flash = ConstantMemoryPools([ConstantPoolInfo("flash", [Target(target)])])
    lib = build(
        target,
        executor=C_INTERFACE,
        runtime=Runtime("crt"),
        workspace_memory_pools=pools,
        constant_memory_pools=flash,
    )
    aligned = "static __attribute__((aligned(64))) uint8_t"
    definitions = {
        "flash": f"{aligned} flash[] = {{TVMGEN_DEFAULT_FLASH_CONSTANT_POOL_DATA}};\n",
        "sram": f"{aligned} sram[TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE];\n",
        "dram": f"{aligned} dram[TVMGEN_DEFAULT_DRAM_WORKSPACE_POOL_SIZE];\n",
    }
    program = main_text({"x": X}, {"output": expected}, pools=definitions)
    (found,) = run_program(compile_program(unpacked(lib, tmp_path), program))
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-4)


@pytest.mark.parametrize("is_given", [True, False])
def test_inputs_and_outputs_may_be_in_the_pools(
    is_given: bool, expected: np.ndarray, tmp_path: Path
) -> None:
    pools = workspace("c", ("sram", -1)) if is_given else None
    config = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
    with tvm.transform.PassContext(opt_level=3, config=config):
        lib = relay.build(
            model(), "c", executor=C_INTERFACE, runtime=Runtime("crt"), workspace_memory_pools=pools
        )
    assert sum(sizes(lib).values()) == 2 * X.nbytes
    assert set(lib.function_metadata["__tvm_main__"].io_sizes.values()) == {0}
    size = "TVMGEN_DEFAULT_SRAM_WORKSPACE_POOL_SIZE"
    memory = f"static __attribute__((aligned(64))) uint8_t sram[{size}];\n" if is_given else ""
    pool = "  struct tvmgen_default_workspace_pools pools = {.sram = sram};\n" if is_given else ""
    given = "&pools" if is_given else ""
    program = "".join(
        [
            "#include <stdio.h>\n#include <string.h>\n#include <tvmgen_default.h>\n",
            definition("x", X),
            memory,
            f"int main(void) {{\n{pool}",
            f"  memcpy(tvmgen_default_map_inputs({given}).x, x, sizeof(x));\n",
            f"  if (tvmgen_default_run({given}) != 0) return 1;\n",
            f"  float* output = tvmgen_default_map_outputs({given}).output;\n",
            f'  for (int i = 0; i < {X.size}; ++i) printf("%.9g ", (double)output[i]);\n',
            "  return 0;\n}\n",
        ]
    )
    (found,) = run_program(compile_program(unpacked(lib, tmp_path), program))
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-4)


@pytest.mark.parametrize("executor", [Executor("aot"), UNPACKED])
def test_packed_function_of_a_c_library_finds_its_pools(
    executor: Executor, expected: np.ndarray, tmp_path: Path
) -> None:
    lib = build("c", executor=executor, runtime=Runtime("crt"))
    program = main_text({"x": X}, {"output": expected})
    program = program.replace(
        "#include <tvmgen_default.h>", "#include <tvm/runtime/c_backend_api.h>"
    )
    start = program.index("int main(void)")
    program = (
        program[:start]
        + "int32_t tvmgen_default_run(TVMValue*, int*, int, TVMValue*, int*, void*);\n"
        "int main(void) {\n  int64_t shape[] = {40, 40};\n"
        "  DLTensor in = {x, {kDLCPU, 0}, 2, {2, 32, 1}, shape, 0, 0};\n"
        "  DLTensor out = {output, {kDLCPU, 0}, 2, {2, 32, 1}, shape, 0, 0};\n"
        "  TVMValue args[2], result;\n  int codes[2] = {kTVMDLTensorHandle, kTVMDLTensorHandle}, code;\n"
        "  args[0].v_handle = &in;\n  args[1].v_handle = &out;\n"
        "  if (tvmgen_default_run(args, codes, 2, &result, &code, 0) != 0) return 1;\n"
        + program[program.index("  for (int i") :]
    )
    (found,) = run_program(compile_program(unpacked(lib, tmp_path), program))
    np.testing.assert_allclose(found, expected.reshape(-1), rtol=1e-4)


def test_what_does_not_fit_is_rejected() -> None:
    with pytest.raises(TVMError, match=r"no room for .* in the pools tiny \(100 bytes\)"):
        build(workspace_memory_pools=workspace("llvm", ("tiny", 100)))
    with pytest.raises(TVMError, match="no memory pool can be reached from target llvm"):
        build(workspace_memory_pools=workspace("c", ("sram", -1)))
    with pytest.raises(TVMError, match="no algorithm 'greedy_by_sise'"):
        build(algorithm="greedy_by_sise")
    with pytest.raises(TVMError, match="memory pools are for the AOT executor"):
        build(executor=Executor("graph"), workspace_memory_pools=workspace("llvm", ("a", -1)))
    with_io = {"tir.usmp.enable": True, "tir.usmp.use_workspace_io": True}
    with tvm.transform.PassContext(config=with_io), pytest.raises(TVMError, match="interface-api"):
        relay.build(model(), "llvm", executor=Executor("aot"))
    with pytest.raises(TypeError, match="WorkspaceMemoryPools"):
        build(workspace_memory_pools=[WorkspacePoolInfo("a", [Target("llvm")])])


@pytest.mark.parametrize("seed", range(300, 309))
def test_random_graphs_agree_with_the_graph_executor(seed: int) -> None:
    graph = RandomGraph(seed, steps=16)
    mod, inputs = graph.module(), graph.inputs()
    config = {"tir.usmp.enable": True, "tir.usmp.algorithm": ALGORITHMS[seed % 3]}
    with tvm.transform.PassContext(opt_level=seed % 4, config=config):
        reference = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
        lib = relay.build(mod, "llvm", executor=Executor("aot"))
    reference.run(**inputs)
    for number, found in enumerate(run(lib, **inputs)):
        np.testing.assert_array_equal(found, reference.get_output(number).numpy())
