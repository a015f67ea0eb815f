"""From a lowered module to C text in a runtime module, which ``export_library`` compiles.

The target's ``-mcpu`` and ``-march`` choose schedules, and stand in the first line of the text; the options of
the compiler are up to who exports: ``lib.export_library("lib.so", options=["-O3", "-march=native"])``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.codegen.llvm.system_lib import system_lib_prefix
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
    alignment = Alignment(given[0] or default.constants, given[1] or default.memory)
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
            "",
        ]
    )
