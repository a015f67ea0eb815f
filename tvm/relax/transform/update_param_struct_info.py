"""What is known of parameters is what a function says of them; the rest of the program follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.base import StructInfo
from tvm.relax.expr import Function, Var
from tvm.relax.expr_functor import ExprMutator

from .pass_kinds import relax_pass


class _Updater(ExprMutator):
    def __init__(self, mod: IRModule, info_of: Callable[[Var], StructInfo | None]) -> None:
        super().__init__(mod)
        self.info_of = info_of

    def visit_function_(self, op: Function) -> Any:
        params = []
        for param in op.params:
            info = self.info_of(param)
            new = param if info is None else self.with_struct_info(param, info)
            self.set_var_remap(param.vid, new)
            params.append(new)
        if all([a is b for a, b in zip(params, op.params, strict=True)]):
            return super().visit_function_(op)
        body = self.visit_with_new_scope(op.body, params)
        return Function(params, body, None, op.is_pure, op.attrs, op.span)


def UpdateParamStructInfo(sinfo_func: Callable[[Var], StructInfo | None]) -> Pass:
    """Change what is known of parameters.

    Parameters
    ----------
    sinfo_func : callable
        From a parameter to its new struct info, or None to leave it.
    """

    def run(func: Function, mod: IRModule) -> Function:
        found: Function = _Updater(mod, sinfo_func).visit_expr(func)
        return found

    return relax_pass("UpdateParamStructInfo", run)


__all__ = ["UpdateParamStructInfo"]
