"""Linking for browsers: with emscripten's compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence


def create_tvmjs_wasm(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | None = None,
    cc: str = "emcc",
    libs: Sequence[str] | None = None,
) -> None:
    """Link WebAssembly that runs alone.

    Parameters
    ----------
    output : str
        The file that is made.
    objects : list of str
        Objects.
    options : list of str, optional
        More options for the compiler.
    cc : str
        The compiler.
    libs : list of str, optional
        Libraries of LLVM code; the runtime for browsers is one that this release does not have.
    """
    if shutil.which(cc) is None:
        raise RuntimeError(f"create_tvmjs_wasm requires emscripten's compiler, {cc} is not there")
    command = [
        cc, "-O3", "-std=c++17", "--no-entry", "-s", "WASM_BIGINT=1", "-s", "ALLOW_MEMORY_GROWTH=1",
        "-s", "STANDALONE_WASM=1", "-s", "ERROR_ON_UNDEFINED_SYMBOLS=0", "-o", output,
        *([objects] if isinstance(objects, str) else objects), *(libs or ()), *(options or ()),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{cc} failed:\n{ran.stdout}{ran.stderr}")


create_tvmjs_wasm.object_format = "bc"  # type: ignore[attr-defined]
