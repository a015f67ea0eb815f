"""Rounding of floats: floor, ceil, trunc and the nearest integer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr

from .expr import Call, FloatImm, as_expr
from .fold import float_imm
from .intrinsics import INTRINSICS

if TYPE_CHECKING:
    from tvm.ir.span import Span

make_call: Callable[..., PrimExpr] = Call._make


def _rounding(name: str, function: Callable[[float], float], text: str) -> Callable[..., PrimExpr]:
    intrinsic = INTRINSICS[name]

    def build(x: Any, span: Span | None = None) -> PrimExpr:
        value = as_expr(x)
        if not value.dtype.is_float:
            return value
        if type(value) is FloatImm and math.isfinite(value.value):
            return float_imm(value.dtype, function(value.value))
        return make_call(value.dtype, intrinsic, (value,), span)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""Floats rounded {text}; integers as they are.

    Parameters
    ----------
    x : PrimExpr or number
        The operand.
    span : Span, optional
        The place in a source.

    Returns
    -------
    PrimExpr
        Of the operand's dtype.
    """
    return build


floor = _rounding("floor", math.floor, "down")
ceil = _rounding("ceil", math.ceil, "up")
trunc = _rounding("trunc", math.trunc, "towards zero")
nearbyint = _rounding("nearbyint", lambda x: float(x.__round__()), "to the nearest, ties to even")
round = _rounding("round", lambda x: float(x.__round__()), "to the nearest, ties to even")
