"""From a lowered module to C text in a runtime module, which ``export_library`` compiles.

The target's ``-mcpu`` and ``-march`` choose schedules, and stand in the first line of the text; the options of
the compiler are up to who exports: ``lib.export_library("lib.so", options=["-O3", "-march=native"])``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.codegen.llvm.system_lib import ENTRY_POINT, system_lib_prefix
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.runtime.csource import csource_module
from tvm.runtime.module import Module
from tvm.target import Target

from .module import Alignment, write_module


def build_c(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``c`` for lowered host functions."""
    is_linked, prefix = bool(mod.get_attr("linked_runtime")), system_lib_prefix(mod)
    if prefix is not None and not is_linked:
        raise TVMError(
            "target c makes no system libraries for the C++ runtime",
            hint="link the text with the runtime under -DTVM_LINKED_RUNTIME, or use target llvm",
        )
    options = ("constants-byte-alignment", "workspace-byte-alignment")
    given = [int(target.attrs.get(option, 0)) for option in options]
    for option, value in zip(options, given, strict=True):
        if value & (value - 1):
            raise TVMError(f"target c needs a power of two as -{option}, got {value}")
    default = Alignment()
    alignment = Alignment(given[0], given[1] or default.memory)
    writer = write_module(mod, alignment)
    text = writer.text(str(target), is_linked)
    if prefix is not None:
        text += registration(writer.symbols)
    return csource_module(text, "c", writer.symbols)


def registration(symbols: Sequence[str]) -> str:
    """The C text that registers functions at the start of a program."""
    calls = [f'  TVMBackendRegisterSystemLibSymbol("{name}", (void*){name});' for name in symbols]
    return "\n".join(
        [
            "",
            "__attribute__((constructor)) static void tvm_register_functions(void) {",
            *calls,
            "}",
            *_function_registry(symbols),
            "",
        ]
    )


_REGISTRY = """\
struct tvm_function_registry {
  const char* names;
  const TVMBackendPackedCFunc* functions;
};
struct tvm_module {
  const struct tvm_function_registry* registry;
};
"""


def _function_registry(symbols: Sequence[str]) -> list[str]:
    """The table of functions in which the classic runtime in C looks, and what gives it."""
    count = len(symbols).to_bytes(2, "little")
    names = "".join([f"\\{byte:03o}" for byte in count] + [f"{name}\\000" for name in symbols])
    pointers = ",\n  ".join([f"(TVMBackendPackedCFunc){name}" for name in symbols]) or "NULL"
    module = f"const struct tvm_module* {ENTRY_POINT}(void)"
    return [
        _REGISTRY,
        f"static const TVMBackendPackedCFunc tvm_functions[] = {{\n  {pointers}\n}};",
        f'static const struct tvm_function_registry tvm_registry = {{"{names}", tvm_functions}};',
        "static const struct tvm_module tvm_this_module = {&tvm_registry};",
        *["#ifdef __cplusplus", 'extern "C"', "#endif", f"TVM_DLL TVM_WEAK {module};"],
        f"{module} {{\n  return &tvm_this_module;\n}}",
    ]
