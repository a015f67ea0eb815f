"""From a lowered module to object code.

PrimFuncs -> LLVM text -> (object cache) -> LLVM -> object code
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tvm import knobs
from tvm.codegen.cache import cache_key, is_on_disk, load_object, store_object
from tvm.codegen.model_metadata import model_metadata
from tvm.contrib.elf_merge import merge_objects
from tvm.error import TVMError, suggest
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.support.workers import share_out, usual_processes
from tvm.target import Target
from tvm.target.cpu import machine_cpu, machine_features
from tvm.target.triple import runs_here
from tvm.tir.expr import Call, StringImm
from tvm.tir.function import PrimFunc
from tvm.tir.stmt_functor import post_order_visit

from .apart import Results, compile_apart
from .foreign import REQUIRED_FEATURES
from .library import llvm_lock, llvm_version, native_llvm
from .machine import Machine
from .module import ModuleWriter, write_module
from .options import CodegenOptions
from .system_lib import has_elf_objects, system_lib_prefix


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
        return self.text if fmt == "unoptimized" else _source_of(self.optimized, self.machine, fmt)


def unknown_format(fmt: str) -> TVMError:
    """What get_source raises for a form that there is not."""
    return TVMError(
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


def _source_of(module: Any, machine: Machine, fmt: str) -> str | bytes:
    """An optimised module as text or as bitcode."""
    if fmt in ("", "ll"):
        return str(module)
    if fmt in ("asm", "s"):
        return machine.assembly(module)
    if fmt == "bc":
        return bytes(module.as_bitcode())
    raise unknown_format(fmt)


_FORMATS = ("ll", "asm", "bc", "unoptimized")
# the attribute of a module whose functions do not call each other
INDEPENDENT_FUNCTIONS = "independent_functions"


@dataclass(frozen=True)
class PartsCompilation:
    """A module whose parts are compiled on their own, perhaps by several processes, and then linked."""

    parts: tuple[Compilation, ...]

    def object_code(self) -> bytes:
        """The object file, from the cache if it is there."""
        key = cache_key("parts", *[part.key for part in self.parts])
        found = load_object(key)
        if found is None:
            missing = [part for part in self.parts if load_object(part.key) is None]
            if is_on_disk():  # the processes meet there
                usual = usual_processes() if len(missing) >= _FEWEST_SHARED else 1
                processes = knobs.COMPILE_PROCESSES.value or usual
                share_out(Compilation.object_code, missing, processes, llvm_lock())
            found = merge_objects([part.object_code() for part in self.parts])
            store_object(key, found)
        return found

    def source(self, fmt: str) -> str | bytes:
        """As `Compilation.source`."""
        first, *others = self.parts
        if fmt == "unoptimized":
            return "\n".join([part.text for part in self.parts])
        context = native_llvm().create_context()
        module = first.machine.parse(str(first.optimized), context=context)
        for part in others:
            module.link_in(part.machine.parse(str(part.optimized), context=context))
        return _source_of(module, first.machine, fmt)


# Ctrl-C ends a build between two parts, so that they are small; a part has enough functions that
# starting LLVM anew does not matter
MOST_PARTS, FEWEST_FUNCTIONS = 64, 4
_FEWEST_SHARED = 4  # parts that other processes take without being asked to


def compile_module(
    mod: IRModule, target: Target, suffix: str = "", note: str = ""
) -> tuple[ModuleWriter, Compilation | PartsCompilation]:
    """Write a lowered module as LLVM text.

    Parameters
    ----------
    suffix : str
        What to put behind the names of all functions, for one of several versions.
    note : str
        LLVM text for the end of the module.
    """
    count = min(MOST_PARTS, len(mod.functions) // FEWEST_FUNCTIONS)
    options = CodegenOptions.of(target)
    if suffix or note or count < 2 or not _has_parts(mod, options):
        return _compile_whole(mod, target, suffix, note)
    functions = list(mod.functions.items())
    # neighbours are much alike, and take equally long: each goes to another part
    slices = [mod.with_functions(dict(functions[i::count])) for i in range(count)]
    written = [_compile_whole(part, target) for part in slices]
    if any([part.imports for part, _ in written]):  # each would define what it brings
        return _compile_whole(mod, target)
    writer = written[0][0]
    for other, _ in written[1:]:
        writer.absorb(other)
    return writer, PartsCompilation(tuple([part for _, part in written]))


def _has_parts(mod: IRModule, options: CodegenOptions) -> bool:
    """Whether functions may be compiled on their own, and linked by this package."""
    return (
        not options.llvm_options
        and runs_here(options.cpu.triple)
        and has_elf_objects(options.cpu.triple)
        and options.cpu.arch in ("x86_64", "aarch64")
        and system_lib_prefix(mod) is None
        and not mod.get_attr("linked_runtime")
        and model_metadata(mod) is None
        and knobs.DEBUG_INFO.value is None
        and (bool(mod.get_attr(INDEPENDENT_FUNCTIONS)) or _are_independent(mod))
    )


def _are_independent(mod: IRModule) -> bool:
    """Whether no function names another one, as calls of all kinds do."""
    owners = {var.name_hint: func for var, func in mod.functions.items()}
    owners |= {str(func.get_attr("global_symbol")): func for func in mod.functions.values()}
    return all(
        [
            owners.get(name, func) is func
            for func in mod.functions.values()
            if isinstance(func, PrimFunc)
            for name in _names_in(func)
        ]
    )


def _names_in(func: PrimFunc) -> dict[str, None]:
    """Each text and each global variable's name."""
    names: dict[str, None] = {}

    def visit(node: Any) -> None:
        if type(node) is StringImm:
            names[node.value] = None
        elif type(node) is Call and isinstance(node.op, GlobalVar):
            names[node.op.name_hint] = None

    post_order_visit(func.body, visit)
    return names


def _compile_whole(
    mod: IRModule, target: Target, suffix: str = "", note: str = ""
) -> tuple[ModuleWriter, Compilation]:
    """A module in one piece."""
    options = CodegenOptions.of(target)
    machine = Machine(target, options.cpu, options.opt_level)
    options = replace(options, pointer_bits=machine.pointer_bits)
    writer = write_module(mod, options)
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
    imports = tuple(writer.imports)
    if options.llvm_options:
        return writer, CompilationApart(text, imports, machine, key, target, options.llvm_options)
    if suffix:
        return writer, VersionCompilation(text, imports, machine, key, suffix)
    return writer, Compilation(text, imports, machine, key)
