"""Bindings of variables to variables, of tuples that are taken apart, and of checks that must hold, go away.

y = x; z = add(y, y)    ->    z = add(x, x)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.analysis.variables import used_vars
from tvm.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import TupleStructInfo

from .pass_kinds import relax_pass


class _Canonicalizer(ExprMutator):
    """Puts the values of trivial bindings in the place of their variables."""

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__(mod)
        self.same: dict[Any, Var] = {}  # id of a variable: what it is the same as
        self.of_block: set[Any] = set()  # ids of the variables that only the block at hand sees

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        before = self.of_block
        self.of_block = {b.var.vid for b in block.bindings if isinstance(b.var, DataflowVar)}
        found = super().visit_dataflow_block_(block)
        self.of_block = before
        return found

    def visit_var_(self, op: Var) -> Any:
        new = super().visit_var_(op)
        return self.same.get(new.vid, new)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        item = super().visit_tuple_getitem_(op)
        value = item.tuple_value
        while isinstance(value, Var):
            bound = self.lookup_binding(value)
            if bound is None:
                break
            value = bound
        if isinstance(value, Tuple):
            field = value.fields[item.index]
            if isinstance(field, DataflowVar) and field.vid not in self.of_block:
                return item
            if isinstance(field, (Var, Constant, PrimValue, ShapeExpr)):
                return field
        return item

    def visit_tuple_(self, op: Tuple) -> Any:
        made = super().visit_tuple_(op)
        whole = self._taken_apart(made)
        return made if whole is None else whole

    def _taken_apart(self, value: Tuple) -> Var | None:
        """The tuple whose fields these are, in their order."""
        if not value.fields:
            return None
        source: Var | None = None
        for i, field in enumerate(value.fields):
            bound = self.lookup_binding(field) if isinstance(field, Var) else None
            if not isinstance(bound, TupleGetItem) or bound.index != i:
                return None
            if not isinstance(bound.tuple_value, Var) or source not in (None, bound.tuple_value):
                return None
            source = bound.tuple_value
        info = None if source is None else source.struct_info_
        is_whole = isinstance(info, TupleStructInfo) and len(info.fields) == len(value.fields)
        return source if is_whole else None

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Var) and self._may_stand_for(binding.var, value):
            self.same[binding.var.vid] = value
            return
        self.reemit_binding(binding, value)

    def _may_stand_for(self, var: Var, value: Var) -> bool:
        if type(value) is DataflowVar and type(var) is not DataflowVar:
            return False
        return value.struct_info_ == var.struct_info_

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Var) and value.struct_info_ == binding.struct_info:
            if self._may_stand_for(binding.var, value):
                self.same[binding.var.vid] = value
                return
        super().visit_match_cast_(binding)


class _FromTheEnd(ExprMutator, ABC):
    """Changes dataflow blocks from the last to the first, knowing the variables used behind each."""

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        used_after: dict[Var, None] = dict.fromkeys(used_vars(op.body))
        blocks: list[BindingBlock] = []
        for block in op.blocks[::-1]:
            if isinstance(block, DataflowBlock):
                block = self._renamed(block, used_after)
            for binding in block.bindings:
                for var in used_vars(binding.value):
                    used_after[var] = None
            blocks.append(block)
        blocks.reverse()
        same = all([a is b for a, b in zip(blocks, op.blocks, strict=True)])
        return super().visit_seq_expr_(op if same else SeqExpr(blocks, op.body, op.span))

    @abstractmethod
    def _renamed(self, block: DataflowBlock, used_after: dict[Var, None]) -> DataflowBlock:
        """The block with other variables; `used_after` are read behind it."""


class _Outputs(_FromTheEnd):
    """Variables of dataflow blocks that nothing uses outside become their own.

    with dataflow: lv = f(x); gv = lv; output(gv)    ->    gv = f(x)
    """

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.func = func

    def _renamed(self, block: DataflowBlock, used_after: dict[Var, None]) -> DataflowBlock:
        """Let the value of an output be bound to it at once, if it is bound to a variable of the block."""
        own = {b.var: i for i, b in enumerate(block.bindings) if isinstance(b.var, DataflowVar)}
        bindings = list(block.bindings)
        dropped: dict[int, None] = {}
        renamed: dict[Var, Var] = {}
        for i, binding in enumerate(block.bindings):
            value = binding.value
            is_alias = isinstance(binding, VarBinding) and isinstance(value, DataflowVar)
            if is_alias and type(binding.var) is Var and value in own and value not in renamed:
                if value.struct_info_ == binding.var.struct_info_:
                    renamed[value] = binding.var
                    dropped[i] = None
        if not renamed:
            return block
        new = []
        for i, binding in enumerate(bindings):
            if i in dropped:
                continue
            var = renamed.get(binding.var, binding.var)
            new.append(binding if var is binding.var else binding.replace(var=var))
        for old, var in renamed.items():
            self.set_var_remap(old.vid, var)
        return DataflowBlock(new, block.span)


class _LocalVars(_FromTheEnd):
    """Variables of dataflow blocks that only their block uses are its own."""

    def _renamed(self, block: DataflowBlock, used_after: dict[Var, None]) -> DataflowBlock:
        bindings = []
        for binding in block.bindings:
            var = binding.var
            if type(var) is Var and var not in used_after:
                new = DataflowVar(var.vid, var.struct_info_)
                self.set_var_remap(var.vid, new)
                binding = binding.replace(var=new)
            bindings.append(binding)
        same = all([a is b for a, b in zip(bindings, block.bindings, strict=True)])
        return block if same else DataflowBlock(bindings, block.span)


def canonicalize(func: Function, mod: IRModule) -> Function:
    """The function without trivial bindings."""
    new: Function = _Canonicalizer(mod).visit_expr(func)
    new = _Outputs(func).visit_expr(new)
    new = _LocalVars().visit_expr(new)
    if new is func:
        return func
    found: Function = remove_all_unused(new)
    return found


def CanonicalizeBindings() -> Pass:
    """Let variables stand for what they are bound to, if that is another variable."""
    return relax_pass("CanonicalizeBindings", canonicalize, 1)


__all__ = ["CanonicalizeBindings", "Call", "RelayExpr", "canonicalize"]
