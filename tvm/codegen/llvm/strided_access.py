"""Strided loads: contiguous vectors are loaded, then shuffled.

A[ramp(i, 2, 16)]               ->    shuffle(A[i : i + 16], A[i + 15 : i + 31], 0, 2, ..., 31)
A[ramp(i * 16, 1, 16) // 2]     ->    shuffle(A[i * 8 : i * 8 + 8], 0, 0, 1, 1, ..., 7, 7)

All that is loaded lies between two elements that are read anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import Add, Broadcast, Call, Cast, IntImm, Mul, Ramp, Sub, const
from tvm.tir.intrinsics import INTRINSICS

SHIFT_RIGHT = INTRINSICS["shift_right"]
# fewer lanes are loaded one by one
LEAST_LANES = 4


@dataclass(frozen=True, slots=True)
class StridedAccess:
    """Where the lanes of an index are."""

    base: PrimExpr  # a scalar
    offsets: tuple[int, ...]  # from the base

    @property
    def first(self) -> int:
        return min(self.offsets)

    @property
    def span(self) -> int:
        """From the first element to the last."""
        return max(self.offsets) - self.first + 1

    @property
    def width(self) -> int:
        """Lanes of each of one or two vectors that hold all."""
        return self.span if self.span <= len(self.offsets) else -(-self.span // 2)

    @property
    def second(self) -> int:
        """Where the second vector begins."""
        return self.first + self.span - self.width

    def order(self) -> list[int]:
        """For each lane its index among those of both vectors."""
        positions = [offset - self.first for offset in self.offsets]
        return [
            p if p < self.width else p - (self.span - self.width) + self.width for p in positions
        ]


def find_strided_access(index: PrimExpr) -> StridedAccess | None:
    """The lanes of an index, if two vectors of as many lanes hold all that they read."""
    if index.dtype.lanes < LEAST_LANES or index.dtype.is_scalable:
        return None
    found = _lanes(index)
    return found if found is not None and found.span <= 2 * len(found.offsets) else None


def _lanes(e: PrimExpr) -> StridedAccess | None:
    if isinstance(e, Broadcast) and e.value.dtype.lanes == 1:
        return StridedAccess(e.value, (0,) * e.lanes)
    if isinstance(e, Ramp) and type(e.stride) is IntImm and e.base.dtype.lanes == 1:
        return StridedAccess(e.base, tuple([e.stride.value * i for i in range(e.lanes)]))
    if isinstance(e, Cast) and e.dtype.is_int and e.value.dtype.is_int:
        inner = _lanes(e.value) if e.value.dtype.bits <= e.dtype.bits else None
        return inner and StridedAccess(Cast(e.dtype.element, inner.base), inner.offsets)
    if isinstance(e, (Add, Sub)):
        return _sum(e)
    if isinstance(e, Mul) and (factor := _constant(e.b)) is not None:
        inner = _lanes(e.a)
        return inner and StridedAccess(
            Mul(inner.base, const(factor, inner.base.dtype)),
            tuple([offset * factor for offset in inner.offsets]),
        )
    return _shifted(e)


def _sum(e: Add | Sub) -> StridedAccess | None:
    left, right = _lanes(e.a), _lanes(e.b)
    if left is None or right is None:
        return None
    sign = 1 if isinstance(e, Add) else -1
    pairs = zip(left.offsets, right.offsets, strict=True)
    return StridedAccess(type(e)(left.base, right.base), tuple([a + sign * b for a, b in pairs]))


def _shifted(e: PrimExpr) -> StridedAccess | None:
    """A quotient by a power of two that divides the base: floor((b + o) / d) = b / d + floor(o / d)."""
    if isinstance(e, Call) and e.op is SHIFT_RIGHT and (shift := _constant(e.args[1])) is not None:
        inner = _lanes(e.args[0])
        if inner is None or not 0 <= shift < 31 or _factor(inner.base) % (1 << shift):
            return None
        amount = const(shift, inner.base.dtype)
        base = Call(inner.base.dtype, SHIFT_RIGHT, [inner.base, amount])
        return StridedAccess(base, tuple([offset >> shift for offset in inner.offsets]))
    return None


def _constant(e: PrimExpr) -> int | None:
    value = e.value if isinstance(e, Broadcast) else e
    return value.value if type(value) is IntImm else None


def _factor(e: PrimExpr) -> int:
    """A number that divides the expression; 0 for zero."""
    if type(e) is IntImm:
        return abs(e.value)
    if isinstance(e, Mul) and type(e.b) is IntImm:
        return abs(e.b.value) * max(_factor(e.a), 1)
    if isinstance(e, (Add, Sub)):
        left, right = _factor(e.a), _factor(e.b)
        return math.gcd(left, right)
    return 1
