"""What this installation is, for reports of problems."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from tvm.error import DISTRIBUTION

NOT_INSTALLED = "not installed"

# classic build options, in the order of what they are for
_PRESENT = "AOT_EXECUTOR CPP_RPC GRAPH_EXECUTOR PROFILER RANDOM RPC SORT THREADS"
_ABSENT = (
    "CUDA CUDNN CUBLAS CUTLASS THRUST GRAPH_EXECUTOR_CUDA_GRAPH TENSORRT_CODEGEN TENSORRT_RUNTIME "
    "OPENCL CLML METAL COREML VULKAN KHRONOS_SPIRV SPIRV_KHR_INTEGER_DOT_PRODUCT ROCM ROCBLAS "
    "MIOPEN HEXAGON ETHOSN ARM_COMPUTE_LIB BNNS VITIS_AI NNPACK IOS_RPC MICRO "
    "MICRO_STANDALONE_RUNTIME STACKVM_RUNTIME BYODT_POSIT LIBTORCH PT_TVMDSOOP TF_TVMDSOOP TFLITE "
    "TARGET_ONNX OPENMP PAPI GTEST LIBBACKTRACE RELAY_DEBUG CUSTOM_LOGGING FALLBACK_STL_MAP MLIR "
    "RUST_EXT ALTERNATIVE_LINKER MSVC_MT"
)


def libinfo() -> dict[str, str]:
    """How the library was built, by the names of the classic build options."""
    return {
        "LLVM_VERSION": _version("llvmlite"),
        "USE_LLVM": "ON" if _version("llvmlite") != NOT_INSTALLED else "OFF",
        **{f"USE_{option}": "ON" for option in _PRESENT.split()},
        **{f"USE_{option}": "OFF" for option in _ABSENT.split()},
    }


def describe() -> None:
    """Print the versions of Python, the system and the packages that matter."""
    uname = platform.uname()
    print("Python environment")
    print(f"  version      = {sys.version.split()[0]}, {platform.python_implementation()}")
    print(f"  system       = {uname.system} {uname.release} {uname.machine}")
    print("Packages")
    for package in (DISTRIBUTION, "numpy", "llvmlite", "ml_dtypes"):
        print(f"  {package:<12} = {_version(package)}")
    print("Build")
    for option, value in sorted(libinfo().items()):
        if value != "OFF":
            print(f"  {option:<20} = {value}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED
