"""The functions that hybrid scripts may call: each takes the name it is called by, and the arguments.

calls.ceil_div("ceil_div", [n, 4])        # (n + 4 - 1) // 4
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.target import Target
from tvm.tir import math_op as m
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, as_expr, const
from tvm.tir.op import maximum, minimum

from ..declare import thread_axis
from .runtime import DTYPES

Args = Sequence[Any]


def bind(func_id: str, args: Args) -> tuple[IterVar, PrimExpr, PrimExpr, None]:
    """The axis of a loop over threads, its first value, its extent, and no kind of loop."""
    tag, extent = _required(func_id, args, 2)
    if not isinstance(tag, str):
        raise TypeError(f"bind requires a thread's name, got {type(tag).__name__}")
    axis = thread_axis((0, extent), tag)
    return axis, const(0, "int32"), as_expr(extent), None


def len(func_id: str, args: Args) -> Any:
    """The first extent of a tensor, or the number of values in a tuple."""
    (value,) = _required(func_id, args, 1)
    if isinstance(value, Buffer):
        return value.shape[0]
    if isinstance(value, (list, tuple)):
        return builtins.len(value)
    raise TypeError(f"len requires a tensor or a tuple, got {type(value).__name__}")


def ceil_div(func_id: str, args: Args) -> PrimExpr:
    """The quotient, rounded up."""
    a, b = _required(func_id, args, 2)
    return op.floordiv(op.subtract(op.add(a, b), 1), b)


def likely(func_id: str, args: Args) -> PrimExpr:
    """A condition that mostly holds."""
    (condition,) = _required(func_id, args, 1)
    return m.likely(as_expr(condition))


def max_num_threads(func_id: str, args: Args) -> PrimExpr:
    """The most threads in a block of the current target."""
    allow_none = args[0] if args else True
    target = Target.current(bool(allow_none))
    return const(1 if target is None else int(target.max_num_threads), "int32")


def inf(func_id: str, args: Args) -> PrimExpr:
    """The largest value of a dtype."""
    return m.max_value(*_required(func_id, args, 1))


def ninf(func_id: str, args: Args) -> PrimExpr:
    """The smallest value of a dtype."""
    return m.min_value(*_required(func_id, args, 1))


def _cast(func_id: str, args: Args) -> PrimExpr:
    (value,) = _required(func_id, args, 1)
    return op.cast(as_expr(value), func_id)


def _float(func_id: str, args: Args) -> PrimExpr:
    """Whole numbers become floats first, as in Python."""
    expr = as_expr(*_required(func_id, args, 1))
    result: PrimExpr = getattr(m, func_id)(
        expr if expr.dtype.is_float else op.cast(expr, "float32")
    )
    return result


def _plain(func_id: str, args: Args) -> PrimExpr:
    result: PrimExpr = getattr(m, func_id)(*args)
    return result


def _fold(func_id: str, args: Args) -> PrimExpr:
    combine = maximum if func_id == "max" else minimum
    first, *rest = args
    for value in rest:
        first = combine(first, value)
    return as_expr(first)


def _required(func_id: str, args: Args, count: int) -> Args:
    if (given := builtins.len(args)) != count:
        raise TypeError(f"{func_id} requires {count} arguments, got {given}")
    return args


CALLS: dict[str, Callable[[str, Args], Any]] = {
    **dict.fromkeys(DTYPES, _cast),
    **dict.fromkeys(("sqrt", "rsqrt", "log", "tanh", "exp", "erf", "sigmoid"), _float),
    **dict.fromkeys(("power", "popcount", "round", "abs"), _plain),
    **dict.fromkeys(("max", "min"), _fold),
    "len": len,
    "likely": likely,
    "ceil_div": ceil_div,
    "max_num_threads": max_num_threads,
    "inf": inf,
    "ninf": ninf,
}
