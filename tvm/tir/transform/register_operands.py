"""Which operands of matrix units are a thread's own registers, told by a pointer and, behind it, an index."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.tir.expr import Call
from tvm.tir.intrinsics import INTRINSICS

_PLACES: dict[RelayExpr, tuple[int, ...]] = {
    INTRINSICS["ptx_mma"]: (6, 8, 10),
    INTRINSICS["ptx_ldmatrix"]: (3,),
    INTRINSICS["mma_fill"]: (1,),
    INTRINSICS["mma_store"]: (3,),
}


def register_operands(call: Call) -> tuple[int, ...]:
    """The numbers of the arguments that are pointers to registers; the index is the next argument."""
    return _PLACES.get(call.op, ())
