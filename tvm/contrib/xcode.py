"""Apple's tool chain: `xcrun`, and libraries linked with it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm.contrib import utils


def xcrun(cmd: Sequence[str]) -> bytes:
    """What a tool of Xcode prints.

    Parameters
    ----------
    cmd : list of str
        The tool and its arguments.

    Raises
    ------
    FileNotFoundError
        If there is no Xcode on this machine.
    """
    done = subprocess.run(["xcrun", *cmd], stdout=subprocess.PIPE, check=False)
    return done.stdout.strip()


def create_dylib(
    output: str,
    objects: Sequence[str] | str,
    arch: str,
    sdk: str = "macosx",
    min_os_version: str | None = None,
) -> None:
    """Link a dynamic library.

    Parameters
    ----------
    output : str
        The library.
    objects : list of str
        Objects.
    arch : str
        The architecture, such as "arm64".
    sdk : str
        The SDK: "macosx", "iphoneos", "iphonesimulator".
    min_os_version : str, optional
        The oldest system that it is for.
    """
    compiler = xcrun(["-sdk", sdk, "-find", "clang"]).decode()
    root = xcrun(["-sdk", sdk, "--show-sdk-path"]).decode()
    oldest = [f"-m{sdk}-version-min={min_os_version}"] if min_os_version else []
    names = [objects] if isinstance(objects, str) else list(objects)
    _run([compiler, "-dynamiclib", "-arch", arch, "-isysroot", root, *oldest, "-o", output, *names])


create_dylib.output_format = "dylib"  # type: ignore[attr-defined]


def compile_metal(
    code: str,
    path_target: str | None = None,
    sdk: str = "macosx",
    min_os_version: str | None = None,
) -> bytearray:
    """The library of Metal that source code becomes; parameters as for :func:`create_dylib`."""
    oldest = [f"-m{sdk}-version-min={min_os_version}"] if min_os_version else []
    with utils.tempdir() as folder:
        source, air = folder / "kernels.metal", folder / "kernels.air"
        library = Path(path_target) if path_target else folder / "kernels.metallib"
        source.write_text(code, encoding="utf8")
        _run(["xcrun", "-sdk", sdk, "metal", *oldest, "-O3", "-c", str(source), "-o", str(air)])
        _run(["xcrun", "-sdk", sdk, "metallib", str(air), "-o", str(library)])
        return bytearray(library.read_bytes())


def compile_coreml(model: Any, model_name: str = "main", out_dir: str = ".") -> str:
    """The compiled form of a model of coremltools, ``<out_dir>/<model_name>.mlmodelc``."""
    source = Path(out_dir) / f"{model_name}.mlmodel"
    model.save(str(source))
    _run(["xcrun", "coremlcompiler", "compile", str(source), out_dir])
    return str(Path(out_dir) / f"{model_name}.mlmodelc")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}")
