"""Calls that promise to be pure become plain ones, in functions that are pure by their word.

y = call_pure_packed("f", x, ...)     ->     y = "f"(x, ...)
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.expr import Call, Function, Var

from .binding_rewriter import BindingRewriter, function_pass


class _PlainCalls(BindingRewriter):
    def value(self, value: RelayExpr, var: Var) -> RelayExpr:
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return value
        match value.op.name:
            case "relax.call_pure_packed" | "relax.call_inplace_packed":
                plain = Call(value.args[0], value.args[1:], None, value.sinfo_args)
            case "relax.invoke_pure_closure":
                plain = Call(Op.get("relax.invoke_closure"), value.args, None, value.sinfo_args)
            case _:
                return value
        update_struct_info(plain, value.struct_info_)
        return plain

    def function(self, func: Function) -> Function:
        new = super().function(func)
        return new.with_attr("relax.force_pure", True) if func.is_pure else new


def remove_purity_checking(func: Function, mod: IRModule) -> Function:
    """The function with plain calls."""
    return _PlainCalls(mod).function(func)


def RemovePurityChecking() -> Pass:
    """Make calls that promise to be pure plain ones, and mark pure functions as such by their word."""
    return function_pass("RemovePurityChecking", remove_purity_checking)
