"""Composite functions of one compiler that use each other's results become one function for it.

lv = fused_conv2d_relu(x, w)               @Codegen = "dnnl"
gv = fused_conv2d_relu(lv, v)        ->    fused_conv2d_relu_conv2d_relu_dnnl(x, w, v):
                                               def lv(..): ..        # Composite
                                               lv1 = lv(x, w); ..
                                           gv = fused_conv2d_relu_conv2d_relu_dnnl(x, w, v)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.replace_global_vars import GlobalVarReplacer
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import used_vars
from tvm.relax.base import update_struct_info
from tvm.relax.bind import copy_with_new_vars
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowVar,
    Function,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator

from .dead_code import called_functions
from .fuse_ops import Grouper, rewrite_with
from .fuse_ops_by_pattern import codegen_of
from .pass_kinds import whole_module_pass


class _Group:
    """Bindings that go into one function; those of no compiler stay alone."""

    def __init__(self, codegen: str | None) -> None:
        self.codegen = codegen
        self.members: list[int] = []
        self.needs: dict[_Group, None] = {}  # groups that it is computed from, however far


def _codegen(value: RelayExpr, mod: IRModule) -> str | None:
    """The compiler of the composite function that is called."""
    func = composite_called(value, mod)
    return None if func is None else codegen_of(str(func.attrs["Composite"]))


def composite_called(value: RelayExpr, mod: IRModule) -> Function | None:
    """The composite function that is called, if one is."""
    if not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
        return None
    func = mod.functions.get(value.op)
    return func if isinstance(func, Function) and "Composite" in func.attrs else None


def groups_of(bindings: Sequence[Binding], mod: IRModule) -> list[_Group]:
    """The groups of a block's bindings, none of which depends on itself."""
    group_of: dict[Var, _Group] = {}
    groups: list[_Group] = []
    for index, binding in enumerate(bindings):
        codegen = _codegen(binding.value, mod)
        sources = [group_of[v] for v in used_vars(binding.value) if v in group_of]
        sources = list(dict.fromkeys(sources))
        joined = [
            g
            for g in sources
            if codegen is not None
            and g.codegen == codegen
            and not any([g in other.needs for other in sources])
        ]
        group = joined[0] if joined else _Group(codegen)
        if not joined:
            groups.append(group)
        group.members.append(index)
        group_of[binding.var] = group
        for source in sources:
            if source not in joined:
                group.needs.update({source: None, **source.needs})
        for other in joined[1:]:
            _join(group, other, groups)
            group_of.update({v: group for v, g in group_of.items() if g is other})
        # what is computed from a part is computed from all that the whole is
        for later in groups:
            if group in later.needs:
                later.needs.update(group.needs)
    return groups


def _join(group: _Group, other: _Group, groups: list[_Group]) -> None:
    group.members = sorted([*group.members, *other.members])
    group.needs.update(other.needs)
    groups.remove(other)
    for later in groups:
        if other in later.needs:
            later.needs = {(group if g is other else g): None for g in later.needs}


class _Merger(Grouper):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod, {})
        self.codegens: dict[Var, str] = {}

    def groups(self, block: BindingBlock) -> list[list[int]]:
        found = [g for g in groups_of(block.bindings, self.mod) if g.codegen is not None]
        for group in found:
            assert group.codegen is not None
            self.codegens[block.bindings[group.members[-1]].var] = group.codegen
        return [group.members for group in found]

    def attrs_of(self, bindings: list[Binding]) -> tuple[str, dict[str, Any]]:
        name, _ = super().attrs_of(bindings)
        return name, {"Codegen": self.codegens[bindings[-1].var]}


class _Inliner(ExprMutator):
    """Puts the composite functions that a function calls into it."""

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if (func := composite_called(op, self.builder_.get())) is None:
            return call
        name = self.builder_.get_unique_name("lv")
        var = DataflowVar(name, func.struct_info)
        self.builder_.emit_normalized(
            VarBinding(var, copy_with_new_vars(func.without_attr("Primitive")))
        )
        return Call(var, call.args, call.attrs, call.sinfo_args, call.span)


def merge_composite_functions(mod: IRModule) -> IRModule:
    """The module with composite functions in functions for their compilers."""
    known = dict.fromkeys(mod.functions)
    merged = rewrite_with(_Merger(mod), mod)
    names: dict[GlobalVar, GlobalVar] = {}
    functions: dict[GlobalVar, Any] = {}
    for gvar, func in merged.functions.items():
        if gvar in known or not isinstance(func, Function):
            functions[gvar] = func
            continue
        name = f"{gvar.name_hint}_{func.attrs['Codegen']}"
        new: Function = _Inliner(merged).visit_expr(func)
        names[gvar] = GlobalVar(name)
        update_struct_info(names[gvar], new.struct_info)
        functions[names[gvar]] = new.with_attr("global_symbol", name)
    if not names:
        return mod
    renamer = GlobalVarReplacer(names)
    functions = {
        g: renamer.visit(f) if isinstance(f, Function) else f for g, f in functions.items()
    }
    return _without_unused_composites(mod.with_functions(functions))


def _without_unused_composites(mod: IRModule) -> IRModule:
    called = [g for f in relax_functions(mod).values() for g in called_functions(f)]
    used = dict.fromkeys(called)
    return mod.with_functions(
        {g: f for g, f in mod.functions.items() if g in used or "Composite" not in f.attrs}
    )


def MergeCompositeFunctions() -> Pass:
    """Move composite functions of the same compiler into functions with the attribute ``Codegen``.

    Those that use each other's results share one, if nothing outside is between them.
    """
    return whole_module_pass("MergeCompositeFunctions", merge_composite_functions)
