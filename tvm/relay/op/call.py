"""Calls of functions that were lowered to loops.

call_lowered(@fused_add, (%x, %y))     calls the loops of @fused_add, or the relay function that they
                                       will be made of
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.attrs import Attrs
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.node import leaf
from tvm.ir.span import Span
from tvm.ir.type import FuncType, TupleType, Type
from tvm.relay.expr import Call, Tuple

from .operator import Expr, Tensors, operator
from .registry import ops
from .types import expect


class CallLoweredAttrs(Attrs, key="relay.attrs.CallLoweredAttrs"):
    """What the lowering noted about the call."""

    metadata: dict[str, Any] = leaf(default_factory=dict)


def _type(attrs: CallLoweredAttrs, arg_types: Sequence[Type]) -> Type:
    callee, given = arg_types
    fits = isinstance(callee, FuncType) and isinstance(given, TupleType)
    expect(fits, f"call_lowered requires a function and a tuple, got {callee} and {given}")
    assert isinstance(callee, FuncType) and isinstance(given, TupleType)
    expect(
        len(callee.arg_types) == len(given.fields),
        f"call_lowered requires {len(callee.arg_types)} arguments in its tuple, got "
        f"{len(given.fields)}",
    )
    return callee.ret_type


@operator("call_lowered", CallLoweredAttrs, infer_type=_type)
def _lowered(func: Expr, call_args: Tensors) -> RelayExpr:
    """A call of a function that was lowered."""


def call_lowered(
    expr: GlobalVar, inputs: Sequence[RelayExpr] | Tuple, span: Span | None = None
) -> Call:
    """A call of a function that was lowered.

    Parameters
    ----------
    expr : GlobalVar
        The function.
    inputs : relay.Tuple
        Its arguments.
    """
    if not isinstance(expr, GlobalVar):
        raise TypeError(f"call_lowered requires a GlobalVar, got {type(expr).__name__}")
    given = inputs if isinstance(inputs, Tuple) else Tuple(list(inputs))
    return Call(ops.call_lowered, [expr, given], CallLoweredAttrs(), span=span)
