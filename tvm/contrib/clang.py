"""C and C++ code as LLVM IR, by clang: for code that schedules import into kernels.

ir = clang.create_llvm("extern \\"C\\" int answer() { return 42; }")
s[C].pragma(axis, "import_llvm", ir)
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tvm.contrib import utils
from tvm.support.files import write_bytes, write_text

_SUFFIX_OF_TEXT = "cc"


def find_clang(required: bool = True) -> list[str]:
    """The clang compilers of this machine, newest first.

    Parameters
    ----------
    required : bool
        Whether it is an error that there is none.
    """
    versions = [f"clang-{number}" for number in range(30, 6, -1)]
    found = [path for name in ("clang", *versions) if (path := shutil.which(name))]
    if not found and required:
        raise RuntimeError("import_c and create_llvm need clang: install clang")
    return found


def create_llvm(
    inputs: str | Sequence[str],
    output: str | None = None,
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> str:
    """LLVM IR of C or C++ code.

    Parameters
    ----------
    inputs : str or list of str
        Files, or code as text; text is C++.
    output : str, optional
        A file for the IR, which is written there too; ``.bc`` for bitcode.
    options : list of str, optional
        More options for clang.
    cc : str, optional
        The compiler.

    Returns
    -------
    The IR as text; the path of the output if it is bitcode.
    """
    compiler = cc or find_clang()[0]
    texts = [inputs] if isinstance(inputs, str) else list(inputs)
    if len(texts) != 1:
        raise ValueError(f"create_llvm needs one file or text, got {len(texts)}")
    with utils.tempdir() as temp:
        source = _file_of(texts[0], temp)
        bitcode = temp / "output.bc"
        flags = ["-c", "-emit-llvm", "-O3", *(options or [])]
        _run([compiler, *flags, source, "-o", str(bitcode)])
        if output and Path(output).suffix == ".bc":
            write_bytes(output, bitcode.read_bytes())
            return str(output)
        text = _as_text(bitcode.read_bytes())
    if output:
        write_text(output, text)
    return text


def _as_text(bitcode: bytes) -> str:
    """The text of our own LLVM, which is newer than most clangs and does not read all their texts."""
    import llvmlite.binding as llvm

    return str(llvm.parse_bitcode(bitcode))


def _file_of(given: str, temp: utils.TempDirectory) -> str:
    is_code = "\n" in given or re.search(r"[;{}()#]", given) is not None
    if not is_code:
        if not Path(given).is_file():
            raise ValueError(f"create_llvm needs code or a file, got {given!r}, which is neither")
        return given
    path = temp / f"input.{_SUFFIX_OF_TEXT}"
    path.write_text(given)
    return str(path)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"cannot run {command[0]}: {error}") from None
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {' '.join(command)}\n{done.stderr.strip()}")
