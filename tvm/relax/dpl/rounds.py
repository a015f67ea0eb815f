"""A function is rewritten in rounds, each of which is simplified, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.replace_global_vars import GlobalVarReplacer
from tvm.ir.structural import structural_equal
from tvm.relax.analysis.order import definitions_first
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.analysis.variables import all_global_vars
from tvm.relax.base import update_struct_info
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    If,
    SeqExpr,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.purity import is_impure_call
from tvm.relax.transform.canonicalize_bindings import canonicalize
from tvm.relax.transform.common_subexpr import eliminate_common_subexpr

_MOST_ROUNDS = 1000
Find = Callable[[Sequence[Binding]], Any]


class Rewriting:
    """Rewrites functions of one module.

    Parameters
    ----------
    find : what becomes of the bindings between two side effects.
    mod : the module, None if there is none.
    """

    def __init__(self, find: Find, mod: IRModule | None) -> None:
        self.find = find
        self.mod = mod
        # functions that new values call, and the names that they have in this module
        self.introduced: dict[GlobalVar, Function] = {}
        self.names: dict[GlobalVar, GlobalVar] = {}

    def rewrite(self, func: Function) -> Function:
        """A function with what `find` says of its bindings."""
        for _ in range(_MOST_ROUNDS):
            turn = _Round(self.find)
            new = turn.function(func)
            if new is func:
                return func
            new = self._introduce(new, turn.functions)
            new = _simplified(_normalized(new, self.mod), self.mod)
            if structural_equal(new, func):
                return func
            func = new
        raise TVMError(
            f"rewriting a function did not come to an end in {_MOST_ROUNDS} rounds", at=func
        )

    def _introduce(self, func: Function, functions: Mapping[GlobalVar, Function]) -> Function:
        """The function, calling functions under names that are free in the module."""
        pending = [g for g in all_global_vars(func) if g in functions]
        if not pending:
            return func
        added: list[GlobalVar] = []
        while pending:
            gvar = pending.pop(0)
            if gvar not in self.names:
                self.names[gvar] = self._named(gvar, functions[gvar])
                added.append(gvar)
                pending += [g for g in all_global_vars(functions[gvar]) if g in functions]
        renamer = GlobalVarReplacer(self.names)
        for gvar in added:
            self.introduced[self.names[gvar]] = renamer.visit(functions[gvar])
        found: Function = renamer.visit(func)
        return found

    def _named(self, gvar: GlobalVar, func: Function) -> GlobalVar:
        taken = {g.name_hint for g in (*(self.mod.functions if self.mod else ()), *self.introduced)}
        taken |= {g.name_hint for g in self.names.values()}
        name, number = gvar.name_hint, 0
        while name in taken:
            number += 1
            name = f"{gvar.name_hint}_{number}"
        made = GlobalVar(name)
        update_struct_info(made, func.struct_info)
        return made


def _normalized(func: Function, mod: IRModule | None) -> Function:
    """The function in normal form, its variables as their new values say."""
    new: Function = _Retyper(mod).visit_expr(BlockBuilder(mod).normalize(func))
    result = new.body.struct_info
    if not new.ret_struct_info.is_base_of(result):
        new = Function(new.params, new.body, result, new.is_pure, new.attrs, new.span)
    return new


class _Retyper(ExprMutator):
    """Gives variables the struct info of their values."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        if value is binding.value and var is binding.var:
            var = self.with_struct_info(var, value.struct_info)
            if var is not binding.var:
                self._remap[binding.var.vid] = var
                binding = VarBinding(var, value, binding.span)
            self.builder_.emit_normalized(binding)
            return
        self.reemit_binding(binding, value)


def _simplified(func: Function, mod: IRModule | None) -> Function:
    module = mod if mod is not None else IRModule()
    while True:
        new = canonicalize(func, module)
        new = remove_all_unused(eliminate_common_subexpr(new, module))
        if new is func or structural_equal(new, func):
            return func
        func = new


class _Round:
    """One walk over a function."""

    def __init__(self, find: Find) -> None:
        self.find = find
        self.functions: dict[GlobalVar, Function] = {}  # those that new values may call

    def function(self, func: Function) -> Function:
        body = self.sequence(func.body)
        return func if body is func.body else func.replace(body=body)

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        blocks = list(seq.blocks)
        result: Any = None
        if not isinstance(seq.body, Var):  # it may match too
            result = VarBinding(Var("result", seq.body.struct_info), seq.body)
            is_open = bool(blocks) and not isinstance(blocks[-1], DataflowBlock)
            last = blocks.pop().bindings if is_open else ()
            blocks.append(BindingBlock([*last, result]))
        new = [self.block(block) for block in blocks]
        if all([a is b for a, b in zip(new, blocks, strict=True)]):
            return seq
        if result is None:
            return SeqExpr(new, seq.body, seq.span)
        *rest, last_binding = new[-1].bindings
        if last_binding is result:
            return SeqExpr([*new[:-1], BindingBlock(rest)], seq.body, seq.span)
        return SeqExpr(new, result.var, seq.span)

    def block(self, block: BindingBlock) -> BindingBlock:
        if isinstance(block, DataflowBlock):
            bindings = self.window(block.bindings)
        else:
            bindings = self.windows(block.bindings)
        same = len(bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(bindings, block.bindings, strict=True)]
        )
        return block if same else block.replace(bindings=tuple(bindings))

    def windows(self, bindings: Sequence[Binding]) -> list[Binding]:
        """Bindings of a block that may have side effects, across which nothing moves."""
        found: list[Binding] = []
        window: list[Binding] = []
        for binding in bindings:
            value = binding.value
            is_impure = isinstance(value, Call) and is_impure_call(value)
            if not is_impure and not isinstance(value, (If, Function)):
                window.append(binding)
                continue
            found += [*self.window(window), self.nested(binding)]
            window = []
        return [*found, *self.window(window)]

    def nested(self, binding: Binding) -> Binding:
        """A binding whose value has blocks of its own."""
        value: Any = binding.value
        new: Any = value
        if isinstance(value, Function):
            new = self.function(value)
        elif isinstance(value, If):
            first, second = self.sequence(value.true_branch), self.sequence(value.false_branch)
            if first is not value.true_branch or second is not value.false_branch:
                new = If(value.cond, first, second, value.span)
        return binding if new is value else binding.replace(value=new)

    def window(self, bindings: Sequence[Binding]) -> list[Binding]:
        rewrites = self.find(bindings) if bindings else None
        if rewrites is None or not rewrites.variables:
            return list(bindings)
        self.functions.update(rewrites.functions)
        values = dict(rewrites.values)
        found: list[Binding] = []
        for variables, new in rewrites.tuples:
            whole = Var("whole", new.struct_info_)
            values.update({var: TupleGetItem(whole, i) for i, var in enumerate(variables)})
            found += flattened(VarBinding(whole, new))
        for binding in bindings:
            new_value = values.get(binding.var)
            if new_value is None:
                found.append(binding)
            else:
                found += flattened(binding.replace(value=new_value))
        return definitions_first(found)


def flattened(binding: Binding) -> list[Binding]:
    """A binding, after those of its value."""
    value: RelayExpr = binding.value
    found: list[Binding] = []
    while isinstance(value, SeqExpr):
        found += [b for block in value.blocks for b in block.bindings]
        value = value.body
    return [*found, binding if value is binding.value else binding.replace(value=value)]
