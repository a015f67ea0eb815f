"""Mark the whole function as what a device runs.

B[0] = A[0]                  ->    attr(0, "device_scope", 0):
                                       B[0] = A[0]
"""

from __future__ import annotations

from tvm.tir.expr import StringImm, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt
from tvm.tir.transform.common import prim_func_pass

DEVICE_SCOPE = "device_scope"


@prim_func_pass("tir.DecorateDeviceScope")
def decorate_device_scope(func: PrimFunc) -> PrimFunc:
    """Put the body under the attribute that the split of host and device looks for."""
    if isinstance(func.body, AttrStmt) and func.body.attr_key == DEVICE_SCOPE:
        return func
    return func.with_body(AttrStmt(StringImm(""), DEVICE_SCOPE, const(0, "int32"), func.body))


DecorateDeviceScope = decorate_device_scope.factory
