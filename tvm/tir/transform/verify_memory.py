"""Reject functions of a device that access its memory outside of threads.

A function for a GPU target must bind its loops to threads; on a CPU every access is legal.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.tir.analysis.verify_memory import memory_problems
from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import prim_func_pass


@prim_func_pass("tir.VerifyMemory")
def verify_memory(func: PrimFunc) -> PrimFunc:
    """Check that the host does not access the memory of a device."""
    if found := memory_problems(func):
        name = func.get_attr("global_symbol", "a function")
        raise LoweringError(
            f"Memory verification failed: {name} accesses {', '.join(found)} of the device outside of "
            "its threads",
            hint="bind the loops: s[op].bind(axis, te.thread_axis('threadIdx.x'))",
        )
    return func


VerifyMemory = verify_memory.factory
