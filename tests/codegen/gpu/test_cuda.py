"""CUDA C++ is compiled by NVRTC and assembled by ptxas for several architectures; nothing runs here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tvm
from tests.codegen.gpu.programs import (
    PROGRAMS,
    Program,
    matmul,
    sums_of_threads,
    unary,
    vector_add,
    words_of_a_warp,
)
from tests.system_tools import needs
from tvm.codegen.gpu.compile import has_compiler, nvrtc

ARCHS = ("sm_70", "sm_80", "sm_90")


def assembler() -> str | None:
    """ptxas of the Python package, which knows all of these architectures, or of the system."""
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvcc")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (found := Path(folder) / "bin" / "ptxas").exists():
            return str(found)
    return shutil.which("ptxas")


pytestmark = needs(
    "NVRTC and ptxas (nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvcc-cu12)",
    nvrtc() is not None and assembler() is not None,
)


def kernels(program: Program, arch: str = "sm_80") -> tvm.runtime.Module:
    built = tvm.build(program.schedule, program.args, f"cuda -arch={arch}")
    return built.imported_modules[0]


def assemble(module: Any, arch: str, folder: Path) -> str:
    """What ptxas reports of the registers and memory of each kernel."""
    source = folder / "kernels.ptx"
    source.write_text(module.get_source("ptx"))
    command = [assembler(), f"-arch={arch}", "-v", "-o", str(folder / "kernels.cubin"), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr + module.get_source()
    return ran.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_assembled(name: str, tmp_path: Path) -> None:
    report = assemble(kernels(PROGRAMS[name]()), "sm_80", tmp_path)
    assert "0 bytes spill stores" in report


@pytest.mark.parametrize("arch", ARCHS)
def test_a_matrix_product_needs_no_memory_for_registers(arch: str, tmp_path: Path) -> None:
    module = kernels(matmul(256), arch)
    assert f".target {arch}" in module.get_source("ptx")
    assert "0 bytes stack frame, 0 bytes spill stores" in assemble(module, arch, tmp_path)


def test_the_text_of_a_kernel() -> None:
    text = kernels(matmul()).get_source()
    assert 'extern "C" __global__ void __launch_bounds__(64) default_function_kernel(' in text
    assert "__shared__ TVM_ALIGNED(16) float A_shared[256];" in text
    # tiles are loaded once, four numbers at a time, between two barriers
    assert text.count("__syncthreads()") == 2 and text.count("*(const float4*)") == 2
    assert "const float* TVM_RESTRICT A" in text


@pytest.mark.parametrize(
    ("rows", "count", "shuffles", "barriers"),
    [(3, 32, 6, 0), (8, 8, 4, 0), (2, 64, 6, 2), (6, 48, 0, 8)],
)
def test_warps_sum_up_by_shuffles(rows: int, count: int, shuffles: int, barriers: int) -> None:
    text = kernels(sums_of_threads(rows, count, 2)).get_source()
    assert text.count("__shfl_") == shuffles
    assert text.count("__syncthreads()") == barriers


def test_memory_whose_size_the_launch_tells() -> None:
    text = kernels(matmul(dynamic=True)).get_source()
    assert "extern __shared__ TVM_ALIGNED(16) uint8_t buf_dyn_shmem_memory[];" in text


def test_warp_shuffles_atomics_and_products_of_bytes(tmp_path: Path) -> None:
    module = tvm.build(words_of_a_warp, target="cuda -arch=sm_80").imported_modules[0]
    text = module.get_source()
    for word in ("__dp4a(", "__shfl_down_sync(", "atomicAdd(", "*(const int32_t*)(A + "):
        assert word in text
    assemble(module, "sm_80", tmp_path)


def test_users_change_and_compile_the_text() -> None:
    seen = []

    @tvm.register_func("tvm_callback_cuda_postproc", override=True)
    def change(code: str, target: tvm.target.Target) -> str:
        return f"// by hand for {target.arch}\n{code}"

    @tvm.register_func("tvm_callback_cuda_compile", override=True)
    def compile_text(code: str, target: tvm.target.Target) -> bytearray:
        seen.append(code)
        return bytearray(b"// PTX by hand")

    try:
        module = kernels(vector_add())
    finally:
        tvm._ffi.registry.remove_global_func("tvm_callback_cuda_postproc")
        tvm._ffi.registry.remove_global_func("tvm_callback_cuda_compile")
    assert module.get_source().startswith("// by hand for sm_80\n") and len(seen) == 1
    assert module.format == "ptx" and module.get_source("ptx") == "// PTX by hand"


def test_an_architecture_that_the_compiler_does_not_know() -> None:
    with pytest.raises(tvm.TVMError, match="compiles for no compute_20"):
        kernels(unary("exp"), "sm_20")


def test_there_is_a_compiler() -> None:
    assert has_compiler()
