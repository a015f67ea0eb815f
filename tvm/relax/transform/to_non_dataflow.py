"""Dataflow blocks become plain ones, and their variables variables of the function.

with dataflow:                     lv = add(x, x)
    lv = add(x, x)           ->    gv = exp(lv)
    gv = exp(lv); output(gv)
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    Var,
    VarBinding,
)

from .binding_rewriter import BindingRewriter, function_pass


class _PlainBlocks(BindingRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.plain: dict[Var, Var] = {}

    def block(self, block: BindingBlock) -> BindingBlock:
        new = super().block(block)
        return BindingBlock(new.bindings) if isinstance(new, DataflowBlock) else new

    def put(self, binding: Binding) -> None:
        var = binding.var
        if type(var) is DataflowVar:
            self.plain[var] = plain = Var(var.vid, var.struct_info_)
            if isinstance(binding, MatchCast):
                binding = MatchCast(plain, binding.value, binding.struct_info)
            else:
                binding = VarBinding(plain, binding.value)
        super().put(binding)

    def argument(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            fields = [self.argument(field) for field in arg.fields]
            is_same = all([a is b for a, b in zip(fields, arg.fields, strict=True)])
            return arg if is_same else Tuple(fields)
        return self.plain.get(arg, arg) if isinstance(arg, Var) else arg


def to_non_dataflow(func: Function, mod: IRModule) -> Function:
    """The function with plain blocks alone."""
    return _PlainBlocks(mod).function(func)


def ToNonDataflow() -> Pass:
    """Make dataflow blocks plain ones."""
    return function_pass("ToNonDataflow", to_non_dataflow)
