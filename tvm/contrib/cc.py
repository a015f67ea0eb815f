"""Linking: with the C++ compiler, or, where there is none, without."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm._ffi.libinfo import find_include_path
from tvm._ffi.registry import get_global_func
from tvm.contrib import tar, utils
from tvm.contrib.cross_compilers import linking_hint, missing_hint
from tvm.elf.link import link_shared
from tvm.elf.objects import constants_object, machine_of
from tvm.elf.relocate import MACHINES
from tvm.support.files import replacing

# where the runtime looks for the checksum within a library
_MARK = "__tvm_library_checksum"
_UNSET = b"TVM no checksum\n"
_ELF_HEADER = 64


def _is_linux_like() -> bool:
    """Whether libraries are ELF or Mach-O files here."""
    return sys.platform == "darwin" or sys.platform.startswith("linux")


def _is_windows_like() -> bool:
    return sys.platform == "win32"


def get_cc() -> str | None:
    """The C++ compiler: the variable ``CXX``, else the first that is found."""
    if knobs.CXX.value:
        return knobs.CXX.value
    names = ("g++", "gcc", "clang++", "clang", "c++", "cc")
    return next((path for name in names if (path := shutil.which(name))), None)


def create_shared(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: dict[str, str] | None = None,
) -> None:
    """Link objects or sources into a shared library.

    The library gets checksums, after its last byte and, if there is an object among the files,
    within, so that a damaged copy is rejected when it is loaded. One that another tool has linked
    has none: there, damage to its tables is found, and damage to its code is not.

    Objects alone need no compiler, on x86-64 and AArch64. Those for the other of the two machines
    are linked without one too, unless ``cc`` names a cross compiler.

    Parameters
    ----------
    output : str
        The library.
    objects : list of str
        Objects, sources, archives (``.tar``) of them.
    options : list of str, optional
        More options for the compiler.
    cc : str, optional
        The compiler.
    cwd : str, optional
        The folder to run it in.
    ccache_env : dict, optional
        If given, ccache is used, with these variables.
    """
    names = [objects] if isinstance(objects, str) else list(objects)
    with replacing(Path(cwd or "", output)) as new, utils.tempdir() as temp:
        names += _marks_for(names, temp)
        if cc is None and (get_cc() is None or _are_foreign(names)):
            _link_without_compiler(str(new), names, options or [])
        else:
            flags = ["-shared", "-fPIC", *(options or [])]
            _link(str(new.absolute()), names, flags, cc, cwd, ccache_env)
        if new.is_file():
            get_global_func("runtime.StampLibrary")(str(new))


utils.mark_format(create_shared, "so")


def create_object(
    output: str, objects: Sequence[str] | str, options: Sequence[str] | None = None, **kwargs: Any
) -> None:
    """Join objects into one; parameters as for :func:`create_shared`."""
    names = [objects] if isinstance(objects, str) else list(objects)
    folder = kwargs.get("cwd") or ""
    with replacing(Path(folder, output)) as new:
        if len(names) == 1 and names[0].endswith(".o") and not options:
            shutil.copyfile(names[0], new)
        else:
            _link(str(new.absolute()), names, ["-r", "-nostdlib", *(options or [])], **kwargs)


utils.mark_format(create_object, "o")


def create_executable(
    output: str,
    objects: Sequence[str] | str,
    options: Sequence[str] | None = None,
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: dict[str, str] | None = None,
) -> None:
    """Link objects or sources into a program; parameters as for :func:`create_shared`."""
    with replacing(Path(cwd or "", output)) as new:
        _link(str(new.absolute()), objects, list(options or []), cc, cwd, ccache_env)


def create_staticlib(output: str, inputs: Sequence[str] | str, ar: str | None = None) -> None:
    """Put objects into a static library."""
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    with utils.tempdir() as temp, replacing(output) as new:
        files = tar.normalize_file_list_by_unpacking_tars(temp, names)
        if Path(output).is_file():  # objects are added to those that are there
            shutil.copyfile(output, new)
        _run([ar or shutil.which("ar") or "ar", "qcs", str(new), *files])


utils.mark_format(create_staticlib, "a")


def _link(
    output: str,
    objects: Sequence[str] | str,
    options: list[str],
    cc: str | None = None,
    cwd: str | None = None,
    ccache_env: dict[str, str] | None = None,
) -> None:
    compiler = cc or get_cc()
    if compiler is None:
        raise RuntimeError("linking needs a C++ compiler: install g++, or set CXX")
    names = [objects] if isinstance(objects, str) else list(objects)
    with utils.tempdir() as temp:
        files = tar.normalize_file_list_by_unpacking_tars(temp, names)
        libraries = [] if "-r" in options else ["-lm"]
        command = [compiler, "-o", str(output), *_as_c(files), *options, *libraries]
        if ccache_env is not None:
            command.insert(0, shutil.which("ccache") or "ccache")
        try:
            _run(command, cwd, ccache_env)
        except RuntimeError as error:
            if hint := linking_hint(compiler, files):
                raise RuntimeError(hint) from None
            raise error


def _marks_for(names: Sequence[str], temp: utils.TempDirectory) -> list[str]:
    """An object with the place of the checksum within the library, for the machine of the others."""
    code = next((name for name in names if machine_of(name) is not None), None)
    if code is None:
        return []
    with open(code, "rb") as file:
        like = file.read(_ELF_HEADER)
    mark = temp / "library_checksum.o"
    mark.write_bytes(constants_object({_MARK: _UNSET}, like))
    return [str(mark)]


def _as_c(files: Sequence[str]) -> list[str]:
    """The files, with options by which a C++ compiler takes C sources for C, and optimises them."""
    sources = [file for file in files if file.endswith(".c")]
    if not sources:
        return list(files)
    others = [file for file in files if not file.endswith(".c")]
    headers = [f"-I{path}" for path in find_include_path(optional=True)]
    command = ["-O2", "-fPIC", *headers]
    for source in sources:
        command += ["-x", "c++" if _is_cplusplus(source) else "c", source]
    return [*command, "-x", "none", *others]


def _is_cplusplus(source: str) -> bool:
    """Whether a `.c` file is C++: code generators of users write a bare `extern "C"` into them."""
    text = Path(source).read_text(errors="replace")
    return 'extern "C"' in text and "__cplusplus" not in text


def _are_foreign(objects: Sequence[str] | str) -> bool:
    """Whether there is an object that the compiler of this machine cannot link, but we can."""
    names = [objects] if isinstance(objects, str) else list(objects)
    machines = {machine_of(name) for name in names if str(name).endswith(".o")}
    return bool(machines & MACHINES.keys() - {machine_of(sys.executable)})


def _link_without_compiler(
    output: str, objects: Sequence[str] | str, options: Sequence[str]
) -> None:
    names = [objects] if isinstance(objects, str) else list(objects)
    libraries = [o for o in options if o.startswith(("-l", "-L", "-Wl")) or not o.startswith("-")]
    with utils.tempdir() as temp:
        files = tar.normalize_file_list_by_unpacking_tars(temp, names)
        sources = [file for file in files if not file.endswith((".o", ".obj"))]
        if sources or libraries:
            raise RuntimeError(
                f"{' '.join([*sources, *libraries])}: this needs a C++ compiler: "
                "install g++, or set CXX"
            )
        try:
            link_shared(output, files)
        except ValueError as error:
            raise RuntimeError(
                f"cannot link without a C++ compiler: {error}; install g++, or set CXX"
            ) from None


def _run(command: list[str], cwd: str | None = None, env: dict[str, str] | None = None) -> str:
    """What the program prints."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=cwd, env=env, check=False
        )
    except OSError as error:
        hint = missing_hint(command[0])
        raise RuntimeError(f"cannot run {command[0]}: {hint or error}") from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()
        raise RuntimeError(f"{command[0]} failed: {' '.join(command)}\n{output}")
    return done.stdout


def get_global_symbol_section_map(path: str, *, nm: str | None = None) -> dict[str, str]:
    """The global symbols that a library or object defines, with the letters of their sections.

    Parameters
    ----------
    path : str
        The library.
    nm : str, optional
        The program that lists symbols.

    Returns
    -------
    sections : dict of str to str
        For example ``{"main": "T"}``.
    """
    command = [nm or shutil.which("nm") or "nm", "-g", "--defined-only", str(path)]
    # a stripped library has the table of the loader only
    lines = _run(command).splitlines() or _run([*command, "-D"]).splitlines()
    fields = [line.split() for line in lines]
    return {field[-1].partition("@")[0]: field[-2] for field in fields if len(field) >= 3}


def get_target_by_dump_machine(compiler: str) -> Callable[[], str | None]:
    """A function that asks the compiler for its target triple."""

    def get_target_triple() -> str | None:
        done = subprocess.run(
            [compiler, "-dumpmachine"], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    return get_target_triple


def cross_compiler(
    compile_func: Callable[..., Any] | str,
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str | None] | None = None,
    add_files: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """A function for ``export_library(fcompile=...)`` that links for another machine.

    Parameters
    ----------
    compile_func : callable or str
        The function that links, or the name of the compiler.
    options : list of str, optional
        Options for the compiler.
    output_format : str, optional
        The suffix of the result.
    get_target_triple : callable, optional
        Tells the triple of the machine that the compiler makes code for.
    add_files : list of str, optional
        More files to link.
    """
    base_options = list(options or [])
    extra_files = list(add_files or [])
    defaults: dict[str, Any] = {}
    if isinstance(compile_func, str):
        defaults["cc"] = compile_func
        get_target_triple = get_target_triple or get_target_by_dump_machine(compile_func)
        link: Callable[..., Any] = create_shared
    else:
        link = compile_func

    def fcompile(
        outputs: str, objects: Sequence[str], options: Sequence[str] | None = None, **kwargs: Any
    ) -> Any:
        all_options = [*base_options, *(options or [])]
        return link(
            outputs, [*objects, *extra_files], options=all_options, **{**defaults, **kwargs}
        )

    made: Any = fcompile
    made.output_format = output_format or getattr(compile_func, "output_format", "so")
    made.get_target_triple = get_target_triple
    return fcompile
