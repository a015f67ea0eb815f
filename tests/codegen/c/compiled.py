"""Modules of target c, compiled with every warning an error."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tvm
from tvm.runtime import Module

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror"]


def compiled(module: Module, compiler: str = "gcc", options: list[str] | None = None) -> Module:
    """A C module as a library that runs, compiled as C99 with every warning an error."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lib.so"
        module.export_library(library, cc=compiler, options=[*STRICT, *(options or [])])
        return tvm.runtime.load_module(library)


def build_c(mod: Any, compiler: str = "gcc", options: list[str] | None = None) -> Module:
    """What ``tvm.build`` takes, as a module of compiled C."""
    return compiled(tvm.build(mod, target="c"), compiler, options)
