"""Modules that were saved as LLVM text or bitcode, compiled again for this machine.

module.save("f.ll")   ->   load_module("f.ll")["f"](...)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tvm.codegen.cache import cache_key
from tvm.error import TVMError
from tvm.runtime.module import Module, module_from_symbols
from tvm.target import Target, cpu_info
from tvm.target.cpu import machine_cpu, machine_features
from tvm.target.host import host_triple
from tvm.target.triple import runs_here

from .compilation import Compilation
from .library import llvm_version, native_llvm
from .loaded import LoadedObject
from .machine import Machine

_OPT_LEVEL = 3


def load_llvm(path: str, fmt: str) -> Module:
    """The functions of a file of LLVM text (``ll``) or bitcode (``bc``)."""
    module = _parse(path, fmt)
    if module.triple and not runs_here(module.triple):
        raise TVMError(
            f"cannot load module {path}: it is for {module.triple}, and this machine is {host_triple()}"
        )
    target = Target("llvm")
    machine = Machine(target, cpu_info(target), _OPT_LEVEL)
    text = str(module)
    key = cache_key(text, machine_cpu(target), machine_features(target), llvm_version())
    compilation = Compilation(text, (), machine, key)
    object_code = compilation.object_code()
    loaded = LoadedObject([object_code])
    functions = _public_names(module.functions)
    names = [*functions, *_public_names(module.global_variables)]
    return module_from_symbols(
        "llvm",
        {name: loaded.address(name) for name in names},
        object_code=object_code,
        get_source=compilation.source,
        facts={"get_func_names": functions, "_get_target_string": str(target)},
        keepalive=loaded,
    )


def _parse(path: str, fmt: str) -> Any:
    llvm = native_llvm()
    data = Path(path).read_bytes()
    try:
        return llvm.parse_bitcode(data) if fmt == "bc" else llvm.parse_assembly(data.decode())
    except (RuntimeError, UnicodeDecodeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise TVMError(f"cannot load module {path}: LLVM refuses it: {reason}") from None


def _public_names(values: Any) -> list[str]:
    return [
        value.name
        for value in values
        if not value.is_declaration and value.linkage.name not in ("internal", "private")
    ]
