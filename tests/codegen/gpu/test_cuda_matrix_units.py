"""Matrix units in CUDA C++: texts are compiled by NVRTC and assembled by ptxas; nothing runs here."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tvm
from tests.codegen.gpu.test_cuda import assemble, assembler
from tests.system_tools import needs
from tests.tir.schedule.test_matrix_units import scheduled
from tests.tir.schedule.wmma_programs import wmma_schedule
from tvm.codegen.gpu.compile import nvrtc
from tvm.error import LoweringError
from tvm.script import tir as T

pytestmark = needs(
    "NVRTC and ptxas (nvidia-cuda-nvrtc-cu12, nvidia-cuda-nvcc-cu12)",
    nvrtc() is not None and assembler() is not None,
)


def kernels(func: Any) -> tvm.runtime.Module:
    return tvm.build(func, target="cuda -arch=sm_80").imported_modules[0]


def test_the_text_of_fragments(tmp_path: Path) -> None:
    module = kernels(wmma_schedule().mod)
    text = module.get_source()
    factor = "16, 16, 16, half, nvcuda::wmma::row_major>"
    for words in (
        f"nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, {factor} A_shared_wmma_matrix_a[1];",
        f"nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, {factor} B_shared_wmma_matrix_b[2];",
        "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> C_wmma_accumulator[2];",
        "nvcuda::wmma::fill_fragment(C_wmma_accumulator[j_0_1_init], (float)0.0f);",
        "nvcuda::wmma::mma_sync(C_wmma_accumulator[j_0_1], A_shared_wmma_matrix_a[0], ",
    ):
        assert words in text
    assert text.count("__syncthreads()") == 1
    assert "0 bytes stack frame" in assemble(module, "sm_80", tmp_path)


def test_products_of_registers_are_assembled(tmp_path: Path) -> None:
    module = kernels(scheduled().mod)
    text = module.get_source()
    assert text.count('asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32') == 2
    assert text.count('asm volatile("ldmatrix.sync.aligned.m8n8.x4') == 2
    assemble(module, "sm_80", tmp_path)


def product(shape: tuple[int, int, int], types: tuple[str, str], layouts: tuple[str, str]) -> Any:
    m, n, k = shape
    factor, total = types
    a_layout, b_layout = layouts
    strides = (k if a_layout == "row_major" else m, n if b_layout == "row_major" else k)

    @T.prim_func
    def func(
        A: T.Buffer((m, k), factor), B: T.Buffer((k, n), factor),
        C: T.Buffer((m, n), total), D: T.Buffer((m, n), total),
    ) -> None:  # fmt: skip
        T.launch_thread("blockIdx.x", 1)
        T.launch_thread("threadIdx.x", 32)
        a = T.allocate([m * k], factor, "wmma.matrix_a")
        b = T.allocate([k * n], factor, "wmma.matrix_b")
        c = T.allocate([m * n], total, "wmma.accumulator")
        T.tvm_load_matrix_sync(c, m, n, k, 0, T.address_of(C[0, 0]), n, "row_major")
        T.tvm_load_matrix_sync(a, m, n, k, 0, A.access_ptr("r"), strides[0], a_layout)
        T.tvm_load_matrix_sync(b, m, n, k, 0, B.access_ptr("r"), strides[1], b_layout)
        T.tvm_mma_sync(c, 0, a, 0, b, 0, c, 0)
        T.tvm_store_matrix_sync(c, m, n, k, 0, D.access_ptr("w"), m, "col_major")
        T.tvm_fill_fragment(c, m, n, k, 0, T.Cast(total, 1))
        T.tvm_store_matrix_sync(c, m, n, k, 0, C.access_ptr("w"), n, "row_major")

    return func


TYPES = [
    ("float16", "float32"), ("float16", "float16"), ("int8", "int32"), ("uint8", "int32"),
    ("bfloat16", "float32"),
]  # fmt: skip


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 8, 16), (8, 32, 16)])
def test_fragments_of_each_type_and_shape(
    types: tuple[str, str], shape: tuple[int, int, int], tmp_path: Path
) -> None:
    assemble(kernels(product(shape, types, ("col_major", "row_major"))), "sm_80", tmp_path)


def instructions(ptx: str) -> Counter[str]:
    return Counter(re.findall(r"wmma[\w.]+", re.sub(r"\.(global|shared)\b", "", ptx)))


@needs("nvcc with mma.h", shutil.which("nvcc") is not None)
@pytest.mark.parametrize("types", TYPES)
def test_our_definitions_are_those_of_the_toolkit(types: tuple[str, str], tmp_path: Path) -> None:
    module = kernels(product((16, 16, 16), types, ("row_major", "col_major")))
    source, made = tmp_path / "kernels.cu", tmp_path / "kernels.ptx"
    source.write_text(module.get_source())
    command = ["nvcc", "--ptx", "-std=c++17", "-arch=compute_80", "-o", str(made), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    assert instructions(made.read_text()) == instructions(module.get_source("ptx"))


def test_elements_of_a_fragment_are_not_accessed() -> None:
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32")) -> None:
        T.launch_thread("blockIdx.x", 1)
        tx = T.launch_thread("threadIdx.x", 32)
        c = T.decl_buffer((256,), "float32", scope="wmma.accumulator")
        T.tvm_fill_fragment(c.data, 16, 16, 16, 0, T.float32(0))
        A[0, 0] = c[tx]

    with pytest.raises(LoweringError, match="elements of a fragment are not accessed one by one"):
        kernels(func)
