"""Linking for Android: with the compiler of the NDK that ``TVM_NDK_CC`` names."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tvm import knobs
from tvm.contrib import cc


def create_shared(
    output: str, objects: Sequence[str] | str, options: Sequence[str] | None = None
) -> None:
    """Link a shared library for Android.

    Parameters
    ----------
    output : str
        The library.
    objects : list of str
        Objects and sources.
    options : list of str, optional
        More options for the compiler.
    """
    cc.create_shared(output, objects, options, cc=_compiler())


create_shared.output_format = "so"  # type: ignore[attr-defined]


def create_staticlib(output: str, inputs: Sequence[str] | str) -> None:
    """Put objects into a static library for Android; parameters as for :func:`create_shared`."""
    beside = Path(_compiler()).with_name("llvm-ar")
    cc.create_staticlib(output, inputs, ar=str(beside) if beside.is_file() else _archiver())


create_staticlib.output_format = "a"  # type: ignore[attr-defined]


def get_global_symbol_section_map(path: str, *, nm: str | None = None) -> dict[str, str]:
    """The global symbols of a library for Android, and the kind of section of each.

    Parameters
    ----------
    path : str
        The library.
    nm : str, optional
        The program that lists symbols; by default the NDK's.
    """
    beside = Path(_compiler()).with_name("llvm-nm")
    return cc.get_global_symbol_section_map(
        path, nm=nm or (str(beside) if beside.is_file() else None)
    )


def _compiler() -> str:
    if not knobs.NDK_CC.value:
        raise RuntimeError("Require environment variable TVM_NDK_CC to be the NDK's compiler")
    return knobs.NDK_CC.value


def _archiver() -> str | None:
    return shutil.which("llvm-ar")
