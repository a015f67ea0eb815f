"""What depends on the parameters of a model alone is computed before it runs, by a function of its own.

main(x, w):  t = permute_dims(w)       main(x, t):  y = matmul(x, t)
             y = matmul(x, t)     ->   main_transform_params(params):  w = params[0]
                                                                       t = permute_dims(w)
                                                                       return (t,)

The attribute ``num_input`` of a function says how many of its parameters are inputs of a run. With
``shared_transform`` one function, ``transform_params``, serves several that have the same parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass
from tvm.relax.analysis.calls import CompileTimeValues
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.analysis.variables import used_vars
from tvm.relax.base import update_struct_info
from tvm.relax.bind import copy_with_new_vars, inline_functions, match_symbols, substituted
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_pure_packed
from tvm.relax.struct_info import ShapeStructInfo, TupleStructInfo
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in

from .bundle_model_params import bundle_params
from .canonicalize_bindings import canonicalize
from .pass_kinds import whole_module_pass

CONSUME_PARAMS = "relax.lift_transform_params.consume_params"
# let the tuple of parameters go of each one that has been read
register_pass_config(CONSUME_PARAMS, bool)
_SUFFIX = "transform_params"


@dataclass
class _Lifted:
    """The bindings of a function that its model's parameters determine."""

    func: Function
    inputs: tuple[Var, ...]
    params: tuple[Var, ...]
    bindings: list[Binding] = field(default_factory=list)

    @property
    def candidates(self) -> list[Var]:
        """Parameters and lifted variables, in order."""
        return [*self.params, *[b.var for b in self.bindings]]


def _collect(func: Function) -> _Lifted:
    count = int(func.attrs["num_input"])
    found = _Lifted(func, func.params[:count], func.params[count:])
    values = CompileTimeValues(found.params)
    for block in func.body.blocks:
        if isinstance(block, DataflowBlock):
            found.bindings.extend([b for b in block.bindings if values.read(b)])
    return found


def _needed_at_run_time(lifted: _Lifted) -> tuple[dict[Var, None], dict[Any, None]]:
    """The variables, and the symbolic ones, that the rest of a function reads."""
    known = dict.fromkeys([b.var for b in lifted.bindings])
    rest = [b for block in lifted.func.body.blocks for b in block.bindings if b.var not in known]
    variables = [
        v for value in (*[b.value for b in rest], lifted.func.body.body) for v in used_vars(value)
    ]
    symbols = [s for b in rest for s in tir_vars_in(b)]
    symbols.extend(tir_vars_in(lifted.func.body.body))
    return dict.fromkeys(variables), dict.fromkeys(symbols)


def _definable(infos: Sequence[Any]) -> dict[Any, None]:
    return dict.fromkeys([s for info in infos for s in definable_tir_vars_in_struct_info(info)])


@dataclass(frozen=True)
class _Interface:
    """What the function of parameters hands to the function that runs."""

    outputs: list[Var]
    symbols: list[Any]


def _interface(lifted: _Lifted) -> _Interface:
    variables, symbols = _needed_at_run_time(lifted)
    outputs = [v for v in lifted.candidates if v in variables]
    for var in outputs:
        symbols.update(dict.fromkeys(tir_vars_in(var.struct_info)))
    given = _definable([v.struct_info for v in (*lifted.inputs, *outputs)])
    casts = [b.struct_info for b in lifted.bindings if isinstance(b, MatchCast)]
    lost = _definable([p.struct_info for p in lifted.params] + casts)
    return _Interface(outputs, [s for s in symbols if s in lost and s not in given])


# ---- the function of parameters


def _compile_time_function(lifted: _Lifted, interface: _Interface, name: str) -> Function:
    results: list[Any] = [ShapeExpr(interface.symbols)] if interface.symbols else []
    results.extend(interface.outputs)
    local = {
        b.var: DataflowVar(b.var.vid, b.var.struct_info)
        for b in lifted.bindings
        if not isinstance(b.var, DataflowVar)
    }
    made = Tuple(results)
    out = Var("gv", made.struct_info)
    bindings = [*lifted.bindings, VarBinding(out, made)]
    bindings = [substituted_binding(b, local) for b in bindings]
    seq = SeqExpr([DataflowBlock(bindings)], out)
    update_struct_info(seq, out.struct_info)
    attrs = {"num_input": 0, "global_symbol": name}
    func = Function(lifted.params, seq, out.struct_info, True, attrs)
    return copy_with_new_vars(remove_all_unused(func))


def substituted_binding(binding: Binding, variables: Mapping[Var, Var]) -> Binding:
    """A binding over other variables, in its definition as well."""
    if not variables:
        return binding
    var = variables.get(binding.var, binding.var)
    value = substituted(binding.value, variables)
    if isinstance(binding, MatchCast):
        return MatchCast(var, value, binding.struct_info, binding.span)
    return VarBinding(var, value, binding.span)


class _Consumer(ExprMutator):
    """Reads each field of the tuple of parameters once, and lets the tuple go of it."""

    def __init__(self, params: Var) -> None:
        super().__init__()
        self.params = params
        self.fields: dict[int, Var] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if not (isinstance(value, TupleGetItem) and value.tuple_value is self.params):
            super().visit_var_binding_(binding)
            return
        if (known := self.fields.get(value.index)) is not None:
            self.reemit_binding(binding, known)
            return
        super().visit_var_binding_(binding)
        self.fields[value.index] = self.visit_expr(binding.var)
        reset = ExternFunc("vm.builtin.tuple_reset_item")
        args = (self.params, PrimValue(value.index))
        self.builder_.emit(call_pure_packed(reset, *args, sinfo_args=TupleStructInfo([])), "_")


def _finished(func: Function) -> Function:
    """The function of parameters over one tuple."""
    new = func if _takes_a_tuple(func) else bundle_params(func, None, "params")
    if not PassContext.current().config.get(CONSUME_PARAMS, False):
        return new.with_attr("num_input", 0)
    found: Function = _Consumer(new.params[-1]).visit_expr(new)
    return found.with_attr("num_input", 0)


def _takes_a_tuple(func: Function) -> bool:
    """Whether a function comes after one that took a tuple already."""
    if len(func.params) != 1 or func.attrs.get("num_input") is not None:
        return False
    return isinstance(func.params[0].struct_info, TupleStructInfo)


def _after_existing(existing: Function, new: Function, name: str) -> Function:
    """What an existing function of parameters computes goes into the new one."""
    first, second = GlobalVar("existing"), GlobalVar("new")
    first.struct_info_, second.struct_info_ = existing.struct_info_, new.struct_info_
    params = [Var(p.name_hint, p.struct_info) for p in existing.params]
    middle = Call(first, params)
    builder = BlockBuilder()
    builder.begin_scope(params)
    builder.begin_block(is_dataflow=True)
    between = builder.emit(middle)
    info = between.struct_info
    assert isinstance(info, TupleStructInfo)
    fields = [builder.emit(TupleGetItem(between, i)) for i in range(len(info.fields))]
    result = builder.emit_output(Call(second, fields))
    seq = builder.normalize(SeqExpr([builder.end_block()], result))
    builder.end_scope()
    func = Function(params, seq, seq.struct_info, True, {"global_symbol": name})
    inlined = inline_functions(func, {"existing": existing, "new": new})
    return canonicalize(inlined, IRModule())


# ---- the function that runs


class _Runtime(ExprMutator):
    """Leaves out what is lifted."""

    def __init__(self, lifted: _Lifted, mapped: Mapping[Var, Var]) -> None:
        super().__init__()
        self.dropped = dict.fromkeys([b.var for b in lifted.bindings])
        for old, new in mapped.items():
            self.set_var_remap(old.vid, new)

    def visit_binding(self, binding: Binding) -> Any:
        if binding.var not in self.dropped:
            super().visit_binding(binding)


def _run_time_function(lifted: _Lifted, interface: _Interface) -> Function:
    own = dict.fromkeys(lifted.params)
    outputs = [v if v in own else Var(v.name_hint, v.struct_info) for v in interface.outputs]
    mapped = dict(zip(interface.outputs, outputs, strict=True))
    func = lifted.func
    body = _Runtime(lifted, mapped).visit_expr(func.body)
    extra: list[Var] = []
    if interface.symbols:
        extra = [Var("vars_from_compile_time_params", ShapeStructInfo(interface.symbols))]
    new = Function(
        [*lifted.inputs, *extra, *outputs], body, func.ret_struct_info, func.is_pure, func.attrs,
        func.span,
    )  # fmt: skip
    found: Function = remove_all_unused(new)
    return found


# ---- one function of parameters for several functions


def _shared(group: Sequence[_Lifted]) -> tuple[list[_Lifted], list[_Interface]]:
    """What all functions lift, each in its own variables, in one order; and one interface."""
    first = group[0]
    maps = [_parameter_map(first, other) for other in group]
    common: list[list[Binding]] = []  # for each binding of the first those of all functions
    for binding in first.bindings:
        row = [binding]
        for other, (variables, numbers) in zip(group[1:], maps[1:], strict=True):
            match = _matching(binding, other.bindings, variables, numbers)
            if match is None:
                break
            row.append(match)
        needed = used_vars(binding.value)
        known = [*first.params, *[r[0].var for r in common]]
        if len(row) == len(group) and all([any([v is k for k in known]) for v in needed]):
            common.append(row)
            for match, (variables, _) in zip(row, maps, strict=True):
                variables[match.var] = binding.var
    lifted = [
        _Lifted(g.func, g.inputs, g.params, [row[i] for row in common]) for i, g in enumerate(group)
    ]
    return lifted, _shared_interfaces(lifted, [numbers for _, numbers in maps])


def _parameter_map(first: _Lifted, other: _Lifted) -> tuple[dict[Any, Any], dict[Any, Any]]:
    if len(first.params) != len(other.params):
        raise TVMError(
            "LiftTransformParams with shared_transform requires functions with the same parameters, "
            f"got {len(first.params)} and {len(other.params)} of them"
        )
    numbers: dict[Any, Any] = {}
    for a, b in zip(first.params, other.params, strict=True):
        match_symbols(b.struct_info, a.struct_info, numbers)
    for a, b in zip(first.params, other.params, strict=True):
        info = substituted(b, {}, numbers).struct_info if numbers else b.struct_info
        if not structural_equal(a.struct_info, info, map_free_vars=True):
            raise TVMError(
                "LiftTransformParams with shared_transform requires functions with the same "
                f"parameters, got {a.name_hint}: {a.struct_info} and {b.name_hint}: {b.struct_info}"
            )
    return dict(zip(other.params, first.params, strict=True)), numbers


def _matching(
    wanted: Binding, bindings: Sequence[Binding], variables: Mapping[Any, Any], numbers: Any
) -> Binding | None:
    """The binding that computes the same in another function."""
    for binding in bindings:
        if type(binding) is not type(wanted) or binding.var in variables:
            continue
        if all([v in variables for v in used_vars(binding.value)]):
            value = substituted(binding.value, variables, numbers)
            if structural_equal(value, wanted.value, map_free_vars=False):
                return binding
    return None


def _shared_interfaces(lifted: Sequence[_Lifted], numbers: Sequence[Any]) -> list[_Interface]:
    """The union of what the functions need, in the variables of each."""
    places: dict[int, None] = {}
    symbols: dict[Any, None] = {}
    for one, known in zip(lifted, numbers, strict=True):
        own = _interface(one)
        outputs = dict.fromkeys(own.outputs)
        places.update(dict.fromkeys([i for i, v in enumerate(one.candidates) if v in outputs]))
        symbols.update(dict.fromkeys([known.get(s, s) for s in own.symbols]))
    found = []
    for one, known in zip(lifted, numbers, strict=True):
        back = {b: a for a, b in known.items()}
        outputs_ = [one.candidates[i] for i in sorted(places)]
        found.append(_Interface(outputs_, [back.get(s, s) for s in symbols]))
    return found


# ---- the pass


def _targets(mod: IRModule, shared: bool | Sequence[str]) -> dict[GlobalVar, Function]:
    functions = relax_functions(mod)
    if isinstance(shared, bool):
        return {
            g: f
            for g, f in functions.items()
            if "num_input" in f.attrs and not g.name_hint.endswith(_SUFFIX)
        }
    found = {}
    for name in shared:
        func = mod[name]
        if not isinstance(func, Function) or "num_input" not in func.attrs:
            raise TVMError(
                f"LiftTransformParams requires functions with the attribute num_input, got {name}"
            )
        found[mod.get_global_var(name)] = func
    return found


def lift_transform_params(mod: IRModule, shared: bool | Sequence[str] = False) -> IRModule:
    """The module with functions of parameters."""
    targets = _targets(mod, shared)
    if not targets:
        return mod
    lifted = [_collect(f) for f in targets.values()]
    if shared is False:
        interfaces = [_interface(one) for one in lifted]
        names = [f"{g.name_hint}_{_SUFFIX}" for g in targets]
    else:
        lifted, interfaces = _shared(lifted)
        names = [_SUFFIX]
    new = mod.clone()
    for gvar, one, interface in zip(targets, lifted, interfaces, strict=True):
        func = _run_time_function(one, interface)
        gvar.struct_info_ = func.struct_info_
        new.update_func(gvar, func)
    for name, one, interface in zip(names, lifted, interfaces, strict=False):
        made = _finished(_chained(mod, name, _compile_time_function(one, interface, name)))
        gvar = mod.get_global_var(name) if name in mod else GlobalVar(name)
        gvar.struct_info_ = made.struct_info_
        new[gvar] = made
    return new


def _chained(mod: IRModule, name: str, func: Function) -> Function:
    """After the function of parameters that the module has already, if it has one."""
    if name not in mod:
        return func
    return _after_existing(mod[name], func, name)


def LiftTransformParams(shared_transform: bool | Sequence[str] = False) -> Pass:
    """Compute what depends on a model's parameters alone in a function of its own.

    Parameters
    ----------
    shared_transform : bool or list of str
        False: each function has its own, ``NAME_transform_params``. True: one, ``transform_params``, for
        all functions with ``num_input``; a list: for those functions.
    """
    shared = shared_transform if isinstance(shared_transform, bool) else list(shared_transform)
    return whole_module_pass(
        "LiftTransformParams", lambda mod: lift_transform_params(mod, shared), 1
    )


__all__ = ["LiftTransformParams", "lift_transform_params"]
