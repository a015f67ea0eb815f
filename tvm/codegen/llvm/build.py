"""From a lowered module to machine code in this process.

PrimFuncs -> LLVM text -> (object cache) -> LLVM -> object code -> addresses -> runtime module
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tvm.codegen.cache import cache_key, load_object, store_object
from tvm.contrib.elf_object import constants_object
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.runtime.module import Module, module_from_object, module_from_symbols
from tvm.target import Target
from tvm.target.cpu import machine_cpu, machine_features

from .apart import Results, compile_apart
from .foreign import foreign_to
from .library import llvm_version
from .loaded import LoadedObject
from .machine import Machine
from .module import ModuleWriter, write_module
from .options import CodegenOptions
from .system_lib import system_lib_prefix


@dataclass(frozen=True)
class Compilation:
    """One module's LLVM text, and what LLVM makes of it when asked."""

    text: str
    imports: tuple[str, ...]
    machine: Machine
    key: str

    @cached_property
    def optimized(self) -> Any:
        """LLVM's module after its optimisations."""
        return self.machine.optimized(self.text, self.imports)

    def object_code(self) -> bytes:
        """The object file, from the cache if it is there."""
        found = load_object(self.key)
        if found is None:
            found = self.machine.object_code(self.optimized)
            store_object(self.key, found)
        return found

    def source(self, fmt: str) -> str | bytes:
        """The module as text: LLVM's optimised form, or assembly; or LLVM's bitcode."""
        if fmt in ("", "ll"):
            return str(self.optimized)
        if fmt in ("asm", "s"):
            return self.machine.assembly(self.optimized)
        if fmt == "bc":
            return bytes(self.optimized.as_bitcode())
        if fmt == "unoptimized":
            return self.text
        raise TVMError(
            f"get_source of an llvm module has no format {fmt!r}",
            hint=suggest(fmt, _FORMATS) or f"formats: {', '.join(_FORMATS)}",
        )


@dataclass(frozen=True)
class CompilationApart(Compilation):
    """The same with options that LLVM has once for a whole process: another process compiles."""

    target: Target
    llvm_options: tuple[str, ...]

    @cached_property
    def optimized(self) -> Any:
        return self.machine.parse(self._results.optimized)

    @cached_property
    def _results(self) -> Results:
        return compile_apart(self.text, self.imports, str(self.target), self.llvm_options)

    def object_code(self) -> bytes:
        found = load_object(self.key)
        if found is None:
            found = self._results.object_code
            store_object(self.key, found)
        return found

    def source(self, fmt: str) -> str | bytes:
        return self._results.assembly if fmt in ("asm", "s") else super().source(fmt)


_FORMATS = ("ll", "asm", "bc", "unoptimized")


def compile_module(mod: IRModule, target: Target) -> tuple[ModuleWriter, Compilation]:
    """Write a lowered module as LLVM text."""
    options = CodegenOptions.of(target)
    machine = Machine(target, options.cpu, options.opt_level)
    options = replace(options, pointer_bits=machine.pointer_bits)
    writer = write_module(mod, options)
    text = writer.text(machine.layout)
    key = cache_key(
        text,
        machine_cpu(target),
        machine_features(target),
        f"O{options.opt_level}",
        *options.llvm_options,
        llvm_version(),
        *writer.imports,
    )
    imports = tuple(writer.imports)
    if options.llvm_options:
        return writer, CompilationApart(text, imports, machine, key, target, options.llvm_options)
    return writer, Compilation(text, imports, machine, key)


def build_llvm(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``llvm`` for lowered host functions."""
    writer, compilation = compile_module(mod, target)
    object_code = compilation.object_code()
    objects = [object_code]
    if writer.large_constants:
        objects.append(constants_object(writer.large_constants, object_code))
    options = writer.options
    names = writer.public_symbols()
    loaded, symbols = None, dict.fromkeys(names, 0)
    foreign = foreign_to(options.cpu)
    if writer.is_linked:
        foreign = foreign or "it is for programs that are linked with the C runtime"
    if not foreign:  # else it can be exported
        loaded = LoadedObject(objects, options.jit, names.values())
        symbols = {name: loaded.address(symbol) for name, symbol in names.items()}
    prefix = system_lib_prefix(mod)
    module = module_from_symbols(
        "llvm",
        symbols,
        object_code=object_code,
        get_source=compilation.source,
        facts={
            "get_func_names": writer.symbols,
            "_get_target_string": str(target),
            "__tvm_is_system_module": prefix is not None,
            "__tvm_get_system_lib_prefix": prefix,
        },
        foreign=foreign,
        keepalive=loaded,
    )
    for constants in objects[1:]:
        module.import_module(module_from_object(constants))
    return module
