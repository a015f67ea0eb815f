"""What this installation is, for reports of problems."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

from tvm.error import DISTRIBUTION

NOT_INSTALLED = "not installed"


def libinfo() -> dict[str, str]:
    """How the library was built, by the names of the classic build options."""
    return {
        "LLVM_VERSION": _version("llvmlite"),
        "USE_LLVM": "ON" if _version("llvmlite") != NOT_INSTALLED else "OFF",
        "USE_GRAPH_EXECUTOR": "ON",
        "USE_CUDA": "OFF",
        "USE_OPENCL": "OFF",
        "USE_RPC": "OFF",
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
        print(f"  {option:<20} = {value}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED
