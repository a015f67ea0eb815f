"""What is compiled: a module with its parameters bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import RuntimeValueError, TVMError, suggest
from tvm.ir.module import IRModule
from tvm.ir.type import TensorType
from tvm.relay.expr import Constant, Var, const
from tvm.relay.function import Function
from tvm.relay.traverse import bind
from tvm.runtime.executor.inputs import as_number
from tvm.runtime.executor.mistakes import warn_of_unknown
from tvm.runtime.ndarray import NDArray

Params = Mapping[str, Any]  # name -> NDArray or numpy array


def bind_params_by_name(func: Function, params: Params) -> Function:
    """`func` with parameters of the given names replaced by constants.

    Parameters
    ----------
    func : relay.Function
        The function.
    params : dict of str to NDArray or numpy.ndarray
        The values; of names that no parameter has a warning tells the most similar ones.

    Raises
    ------
    ValueError
        If two parameters have one name, or a value's shape does not fit, or its numbers are no
        numbers of the parameter's dtype, whatever the precision.
    """
    if not isinstance(params, Mapping):
        raise TypeError(f"parameters are a dictionary by name, got {type(params).__name__}")
    by_name: dict[str, Var] = {}
    for param in func.params:
        if param.name_hint in by_name and param.name_hint in params:
            raise RuntimeValueError(
                f"two parameters of the function are called {param.name_hint!r}"
            )
        by_name[param.name_hint] = param
    binds = {
        by_name[name]: _constant_for(by_name[name], value)
        for name, value in params.items()
        if name in by_name
    }
    if unknown := [name for name in params if name not in by_name]:
        warn_of_unknown("the function has no parameters", unknown, list(by_name))
    result = bind(func, binds) if binds else func
    assert isinstance(result, Function)
    return result


def _constant_for(param: Var, value: Any) -> Constant:
    array = value if isinstance(value, NDArray) else nd.array(np.asarray(value))
    expected = param.type_annotation
    if isinstance(expected, TensorType) and not expected.is_dynamic:
        is_known = _is_number(array.dtype) and _is_number(expected.dtype)
        if array.dtype != expected.dtype and (is_known or not isinstance(value, NDArray)):
            array = nd.array(
                as_number(array.numpy() if is_known else np.asarray(value), expected.dtype.numpy)
            )
        found = (tuple(array.shape), str(array.dtype))
        wanted = (expected.concrete_shape, str(expected.dtype))
        if found != wanted:
            raise ValueError(
                f"parameter {param.name_hint} must be {wanted[1]} of shape {wanted[0]}, "
                f"got {found[1]} of shape {found[0]}"
            )
    return const(array)


def _is_number(dtype: object) -> bool:
    """Whether numpy knows a dtype by the same name."""
    return re.fullmatch(r"u?int(8|16|32|64)|float(16|32|64)", str(dtype)) is not None


def as_module(mod: Any, params: Params | None) -> IRModule:
    """The module to compile, parameters bound in `main`."""
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise ValueError(f"relay.build requires an IRModule, got {type(mod).__name__}")
    if "main" not in mod:
        names = [g.name_hint for g in mod.get_global_vars()]
        raise TVMError(
            f'relay.build requires a function called "main", the module has {names}',
            hint=suggest("main", names),
        )
    if params:
        main = bind_params_by_name(mod["main"], params)
        return mod.with_functions({**mod.functions, mod.get_global_var("main"): main})
    return mod
