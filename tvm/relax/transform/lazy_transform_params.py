"""Functions of parameters read each parameter when it is needed, and hand each result over when it is made.

def transform_params(params):           def transform_params():
    w = params[0]                           w = match_cast("get_item"(0), ...)
    t = permute_dims(w)          ->         t = permute_dims(w)
    return (t,)                             kill_object(w)
                                            "set_item"(0, t)
                                            return ()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import used_vars
from tvm.relax.expr import (
    Binding,
    Call,
    DataflowVar,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TupleStructInfo,
)
from tvm.relax.struct_info_relations import (
    definable_tir_vars_in_struct_info,
    erase,
    tir_vars_in,
)

from .pass_kinds import whole_module_pass

_SUFFIX = "transform_params"
_FORCE_PURE = "relax.force_pure"


class _Source:
    """How a parameter is asked for: a call of its number and name."""

    def __init__(self, callee: RelayExpr, first: Sequence[RelayExpr], takes_name: bool) -> None:
        self.callee, self.first, self.takes_name = callee, tuple(first), takes_name

    def read(self, index: int, name: str) -> Call:
        args = [*self.first, PrimValue(index)]
        if self.takes_name:
            return Call(self.callee, [*args, StringImm(name)])
        return Call(self.callee, args, None, [ObjectStructInfo()])


def _function(params: Sequence[Var], body: Any, like: Function) -> Function:
    """A function whose result's symbolic variables are those of its parameters."""
    given = {s: s for p in params for s in definable_tir_vars_in_struct_info(p.struct_info)}
    info = erase(body.struct_info, given.get, {p: p for p in params}.get)
    return Function(params, body, info, like.is_pure, like.attrs, like.span)


class _LazyInput(ExprMutator):
    """Reads parameters where they are used for the first time."""

    def __init__(self, mod: IRModule, source: _Source, extra: Sequence[Var]) -> None:
        super().__init__(mod)
        self.source, self.extra = source, extra
        self.places: dict[Var, int] = {}
        self.bundle: Var | None = None

    def run(self, func: Function) -> Function:
        count = int(func.attrs.get("num_input", 0))
        inputs, params = func.params[:count], func.params[count:]
        is_tuple = len(params) == 1 and isinstance(params[0].struct_info, TupleStructInfo)
        infos = params[0].struct_info.fields if is_tuple else [p.struct_info for p in params]
        if is_tuple:
            self.bundle = params[0]
        else:
            self.places = {param: i for i, param in enumerate(params)}
        shapes = self._shapes(func, inputs, infos)
        new = [*inputs, *self.extra, *shapes]
        body = self.visit_with_new_scope(func.body, new)
        return _function(new, body, func)

    def _shapes(self, func: Function, inputs: Sequence[Var], infos: Sequence[Any]) -> list[Var]:
        """A parameter for symbolic variables that only shapes among the parameters define."""
        shapes = [i for i in infos if isinstance(i, (ShapeStructInfo, PrimStructInfo))]
        lost = [s for i in shapes for s in definable_tir_vars_in_struct_info(i)]
        given = {s for p in inputs for s in definable_tir_vars_in_struct_info(p.struct_info)}
        used = dict.fromkeys(tir_vars_in(func.body))
        free = [s for s in dict.fromkeys(lost) if s in used and s not in given]
        return [Var("slice_shape_expr", ShapeStructInfo(free))] if free else []

    def _load(self, index: int, name: str, info: Any) -> Var:
        value = self.builder_.emit(self.source.read(index, name), name)
        return self.builder_.match_cast(value, info, name)

    def visit_var_(self, op: Var) -> Any:
        index = self.places.get(op)
        if index is None or self.get_var_remap(op.vid) is not None:
            return super().visit_var_(op)
        found = self._load(index, op.name_hint, op.struct_info)
        self.set_var_remap(op.vid, found)
        return found

    def visit_var_binding_(self, binding: Any) -> None:
        value = binding.value
        if isinstance(value, TupleGetItem) and value.tuple_value is self.bundle:
            var = binding.var
            self.reemit_binding(binding, self._load(value.index, var.name_hint, value.struct_info))
            return
        super().visit_var_binding_(binding)


class _LazyOutput(ExprMutator):
    """Hands results over where they are bound."""

    def __init__(
        self, mod: IRModule, callee: RelayExpr, first: Sequence[RelayExpr], extra: Sequence[Var],
        kills: bool,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.callee, self.first, self.extra, self.kills = callee, tuple(first), extra, kills
        self.places: dict[Var, list[int]] = {}
        self.last: dict[Var, Binding] = {}
        self.killed: dict[Var, None] = {}
        self.result: Any = None

    def run(self, func: Function) -> Function:
        count = int(func.attrs.get("num_input", len(func.params)))
        bindings = [b for block in func.body.blocks for b in block.bindings]
        values = {b.var: b.value for b in bindings}
        self.result = func.body.body
        value: Any = self.result
        while isinstance(value, Var) and isinstance(values.get(value), (Var, Tuple)):
            value = values[value]
        outputs = list(value.fields) if isinstance(value, Tuple) else [self.result]
        for i, field in enumerate(outputs):
            if isinstance(field, Var):
                self.places.setdefault(field, []).append(i)
        self._find_last_uses(bindings, values, value)
        params = [*func.params[:count], *self.extra, *func.params[count:]]
        self.builder_.begin_scope(params)
        body = self._body(func, params, outputs)
        self.builder_.end_scope()
        return _function(params, body, func)

    def _find_last_uses(self, bindings: Sequence[Binding], values: Any, result: Any) -> None:
        """Where variables are used for the last time, the result apart."""
        for binding in bindings:
            last = dict.fromkeys(used_vars(binding.value)) if binding.value is not result else {}
            for var in (*last, binding.var):
                self.last.pop(var, None)
                self.last[var] = binding
        self.killed = _loaded(bindings, values) if self.kills else {}

    def _body(self, func: Function, params: Sequence[Var], outputs: Sequence[RelayExpr]) -> Any:
        from_params = [p for p in params if p in self.places]
        constants = [(i, o) for i, o in enumerate(outputs) if not isinstance(o, Var)]
        seq = func.body
        self.builder_.begin_block(is_dataflow=False)
        for param in from_params:
            self._hand_over(param)
        for block in seq.blocks:
            for binding in block.bindings:
                self.visit_binding(binding)
                self._after(binding)
        for index, value in constants:
            self._emit_set(index, value)
        if not isinstance(self.result, Var) or self.result in self.places:
            end: Any = Tuple([])
        else:
            end = self.visit_expr(self.result)
        block = self.builder_.end_block()
        return self.builder_.normalize(SeqExpr([block] if block.bindings else [], end))

    def _after(self, binding: Binding) -> None:
        if not self.kills:
            if binding.var in self.places:
                self._hand_over(binding.var)
            return
        dying = [var for var, last in self.last.items() if last is binding]
        for var in [v for v in dying if v not in self.places]:
            self._kill(var)
        for var in [v for v in dying if v in self.places]:
            self._hand_over(var)
            self._kill(var)

    def _kill(self, var: Var) -> None:
        if var in self.killed:
            kill = Op.get("relax.vm.kill_object")
            self.builder_.emit(Call(kill, [self.visit_expr(var)]), "_")

    def _hand_over(self, var: Var) -> None:
        for index in self.places[var]:
            self._emit_set(index, self.visit_expr(var))

    def _emit_set(self, index: int, value: RelayExpr) -> None:
        args = [*self.first, PrimValue(index), value]
        infos = [ObjectStructInfo()] if isinstance(self.callee, ExternFunc) else []
        self.builder_.emit(Call(self.callee, args, None, infos), "_")

    def visit_var_binding_(self, binding: Any) -> None:
        if binding.var is self.result and isinstance(binding.value, Tuple):
            self.reemit_binding(binding, self.builder_.normalize(Tuple([])))
            return
        super().visit_var_binding_(binding)

    def reemit_binding(self, binding: Any, value: RelayExpr) -> None:
        if isinstance(binding.var, DataflowVar):
            binding = binding.replace(var=Var(binding.var.vid, binding.var.struct_info))
            self.set_var_remap(binding.var.vid, binding.var)
        super().reemit_binding(binding, value)


def _loaded(bindings: Sequence[Binding], values: Any) -> dict[Var, None]:
    """The last names of parameters that were read: of checks of what packed functions gave."""
    found: dict[Var, None] = {}
    for binding in bindings:
        value = binding.value
        if not isinstance(value, Var):
            continue
        source = values.get(value)
        if isinstance(binding, MatchCast):
            if isinstance(source, Call) and isinstance(source.op, ExternFunc):
                found[binding.var] = None
        elif value in found:
            del found[value]
            found[binding.var] = None
    return found


def _targets(mod: IRModule) -> dict[Any, Function]:
    return {g: f for g, f in relax_functions(mod).items() if g.name_hint.endswith(_SUFFIX)}


def _updated(mod: IRModule, rewrite: Any) -> IRModule:
    targets = _targets(mod)
    new = {gvar: rewrite(func) for gvar, func in targets.items()}
    for gvar, func in new.items():
        gvar.struct_info_ = func.struct_info_
    return mod.with_functions({g: new.get(g, f) for g, f in mod.functions.items()})


# ---- functions that are parameters


def LazyGetInput() -> Pass:
    """Let functions of parameters ask for each one by a function, their first parameter behind the inputs.

    The function takes the number of the parameter and its name.
    """
    info = FuncStructInfo([PrimStructInfo("int64"), ObjectStructInfo()], ObjectStructInfo())

    def run(mod: IRModule) -> IRModule:
        def rewrite(func: Function) -> Function:
            count = int(func.attrs.get("num_input", 0))
            source = Var("fget_param", info)
            reader = _LazyInput(mod, _Source(source, (), True), [source])
            return reader.run(func).with_attr("num_input", count + 1)

        return _updated(mod, rewrite)

    return whole_module_pass("LazyGetInput", run)


def LazySetOutput() -> Pass:
    """Let functions of parameters hand each result to a function, a parameter behind the inputs.

    The function takes the number of the result and its value.
    """
    info = FuncStructInfo(
        [PrimStructInfo("int64"), ObjectStructInfo()], TupleStructInfo([]), purity=False
    )

    def run(mod: IRModule) -> IRModule:
        def rewrite(func: Function) -> Function:
            count = func.attrs.get("num_input")
            target = Var("fset_output", info)
            made = _LazyOutput(mod, target, (), [target], False).run(func)
            made = made.replace(is_pure=False)
            made = Function(made.params, made.body, made.ret_struct_info, False, made.attrs)
            return made if count is None else made.with_attr("num_input", int(count) + 1)

        return _updated(mod, rewrite)

    return whole_module_pass("LazySetOutput", run)


# ---- packed functions


def LazyTransformParams(
    fget_item: str | None = "get_item",
    fset_item: str | None = "set_item",
    extra_get_item_params: Sequence[Var] | None = None,
    extra_set_item_params: Sequence[Var] | None = None,
) -> Pass:
    """Let functions of parameters read and hand over one tensor at a time.

    Parameters
    ----------
    fget_item : str, optional
        The packed function that gives the parameter of a number.
    fset_item : str, optional
        The packed function that takes the number of a result, and the result.
    extra_get_item_params, extra_set_item_params : list of Var, optional
        Parameters that the function gets, which go before the number.
    """
    extra_get, extra_set = list(extra_get_item_params or ()), list(extra_set_item_params or ())

    def rewrite_in(mod: IRModule) -> Any:
        def rewrite(func: Function) -> Function:
            new = func.without_attr(_FORCE_PURE)
            if fget_item is not None:
                source = _Source(ExternFunc(fget_item), extra_get, False)
                new = _LazyInput(mod, source, extra_get).run(new)
            if fset_item is not None:
                setter = ExternFunc(fset_item)
                new = _LazyOutput(mod, setter, extra_set, extra_set, True).run(new)
            return Function(new.params, new.body, new.ret_struct_info, False, new.attrs)

        return rewrite

    return whole_module_pass("LazyTransformParams", lambda mod: _updated(mod, rewrite_in(mod)))


__all__ = ["LazyGetInput", "LazySetOutput", "LazyTransformParams"]
