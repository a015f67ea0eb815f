"""Compute all indices in 32 bits, also those that depend on 64-bit parameters.

    for i in range(int64(8)):    ->    for i in range(8):
        B[i * int64(4)] = ...              B[i * 4] = ...

A parameter that is not an index keeps its type; a buffer of 64-bit integers is refused.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.narrow_data_type import IndexNarrower, WideVariableFinder


@prim_func_pass("tir.ForceNarrowIndexToInt32")
def force_narrow_index_to_int32(func: PrimFunc) -> PrimFunc:
    """Narrow every loop variable."""
    for buffer in func.buffer_map.values():
        if buffer.dtype.is_int and buffer.dtype.bits > 32:
            raise LoweringError(
                f"ForceNarrowIndexToInt32 needs buffers of at most 32-bit integers, got {buffer.name} "
                f"of {buffer.dtype}"
            )
    finder = WideVariableFinder(32)
    finder.visit(func.body)
    if not finder.wide:
        return func
    return func.with_body(IndexNarrower(finder.wide, 32).visit(func.body))


ForceNarrowIndexToInt32 = force_narrow_index_to_int32.factory
