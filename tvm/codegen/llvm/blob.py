"""Bytes that a library carries, as a module of LLVM code.

    @__tvm_dev_mblob = constant [24 x i8] c"..."

That of a system library registers them when the program starts.
"""

from __future__ import annotations

from tvm._ffi.registry import register_func
from tvm.codegen.cache import cache_key
from tvm.runtime.export import BLOB, packed_imports
from tvm.runtime.module import Module, module_from_symbols
from tvm.target import Target, cpu_info
from tvm.target.host import host_triple
from tvm.target.triple import runs_here

from .compilation import Compilation
from .exports import Exports
from .library import llvm_version
from .loaded import LoadedObject
from .machine import Machine
from .options import CodegenOptions
from .system_lib import REGISTER
from .types import byte_string, quoted


@register_func("codegen.codegen_blob", override=True)
def codegen_blob(
    blob: bytes, system_lib: bool, target_triple: str, c_symbol_prefix: str = ""
) -> Module:
    """A module that defines ``__tvm_dev_mblob``: the length of the bytes, and the bytes.

    Parameters
    ----------
    blob : bytes
        The bytes.
    system_lib : bool
        Register them at the start of the program that the module is linked into.
    target_triple : str
        The machine; this one if empty.
    c_symbol_prefix : str
        What stands before the symbol.
    """
    symbol = c_symbol_prefix + BLOB
    triple = target_triple or host_triple()
    target = Target(f"llvm -mtriple={triple}")
    machine = Machine(target, cpu_info(target), 0)
    head = f'target datalayout = "{machine.layout}"\ntarget triple = "{triple}"\n'
    data = len(blob).to_bytes(8, "little") + bytes(blob)
    text = head + _text(symbol, data, bool(system_lib))
    exports = Exports(CodegenOptions.of(target))
    compilation = Compilation(exports, text, (), machine, cache_key(text, llvm_version()))
    object_code = compilation.object_code()
    # what registers symbols can only be linked: here it would stay after the module is gone
    is_foreign = bool(system_lib) or not runs_here(triple)
    loaded = None if is_foreign else LoadedObject([object_code], [symbol])
    return module_from_symbols(
        "llvm",
        {} if loaded is None else {symbol: loaded.address(symbol)},
        object_code=object_code,
        get_source=compilation.source,
        facts={"_get_target_string": str(target)},
        keepalive=loaded,
    )


@register_func("runtime.ModulePackImportsToLLVM", override=True)
def pack_imports_to_llvm(
    mod: Module, system_lib: bool, target_triple: str, c_symbol_prefix: str = ""
) -> Module:
    """The modules that a module imports, as :func:`codegen_blob`."""
    return codegen_blob(packed_imports(mod), system_lib, target_triple, c_symbol_prefix)


def _text(symbol: str, data: bytes, is_registered: bool) -> str:
    name = quoted(symbol)
    lines = [f"@{name} = constant [{len(data)} x i8] {byte_string(data)}, align 64"]
    if is_registered:
        spelled = symbol.encode() + b"\0"
        lines += [
            f"@.name = private constant [{len(spelled)} x i8] {byte_string(spelled)}",
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 65535, ptr @.register, ptr null }]",
            f"declare i32 @{REGISTER}(ptr, ptr)",
            "define internal void @.register() {",
            f"  call i32 @{REGISTER}(ptr @.name, ptr @{name})",
            "  ret void",
            "}",
        ]
    return "\n".join(lines) + "\n"
