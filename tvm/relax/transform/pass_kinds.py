"""Passes over functions and dataflow blocks of relax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import FunctionPass as FunctionsOfKind
from tvm.ir.transform import ModulePass, Pass, PassInfo, make_pass_decorator
from tvm.relax.expr import BindingBlock, DataflowBlock, Function
from tvm.relax.expr_functor import ExprMutator
from tvm.support import deep


class FunctionPass(FunctionsOfKind):
    """A pass over each function of relax."""


class DataflowBlockPass(ModulePass):
    """A pass over each dataflow block."""


function_pass = make_pass_decorator(
    "function_pass",
    lambda transform, info: FunctionPass(transform, info, Function),
    "transform_function",
    "f(func, mod, ctx) -> func",
)


class _Blocks(ExprMutator):
    def __init__(self, mod: IRModule, transform: Callable[[DataflowBlock], DataflowBlock]) -> None:
        super().__init__(mod)
        self.transform = transform

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        new = super().visit_dataflow_block_(block)
        found = self.transform(new) if isinstance(new, DataflowBlock) else new
        for binding in found.bindings:
            self.builder_._values[binding.var.vid] = binding.value
        return found


def _block_pass(transform: Any, info: PassInfo) -> DataflowBlockPass:
    @deep
    def run(mod: IRModule, context: Any) -> IRModule:
        def rewritten(_: Any, func: Any) -> Any:
            if not isinstance(func, Function):
                return func
            return _Blocks(mod, lambda block: transform(block, mod, context)).visit_expr(func)

        return mod.map_functions(rewritten)

    return DataflowBlockPass(run, info)


dataflowblock_pass = make_pass_decorator(
    "dataflowblock_pass", _block_pass, "transform_dataflowblock", "f(block, mod, ctx) -> block"
)


def relax_pass(
    name: str, rewrite: Callable[[Function, IRModule], Function], opt_level: int = 0
) -> Pass:
    """The package's own pass over functions."""

    @deep
    def run(func: Function, mod: IRModule, context: Any) -> Function:
        return rewrite(func, mod)

    return FunctionPass(run, PassInfo(opt_level, name, ()), Function)


def whole_module_pass(
    name: str, rewrite: Callable[[IRModule], IRModule], opt_level: int = 0
) -> Pass:
    """The package's own pass over modules."""

    @deep
    def run(mod: IRModule, context: Any) -> IRModule:
        return rewrite(mod)

    return ModulePass(run, PassInfo(opt_level, name, ()))
