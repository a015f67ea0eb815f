"""Compilers of CUDA C++: NVRTC, which is a library, or nvcc.

NVRTC comes with CUDA, and by itself in the package ``nvidia-cuda-nvrtc-cu12`` (the extra ``cuda``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tvm.error import TVMError

_PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")
_SYSTEM = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


def has_compiler() -> bool:
    """Whether CUDA C++ can be compiled here."""
    return nvrtc() is not None or shutil.which("nvcc") is not None


def compile_text(text: str, arch: str) -> bytes:
    """PTX for devices of an architecture such as ``sm_80`` and later ones."""
    library = nvrtc()
    if library is not None:
        return NVRTC(library).ptx(text, _virtual(arch))
    return _nvcc_ptx(text, _virtual(arch))


def _virtual(arch: str) -> str:
    return arch.replace("sm_", "compute_")


@functools.cache
def nvrtc() -> ctypes.CDLL | None:
    """The library, from the packages of Python, or the system's."""
    found = [path for name in _PACKAGES for path in _libraries_in(name)]
    for path in [*found, *_SYSTEM]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _libraries_in(package: str) -> list[str]:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return [
        str(path)
        for folder in folders
        for path in sorted(Path(folder).glob("lib/libnvrtc.so.*"), reverse=True)
    ]


class NVRTC:
    """One compilation."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def ptx(self, text: str, arch: str) -> bytes:
        """PTX of a text."""
        program = ctypes.c_void_p()
        self._check(
            "nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None
        )
        try:
            options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
            array = (ctypes.c_char_p * len(options))(*options)
            failed = self.library.nvrtcCompileProgram(program, len(options), array)
            if failed:
                raise self._rejection(program, failed, text, arch)
            return self._output(program, "PTX").rstrip(b"\0")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _rejection(self, program: Any, code: int, text: str, arch: str) -> TVMError:
        log = self._output(program, "ProgramLog").rstrip(b"\0").decode()
        if not log.strip() or "invalid value for --gpu-architecture" in log:
            return TVMError(
                f"NVRTC {self.version()} compiles for no {arch}",
                hint='name the architecture of the device: Target("cuda -arch=sm_80")',
            )
        return TVMError(
            f"NVRTC cannot compile the kernels for {arch}:\n{log}\nof this text:\n{text}"
        )

    def version(self) -> str:
        """Such as "12.9"."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def _output(self, program: Any, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def _check(self, function: str, *args: Any) -> None:
        if code := getattr(self.library, function)(*args):
            reason = self.library.nvrtcGetErrorString(code).decode()
            raise TVMError(f"{function} failed: {reason}")


def _nvcc_ptx(text: str, arch: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernels.cu", Path(folder) / "kernels.ptx"
        source.write_text(text)
        command = ["nvcc", "--ptx", "-std=c++17", f"-arch={arch}", "-o", str(made), str(source)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode == 0:
            return made.read_bytes()
        output = ran.stdout + ran.stderr
    if re.search(r"Unsupported gpu architecture|not defined for option 'gpu-architecture'", output):
        raise TVMError(
            f"nvcc compiles for no {arch}",
            hint='name the architecture of the device: Target("cuda -arch=sm_80")',
        )
    raise TVMError(f"nvcc cannot compile the kernels for {arch}:\n{output}\nof this text:\n{text}")
