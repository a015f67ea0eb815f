"""A module of independent functions compiled in parts, which processes share and the cache keeps.

    functions -> parts -> (kept?) -> the host's convention -> LLVM text -> object code -> one object

A part whose functions have keys is found by these, before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tvm import knobs
from tvm.codegen.cache import (
    cache_key,
    is_on_disk,
    load_entry,
    load_object,
    store_entry,
    store_object,
)
from tvm.codegen.model_metadata import model_metadata
from tvm.elf.merge import merge_objects
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.support.workers import share_out, usual_processes
from tvm.target import Target
from tvm.target.triple import runs_here
from tvm.tir.expr import Call, StringImm
from tvm.tir.function import PrimFunc
from tvm.tir.stmt_functor import post_order_visit

from .compilation import Compilation, compile_checks, compile_unsplit, source_of
from .exports import Exports
from .library import llvm_lock, llvm_version, native_llvm
from .options import CodegenOptions
from .system_lib import has_elf_objects, system_lib_prefix

# attributes of a module: its functions do not call each other; a text for each function by its
# name, equal only where all that its code depends on is, LLVM apart
INDEPENDENT_FUNCTIONS = "independent_functions"
FUNCTION_KEYS = "function_keys"
# Ctrl-C ends a build between two parts, so that they are small; a part has enough functions that
# starting LLVM anew does not matter
MOST_PARTS, FEWEST_FUNCTIONS = 64, 4
_FEWEST_SHARED = 4  # parts that other processes take without being asked to

# what brings functions to the convention of a target's host
Lowering = Callable[[IRModule, Target], IRModule]


@dataclass(frozen=True)
class Part:
    """Some functions of a module, which become code when they are asked for."""

    mod: IRModule
    target: Target
    lower: Lowering | None  # None: they have the host's convention
    key: str | None  # what they are kept under

    @cached_property
    def written(self) -> Compilation:
        """The functions as LLVM text."""
        return compile_unsplit(
            lowered(self.mod, self.target, self.lower), self.target, is_part=True
        )

    @cached_property
    def known(self) -> tuple[Exports, str]:
        """The names that the code defines, and the key of the object."""
        return self._kept() or (self.written.exports, self.written.key)

    def is_known(self) -> bool:
        """Whether nothing need be written any more."""
        return "written" in self.__dict__ or self._kept() is not None

    def object_code(self) -> bytes:
        """The object file, from the cache if it is there."""
        code = load_object(self.known[1])
        if code is None:
            code = self.written.object_code()
        self._keep()
        return code

    def _kept(self) -> tuple[Exports, str] | None:
        data = None if self.key is None else load_entry(self.key, "part")
        if data is None:
            return None
        kept = json.loads(data)
        options = CodegenOptions.of(self.target)
        exports = Exports(
            options, functions=kept["functions"], entries=kept["entries"], slots=kept["slots"]
        )
        return exports, kept["object"]

    def _keep(self) -> None:
        written = self.__dict__.get("written")
        if (
            written is None
            or self.key is None
            or written.imports
            or written.exports.large_constants
        ):
            return
        exports = written.exports
        kept = {
            "functions": exports.functions,
            "entries": exports.entries,
            "slots": exports.slots,
            "object": written.key,
        }
        store_entry(self.key, "part", json.dumps(kept).encode())


@dataclass(frozen=True)
class Checks(Part):
    """What the functions of all parts call to check their tensors."""

    @cached_property
    def written(self) -> Compilation:
        return compile_checks(self.target)


@dataclass(frozen=True)
class PartsCompilation:
    """A module whose parts are compiled on their own, perhaps by several processes, and then linked."""

    parts: tuple[Part, ...]

    @cached_property
    def exports(self) -> Exports:
        """The names that all parts define."""
        first, *others = [part.known[0] for part in self.parts]
        exports = Exports(first.options)
        for part in (first, *others):
            exports.absorb(part)
        return exports

    def object_code(self) -> bytes:
        """The object file, from the cache if it is there."""
        found = load_object(self._key()) if all([part.is_known() for part in self.parts]) else None
        if found is None:
            self._share_out()
            found = merge_objects([part.object_code() for part in self.parts])
            store_object(self._key(), found)
        return found

    def _key(self) -> str:
        return cache_key("parts", *[part.known[1] for part in self.parts])

    def _share_out(self) -> None:
        """Compile what is not there, in several processes if that pays."""
        if not is_on_disk():  # where the processes meet
            return
        missing = [
            part for part in self.parts if not part.is_known() or load_object(part.known[1]) is None
        ]
        usual = usual_processes() if len(missing) >= _FEWEST_SHARED else 1
        processes = knobs.COMPILE_PROCESSES.value or usual
        share_out(Part.object_code, missing, processes, llvm_lock())

    def source(self, fmt: str) -> str | bytes:
        """As `Compilation.source`."""
        first, *others = [part.written for part in self.parts]
        if fmt == "unoptimized":
            return "\n".join([part.text for part in (first, *others)])
        context = native_llvm().create_context()
        module = first.machine.parse(str(first.optimized), context=context)
        for part in others:
            module.link_in(part.machine.parse(str(part.optimized), context=context))
        return source_of(module, first.machine, fmt)


def compile_module(
    mod: IRModule, target: Target, suffix: str = "", note: str = "", lower: Lowering | None = None
) -> Compilation | PartsCompilation:
    """A module as LLVM text, in parts where its functions are independent.

    Parameters
    ----------
    suffix : str
        What to put behind the names of all functions, for one of several versions.
    note : str
        LLVM text for the end of the module.
    lower : callable, optional
        What brings the functions to the convention of the target's host; they have it otherwise.
    """
    count = min(MOST_PARTS, len(mod.functions) // FEWEST_FUNCTIONS)
    if suffix or note or count < 2 or not _has_parts(mod, CodegenOptions.of(target)):
        return compile_unsplit(lowered(mod, target, lower), target, suffix, note)
    parts = tuple([Part(part, target, lower, _part_key(part)) for part in _sliced(mod, count)])
    # functions with keys bring no LLVM text of their own, which each part would define
    if any([part.key is None and part.written.imports for part in parts]):
        return compile_unsplit(lowered(mod, target, lower), target)
    return PartsCompilation((Checks(IRModule(), target, None, None), *parts))


def lowered(mod: IRModule, target: Target, lower: Lowering | None) -> IRModule:
    """A module's functions in the convention of the target's host."""
    return mod if lower is None else lower(mod, target)


def _sliced(mod: IRModule, count: int) -> list[IRModule]:
    functions = list(mod.functions.items())
    # neighbours are much alike, and take equally long: each goes to another part
    return [mod.with_functions(dict(functions[i::count])) for i in range(count)]


def _part_key(mod: IRModule) -> str | None:
    """What the code of functions is kept under, None if not all of them have keys."""
    keys = mod.get_attr(FUNCTION_KEYS) or {}
    names = [var.name_hint for var in mod.functions]
    context = PassContext.current()  # it may be another one than that of lowering
    if context.instruments or any([name not in keys for name in names]):
        return None
    attrs = sorted([(key, str(value)) for key, value in mod.attrs.items() if value is not keys])
    options = llvm_version(), context.fingerprint(), repr(attrs)
    return cache_key(*options, *[keys[name] for name in names])


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
