"""Modules that were saved as LLVM text or bitcode, compiled again for this machine.

module.save("f.ll")   ->   load_module("f.ll")["f"](...)
"""

from __future__ import annotations

from pathlib import Path

from tvm.error import TVMError
from tvm.runtime.module import Module, module_from_symbols
from tvm.target import Target, cpu_info
from tvm.target.host import host_triple

from .compilation import unknown_format
from .loaded import LoadedObject
from .machine import Machine
from .worker_process import FileResults, Results, compile_file_in_worker

_OPT_LEVEL = 3


def load_llvm(path: str, fmt: str) -> Module:
    """The functions of a file of LLVM text (``ll``) or bitcode (``bc``).

    Another process compiles it, since LLVM ends the process on some damaged files.
    """
    target = Target("llvm")
    found = _compile(path, fmt, str(target))
    if found.code is None:
        raise TVMError(
            f"cannot load module {path}: it is for {found.triple}, and this machine is {host_triple()}"
        )
    code = found.code
    names = (*found.functions, *found.variables)
    loaded = LoadedObject([code.object_code], names)
    return module_from_symbols(
        "llvm",
        {name: loaded.address(name) for name in names},
        object_code=code.object_code,
        get_source=lambda form: _source(found, code, form),
        facts={"get_func_names": found.functions, "_get_target_string": str(target)},
        keepalive=loaded,
    )


def _compile(path: str, fmt: str, target: str) -> FileResults:
    try:
        return compile_file_in_worker(Path(path).read_bytes(), fmt == "bc", target, _OPT_LEVEL)
    except ValueError as error:
        raise TVMError(f"cannot load module {path}: LLVM rejects it: {error}") from None


def _source(found: FileResults, code: Results, fmt: str) -> str | bytes:
    if fmt in ("asm", "s"):
        return code.assembly
    if fmt == "unoptimized":
        return found.text
    if fmt == "bc":
        target = Target("llvm")
        module = Machine(target, cpu_info(target), _OPT_LEVEL).parse(code.optimized)
        return bytes(module.as_bitcode())
    if fmt in ("", "ll"):
        return code.optimized
    raise unknown_format(fmt)
