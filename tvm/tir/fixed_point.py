"""Products of fixed-point numbers in terms of integer arithmetic, for targets without an instruction.

q_multiply_shift(x, y, q, s)    ->    int32((int64(x) * int64(y) + (1 << (q - s - 1))) >> (q - s))

Halves are rounded up.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.op import register_intrin_lowering
from tvm.support.dtype import dtype as as_dtype

from . import math_op, op
from .expr import Broadcast, Call, IntImm, const

INT64 = as_dtype("int64")


def _product(x: PrimExpr, y: PrimExpr) -> Any:
    wide = INT64.with_lanes(x.dtype.lanes)
    return op.multiply(op.cast(x, wide), op.cast(y, wide))


def _shifted_right(value: Any, distance: PrimExpr) -> Any:
    """``round(value * 2**-distance)``; a negative distance moves to the left."""
    kind = value.dtype
    if (known := _constant(distance)) is not None:
        if known <= 0:
            return math_op.shift_left(value, const(-known, kind))
        return math_op.shift_right(value + const(1 << (known - 1), kind), const(known, kind))
    wide = op.cast(distance, kind)
    zero, one = const(0, kind), const(1, kind)
    half = op.select(
        op.greater(wide, zero), math_op.shift_left(one, op.maximum(wide, one) - one), zero
    )
    left = math_op.shift_left(value, op.maximum(op.subtract(zero, wide), zero))
    return math_op.shift_right(left + half, op.maximum(wide, zero))


def _constant(e: PrimExpr) -> int | None:
    if isinstance(e, Broadcast):
        e = e.value
    return e.value if isinstance(e, IntImm) else None


def lower_q_multiply_shift(call: Call) -> PrimExpr:
    """One shift for all elements: to the left by ``s``, or to the right by ``-s``."""
    x, y, q, s = call.args
    return op.cast(_shifted_right(_product(x, y), op.subtract(q, s)), call.dtype)


def lower_q_multiply_shift_per_axis(call: Call) -> PrimExpr:
    """Shifts to the left before the product and to the right after it, each where it is required."""
    x, y, left, right, q, has_left, has_right = call.args
    wide = INT64.with_lanes(x.dtype.lanes)
    moved = math_op.shift_left(op.cast(x, wide), op.cast(_if_required(has_left, left), wide))
    distance = op.add(q, _if_required(has_right, right))
    return op.cast(_shifted_right(_product(moved, y), distance), call.dtype)


def _if_required(flag: PrimExpr, distance: PrimExpr) -> PrimExpr:
    if (known := _constant(flag)) is not None:
        return distance if known else const(0, distance.dtype)
    return op.select(op.cast(flag, f"bool{_lanes(flag)}"), distance, const(0, distance.dtype))


def _lanes(e: PrimExpr) -> str:
    return f"x{e.dtype.lanes}" if e.dtype.lanes > 1 else ""


register_intrin_lowering("tir.q_multiply_shift", "default", f=lower_q_multiply_shift, level=0)
register_intrin_lowering(
    "tir.q_multiply_shift_per_axis", "default", f=lower_q_multiply_shift_per_axis, level=0
)
