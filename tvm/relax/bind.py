"""Functions with parameters or symbolic variables bound, copied, or put in the place of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm import nd
from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir import extension
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.support import deep
from tvm.tir import Var as TirVar
from tvm.tir.stmt_functor import substitute

from .expr import (
    Call,
    Constant,
    Function,
    Id,
    MatchCast,
    ShapeExpr,
    Var,
    VarBinding,
    as_expr,
    const,
)
from .expr_functor import ExprMutator
from .struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo
from .struct_info_relations import tir_vars_in


class Substituter(ExprMutator):
    """Puts expressions for variables, and numbers for symbolic variables."""

    def __init__(
        self, values: Mapping[Var, RelayExpr], numbers: Mapping[Any, PrimExpr] | None = None
    ) -> None:
        super().__init__()
        self.values = dict(values)
        self.numbers = dict(numbers or {})
        self.analyzer = Analyzer()

    def visit_var_(self, op: Var) -> Any:
        found = self.values.get(op)
        return super().visit_var_(op) if found is None else found

    def visit_prim_expr(self, value: Any) -> Any:
        if not self.numbers or not any([v in self.numbers for v in tir_vars_in(value)]):
            return value
        return self.analyzer.simplify(substitute(value, self.numbers))

    def visit_struct_info(self, info: Any) -> Any:
        return super().visit_struct_info(info)


@deep
def substituted(
    expr: RelayExpr,
    values: Mapping[Var, RelayExpr],
    numbers: Mapping[Any, PrimExpr] | None = None,
) -> Any:
    """An expression with others in the place of variables."""
    return Substituter(values, numbers).visit_expr(expr)


# ---- copies


class _Renamer(ExprMutator):
    """Gives every variable that is bound a new identity."""

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__(mod)
        self.numbers: dict[Any, Any] = {}

    def visit_var_def_(self, var: Var) -> Any:
        info = None if var.struct_info_ is None else self.visit_struct_info(var.struct_info_)
        new = type(var)(Id(var.name_hint), info, var.span)
        self._remap[var.vid] = new
        return new

    def visit_dataflow_var_def_(self, var: Any) -> Any:
        return self.visit_var_def_(var)

    def visit_prim_expr(self, value: Any) -> Any:
        found = [v for v in tir_vars_in(value) if v in self.numbers]
        return substitute(value, self.numbers) if found else value

    def visit_function_(self, op: Function) -> Any:
        for param in op.params:
            for var in tir_vars_in(param.struct_info):
                self.numbers.setdefault(var, TirVar(var.name, var.dtype))
        return super().visit_function_(op)

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        for var in tir_vars_in(binding.struct_info):
            self.numbers.setdefault(var, TirVar(var.name, var.dtype))
        super().visit_match_cast_(binding)

    def reemit_binding(self, binding: VarBinding, value: RelayExpr) -> None:
        var = self.visit_var_def(binding.var)
        var = self.with_struct_info(var, value.struct_info) if var.struct_info_ is None else var
        self._remap[binding.var.vid] = var
        self.builder_.emit_normalized(VarBinding(var, value, binding.span))


@deep
def copy_with_new_vars(func: Function) -> Function:
    """A copy of a function with variables of its own."""
    return copied_in(None, func)


def copied_in(mod: IRModule | None, func: Function) -> Function:
    """A copy of a function, which may call the module's, with variables of its own."""
    made: Function = _Renamer(mod).visit_expr(func)
    return made


# ---- parameters


def _named(func: Function, binding_map: Mapping[Any, Any]) -> dict[Var, Any]:
    """The parameters by themselves; a name must be that of one parameter."""
    found: dict[Var, Any] = {}
    for key, value in binding_map.items():
        if isinstance(key, str):
            params = [p for p in func.params if p.name_hint == key]
            if len(params) != 1:
                names = [p.name_hint for p in func.params]
                raise TVMError(
                    f"the function has {len(params)} parameters called {key!r}, there are {names}"
                )
            key = params[0]
        if not any([key is p for p in func.params]):
            raise TVMError(f"{key} is no parameter of the function")
        found[key] = value
    return found


def _as_value(value: Any) -> RelayExpr:
    if isinstance(value, nd.NDArray):
        return Constant(value)
    if isinstance(value, np.ndarray):
        return const(value)
    found: RelayExpr = as_expr(value)
    return found


def match_symbols(param: Any, given: Any, numbers: dict[Any, PrimExpr]) -> None:
    """What symbolic variables of a parameter are by the struct info of its value."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(param, TensorStructInfo) and isinstance(given, TensorStructInfo):
        if isinstance(param.shape, ShapeExpr) and isinstance(given.shape, ShapeExpr):
            pairs = list(zip(param.shape.values, given.shape.values, strict=False))
    elif isinstance(param, ShapeStructInfo) and isinstance(given, ShapeStructInfo):
        pairs = list(zip(param.values or (), given.values or (), strict=False))
    elif isinstance(param, PrimStructInfo) and isinstance(given, PrimStructInfo):
        pairs = [(param.value, given.value)]
    elif isinstance(param, TupleStructInfo) and isinstance(given, TupleStructInfo):
        for a, b in zip(param.fields, given.fields, strict=False):
            match_symbols(a, b, numbers)
    for a, b in pairs:
        if isinstance(a, TirVar) and b is not None and a not in numbers:
            numbers[a] = b


@deep
def bind_params(func: Function, binding_map: Mapping[Any, Any]) -> Function:
    """A function with some parameters bound to values, from which symbolic variables follow.

    Parameters
    ----------
    func : Function
    binding_map : dict of Var or str to Expr, NDArray or numpy.ndarray
    """
    values = {param: _as_value(v) for param, v in _named(func, binding_map).items()}
    if not values:
        return func
    numbers: dict[Any, PrimExpr] = {}
    for param, value in values.items():
        if value.struct_info_ is not None:
            match_symbols(param.struct_info, value.struct_info, numbers)
    numbers = {a: b for a, b in numbers.items() if a is not b}
    rest = [p for p in func.params if p not in values]
    mutator = Substituter(values, numbers)
    new = Function(rest, func.body, func.ret_struct_info, func.is_pure, func.attrs, func.span)
    made: Function = mutator.visit_expr(new)
    return made


@deep
def bind_symbolic_vars(func: Function, binding_map: Mapping[Any, Any]) -> Function:
    """A function with some symbolic variables bound to numbers.

    Parameters
    ----------
    func : Function
    binding_map : dict of Var or str to int or PrimExpr
    """
    known: dict[Any, None] = {}
    for param in func.params:
        for var in tir_vars_in(param.struct_info):
            known[var] = None
    if func.has_body:
        for var in tir_vars_in(func.body):
            known[var] = None
    numbers: dict[Any, PrimExpr] = {}
    for key, value in binding_map.items():
        matches = [v for v in known if v.name == key] if isinstance(key, str) else [key]
        if isinstance(key, str) and len(matches) != 1:
            names = sorted({v.name for v in known})
            raise TVMError(
                f"the function has {len(matches)} symbolic variables called {key!r}, there are {names}"
            )
        (var,) = matches
        if var not in known:
            raise TVMError(f"the function has no symbolic variable {var}")
        if var in numbers:
            raise TVMError(f"the symbolic variable {var} is bound twice")
        numbers[var] = ShapeExpr([value]).values[0]
    if not numbers:
        return func
    made: Function = Substituter({}, numbers).visit_expr(func)
    return made


# ---- inlining


class _Inliner(ExprMutator):
    def __init__(self, functions: Mapping[Any, Function]) -> None:
        super().__init__()
        self.functions = functions
        self.active: list[Any] = []

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if not isinstance(call.op, GlobalVar):
            return call
        func = self.functions.get(call.op) or self.functions.get(call.op.name_hint)
        if func is None:
            return call
        if any([call.op is a for a in self.active]):
            raise TVMError(f"{call.op.name_hint} calls itself, and cannot be inlined")
        copied = copy_with_new_vars(func)
        numbers: dict[Any, PrimExpr] = {}
        values = dict(zip(copied.params, call.args, strict=True))
        for param, value in values.items():
            match_symbols(param.struct_info, value.struct_info, numbers)
        body = Substituter(values, numbers).visit_expr(copied.body)
        self.active.append(call.op)
        result = self.visit_expr(body)
        self.active.pop()
        return result


@deep
def inline_functions(func: Function, function_map: Mapping[Any, Function]) -> Function:
    """A function with calls of others replaced by their bodies.

    Parameters
    ----------
    func : Function
    function_map : dict of GlobalVar or str to Function
    """
    for key, value in function_map.items():
        if not isinstance(value, Function):
            raise TypeError(
                f"inline_functions requires functions of relax, got {value!r} for {key}"
            )
    made: Function = _Inliner(function_map).visit_expr(func)
    return made


extension.relax_bind_params.provide(bind_params)
extension.relax_bind_symbolic_vars.provide(bind_symbolic_vars)
extension.relax_inline.provide(inline_functions)
