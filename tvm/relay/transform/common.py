"""How passes over relay functions are declared.

    @relay_pass("FastMath", opt_level=4)
    def fast_math(func: Function, mod: IRModule, context: PassContext) -> Function: ...

    FastMath = fast_math.factory

A pass finds typed functions and leaves typed functions; what it did not touch is not inferred anew.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.module import IRModule
from tvm.ir.transform import FunctionPass as KernelFunctionPass
from tvm.ir.transform import Pass, PassContext, PassInfo, make_pass_decorator
from tvm.relay.function import Function
from tvm.relay.transform.infer_type import infer_types

Transform = Callable[[Function, IRModule, PassContext], Function]


class FunctionPass(KernelFunctionPass):
    """A pass that rewrites each relay function of a module, typed before and after."""

    def __init__(self, transform: Transform, info: PassInfo) -> None:
        super().__init__(_leaving_external(transform), info, Function)

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        return infer_types(super().run(infer_types(mod), context))


def _leaving_external(transform: Transform) -> Transform:
    """Functions for external compilers, or marked to be skipped, are left alone."""

    def run(func: Function, mod: IRModule, context: PassContext) -> Function:
        if func.attrs.get("Compiler") or func.attrs.get("SkipOptimization"):
            return func
        return transform(func, mod, context)

    return run


def map_relay_functions(mod: IRModule, rewrite: Callable[[Function], Function]) -> IRModule:
    """The module with its relay functions rewritten; loop programs stay."""
    return mod.map_functions(lambda _, func: rewrite(func) if isinstance(func, Function) else func)


class PassMaker:
    """A function on functions and the factory of the pass that applies it."""

    def __init__(self, transform: Transform, info: PassInfo) -> None:
        self.transform = transform
        self.info = info
        self._made: FunctionPass | None = None
        self.__doc__ = transform.__doc__

    def __call__(self, func: Function, mod: IRModule, context: PassContext) -> Function:
        return self.transform(func, mod, context)

    def factory(self) -> Pass:
        """The pass; always the same one, since it has no parameters.

        Returns
        -------
        Pass
        """
        if self._made is None:
            self._made = FunctionPass(self.transform, self.info)
        return self._made


def relay_pass(name: str, opt_level: int) -> Callable[[Transform], PassMaker]:
    """Declare a pass over relay functions that has no parameters."""
    return lambda transform: PassMaker(transform, PassInfo(opt_level, name))


function_pass = make_pass_decorator(
    "function_pass", FunctionPass, "transform_function", "f(func, mod, ctx) -> func"
)
