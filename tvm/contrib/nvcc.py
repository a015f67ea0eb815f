"""What NVIDIA's devices can do, by their compute capability, and where CUDA is.

have_int8("6.1")    ->    True

`compile_cuda` calls nvcc on texts of the user's own; the target cuda compiles its kernels by NVRTC where that is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tvm.target.target import Target


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """The major and minor number of a compute capability.

    Parameters
    ----------
    compute_version : str
        Such as "6.1".
    """
    major, _, minor = compute_version.partition(".")
    try:
        return int(major), int(minor)
    except ValueError:
        raise RuntimeError(
            f"a compute capability is two numbers with a point, got {compute_version!r}"
        ) from None


def get_target_compute_version(target: Target | None = None) -> str:
    """The compute capability that a target names by its architecture, sm_86 is "8.6".

    Parameters
    ----------
    target : tvm.target.Target, optional
        The target; the innermost scope's by default.
    """
    target = target or Target.current(allow_none=True)
    arch = str(target.arch) if target is not None and target.arch else ""
    digits = arch.removeprefix("sm_").rstrip("af")
    if not arch.startswith("sm_") or not digits.isdigit():
        raise ValueError(
            f"a target names its compute capability as `-arch=sm_86` does, got {target}"
        )
    return f"{digits[:-1]}.{digits[-1]}"


def have_fp16(compute_version: str) -> bool:
    """Whether devices compute with float16.

    Parameters
    ----------
    compute_version : str
        Such as "6.1".
    """
    version = parse_compute_version(compute_version)
    return version == (5, 3) or version >= (6, 0)


def have_int8(compute_version: str) -> bool:
    """Whether devices have products of four pairs of int8.

    Parameters
    ----------
    compute_version : str
        Such as "6.1".
    """
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str | None = None, target: Target | None = None) -> bool:
    """Whether devices have tensor cores.

    Parameters
    ----------
    compute_version : str, optional
        Such as "7.0"; the target's by default.
    target : tvm.target.Target, optional
        The target, where no capability is given.
    """
    return parse_compute_version(compute_version or get_target_compute_version(target)) >= (7, 0)


def have_bf16(compute_version: str) -> bool:
    """Whether devices compute with bfloat16.

    Parameters
    ----------
    compute_version : str
        Such as "8.0".
    """
    return parse_compute_version(compute_version) >= (8, 0)


def have_fp8(compute_version: str) -> bool:
    """Whether devices compute with 8-bit floating point numbers.

    Parameters
    ----------
    compute_version : str
        Such as "8.9".
    """
    return parse_compute_version(compute_version) >= (8, 9)


def have_cudagraph() -> bool:
    """Whether CUDA captures graphs of kernels: version 10 and later does."""
    try:
        return get_cuda_version() >= (10, 0)
    except RuntimeError:
        return False


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, ...]:
    """The version of CUDA, such as (12, 4).

    Parameters
    ----------
    cuda_path : str, optional
        CUDA's folder; the one of `find_cuda_path` by default.
    """
    folder = Path(cuda_path or find_cuda_path())
    if (described := folder / "version.txt").is_file():
        if (found := re.search(r"CUDA Version (\d+(?:\.\d+)*)", described.read_text())) is not None:
            return _numbers(found[1])
    elif (described := folder / "version.json").is_file():
        return _numbers(json.loads(described.read_text())["cuda"]["version"])
    if (compiler := folder / "bin" / "nvcc").is_file():
        ran = subprocess.run([str(compiler), "--version"], capture_output=True, text=True)
        if (found := re.search(r"release (\d+(?:\.\d+)*)", ran.stdout)) is not None:
            return _numbers(found[1])
    raise RuntimeError(f"get_cuda_version requires CUDA's version, {folder} does not tell it")


def find_libdevice_path(arch: int) -> str:
    """The file of LLVM code with the functions of devices.

    Parameters
    ----------
    arch : int
        The architecture, such as 70 for sm_70.
    """
    folder = Path(find_cuda_path()) / "nvvm" / "libdevice"
    if not folder.is_dir():
        raise RuntimeError(f"find_libdevice_path requires {folder}, which is not there")
    if (single := folder / "libdevice.10.bc").is_file():
        return str(single)
    # old releases have a file for an architecture and those after it
    suited = {
        int(found[1]): path
        for path in folder.iterdir()
        if (found := re.search(r"compute_(\d+)", path.name)) is not None and int(found[1]) <= arch
    }
    if not suited:
        raise RuntimeError(f"find_libdevice_path found no file for sm_{arch} in {folder}")
    return str(suited[max(suited)])


def callback_libdevice_path(arch: int) -> str:
    """As `find_libdevice_path`, "" where CUDA is not there.

    Parameters
    ----------
    arch : int
        The architecture, such as 70 for sm_70.
    """
    try:
        return find_libdevice_path(arch)
    except RuntimeError:
        return ""


def tvm_callback_cuda_compile(code: str, target: Target | None = None) -> bytearray:
    """What nvcc makes of a text for a target's architecture, as fatbin.

    Parameters
    ----------
    code : str
        The text.
    target : tvm.target.Target, optional
        The target; the innermost scope's by default.
    """
    major, minor = parse_compute_version(get_target_compute_version(target))
    code_for = f"arch=compute_{major}{minor},code=sm_{major}{minor}"
    return compile_cuda(code, target_format="fatbin", arch=["-gencode", code_for])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple([int(number) for number in version.split(".")])


def find_cuda_path() -> str:
    """The folder of CUDA: that of ``nvcc`` on the path, or /usr/local/cuda."""
    if (compiler := shutil.which("nvcc")) is not None:
        return str(Path(compiler).resolve().parent.parent)
    if (usual := Path("/usr/local/cuda")).exists():
        return str(usual)
    raise RuntimeError("find_cuda_path requires CUDA: there is no nvcc, and no /usr/local/cuda")


def compile_cuda(
    code: str,
    target_format: str = "ptx",
    arch: str | Sequence[str] | None = None,
    options: str | Sequence[str] | None = None,
    path_target: str | None = None,
) -> bytearray:
    """What CUDA's own compiler makes of a text.

    Parameters
    ----------
    code : str
        The text.
    target_format : str
        "ptx", "cubin" or "fatbin".
    arch : str or list of str, optional
        Architectures such as "sm_70", or options that name them.
    options : str or list of str, optional
        More options.
    path_target : str, optional
        Where the result is kept.
    """
    if target_format not in ("cubin", "ptx", "fatbin"):
        raise ValueError(f"compile_cuda makes cubin, ptx or fatbin, got {target_format!r}")
    if (compiler := shutil.which("nvcc")) is None:
        raise RuntimeError("compile_cuda requires CUDA's compiler nvcc on the path")
    archs = [f"-arch={arch}"] if isinstance(arch, str) else list(arch or ())
    more = [options] if isinstance(options, str) else list(options or ())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "my_kernel.cu"
        source.write_text(code)
        made = Path(path_target or Path(folder) / f"my_kernel.{target_format}")
        command = [
            compiler,
            f"--{target_format}",
            "-O3",
            *archs,
            *more,
            "-o",
            str(made),
            str(source),
        ]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"nvcc failed:\n{ran.stdout}{ran.stderr}\nof this text:\n{code}")
        return bytearray(made.read_bytes())


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"tvm.contrib.nvcc.{name} is not in this release; the target cuda compiles its "
        "kernels by NVRTC, or by tvm_callback_cuda_compile where a program registers it"
    )
