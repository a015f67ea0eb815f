"""Calls of modules that are functions of their own."""

from __future__ import annotations

import inspect
from typing import Any

from tvm.relax.base import StructInfo
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Var
from tvm.relax.struct_info_relations import erase, tir_vars_in
from tvm.tir import Var as TirVar

from .core import Module, Object, Parameter, Tensor, attributes_of, unwrap_nested, wrap_nested
from .subroutine import function_name


def call_subroutine(module: Module, forward: Any, args: Any, kwargs: Any) -> Any:
    """Call the private function of a module's ``forward``, which is made now.

    Parameters
    ----------
    module : Module
    forward : callable
        The method, of the module and its arguments.
    args, kwargs
        The arguments, tensors.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError("a module's subroutine is called within a method that is exported")
    bound = inspect.signature(forward).bind(module, *args, **kwargs)
    bound.apply_defaults()
    given = dict(list(bound.arguments.items())[1:])
    params = list(attributes_of(module, "", lambda x: isinstance(x, Parameter)))
    outer = {name: param._expr for name, param in params}
    is_tensor = any([isinstance(value, (Tensor, Object)) for value in given.values()])
    fresh = _FreshSymbols()
    inputs = {
        name: Var(name, fresh.info(unwrap_nested(value).struct_info))
        for name, value in given.items()
    }
    weights = [Var(name, fresh.info(expr.struct_info)) for name, expr in outer.items()]
    name = function_name(type(module))
    with builder.function(name, [*inputs.values(), *weights], private=True):
        with builder.dataflow():
            for (_, param), weight in zip(params, weights, strict=True):
                param._expr = weight
            opened = {k: wrap_nested(var, k) if is_tensor else var for k, var in inputs.items()}
            output = builder.emit_output(unwrap_nested(forward(module, **opened)))
        gvar = builder.emit_func_output(output)
    for (_, param), expr in zip(params, outer.values(), strict=True):
        param._expr = expr
    operands = [*[unwrap_nested(value) for value in given.values()], *outer.values()]
    result = builder.emit(Call(gvar, operands), name)
    return wrap_nested(result, name) if is_tensor else result


class _FreshSymbols:
    """Symbolic variables of the function, in place of those of its caller."""

    def __init__(self) -> None:
        self.own: dict[TirVar, TirVar] = {}

    def info(self, info: StructInfo) -> StructInfo:
        for var in tir_vars_in(info):
            self.own.setdefault(var, TirVar(var.name, var.dtype))
        return erase(info, self.own.get, lambda var: var)
