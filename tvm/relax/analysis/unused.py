"""Bindings that nothing uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.ir.expr import RelayExpr
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
    Var,
    as_seq_expr,
)
from tvm.relax.purity import contains_impure_call, is_impure_call
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in
from tvm.support import deep

from .variables import used_vars


def _has_effect(binding: Binding) -> bool:
    """Whether a binding does something beside defining its variable."""
    value = binding.value
    if isinstance(binding, MatchCast):
        return True
    if isinstance(value, Call):
        return is_impure_call(value)
    return isinstance(value, (If, SeqExpr)) and contains_impure_call(value)


class _Remover:
    """Walks backwards: what is used is known when its definition is met."""

    def __init__(self, keeps_casts: bool) -> None:
        self.used: dict[Var, None] = {}
        self.symbols: dict[Any, None] = {}
        self.keeps_casts = keeps_casts

    def use(self, expr: RelayExpr) -> None:
        for var in used_vars(expr):
            self.used[var] = None
        for symbol in tir_vars_in(expr):
            self.symbols[symbol] = None

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        self.use(seq.body)
        blocks = [self.block(b) for b in seq.blocks[::-1]][::-1]
        blocks = [b for b in blocks if b.bindings]
        same = len(blocks) == len(seq.blocks) and all(
            [a is b for a, b in zip(blocks, seq.blocks, strict=True)]
        )
        if same:
            return seq
        made = SeqExpr(blocks, seq.body, seq.span)
        update_struct_info(made, seq.struct_info_)
        return made

    def block(self, block: BindingBlock) -> BindingBlock:
        kept: list[Binding] = []
        is_dataflow = isinstance(block, DataflowBlock)
        for binding in block.bindings[::-1]:
            if self.needs(binding, is_dataflow):
                kept.append(self.binding(binding))
        kept.reverse()
        if len(kept) == len(block.bindings) and all(
            [a is b for a, b in zip(kept, block.bindings, strict=True)]
        ):
            return block
        return type(block)(kept, block.span)

    def needs(self, binding: Binding, is_dataflow: bool) -> bool:
        if binding.var in self.used:
            return True
        if isinstance(binding, MatchCast):
            symbols = definable_tir_vars_in_struct_info(binding.struct_info)
            if any([s in self.symbols for s in symbols]):
                return True
            return not is_dataflow
        return (not is_dataflow and _has_effect(binding)) or (is_dataflow and _has_effect(binding))

    def binding(self, binding: Binding) -> Binding:
        value = binding.value
        if isinstance(binding, MatchCast):
            for symbol in tir_vars_in(binding.struct_info):
                self.symbols[symbol] = None
        if binding.var.struct_info_ is not None:
            for symbol in tir_vars_in(binding.var.struct_info_):
                self.symbols[symbol] = None
        new: Any = value
        if isinstance(value, If):
            first, second = self.sequence(value.true_branch), self.sequence(value.false_branch)
            self.use(value.cond)
            if first is not value.true_branch or second is not value.false_branch:
                new = If(value.cond, first, second, value.span)
                update_struct_info(new, value.struct_info_)
        elif isinstance(value, Function):
            new = self.function(value)
            self.use(new)
        elif isinstance(value, SeqExpr):
            new = self.sequence(value)
        else:
            self.use(value)
        return binding if new is value else binding.replace(value=new)

    def function(self, func: Function) -> Function:
        for symbol in tir_vars_in(func.ret_struct_info):
            self.symbols[symbol] = None
        if not func.has_body:
            return func
        body = self.sequence(func.body)
        return func if body is func.body else func.replace(body=body)


@deep
def remove_all_unused(func: Function | DataflowBlock) -> Any:
    """A function, or a block, without bindings whose variables nothing uses and that have no effect.

    The same function if there are none.
    """
    if isinstance(func, DataflowBlock):
        return without_unused(func, [b.var for b in func.bindings if type(b.var) is Var])
    return _Remover(keeps_casts=True).function(func)


def without_unused(block: DataflowBlock, outputs: Iterable[Var]) -> BindingBlock:
    """A block without bindings that nothing uses, if those variables are used outside."""
    remover = _Remover(keeps_casts=True)
    remover.used.update(dict.fromkeys(outputs))
    return remover.block(block)


__all__ = ["as_seq_expr", "remove_all_unused", "without_unused"]
