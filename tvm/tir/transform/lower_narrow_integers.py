"""Compute with integers of fewer than 8 bits in bytes.

C: Buffer(int4)              ->    C: Buffer(int8)
C[i] = A[i] + B[i]                 C[i] = ((A[i] + B[i]) << 4) >> 4

A value takes a byte in memory, its sign extended; results wrap around as those of other integers do.
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import DType, has_narrow_integers
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import (
    Add,
    BinaryOpExpr,
    Call,
    Cast,
    Div,
    FloorDiv,
    IntImm,
    Mul,
    Sub,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.math_op import bitwise_and, shift_left, shift_right
from tvm.tir.transform.common import IF_THEN_ELSE, prim_func_pass
from tvm.tir.transform.storage_change import StorageChanger

# quotients too: of the least number and -1
MAY_LEAVE_THE_RANGE = (Add, Sub, Mul, Div, FloorDiv)


LLVM_INTRINSICS = (Op.get("tir.call_llvm_intrin"), Op.get("tir.call_llvm_pure_intrin"))


def _as_bool(e: PrimExpr) -> PrimExpr:
    """A scalar of one bit as a truth value."""
    is_bit = e.dtype.is_narrow_integer and e.dtype.bits == e.dtype.lanes == 1
    if isinstance(e, IntImm) and is_bit:
        return const(e.value, "bool")
    return Cast(as_dtype("bool"), e) if is_bit else e


def wrapped(value: PrimExpr, dtype: DType) -> PrimExpr:
    """A byte brought into the range of a narrower integer."""
    if dtype.is_uint or dtype.bits == 1:
        return bitwise_and(value, const((1 << dtype.bits) - 1, value.dtype))
    shift = const(8 - dtype.bits, value.dtype)
    return shift_right(shift_left(value, shift), shift)


class NarrowIntegerLowerer(StorageChanger):
    """Puts bytes in the place of narrow integers."""

    def storage(self, dtype: DType) -> DType:
        if not dtype.is_narrow_integer:
            return dtype
        return as_dtype("int8" if dtype.is_int else "uint8").with_lanes(dtype.lanes)

    def visit_int_imm(self, e: IntImm) -> PrimExpr:
        return IntImm(self.storage(e.dtype), e.value) if e.dtype.is_narrow_integer else e

    def visit_cast(self, e: Cast) -> PrimExpr:
        value = self.visit(e.value)
        if not e.dtype.is_narrow_integer:
            return e if value is e.value else Cast(e.dtype, value)
        return wrapped(Cast(self.storage(e.dtype), value), e.dtype)

    def visit_binary_op_expr(self, e: BinaryOpExpr) -> PrimExpr:
        new = self.rewrite_children(e)
        leaves = e.dtype.is_narrow_integer and isinstance(e, MAY_LEAVE_THE_RANGE)
        return wrapped(new, e.dtype) if leaves else new

    def visit_call(self, call: Call) -> PrimExpr:
        if call.op in LLVM_INTRINSICS:  # which know one bit
            call = call.replace(args=[_as_bool(arg) for arg in call.args])
        new = self.rewrite_children(call)
        if not call.dtype.is_narrow_integer:
            return new
        result = new.replace(dtype=self.storage(call.dtype))
        return result if call.op is IF_THEN_ELSE else wrapped(result, call.dtype)


@prim_func_pass("tir.LowerNarrowIntegers")
def lower_narrow_integers(func: PrimFunc) -> PrimFunc:
    """Lower integers of fewer than 8 bits."""
    return NarrowIntegerLowerer().function(func) if has_narrow_integers() else func


LowerNarrowIntegers = lower_narrow_integers.factory
