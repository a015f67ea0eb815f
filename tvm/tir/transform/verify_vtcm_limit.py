"""Reject functions that allocate more of a DSP's fast memory than there is."""

from __future__ import annotations

from typing import Any

from tvm.error import LoweringError
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import Pass
from tvm.tir.analysis.allocated_bytes import peaks
from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import prim_func_pass

SCOPE = "global.vtcm"


def VerifyVTCMLimit(limit: Any = None) -> Pass:
    """The pass.

    Parameters
    ----------
    limit : int or Target, optional
        The bytes there are, or the target that knows; by default that of the function, or the
        option ``tir.vtcm_capacity``. Nothing is checked where neither tells.
    """

    @prim_func_pass("tir.VerifyVTCMLimit")
    def verify_vtcm_limit(func: PrimFunc) -> PrimFunc:
        capacity = capacity_of(limit if limit is not None else func.get_attr("target"))
        needed = peaks(func).get(SCOPE, 0)
        if 0 < capacity < needed:
            raise LoweringError(f"allocations of {SCOPE} need {needed} bytes, there are {capacity}")
        return func

    return verify_vtcm_limit.factory()


def capacity_of(limit: Any) -> int:
    """The bytes that a number or a target allows; 0 stands for any."""
    if limit is None or isinstance(limit, int):
        return limit or PassContext.current().get("tir.vtcm_capacity", 0)
    return int(getattr(limit, "vtcm_capacity", 0) or 0)
