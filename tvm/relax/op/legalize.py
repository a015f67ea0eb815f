"""How operators become loop programs: tensor expressions of topi, called through the block builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm import te, tir
from tvm.ir.expr import RelayExpr
from tvm.relax.expr import Call, Constant, PrimValue
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

Legalize = Callable[[Any, Call], RelayExpr]


def topi_call(function: Callable[..., Any], name: str | None = None, *attrs: str) -> Legalize:
    """The function of the call's arguments and of some attributes."""

    def legalize(bb: Any, call: Call) -> RelayExpr:
        values = [getattr(call.attrs, attr) for attr in attrs]
        hint = name or function.__name__
        found: RelayExpr = bb.call_te(function, *call.args, *values, primfunc_name_hint=hint)
        return found

    return legalize


def scalar_or(value: RelayExpr, as_number: bool = True) -> Any:
    """The number of a scalar constant as an expression of the loop level; others themselves."""
    if isinstance(value, Constant) and as_number and value.struct_info.ndim == 0:
        return tir.const(value.data.numpy().item(), value.struct_info.dtype)
    if isinstance(value, PrimValue):
        return value.value
    return value


def has_known_shape(info: Any) -> bool:
    """Whether a value's struct info says all that a loop program needs."""
    if isinstance(info, TensorStructInfo):
        return info.dimensions is not None and not info.dtype.is_void
    if hasattr(info, "fields"):
        return all([has_known_shape(field) for field in info.fields])
    if hasattr(info, "values"):
        return info.values is not None
    return True


def binary_call(function: Callable[..., Any], name: str | None = None) -> Legalize:
    """The function of two arguments, of which a scalar constant becomes a number."""

    def legalize(bb: Any, call: Call) -> RelayExpr:
        a, b = [_number(arg) for arg in call.args]
        if not any([isinstance(x, RelayExpr) for x in (a, b)]):
            a = call.args[0]
        if isinstance(a, PrimValue) and isinstance(b, PrimValue):
            return call
        hint = name or function.__name__
        found: RelayExpr = bb.call_te(function, a, b, primfunc_name_hint=hint)
        return found

    return legalize


def _number(value: RelayExpr) -> Any:
    info = value.struct_info_
    if isinstance(info, PrimStructInfo) and info.value is None:
        return value
    return scalar_or(value)


def value_of(constant: Constant) -> np.ndarray[Any, Any]:
    """The array of a constant."""
    found: np.ndarray[Any, Any] = constant.data.numpy()
    return found


__all__ = ["Legalize", "binary_call", "has_known_shape", "scalar_or", "te", "topi_call", "value_of"]
