"""Global functions ``testing.*`` whose parameters are expressions, to test how values become them."""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import register_func
from tvm.ir.container import Array, Map
from tvm.ir.expr import PrimExpr
from tvm.runtime import PackedFunc, String
from tvm.tir import IntImm
from tvm.tir.constants import as_expr


@register_func("testing.AcceptsPrimExpr", override=True)
def accept_expression(value: Any) -> PrimExpr:
    """The value as an expression."""
    return as_expr(value)


@register_func("testing.AcceptsArrayOfPrimExpr", override=True)
def accept_expressions(values: Any) -> Any:
    """An array with every value as an expression."""
    if not isinstance(values, Array):
        raise TypeError(f"AcceptsArrayOfPrimExpr needs an Array, got {type(values).__name__}")
    return Array([as_expr(value) for value in values])


@register_func("testing.AcceptsMapOfPrimExpr", override=True)
def accept_map_of_expressions(values: Any) -> Any:
    """A map with every value as an expression."""
    if not isinstance(values, Map):
        raise TypeError(f"AcceptsMapOfPrimExpr needs a Map, got {type(values).__name__}")
    return Map({key: as_expr(value) for key, value in values.items()})


@register_func("testing.AcceptsArrayOfVariant", override=True)
def accept_functions_or_expressions(values: Any) -> Any:
    """An array of functions as they are, and of the other values as expressions."""
    return Array([value if isinstance(value, PackedFunc) else as_expr(value) for value in values])


@register_func("testing.AcceptsVariant", override=True)
def accept_text_or_expression(value: Any) -> str:
    """The type key of text or of an integer."""
    if isinstance(value, str):
        return "runtime.String"
    number = as_expr(value)
    if not isinstance(number, IntImm):
        raise TypeError(f"AcceptsVariant needs a String or an IntImm, got {number.type_key}")
    return number.type_key


@register_func("testing.ReturnsVariant", override=True)
def return_text_or_number(value: int) -> Any:
    """Half of an even number, else text."""
    return String("argument was odd") if value % 2 else IntImm("int64", value // 2)
