"""Functions inside functions become functions of the module.

def main(x):                              def main_inner(y, x): return add(x, y)
    def inner(y): return add(x, y)   ->   def main(x):
    return inner(x)                           return main_inner(x, x)

A function that is passed on as a value with variables from outside becomes a closure.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.variables import free_vars, used_vars
from tvm.relax.base import update_struct_info
from tvm.relax.bind import substituted
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Function, Tuple, Var, VarBinding, relax_functions
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import invoke_closure, invoke_pure_closure, make_closure
from tvm.relax.struct_info import FuncStructInfo, ObjectStructInfo

from .pass_kinds import whole_module_pass


class _Lifter(ExprMutator):
    """Adds the functions inside one function to the module."""

    def __init__(self, mod: IRModule, owner: str) -> None:
        super().__init__(mod)
        self.owner = owner
        self.lifted: dict[Any, tuple[GlobalVar, list[Var]]] = {}  # by variable: function, captured
        self.closures: dict[Any, FuncStructInfo] = {}
        self.depth = 0

    def visit_function_(self, op: Function) -> Any:
        self.depth += 1
        found = super().visit_function_(op)
        self.depth -= 1
        return found

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if not isinstance(value, Function):
            super().visit_var_binding_(binding)
            return
        self._lift(binding, value)

    def _lift(self, binding: VarBinding, func: Function) -> None:
        var = binding.var
        is_recursive = var in used_vars(func.body)
        captured = [
            self.visit_expr(v) for v in free_vars(func) if v is not var and v.vid not in self.lifted
        ]
        captured = [v for v in captured if isinstance(v, Var)]
        inherited = [
            c for v in free_vars(func) if v.vid in self.lifted for c in self.lifted[v.vid][1]
        ]
        captured = list(dict.fromkeys([*captured, *inherited]))
        name = self.builder_.get_unique_name(f"{self.owner}_{var.name_hint}")
        gvar = GlobalVar(name)
        copies = {v: Var(v.name_hint, v.struct_info_) for v in captured}
        info = FuncStructInfo(
            [p.struct_info for p in (*func.params, *copies.values())],
            func.ret_struct_info,
            func.is_pure,
        )
        update_struct_info(gvar, info)
        self.lifted[var.vid] = (gvar, captured)
        inner = _Lifter.__new__(_Lifter)
        inner.__dict__.update(self.__dict__)
        inner.builder_ = BlockBuilder(self.builder_.get())
        inner.owner = name
        body = Function(
            [*func.params, *copies.values()],
            func.body,
            func.ret_struct_info,
            func.is_pure,
            func.attrs,
        )
        if is_recursive:
            self.lifted[var.vid] = (gvar, captured)
        new = inner.visit_expr(body)
        new = substituted(new, dict(copies))
        for other, other_func in inner.builder_.get().functions.items():
            if other.name_hint not in self.builder_._mod:
                self.builder_._mod[other] = other_func
        self.builder_._mod[gvar] = new

    def visit_call_(self, op: Call) -> Any:
        if isinstance(op.op, Var) and op.op.vid in self.lifted:
            gvar, captured = self.lifted[op.op.vid]
            args = [self.visit_expr(a) for a in op.args]
            return Call(
                gvar, [*args, *[self.visit_expr(c) for c in captured]], op.attrs, (), op.span
            )
        call = super().visit_call_(op)
        info = self.closures.get(getattr(call.op, "vid", None))
        if info is not None:
            return self._invoke(call, info)
        return call

    def _invoke(self, call: Call, info: FuncStructInfo) -> Call:
        invoke = invoke_pure_closure if info.purity else invoke_closure
        return invoke(call.op, Tuple(call.args), call.struct_info_ or info.ret)

    def visit_var_(self, op: Var) -> Any:
        if op.vid in self.lifted:
            gvar, captured = self.lifted[op.vid]
            if not captured:
                return gvar
            return self.builder_.emit(make_closure(gvar, Tuple(captured)))
        return super().visit_var_(op)


def lambda_lift(mod: IRModule) -> IRModule:
    """The module without functions inside functions."""
    current = mod
    for gvar, func in relax_functions(mod).items():
        lifter = _Lifter(current, gvar.name_hint)
        new = lifter.visit_expr(func)
        if new is not func:
            functions = dict(lifter.builder_.get().functions)
            functions[gvar] = new
            current = current.with_functions(functions)
    return current


def LambdaLift() -> Pass:
    """Move functions inside functions to the module."""
    return whole_module_pass("LambdaLift", lambda_lift, 1)


__all__ = ["LambdaLift", "ObjectStructInfo", "RelayExpr", "lambda_lift"]
