"""The neighbour of a 16-bit float: its bit pattern, as an integer, plus or minus one."""

from __future__ import annotations

from tvm.support.dtype import dtype as as_dtype
from tvm.tir import math_op, op
from tvm.tir.expr import Cast, Select, const

from .bits import FLOAT32, Lanes

INT16 = as_dtype("int16")
SIGN = -(1 << 15)


def next_short_float(x: Lanes, y: Lanes) -> Lanes:
    """The next value after ``x`` towards ``y`` of float16 or bfloat16."""
    lanes = x.dtype.lanes
    short, wide = INT16.with_lanes(lanes), FLOAT32.with_lanes(lanes)
    a, b, zero = Cast(wide, x), Cast(wide, y), const(0, wide)
    pattern = math_op.reinterpret(short, x)
    away = op.equal(op.greater(b, a), op.greater(a, zero))
    moved = op.add(pattern, Select(away, const(1, short), const(-1, short)))
    smallest = Select(op.less(b, zero), const(SIGN + 1, short), const(1, short))
    found = Select(op.equal(a, zero), smallest, moved)
    found = Select(op.equal(a, b), math_op.reinterpret(short, y), found)
    result = math_op.reinterpret(x.dtype, found)
    # a NaN differs from itself
    result = Select(op.equal(a, a), result, x)
    return Select(op.equal(b, b), result, y)
