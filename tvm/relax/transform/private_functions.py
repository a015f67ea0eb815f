"""Signatures of private functions: tuples in parts, without what nobody uses; or their bodies in the callers."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.calls import detect_recursion
from tvm.relax.analysis.variables import used_vars
from tvm.relax.bind import inline_functions, match_symbols, substituted
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    BindingBlock,
    Call,
    Function,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.struct_info import PrimStructInfo, TupleStructInfo
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in
from tvm.tir.stmt_functor import substitute

from .dead_code import remove_unused_functions
from .pass_kinds import whole_module_pass


def _is_private(func: Function) -> bool:
    return "global_symbol" not in func.attrs


class _Calls(ExprMutator):
    """Rewrites calls of functions by what a rule says of their arguments."""

    def __init__(self, mod: IRModule, rules: dict[GlobalVar, Any]) -> None:
        super().__init__(mod)
        self.rules = rules

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        rule = self.rules.get(call.op) if isinstance(call.op, GlobalVar) else None
        return call if rule is None else rule(self.builder_, call)


class _Passed(ExprVisitor):
    """The global functions that are named elsewhere than as callees."""

    def __init__(self) -> None:
        self.found: dict[GlobalVar, None] = {}

    def visit_call_(self, op: Call) -> None:
        if not isinstance(op.op, GlobalVar):
            self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.found[op] = None


def _with_known_callers(mod: IRModule) -> list[tuple[GlobalVar, Function]]:
    """The functions all of whose uses are calls in the module, so that their parameters may change."""
    passed, functions = _Passed(), relax_functions(mod)
    for func in functions.values():
        passed.visit_expr(func)
    return [(g, f) for g, f in functions.items() if _is_private(f) and g not in passed.found]


def _rewritten(
    mod: IRModule, functions: dict[GlobalVar, Function], rules: dict[GlobalVar, Any]
) -> IRModule:
    """The module with new functions, and their calls by the rules."""
    for gvar, func in functions.items():
        gvar.struct_info_ = func.struct_info_
    merged = {g: functions.get(g, f) for g, f in mod.functions.items()}
    new = mod.with_functions(merged)
    calls = _Calls(new, rules)
    return new.map_functions(lambda _, f: calls.visit_expr(f) if isinstance(f, Function) else f)


# ---- tuples as parameters


def expand_tuple_arguments(mod: IRModule) -> IRModule:
    """Private functions take the fields of tuples."""
    functions: dict[GlobalVar, Function] = {}
    rules: dict[GlobalVar, Any] = {}
    for gvar, func in _with_known_callers(mod):
        if not any([isinstance(p.struct_info, TupleStructInfo) for p in func.params]):
            continue
        functions[gvar] = _expanded(func)
        rules[gvar] = _expand_call
    return _rewritten(mod, functions, rules) if functions else mod


def _expanded(func: Function) -> Function:
    params: list[Var] = []
    bindings = []
    values: dict[Var, Any] = {}

    def fields(name: str, info: Any) -> Any:
        if not isinstance(info, TupleStructInfo):
            params.append(Var(name, info))
            return params[-1]
        return Tuple([fields(f"{name}_{i}", f) for i, f in enumerate(info.fields)])

    for param in func.params:
        if isinstance(param.struct_info, TupleStructInfo):
            made = fields(param.name_hint, param.struct_info)
            var = Var(param.name_hint, param.struct_info)
            bindings.append(VarBinding(var, made))
            values[param] = var
        else:
            params.append(param)
    body = substituted(func.body, values)
    seq = SeqExpr([BindingBlock(bindings), *body.blocks], body.body)
    made_func = Function(params, seq, func.ret_struct_info, func.is_pure, func.attrs, func.span)
    return _normal(made_func)


def _normal(func: Function) -> Function:
    found = BlockBuilder().normalize(func)
    assert isinstance(found, Function)
    return found


def _expand_call(builder: Any, call: Call) -> Call:
    args: list[Any] = []

    def add(arg: Any) -> None:
        info = arg.struct_info
        if isinstance(arg, Tuple):
            for field in arg.fields:
                add(field)
        elif isinstance(info, TupleStructInfo):
            for i in range(len(info.fields)):
                add(builder.emit(TupleGetItem(arg, i)))
        else:
            args.append(arg)

    for arg in call.args:
        add(arg)
    return Call(call.op, args, call.attrs, call.sinfo_args, call.span)


def ExpandTupleArguments() -> Pass:
    """Let private functions take the fields of tuples one by one."""
    return whole_module_pass("ExpandTupleArguments", expand_tuple_arguments)


# ---- parameters that nobody reads


def remove_unused_parameters(mod: IRModule) -> IRModule:
    """Private functions without parameters that they do not use."""
    functions: dict[GlobalVar, Function] = {}
    rules: dict[GlobalVar, Any] = {}
    for gvar, func in _with_known_callers(mod):
        used = dict.fromkeys(used_vars(func.body))
        stays = [p in used for p in func.params]
        if all(stays):
            continue
        params = [p for p, s in zip(func.params, stays, strict=True) if s]
        needed = dict.fromkeys([*tir_vars_in(func.body), *tir_vars_in(func.ret_struct_info)])
        for param in params:
            needed.update(dict.fromkeys(tir_vars_in(param.struct_info)))
        known = {v for p in params for v in definable_tir_vars_in_struct_info(p.struct_info)}
        own = {v for p in func.params for v in tir_vars_in(p.struct_info)}
        # numbers take the place of the tensors that told symbols, the last symbol first
        free = [v for v in needed if v in own and v not in known][::-1]
        params.extend([Var(f"param_{v.name}", PrimStructInfo(value=v)) for v in free])
        functions[gvar] = Function(
            params, func.body, func.ret_struct_info, func.is_pure, func.attrs, func.span
        )
        rules[gvar] = _remove_arguments(func, stays, free)
    return _rewritten(mod, functions, rules) if functions else mod


def _remove_arguments(func: Function, stays: list[bool], free: list[Any]) -> Any:
    def rule(builder: Any, call: Call) -> Call:
        args = [a for a, s in zip(call.args, stays, strict=True) if s]
        if free:
            numbers: dict[Any, Any] = {}
            for param, arg in zip(func.params, call.args, strict=True):
                match_symbols(param.struct_info, arg.struct_info, numbers)
            args.extend([PrimValue(substitute(v, numbers)) for v in free])
        return Call(call.op, args, call.attrs, call.sinfo_args, call.span)

    return rule


def RemoveUnusedParameters() -> Pass:
    """Let private functions be without parameters that they do not use."""
    return whole_module_pass("RemoveUnusedParameters", remove_unused_parameters)


# ---- bodies in callers


def inline_private_functions(mod: IRModule) -> IRModule:
    """The module with private functions, those that call themselves left out, in their callers."""
    recursive = {g for group in detect_recursion(mod) for g in group}
    private = {
        g: f
        for g, f in relax_functions(mod).items()
        if _is_private(f) and g not in recursive and not f.attrs.get("Primitive")
    }
    if not private:
        return mod
    new = mod.map_functions(
        lambda g, f: (
            inline_functions(f, private) if isinstance(f, Function) and g not in private else f
        )
    )
    return remove_unused_functions(new)


def InlinePrivateFunctions() -> Pass:
    """Put the bodies of private functions in the place of their calls."""
    return whole_module_pass("InlinePrivateFunctions", inline_private_functions)


__all__ = ["ExpandTupleArguments", "InlinePrivateFunctions", "RemoveUnusedParameters"]
