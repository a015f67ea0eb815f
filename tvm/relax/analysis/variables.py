"""Variables of programs: bound and free ones, their values and uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.relax.expr import (
    Binding,
    DataflowBlock,
    Expr,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprVisitor
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in
from tvm.support import deep
from tvm.tir import Var as TirVar


class _Variables(ExprVisitor):
    """All variables, those that are bound, and global ones, each once in the order met."""

    def __init__(self) -> None:
        self.all: dict[Var, None] = {}
        self.bound: dict[Var, None] = {}
        self.globals: dict[GlobalVar, None] = {}

    def visit_var_(self, op: Var) -> None:
        self.all[op] = None

    def visit_var_def_(self, var: Var) -> None:
        self.all[var] = self.bound[var] = None
        super().visit_var_def_(var)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.globals[op] = None


@deep
def _variables(expr: RelayExpr) -> _Variables:
    found = _Variables()
    found.visit_expr(expr)
    return found


def bound_vars(expr: Expr) -> list[Var]:
    """The variables that are bound in an expression, in the order met."""
    return list(_variables(expr).bound)


def free_vars(expr: Expr) -> list[Var]:
    """The variables that an expression uses and does not bind, in the order met."""
    found = _variables(expr)
    return [var for var in found.all if var not in found.bound]


def all_vars(expr: Expr) -> list[Var]:
    """All variables of an expression, in the order met."""
    return list(_variables(expr).all)


def all_global_vars(expr: Expr) -> list[GlobalVar]:
    """The global variables that an expression names, in the order met."""
    return list(_variables(expr).globals)


class _PostOrder(ExprVisitor):
    def __init__(self, fvisit: Callable[[Any], None]) -> None:
        self.fvisit = fvisit
        self.seen: dict[int, Any] = {}

    def visit_expr(self, expr: RelayExpr) -> None:
        if id(expr) in self.seen:
            return
        self.seen[id(expr)] = expr
        super().visit_expr(expr)
        self.fvisit(expr)


@deep
def post_order_visit(expr: Expr, fvisit: Callable[[Any], None]) -> None:
    """Call a function with each expression, once, parts first."""
    _PostOrder(fvisit).visit_expr(expr)


class _Bindings(ExprVisitor):
    def __init__(self) -> None:
        self.bindings: list[Binding] = []

    def visit_var_binding_(self, binding: VarBinding) -> None:
        self.bindings.append(binding)
        super().visit_var_binding_(binding)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self.bindings.append(binding)
        super().visit_match_cast_(binding)


@deep
def bindings_of(expr: RelayExpr) -> list[Binding]:
    """All bindings inside an expression."""
    found = _Bindings()
    found.visit_expr(expr)
    return found.bindings


def get_var2val(func: Function) -> dict[Var, Expr]:
    """The values of the variables that a function binds."""
    return {b.var: b.value for b in bindings_of(func)}


def name_to_binding(func: Function) -> dict[str, list[Binding]]:
    """The bindings of a function by the names of their variables."""
    found: dict[str, list[Binding]] = {}
    for binding in bindings_of(func):
        found.setdefault(binding.var.name_hint, []).append(binding)
    return found


class _Uses(ExprVisitor):
    def __init__(self) -> None:
        self.used: dict[Var, None] = {}

    def visit_var_(self, op: Var) -> None:
        self.used[op] = None


@deep
def used_vars(expr: RelayExpr) -> list[Var]:
    """The variables that an expression names, without those that it only binds."""
    visitor = _Uses()
    visitor.visit_expr(expr)
    return list(visitor.used)


def udchain(dfb: DataflowBlock) -> dict[Var, list[Var]]:
    """For each variable of a dataflow block those that are computed from it."""
    chain: dict[Var, dict[Var, None]] = {}
    for binding in dfb.bindings:
        for used in used_vars(binding.value):
            chain.setdefault(used, {})[binding.var] = None
    for binding in dfb.bindings:
        chain.setdefault(binding.var, {})
    return {var: list(users) for var, users in chain.items()}


# ---- symbolic variables


class _Symbols(ExprVisitor):
    def __init__(self) -> None:
        self.used: dict[TirVar, None] = {}
        self.defined: dict[TirVar, None] = {}

    def _note(self, node: Any) -> None:
        if node is not None:
            for var in tir_vars_in(node):
                self.used[var] = None

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        self._note(op)

    def visit_prim_value_(self, op: PrimValue) -> None:
        self._note(op.value)

    def _struct_info(self, info: Any) -> None:
        self._note(info)
        if isinstance(info, TensorStructInfo):
            super()._struct_info(info)

    def visit_function_(self, op: Function) -> None:
        for param in op.params:
            for var in definable_tir_vars_in_struct_info(param.struct_info):
                self.defined[var] = None
        self._note(op.ret_struct_info)
        super().visit_function_(op)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        for var in definable_tir_vars_in_struct_info(binding.struct_info):
            self.defined[var] = None
        super().visit_match_cast_(binding)


@deep
def _symbols(func: RelayExpr) -> _Symbols:
    visitor = _Symbols()
    visitor.visit_expr(func)
    return visitor


def defined_symbolic_vars(func: Function) -> list[TirVar]:
    """The symbolic variables that a function's parameters and checked bindings define."""
    return list(_symbols(func).defined)


def free_symbolic_vars(func: Function) -> list[TirVar]:
    """The symbolic variables that a function uses and does not define."""
    found = _symbols(func)
    return [var for var in found.used if var not in found.defined]


__all__ = [
    "SeqExpr", "all_global_vars", "all_vars", "bindings_of", "bound_vars", "defined_symbolic_vars",
    "free_symbolic_vars", "free_vars", "get_var2val", "name_to_binding", "post_order_visit",
    "udchain", "used_vars",
]  # fmt: skip
