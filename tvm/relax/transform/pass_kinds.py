"""Passes over functions and dataflow blocks of relax."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of a function, or of a class with ``transform_function``.

    Parameters
    ----------
    pass_func : callable or class, optional
        ``f(func, mod, ctx) -> func``; without it, a decorator is returned.
    opt_level : int
        The level from which on the pass runs.
    name : str, optional
        The function's name by default.
    required : list of str, optional
        Names of passes to run before.
    """
    return make_pass_decorator(
        lambda transform, info: FunctionPass(transform, info, Function), "transform_function"
    )(pass_func, opt_level, name, required, traceable)


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


def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of a function, or of a class with ``transform_dataflowblock``.

    Parameters
    ----------
    pass_func : callable or class, optional
        ``f(block, mod, ctx) -> block``; without it, a decorator is returned.
    opt_level : int
        The level from which on the pass runs.
    name : str, optional
        The function's name by default.
    required : list of str, optional
        Names of passes to run before.
    """
    return make_pass_decorator(_block_pass, "transform_dataflowblock")(
        pass_func, opt_level, name, required, traceable
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
