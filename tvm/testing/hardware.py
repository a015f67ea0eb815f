"""Features of processors, accelerators and their libraries that tests of programs ask for.

A device or a library that this runtime has no interface for is never there; its tests are skipped with that reason.
"""

from __future__ import annotations

import platform
import shutil

from tvm.runtime.device import device

from .feature import Feature, has_flag


def _library(name: str, long_name: str, parent: str | None = "cuda") -> Feature:
    return Feature(name, long_name, f"USE_{name.upper()}", parent_features=parent)


def _gpu(name: str, long_name: str) -> Feature:
    return Feature(
        name, long_name, f"USE_{name.upper()}", target_kind_enabled=name, target_kind_hardware=name,
        parent_features="gpu",
    )  # fmt: skip


def _program(name: str, long_name: str, executable: str) -> Feature:
    return Feature(name, long_name, compile_time_check=lambda: shutil.which(executable) is not None)


requires_aarch64 = Feature(
    "aarch64", "an AArch64 processor", run_time_check=lambda: platform.machine() == "aarch64"
)
requires_aarch64_sve = Feature(
    "aarch64_sve", "an AArch64 processor with SVE", run_time_check=lambda: has_flag("sve"),
    parent_features="aarch64",
)  # fmt: skip
requires_aarch64_sme = Feature(
    "aarch64_sme", "an AArch64 processor with SME", run_time_check=lambda: has_flag("sme"),
    parent_features="aarch64",
)  # fmt: skip
requires_arm_fp16 = Feature(
    "arm_fp16", "an Arm processor with float16", run_time_check=lambda: has_flag("asimdhp")
)
requires_x86_vnni = Feature(
    "x86_vnni", "an x86 processor with VNNI", run_time_check=lambda: has_flag("avx512_vnni", "avx_vnni")
)  # fmt: skip
requires_x86_avx512 = Feature(
    "x86_avx512", "an x86 processor with AVX-512", run_time_check=lambda: has_flag("avx512f")
)
requires_x86_amx = Feature(
    "x86_amx", "an x86 processor with AMX", run_time_check=lambda: has_flag("amx_tile")
)
requires_rocm = _gpu("rocm", "ROCm")
requires_metal = _gpu("metal", "Metal")
requires_vulkan = _gpu("vulkan", "Vulkan")
requires_hexagon = Feature("hexagon", "Hexagon", "USE_HEXAGON", target_kind_enabled="hexagon")
requires_tensorcore = Feature(
    "tensorcore", "a GPU with tensor cores", run_time_check=lambda: _has_tensor_cores(),
    parent_features="cuda",
)  # fmt: skip
requires_multi_gpu = Feature(
    "multi_gpu", "several GPUs", run_time_check=lambda: bool(device("cuda", 1).exist),
    parent_features="cuda",
)  # fmt: skip
requires_matrixcore = Feature("matrixcore", "a GPU with matrix cores", parent_features="rocm")
requires_cudagraph = Feature("cudagraph", "CUDA graphs", "USE_CUDAGRAPH", parent_features="cuda")
requires_cublas = _library("cublas", "cuBLAS")
requires_cudnn = _library("cudnn", "cuDNN")
requires_cutlass = _library("cutlass", "CUTLASS")
requires_nccl = _library("nccl", "NCCL")
requires_hipblas = _library("hipblas", "hipBLAS", "rocm")
requires_openclml = _library("clml", "OpenCL ML", None)
requires_mrvl = _library("mrvl", "Marvell's accelerator", None)
requires_nnapi = _library("nnapi", "NNAPI", None)
requires_cmsisnn = _library("cmsisnn", "CMSIS-NN", None)
requires_ethosu = _library("ethosu", "Arm Ethos-U", None)
requires_vitis_ai = _library("vitis_ai", "Vitis AI", None)
requires_corstone300 = _program(
    "corstone300", "the model of Corstone-300", "FVP_Corstone_SSE-300_Ethos-U55"
)
requires_aprofile_aem_fvp = _program(
    "aprofile_aem_fvp", "the model of Arm's A profile", "FVP_Base_RevC-2xAEMvA"
)


def _has_tensor_cores() -> bool:
    gpu = device("cuda")
    return bool(gpu.exist) and int(str(gpu.compute_version).split(".")[0]) >= 7
