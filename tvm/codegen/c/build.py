"""From a lowered module to C text in a runtime module, which ``export_library`` compiles."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.runtime.csource import csource_module
from tvm.runtime.module import Module
from tvm.target import Target

from .module import write_module

CONSTANTS_ALIGNMENT = 64


def build_c(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``c`` for lowered host functions."""
    alignment = int(target.attrs.get("constants-byte-alignment", CONSTANTS_ALIGNMENT))
    writer = write_module(mod, alignment)
    return csource_module(writer.text(str(target)), "c", writer.symbols)
