"""What tests need of the machine and of this installation.

requires_npu = Feature("npu", "an NPU", compile_time_check=lambda: has_npu() or "no NPU found")

@requires_npu                                          # skipped where there is none
def test_kernel(): ...

@requires_npu(support_required="compile-only")         # run where kernels can be compiled
def test_compiles(): ...
"""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tvm._ffi import get_global_func
from tvm.error import suggest
from tvm.knobs import environment_text
from tvm.runtime.device import device
from tvm.runtime.module import enabled
from tvm.target.kind import TARGET_KINDS

# a reason why not, or whether it is there
Check = Callable[[], "bool | str"]
SUPPORT = ("compile-and-run", "compile-only", "optional")


class Feature:
    """One thing that a test may need; a decorator that skips tests where it is not there.

    Parameters
    ----------
    name : str
        A short name, such as "cuda".
    long_name : str, optional
        The name in reasons.
    cmake_flag : str, optional
        An option that the runtime has to be built with; a device interface of that name tells.
    target_kind_enabled : str, optional
        A target kind that code can be generated for.
    compile_time_check, run_time_check : callable, optional
        Whether a test can be compiled and run; a text is the reason why not.
    target_kind_hardware : str, optional
        A target kind whose device has to be there.
    parent_features : str or sequence of str, optional
        Features that have to be there as well.
    """

    _all: ClassVar[dict[str, Feature]] = {}

    def __init__(
        self,
        name: str,
        long_name: str | None = None,
        cmake_flag: str | None = None,
        target_kind_enabled: str | None = None,
        compile_time_check: Check | None = None,
        target_kind_hardware: str | None = None,
        run_time_check: Check | None = None,
        parent_features: str | Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.long_name = long_name or name
        self.cmake_flag = cmake_flag
        self.target_kind_enabled = target_kind_enabled
        self.compile_time_check = compile_time_check
        self.target_kind_hardware = target_kind_hardware
        self.run_time_check = run_time_check
        parents = [parent_features] if isinstance(parent_features, str) else parent_features or []
        self.parents = [Feature._named(parent) for parent in parents]
        Feature._all[name] = self

    def __call__(self, func: Any = None, *, support_required: str = "compile-and-run") -> Any:
        """Skip a test unless the feature is there.

        Parameters
        ----------
        func : the test; a decorator if it is left out.
        support_required : "compile-and-run", "compile-only", or "optional" to run it in any case.
        """
        if support_required not in SUPPORT:
            raise ValueError(f"support_required is one of {SUPPORT}, got {support_required!r}")
        marks = self.marks(support_required)

        def decorate(test: Any) -> Any:
            for mark in marks:
                test = mark(test)
            return test

        return decorate if func is None else decorate(func)

    def marks(self, support_required: str = "compile-and-run") -> list[Any]:
        """The marks of pytest that a test gets."""
        import pytest

        if support_required == "optional":
            return []
        reason = self._why_not_compiled()
        if reason is None and support_required == "compile-and-run":
            reason = self._why_not_run()
        skip = pytest.mark.skipif(reason is not None, reason=reason or self.long_name)
        return [skip, *[m for parent in self.parents for m in parent.marks(support_required)]]

    @staticmethod
    def require(name: str, support_required: str = "compile-and-run") -> Any:
        """The decorator of the feature of that name."""
        return Feature._named(name)(support_required=support_required)

    @staticmethod
    def _named(name: str) -> Feature:
        if name not in Feature._all:
            raise ValueError(f"no feature is called {name!r}; {suggest(name, Feature._all)}")
        return Feature._all[name]

    def _why_not_compiled(self) -> str | None:
        if self.cmake_flag is not None:
            part = self.cmake_flag.removeprefix("USE_").lower()
            if get_global_func(f"device_api.{part}", allow_missing=True) is None:
                return f"{self.long_name} support is not built in: {self.cmake_flag}"
        kind = self.target_kind_enabled
        if kind is not None and not (kind in TARGET_KINDS and enabled(kind)):
            return f"no code generator for {kind} is built in"
        return _reason(self.compile_time_check, self.long_name)

    def _why_not_run(self) -> str | None:
        if self.target_kind_hardware is not None and not device(self.target_kind_hardware).exist:
            return f"no device for {self.target_kind_hardware} was found"
        return _reason(self.run_time_check, self.long_name)


def _reason(check: Check | None, name: str) -> str | None:
    if check is None:
        return None
    found = check()
    return found if isinstance(found, str) else None if found else f"{name} is not there"


requires_llvm = Feature("llvm", "LLVM", target_kind_enabled="llvm", target_kind_hardware="llvm")
requires_gpu = Feature(
    "gpu", "a GPU", run_time_check=lambda: any([device(k).exist for k in ("cuda", "opencl")])
)
requires_cuda = Feature(
    "cuda", "CUDA", "USE_CUDA", target_kind_enabled="cuda", target_kind_hardware="cuda",
    parent_features="gpu",
)  # fmt: skip
requires_opencl = Feature(
    "opencl", "OpenCL", "USE_OPENCL", target_kind_enabled="opencl", target_kind_hardware="opencl",
    parent_features="gpu",
)  # fmt: skip
requires_x86 = Feature(
    "x86", "an x86 processor", run_time_check=lambda: platform.machine() in ("x86_64", "AMD64")
)
requires_arm_dot = Feature(
    "arm_dot", "an ARM processor with dot products", run_time_check=lambda: has_flag("asimddp")
)
requires_cascadelake = Feature(
    "cascadelake", "a processor with VNNI", run_time_check=lambda: has_flag("avx512_vnni")
)
requires_micro = Feature("micro", "a C compiler", run_time_check=lambda: bool(shutil.which("gcc")))
requires_rpc = Feature(
    "rpc", "RPC",
    compile_time_check=lambda: get_global_func("rpc.Connect", allow_missing=True) is not None,
)  # fmt: skip
requires_libtorch = Feature(
    "libtorch", "TorchScript functions", compile_time_check=lambda: _can_import("torch")
)
requires_ethosn = Feature("ethosn", "Arm Ethos-N", "USE_ETHOSN")


def has_flag(*flags: str) -> bool | str:
    """Whether the processor has one of the flags, in the words of Linux; else the reason why not."""
    try:
        with open("/proc/cpuinfo", encoding="utf8") as file:
            have = set(file.read().split())
    except OSError:
        have = set()
    return bool(have.intersection(flags)) or f"the processor has no {' or '.join(flags)}"


def _can_import(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def uses_gpu(*functions: Any) -> Any:
    """Leave a test as it is: a GPU has something to do for it, but it runs without one."""
    decorate = requires_gpu(support_required="optional")
    return decorate(functions[0]) if functions else decorate


def slow(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Skip a test where the environment variable SKIP_SLOW_TESTS is on."""
    import pytest

    is_on = environment_text("SKIP_SLOW_TESTS").lower() in ("1", "on", "true", "yes")
    found: Callable[..., Any] = pytest.mark.skipif(is_on, reason="SKIP_SLOW_TESTS is on")(fn)
    return found


IS_IN_CI = environment_text("CI") == "true"


def skip_if_wheel_test(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Skip a test where the environment variable WHEEL_TEST is on."""
    import pytest

    is_on = environment_text("WHEEL_TEST").lower() in ("1", "on", "true", "yes")
    found: Callable[..., Any] = pytest.mark.skipif(is_on, reason="WHEEL_TEST is on")(fn)
    return found


def requires_nvcc_version(
    major_version: int, minor_version: int = 0, release_version: int = 0
) -> Callable[..., Any]:
    """Skip a test unless CUDA's compiler has at least that version."""
    import pytest

    wanted = (major_version, minor_version, release_version)
    reason = f"nvcc {'.'.join(map(str, wanted))} is not there"
    return pytest.mark.skipif(_nvcc_version() < wanted, reason=reason)


def _nvcc_version() -> tuple[int, ...]:
    path = shutil.which("nvcc")
    if path is None:
        return (0,)
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"V(\d+)\.(\d+)\.(\d+)", text)
    return tuple([int(n) for n in found.groups()]) if found else (0,)


def requires_cuda_compute_version(major_version: int, minor_version: int = 0) -> Callable[..., Any]:
    """Skip a test unless the first CUDA device has at least that compute capability."""
    import pytest

    wanted = (major_version, minor_version)
    gpu = device("cuda")
    have = tuple([int(n) for n in str(gpu.compute_version).split(".")]) if gpu.exist else (0, 0)
    reason = f"compute capability {major_version}.{minor_version} is not there"
    return pytest.mark.skipif(have < wanted, reason=reason)


def is_ampere_or_newer() -> bool:
    """Whether the first CUDA device has compute capability 8.0 or more."""
    gpu = device("cuda")
    return bool(gpu.exist) and int(str(gpu.compute_version).split(".")[0]) >= 8
