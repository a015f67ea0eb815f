"""Storages, tensors and other values are let go of after their last use, so that memory is free.

y = memory.alloc_tensor(storage, ...)        y = memory.alloc_tensor(storage, ...)
f(x, y)                                ->    memory.kill_storage(storage)
z = g(y)                                     f(x, y)
return z                                     z = g(y)
                                             memory.kill_tensor(y)
                                             return z

Variables bound to variables are those themselves, and a check gives what it checks.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.struct_info import TensorStructInfo

from .binding_rewriter import VOID, BindingRewriter, function_pass, op_call


def variables(expr: Any) -> list[Var]:
    """The variables that the value of a binding reads, those of branches too."""
    if isinstance(expr, Var):
        return [expr]
    if isinstance(expr, Tuple):
        return [var for field in expr.fields for var in variables(field)]
    if isinstance(expr, TupleGetItem):
        return variables(expr.tuple_value)
    if isinstance(expr, Call):
        return [*variables(expr.op), *[var for arg in expr.args for var in variables(arg)]]
    if isinstance(expr, If):
        branches = [*variables(expr.true_branch), *variables(expr.false_branch)]
        return [*variables(expr.cond), *branches]
    if isinstance(expr, SeqExpr):
        values = [binding.value for block in expr.blocks for binding in block.bindings]
        return [var for value in [*values, expr.body] for var in variables(value)]
    if isinstance(expr, Function):
        return variables(expr.body)
    return []


class _Aliases(BindingRewriter):
    """Variables bound to variables are replaced by them."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.known: dict[Var, RelayExpr] = {}

    def argument(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            fields = [self.argument(field) for field in arg.fields]
            is_same = all([a is b for a, b in zip(fields, arg.fields, strict=True)])
            return arg if is_same else Tuple(fields)
        return self.known.get(arg, arg) if isinstance(arg, Var) else arg

    def value(self, value: RelayExpr, var: Var) -> RelayExpr | None:
        if type(value) is Var and type(var) is Var:
            self.known[var] = self.argument(value)
            return None
        return self.with_arguments(value)


class _Killer(BindingRewriter):
    def sequence(self, seq: SeqExpr) -> SeqExpr:
        bindings = [binding for block in seq.blocks for binding in block.bindings]
        last: dict[Var, Binding | None] = {}
        same: dict[Var, Var] = {}  # variables that are checked, by those of the checks
        for binding in bindings:
            if isinstance(binding, MatchCast) and isinstance(binding.value, Var):
                same[binding.var] = same.get(binding.value, binding.value)
            else:
                last[binding.var] = binding
            for var in variables(binding.value):
                if (owner := same.get(var, var)) in last:  # others are of an outer sequence
                    last[owner] = binding
        for var in variables(seq.body):
            last[same.get(var, var)] = None
        # what is part of the value of a binding lives as long as that is used
        dying: dict[int, list[Var]] = {}
        for var, at in last.items():
            if at is not None and at.var is not var:
                dying.setdefault(id(at), []).append(var)
        makers = {binding.var: binding.value for binding in bindings}
        blocks = [self._block(block, dying, makers) for block in seq.blocks]
        if all([a is b for a, b in zip(blocks, seq.blocks, strict=True)]):
            return seq
        made = SeqExpr(blocks, seq.body)
        update_struct_info(made, seq.struct_info_)
        return made

    def _block(
        self, block: BindingBlock, dying: dict[int, list[Var]], makers: dict[Var, Any]
    ) -> BindingBlock:
        if isinstance(block, DataflowBlock):
            return block
        outer, self._bindings = self._bindings, []
        for binding in block.bindings:
            if isinstance(binding, VarBinding) and isinstance(binding.value, If):
                self.binding(binding)
            else:
                self.put(binding)
            for var in dying.get(id(binding), ()):
                if (name := _killer(makers.get(var))) is not None and not _is_part(binding, var):
                    self.emit(op_call(name, var, info=VOID))
        bindings, self._bindings = self._bindings, outer
        if len(bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(bindings, block.bindings, strict=True)]
        ):
            return block
        return BindingBlock(bindings)


def _is_part(binding: Binding, var: Var) -> bool:
    """Whether a binding hands a variable on, rather than using it."""
    return isinstance(binding, VarBinding) and isinstance(binding.value, (Var, Tuple, If))


def _killer(maker: Any) -> str | None:
    """The operator that lets go of what a value is."""
    if maker is None:
        return None
    if isinstance(maker, Call) and maker.op is Op.get("relax.memory.alloc_storage"):
        return "relax.memory.kill_storage"
    if isinstance(maker.struct_info_, TensorStructInfo):
        return "relax.memory.kill_tensor"
    return None if isinstance(maker, (Var, Tuple)) else "relax.vm.kill_object"


def kill_after_last_use(func: Function, mod: IRModule) -> Function:
    """The function that lets go of its values."""
    return _Killer(mod).function(_Aliases(mod).function(func))


def KillAfterLastUse() -> Pass:
    """Let go of values after their last use."""
    return function_pass("KillAfterLastUse", kill_after_last_use)


__all__ = ["KillAfterLastUse", "kill_after_last_use", "variables"]
