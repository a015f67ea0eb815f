"""Private functions do not return what none of their callers reads.

def f(): return (a, b)                   def f(): return a
t = f(); y = add(t[0], t[0])    ->       t = f(); y = add(t, t)
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.analysis.variables import used_vars
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    BindingBlock,
    Call,
    DataflowVar,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.struct_info import TupleStructInfo

from .pass_kinds import whole_module_pass


class _Uses(ExprVisitor):
    """Which fields of the results of functions are read."""

    def __init__(self, sizes: dict[GlobalVar, int]) -> None:
        self.sizes = sizes
        self.fields: dict[GlobalVar, dict[int, None]] = {g: {} for g in sizes}
        self.results: dict[Var, GlobalVar] = {}

    def all_of(self, gvar: GlobalVar) -> None:
        if gvar in self.sizes:
            self.fields[gvar] = dict.fromkeys(range(self.sizes[gvar]))

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, GlobalVar) and value.op in self.sizes:
            self.results[binding.var] = value.op
            for arg in value.args:
                self.visit_expr(arg)
            return
        super().visit_var_binding_(binding)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        whole = op.tuple_value
        gvar = self.results.get(whole) if isinstance(whole, Var) else None
        if gvar is None:
            super().visit_tuple_getitem_(op)
        else:
            self.fields[gvar][op.index] = None

    def visit_var_(self, op: Var) -> None:
        if (gvar := self.results.get(op)) is not None:
            self.all_of(gvar)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.all_of(op)


def _without_outputs(func: Function, kept: list[int]) -> Function:
    """The function that returns some fields of its result, or one of them."""
    values = {b.var: b.value for block in func.body.blocks for b in block.bindings}
    result: Any = func.body.body
    bindings: list[VarBinding] = []
    while isinstance(result, Var) and isinstance(values.get(result), (Var, Tuple)):
        result = values[result]
    if isinstance(result, Tuple) and all([_is_visible(v) for v in used_vars(result)]):
        fields = [result.fields[i] for i in kept]
    else:
        bindings = [VarBinding(Var("output"), TupleGetItem(func.body.body, i)) for i in kept]
        fields = [b.var for b in bindings]
    body = fields[0] if len(fields) == 1 else Tuple(fields)
    seq = SeqExpr([*func.body.blocks, BindingBlock(bindings)], body)
    builder = BlockBuilder()
    builder.begin_scope(func.params)
    made = builder.normalize(seq)
    builder.end_scope()
    found: Function = remove_all_unused(
        Function(func.params, made, made.struct_info, func.is_pure, func.attrs, func.span)
    )
    return found


def _is_visible(var: Var) -> bool:
    return not isinstance(var, DataflowVar)


class _Callers(ExprMutator):
    """Reads the fields where they are now."""

    def __init__(self, mod: IRModule, kept: dict[GlobalVar, list[int]]) -> None:
        super().__init__(mod)
        self.kept = kept
        self.results: dict[Any, list[int]] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, GlobalVar) and value.op in self.kept:
            self.results[binding.var.vid] = self.kept[value.op]
            value = Call(value.op, value.args, value.attrs, value.sinfo_args, value.span)
            self.reemit_binding(binding, self.builder_.normalize(super().visit_call_(value)))
            return
        new = self.visit_expr(value)
        is_alias = isinstance(new, Var) and isinstance(value, TupleGetItem)
        if is_alias and (isinstance(binding.var, DataflowVar) or not isinstance(new, DataflowVar)):
            self.set_var_remap(binding.var.vid, new)
            return
        self.reemit_binding(binding, new)

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        is_changed = isinstance(call.op, GlobalVar) and call.op in self.kept
        return Call(call.op, call.args, call.attrs, call.sinfo_args) if is_changed else call

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        whole = op.tuple_value
        kept = self.results.get(whole.vid) if isinstance(whole, Var) else None
        if kept is None:
            return super().visit_tuple_getitem_(op)
        var = self.visit_expr(whole)
        return var if len(kept) == 1 else TupleGetItem(var, kept.index(op.index))


def remove_unused_outputs(mod: IRModule) -> IRModule:
    """The module whose private functions return what is read."""
    functions = relax_functions(mod)
    sizes = {
        g: len(f.ret_struct_info.fields)
        for g, f in functions.items()
        if "global_symbol" not in f.attrs and isinstance(f.ret_struct_info, TupleStructInfo)
    }
    uses = _Uses(sizes)
    for func in functions.values():
        uses.visit_expr(func)
    kept = {g: sorted(f) for g, f in uses.fields.items() if f and len(f) < sizes[g]}
    if not kept:
        return mod
    new = {g: _without_outputs(functions[g], fields) for g, fields in kept.items()}
    for gvar, func in new.items():
        gvar.struct_info_ = func.struct_info_
    changed = mod.with_functions({g: new.get(g, f) for g, f in mod.functions.items()})
    return changed.map_functions(
        lambda _, f: _Callers(changed, kept).visit_expr(f) if isinstance(f, Function) else f
    )


def RemoveUnusedOutputs() -> Pass:
    """Let private functions return only what their callers read."""
    return whole_module_pass("RemoveUnusedOutputs", remove_unused_outputs)


__all__ = ["RemoveUnusedOutputs"]
