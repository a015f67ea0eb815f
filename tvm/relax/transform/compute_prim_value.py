"""Expressions over symbolic variables that are used as numbers are computed by loop programs.

y = f(PrimValue(n % 8 == 0))    ->    p = compute_symbolic_expr(PrimValue(n)); y = f(p)
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.ir.type import PrimType
from tvm.relax.base import update_struct_info
from tvm.relax.expr import Call, Function, PrimValue, Tuple
from tvm.relax.struct_info import PrimStructInfo
from tvm.support.naming import UniqueNames
from tvm.tir import Evaluate, PrimFunc, ret
from tvm.tir import Var as TirVar
from tvm.tir.analysis import undefined_vars
from tvm.tir.expr import FloatImm, IntImm
from tvm.tir.stmt_functor import substitute

from .binding_rewriter import BindingRewriter


class _Computations(BindingRewriter):
    def __init__(self, mod: IRModule, names: UniqueNames) -> None:
        super().__init__(mod)
        self.names = names
        self.added: dict[GlobalVar, PrimFunc] = {}

    def argument(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            fields = [self.argument(field) for field in arg.fields]
            is_same = all([a is b for a, b in zip(fields, arg.fields, strict=True)])
            return arg if is_same else Tuple(fields)
        if not isinstance(arg, PrimValue) or isinstance(arg.value, (IntImm, FloatImm, TirVar)):
            return arg
        variables = undefined_vars(Evaluate(arg.value), [])
        params = [TirVar(var.name, var.dtype) for var in variables]
        value = substitute(arg.value, dict(zip(variables, params, strict=True)))
        func = PrimFunc(params, Evaluate(ret(value)), ret_type=PrimType(value.dtype))
        gvar = GlobalVar(self.names.fresh("compute_symbolic_expr"))
        self.added[gvar] = func.with_attr("tir.is_host_func", True)
        call = Call(gvar, [PrimValue(var) for var in variables])
        update_struct_info(call, PrimStructInfo(value.dtype))
        return self.emit(call, "prim")


def compute_prim_value(mod: IRModule) -> IRModule:
    """The module with loop programs for its numbers."""
    names = UniqueNames(dict.fromkeys([gvar.name_hint for gvar in mod.functions], 1))
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            rewriter = _Computations(mod, names)
            functions[gvar] = rewriter.function(func)
            functions.update(rewriter.added)
        else:
            functions[gvar] = func
    return mod.with_functions(functions)


def ComputePrimValue() -> Pass:
    """Compute expressions over symbolic variables that are used as numbers."""
    return ModulePass(
        lambda mod, context: compute_prim_value(mod), PassInfo(0, "ComputePrimValue", ())
    )
