"""Relax programs: ``from tvm.script.ir_builder import relax as R``."""

from __future__ import annotations

import builtins
from typing import Any

from tvm.relax import op as _op

from . import frame
from .ir import (
    Else,
    ExternFunc,
    If,
    ShapeExpr,
    Then,
    TupleGetItem,
    arg,
    call_packed,
    const,
    dataflow,
    dtype,
    emit,
    emit_match_cast,
    emit_te,
    emit_var_binding,
    emit_with_sinfo,
    func_attr,
    func_name,
    func_ret_struct_info,
    func_ret_value,
    function,
    invoke_closure,
    output,
    prim_value,
    shape,
    str,
    tuple,
)

_OTHER_NAMES = {"dist": "distributed"}


def __getattr__(name: builtins.str) -> Any:
    """The operators of relax."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_op, _OTHER_NAMES.get(name, name))


__all__ = [
    "Else", "ExternFunc", "If", "ShapeExpr", "Then", "TupleGetItem", "arg", "call_packed", "const",
    "dataflow", "dtype", "emit", "emit_match_cast", "emit_te", "emit_var_binding",
    "emit_with_sinfo", "frame", "func_attr", "func_name", "func_ret_struct_info", "func_ret_value",
    "function", "invoke_closure", "output", "prim_value", "shape", "str", "tuple",
]  # fmt: skip
