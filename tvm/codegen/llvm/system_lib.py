"""Modules of a system library: they are linked into a program, and register themselves at its start.

    start of the program -> TVMBackendRegisterSystemLibSymbol("model_add", &add), ...
    tvm.runtime.system_lib("model_")["add"]

A prefix separates several models in one program: it stands before every name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.error import TVMError
from tvm.ir.module import IRModule

from .types import byte_string, quoted

if TYPE_CHECKING:
    from .module import ModuleWriter

REGISTER = "TVMBackendRegisterSystemLibSymbol"
ENTRY_POINT = "TVMSystemLibEntryPoint"
_EMBEDDED_MODULES = "__tvm_dev_mblob"
_OTHER_FORMATS = ("darwin", "macos", "ios", "windows", "wasm")  # than ELF


def system_lib_prefix(mod: IRModule) -> str | None:
    """The prefix of a module that is to be part of a system library; None if it is not to be."""
    prefix = mod.get_attr("system_lib_prefix")
    if prefix is None:
        return None
    if prefix and not str(prefix).isidentifier():
        raise TVMError(f"a system_lib_prefix must be the beginning of a C name, got {prefix!r}")
    return str(prefix)


def registration(writer: ModuleWriter, prefix: str) -> str:
    """The code that registers what the writer has written."""
    # imported modules stand in an object of their own, if there are any
    blob = f"@{quoted(prefix + _EMBEDDED_MODULES)}"
    exports = writer.exports
    shared = set(exports.runtime_slots())
    names = {
        name if symbol in shared else exports.full_name(name): symbol
        for name, symbol in exports.symbols().items()
    }
    lines = [f"declare i32 @{REGISTER}(ptr, ptr)", f"{blob} = extern_weak global i8"]
    calls = []
    for number, (name, symbol) in enumerate(names.items()):
        lines.append(_constant(number, name))
        calls.append(f"  call i32 @{REGISTER}(ptr @.registered.{number}, ptr @{quoted(symbol)})")
    lines.append(_constant(len(names), prefix + _EMBEDDED_MODULES))
    register_modules = f"  call i32 @{REGISTER}(ptr @.registered.{len(names)}, ptr {blob})"
    startup = f"@{quoted(prefix + '__tvm_module_startup')}"
    return "\n".join(
        [
            *lines,
            *_aliases(writer, prefix),
            f"define internal void {startup}() #0 {{",
            *calls,
            f"  %has_modules = icmp ne ptr {blob}, null",
            "  br i1 %has_modules, label %modules, label %done",
            "modules:",
            register_modules,
            "  br label %done",
            "done:",
            "  ret void",
            "}",
            _run_at_start(startup, writer.options.cpu.triple),
        ]
    )


def function_registry(writer: ModuleWriter) -> str:
    """The table of functions in which the classic runtime in C looks, and what gives it.

    One program has one such table: of several models, the linker takes the first.
    """
    functions = writer.exports.functions
    texts = [f"{name}\0".encode() for name in functions]
    # their number in two bytes, and an empty name at the end
    names = b"".join([len(functions).to_bytes(2, "little"), *texts, b"\0"])
    pointers = ", ".join([f"ptr @{quoted(writer.exports.full_name(name))}" for name in functions])
    return "\n".join(
        [
            f"@.function_names = private constant [{len(names)} x i8] {byte_string(names)}",
            f"@.functions = private constant [{len(functions)} x ptr] [{pointers}]",
            "@.function_registry = private constant { ptr, ptr } { ptr @.function_names, ptr @.functions }",
            "@.module = private constant { ptr } { ptr @.function_registry }",
            f"define weak ptr @{ENTRY_POINT}() #0 {{",
            "  ret ptr @.module",
            "}",
        ]
    )


def _constant(number: int, text: str) -> str:
    data = text.encode() + b"\0"
    return (
        f"@.registered.{number} = private unnamed_addr constant "
        f"[{len(data)} x i8] {byte_string(data)}"
    )


def has_elf_objects(triple: str) -> bool:
    """Whether objects for a machine are ELF files."""
    return not any(word in triple for word in _OTHER_FORMATS)


def _run_at_start(function: str, triple: str) -> str:
    if not has_elf_objects(triple):
        return (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            f"[{{ i32, ptr, ptr }} {{ i32 65535, ptr {function}, ptr null }}]"
        )
    # LLVM would write the section .ctors, which is out of use
    return (
        f'@.tvm_at_start = internal global ptr {function}, section ".init_array"\n'
        '@llvm.used = appending global [1 x ptr] [ptr @.tvm_at_start], section "llvm.metadata"'
    )


def _aliases(writer: ModuleWriter, prefix: str) -> list[str]:
    """The functions by their full names; the short ones may stand in another model too."""
    parameters = "(ptr, ptr, i32, ptr, ptr, ptr)"
    return [
        f"@{quoted(prefix + name)} = alias {writer.results[name]} {parameters}, ptr @{quoted(name)}"
        for name in writer.exports.functions
        if not name.startswith(prefix)
    ]
