"""From lowered kernels to PTX in a module of the runtime.

PrimFuncs -> LLVM text -> (object cache) -> LLVM -> PTX
"""

from __future__ import annotations

import re
from dataclasses import replace

from tvm._ffi.registry import get_global_func
from tvm.codegen.cache import cache_key, load_entry, store_entry
from tvm.codegen.gpu.build import functions_of, kernel_table
from tvm.codegen.llvm.library import llvm_version
from tvm.codegen.llvm.machine import Machine
from tvm.codegen.llvm.options import CodegenOptions
from tvm.error import LoweringError
from tvm.ir.module import IRModule
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.target.kind import TargetError

from .module import KernelModuleWriter

# the first version of PTX for devices of a compute capability and later ones; shuffles of warps need 6.3
_PTX_VERSIONS = (
    (50, 63), (80, 70), (86, 71), (87, 74), (89, 78), (100, 86), (101, 86), (103, 88), (120, 87)
)  # fmt: skip


def build_nvptx(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``cuda`` with PTX, for drivers to assemble; its text is LLVM's."""
    target = with_ptx_version(target)
    options = CodegenOptions.of(target)
    machine = Machine(target, options.cpu, options.opt_level)
    writer = KernelModuleWriter(
        replace(options, pointer_bits=machine.pointer_bits), capability(target)
    )
    for name, func in functions_of(mod):
        writer.add_function(name, func)
    text = writer.text(machine.layout)
    create = get_global_func("runtime.CUDAModuleCreate")
    code = assembly(text, tuple(writer.imports), machine, str(target))
    made: Module = create(bytearray(code), "ptx", text, *kernel_table(writer.kernels))
    return made


def assembly(text: str, imports: tuple[str, ...], machine: Machine, target: str) -> bytes:
    """PTX of LLVM's text, from the cache if it is there."""
    key = cache_key(text, target, llvm_version(), *imports)
    found = load_entry(key, "ptx")
    if found is None:
        module = machine.optimized(text, imports)
        missing = [
            function.name
            for function in module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        ]
        if missing:
            raise LoweringError(
                f"target nvptx has no function {', '.join(missing)}",
                hint="give its LLVM text by pragma import_llvm, or build for target cuda",
            )
        found = machine.assembly(module).encode()
        store_entry(key, "ptx", found)
    return found


def capability(target: Target) -> int:
    """The compute capability that ``-mcpu`` names, as 80 for ``sm_80``."""
    found = re.fullmatch(r"sm_(\d+)[af]?", target.mcpu)
    if found is None:
        raise TargetError(
            f"target nvptx requires -mcpu=sm_<compute capability>, got {target.mcpu!r}",
            hint="-mcpu=sm_80",
        )
    return int(found[1])


def with_ptx_version(target: Target) -> Target:
    """The target with a version of PTX that its device has, unless ``-mattr`` names one."""
    number = capability(target)
    if any([item.startswith("+ptx") for item in target.mattr]):
        return target
    version = max([version for first, version in _PTX_VERSIONS if number >= first], default=63)
    return Target({**target.export(), "mattr": [*target.mattr, f"+ptx{version}"]})
