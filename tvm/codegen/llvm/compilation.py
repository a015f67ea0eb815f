"""From a lowered module to object code.

PrimFuncs -> LLVM text -> (object cache) -> LLVM -> object code
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tvm.codegen.cache import cache_key, load_object, store_object
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.target import Target
from tvm.target.cpu import machine_cpu, machine_features

from .exports import Exports
from .foreign import REQUIRED_FEATURES
from .library import llvm_version
from .machine import Machine
from .module import ModuleWriter, write_checks, write_module
from .options import CodegenOptions
from .worker_process import Results, compile_in_worker


@dataclass(frozen=True)
class Compilation:
    """One module's LLVM text, and what LLVM makes of it when asked."""

    exports: Exports
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
        return self.text if fmt == "unoptimized" else source_of(self.optimized, self.machine, fmt)


def unknown_format(fmt: str) -> TVMError:
    """What get_source raises for a form that there is not."""
    return TVMError(
        f"get_source of an llvm module has no format {fmt!r}",
        hint=suggest(fmt, _FORMATS) or f"formats: {', '.join(_FORMATS)}",
    )


@dataclass(frozen=True)
class WorkerCompilation(Compilation):
    """The same with options that LLVM has once for a whole process: another process compiles."""

    target: Target
    llvm_options: tuple[str, ...]

    @cached_property
    def optimized(self) -> Any:
        return self.machine.parse(self._results.optimized)

    @cached_property
    def _results(self) -> Results:
        return compile_in_worker(self.text, self.imports, str(self.target), self.llvm_options)

    def object_code(self) -> bytes:
        found = load_object(self.key)
        if found is None:
            found = self._results.object_code
            store_object(self.key, found)
        return found

    def source(self, fmt: str) -> str | bytes:
        return self._results.assembly if fmt in ("asm", "s") else super().source(fmt)


@dataclass(frozen=True)
class VersionCompilation(Compilation):
    """The same with another name for each function, so that a library can hold several versions."""

    suffix: str

    @cached_property
    def optimized(self) -> Any:
        module = self.machine.optimized(self.text, self.imports)
        for function in module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.name += self.suffix
        for variable in module.global_variables:
            if variable.name == REQUIRED_FEATURES:
                variable.name += self.suffix
        return module


def source_of(module: Any, machine: Machine, fmt: str) -> str | bytes:
    """An optimised module as text or as bitcode."""
    if fmt in ("", "ll"):
        return str(module)
    if fmt in ("asm", "s"):
        return machine.assembly(module)
    if fmt == "bc":
        return bytes(module.as_bitcode())
    raise unknown_format(fmt)


_FORMATS = ("ll", "asm", "bc", "unoptimized")


def compile_unsplit(
    mod: IRModule, target: Target, suffix: str = "", note: str = "", is_part: bool = False
) -> Compilation:
    """Write a lowered module as LLVM text, in one piece.

    Parameters
    ----------
    suffix : str
        What to put behind the names of all functions, for one of several versions.
    note : str
        LLVM text for the end of the module.
    is_part : bool
        Whether it is linked with `compile_checks`, and leaves the checks of tensors to that.
    """
    return _compilation(target, lambda options: write_module(mod, options, is_part), suffix, note)


def compile_checks(target: Target) -> Compilation:
    """What the parts of a module call to check tensors."""
    return _compilation(target, write_checks)


def _compilation(
    target: Target,
    write: Callable[[CodegenOptions], ModuleWriter],
    suffix: str = "",
    note: str = "",
) -> Compilation:
    options = CodegenOptions.of(target)
    machine = Machine(target, options.cpu, options.opt_level)
    options = replace(options, pointer_bits=machine.pointer_bits)
    writer = write(options)
    text = writer.text(machine.layout) + note
    key = cache_key(
        text,
        suffix,
        machine_cpu(target),
        machine_features(target),
        f"O{options.opt_level}",
        *options.llvm_options,
        llvm_version(),
        *writer.imports,
    )
    parts = writer.exports, text, tuple(writer.imports), machine, key
    if options.llvm_options:
        return WorkerCompilation(*parts, target, options.llvm_options)
    return VersionCompilation(*parts, suffix) if suffix else Compilation(*parts)
