"""Gather the constant data of all functions in the module.

A = allocate_const([1, 2])   ->    module.attrs["constants"] = [[1, 2]]
                                   A = allocate_const([1, 2], index 0)
"""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AllocateConst, Stmt


class ConstantExtractor(Rewriter):
    """Numbers constants; equal ones share a number."""

    def __init__(self, constants: list[Any]) -> None:
        self.constants = constants
        self.numbers = {fingerprint(data): number for number, data in enumerate(constants)}

    def visit_allocate_const(self, alloc: AllocateConst) -> Stmt:
        alloc = self.rewrite_children(alloc)
        if alloc.data is None or alloc.irmod_storage_idx is not None:
            return alloc
        key = fingerprint(alloc.data)
        if key not in self.numbers:
            self.numbers[key] = len(self.constants)
            self.constants.append(alloc.data)
        return alloc.replace(irmod_storage_idx=const(self.numbers[key], "int32"))


def fingerprint(data: Any) -> tuple[Any, ...]:
    """What equal arrays have in common."""
    return (data.dtype, tuple(data.shape), data.numpy().tobytes())


def extract_constants(mod: IRModule, _: PassContext) -> IRModule:
    """Put constants into the attribute ``constants`` of the module."""
    before = list(mod.get_attr("constants") or ())
    extractor = ConstantExtractor(list(before))
    functions = {
        gvar: func.with_body(extractor.visit(func.body)) if isinstance(func, PrimFunc) else func
        for gvar, func in mod.functions.items()
    }
    result = mod.with_functions(functions)
    if len(extractor.constants) == len(before):
        return result
    return result.with_attr("constants", extractor.constants)


_EXTRACT_PRIM_FUNC_CONSTANTS = PassInfo(0, "tir.ExtractPrimFuncConstants")


def ExtractPrimFuncConstants() -> ModulePass:
    """The pass."""
    return ModulePass(extract_constants, _EXTRACT_PRIM_FUNC_CONSTANTS)
