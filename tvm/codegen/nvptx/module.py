"""The text of one LLVM module of kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm.codegen.gpu.build import KernelText, check_parameters
from tvm.codegen.llvm.code import Code
from tvm.codegen.llvm.math import find_math_function, write_math_function
from tvm.codegen.llvm.module import ModuleWriter
from tvm.codegen.llvm.options import CodegenOptions
from tvm.codegen.llvm.statements import Frame
from tvm.codegen.llvm.types import TYPES, byte_string, quoted
from tvm.error import LoweringError
from tvm.tir.function import PrimFunc

from .kernel import ALIGNMENT, KernelWriter
from .library import find_library_function, small_symbol


class KernelModuleWriter(ModuleWriter):
    """Collects kernels, the memory that their threads share and the functions they call."""

    def __init__(self, options: CodegenOptions, capability: int) -> None:
        super().__init__(options)
        self.capability = capability
        self.kernels: list[KernelText] = []

    def add_function(self, name: str, func: PrimFunc) -> None:
        """Write one kernel."""
        check_parameters(name, func)
        operands = {param: f"%p{number}" for number, param in enumerate(func.params)}
        # the host hands over arrays that do not overlap, at addresses for the widest accesses
        params = [
            f"{TYPES[param.dtype].text}{' noalias' if param.dtype.is_handle else ''} {operand}"
            for param, operand in operands.items()
        ]
        code = Code(f"define ptx_kernel void @{quoted(name)}({', '.join(params)}) #0")
        writer = KernelWriter(self, name, Frame(code, dict(operands), "void"), noalias=True)
        for param in func.params:
            if param.dtype.is_handle:
                writer.alignment[param] = ALIGNMENT
                writer.aliases.add(param)
        writer.visit(func.body)
        code.do("ret void")
        if (threads := writer.threads_of_block()) is not None:
            code.signature += f' "nvvm.maxntid"="{threads}"'
        self.definitions.append(code.text())
        self._metadata += writer.aliases.definitions()
        self.kernels.append(KernelText.of(name, func, code.text()))

    def add_shared(self, item: str, count: int | None, name: str) -> str:
        """Memory that the threads of a block share, as a pointer; ``None``: the launch tells its size."""
        symbol = quoted(self.new_symbol(name))
        linkage, content = ("external", "") if count is None else ("internal", " undef")
        self._globals.append(
            f"@{symbol} = {linkage} addrspace(3) global [{count or 0} x {item}]{content}, align {ALIGNMENT}"
        )
        return f"addrspacecast (ptr addrspace(3) @{symbol} to ptr)"

    def constant_array(self, data: Any) -> str:
        content = data.numpy().tobytes()
        symbol = quoted(self.new_symbol("const"))
        self._globals.append(
            f"@{symbol} = internal constant [{len(content)} x i8] {byte_string(content)}, align {ALIGNMENT}"
        )
        return f"@{symbol}"

    def context_slot(self, name: str) -> str:
        raise LoweringError(f"a kernel cannot call the host's {name}")

    def declare_math(self, name: str, scalar: str, arity: int, caller: str) -> None:
        """Write what the C library would have: devices have none."""
        found = find_library_function(name)
        if found is None:
            raise LoweringError(
                f"target nvptx has no function {name}, which kernel {caller} calls",
                hint="target cuda has the functions of CUDA's library",
            )
        if name in self._math:
            return
        self._math[name] = found.text
        for part in found.needs:
            function, symbol = (
                find_math_function(part, found.dtype),
                small_symbol(part, found.dtype),
            )
            assert function is not None
            unlimited = replace(function, limit=None)
            self._math[symbol] = write_math_function(self, unlimited, symbol, found.dtype)
