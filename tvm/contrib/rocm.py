"""AMD's ROCm: where it is, and what its devices can do.

No code is generated for AMD's devices; `rocm_link` links objects of the user's own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from .nvcc import parse_compute_version as parse_compute_version

_USUAL = "/opt/rocm"
_OLDEST_ARCH = "gfx900"


def find_rocm_path() -> str:
    """The folder of ROCm: that of ``hipcc`` on the path, or /opt/rocm."""
    if (compiler := shutil.which("hipcc")) is not None:
        return str(Path(compiler).resolve().parent.parent)
    if Path(_USUAL).is_dir():
        return _USUAL
    raise RuntimeError(f"find_rocm_path requires ROCm: there is no hipcc, and no {_USUAL}")


def find_lld(required: bool = True) -> list[str]:
    """The programs there are that link code of devices: LLVM's linker.

    Parameters
    ----------
    required : bool
        Whether it is an error if there is none.
    """
    names = ["ld.lld", *[f"ld.lld-{version}" for version in range(22, 9, -1)]]
    found = [path for name in names if (path := shutil.which(name)) is not None]
    own = Path(_USUAL) / "llvm" / "bin" / "ld.lld"
    found += [str(own)] if own.is_file() else []
    if not found and required:
        raise RuntimeError(f"find_lld requires LLVM's linker, one of {', '.join(names)}")
    return found


def rocm_link(in_file: str, out_file: str, lld: str | None = None) -> None:
    """Link an object of relocatable code to a shared one.

    Parameters
    ----------
    in_file, out_file : str
        The object, and what is made of it.
    lld : str, optional
        The linker; by default the first of `find_lld`.
    """
    command = [lld or find_lld()[0], "-shared", in_file, "-o", out_file]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"linking failed with ld.lld:\n{ran.stdout}{ran.stderr}")


def callback_rocm_link(obj_bin: bytes | bytearray) -> bytearray:
    """As `rocm_link`, from bytes to bytes.

    Parameters
    ----------
    obj_bin : bytes
        The object.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "code.o", Path(folder) / "code.co"
        source.write_bytes(obj_bin)
        rocm_link(str(source), str(made))
        return bytearray(made.read_bytes())


def callback_rocm_bitcode_path(rocdl_dir: str | None = None) -> list[str]:
    """The files of LLVM code with the functions of devices.

    Parameters
    ----------
    rocdl_dir : str, optional
        Their folder; ROCm's by default.
    """
    folder = Path(rocdl_dir or Path(find_rocm_path()) / "amdgcn" / "bitcode")
    if not folder.is_dir():
        raise RuntimeError(f"callback_rocm_bitcode_path requires {folder}, which is not there")
    return [str(path) for path in sorted(folder.glob("*.bc"))]


def have_matrixcore(compute_version: str | None = None) -> bool:
    """Whether devices have matrix cores.

    Parameters
    ----------
    compute_version : str, optional
        Such as "9.0"; without it the answer is no, as no device is asked.
    """
    return compute_version is not None and parse_compute_version(compute_version) >= (8, 0)


def get_rocm_arch(rocm_path: str = _USUAL) -> str:
    """The architecture of this machine's device, such as gfx90a; gfx900 if none is told.

    Parameters
    ----------
    rocm_path : str
        ROCm's folder.
    """
    program = Path(rocm_path) / "bin" / "rocminfo"
    if not program.is_file():
        return _OLDEST_ARCH
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    found = re.search(r"Name:\s+(gfx\w+)", ran.stdout)
    return _OLDEST_ARCH if found is None else found[1]
