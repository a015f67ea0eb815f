"""Parameters and symbolic variables bound to values.

def main(x: Tensor((n,)), w: Tensor((4,))    ->    def main(x: Tensor((n,)))    # w is a constant
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.bind import bind_params, bind_symbolic_vars
from tvm.relax.expr import Function, relax_functions

from .pass_kinds import whole_module_pass


def BindParams(func_name: str, params: Mapping[Any, Any]) -> Pass:
    """Bind parameters of a function to constants.

    Parameters
    ----------
    func_name : str
        The function.
    params : dict of Var or str to NDArray, numpy.ndarray or Expr
    """

    def run(mod: IRModule) -> IRModule:
        gvar = mod.get_global_var(func_name)
        func = mod[gvar]
        if not isinstance(func, Function):
            raise TVMError(f"BindParams requires a function of relax, {func_name} is none")
        new = bind_params(func, params)
        functions = {g: new if g is gvar else f for g, f in mod.functions.items()}
        gvar.struct_info_ = new.struct_info_
        return mod.with_functions(functions)

    return whole_module_pass("BindParams", run)


def BindSymbolicVars(binding_map: Mapping[Any, Any], func_name: str | None = None) -> Pass:
    """Bind symbolic variables to numbers.

    Parameters
    ----------
    binding_map : dict of Var or str to int or PrimExpr
    func_name : str, optional
        The function; by default all public functions that have the variables.
    """

    def run(mod: IRModule) -> IRModule:
        if func_name is not None:
            gvar = mod.get_global_var(func_name)
            chosen = {gvar: mod[gvar]}
        else:
            chosen = {g: f for g, f in relax_functions(mod).items() if "global_symbol" in f.attrs}
        functions = dict(mod.functions)
        for gvar, func in chosen.items():
            functions[gvar] = bind_symbolic_vars(func, binding_map)
            gvar.struct_info_ = functions[gvar].struct_info_
        return mod.with_functions(functions)

    return whole_module_pass("BindSymbolicVars", run)
