"""Give a function plain C parameters: pointers to data and scalars, with no checks.

def f(A: handle, n: int32)   ->    def f(A: pointer, n: int32) -> int32
    ...                                ...
                                       return 0
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.type import PrimType
from tvm.tir.expr import StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, Evaluate, Stmt, seq
from tvm.tir.transform.abi import INT32
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.make_packed_api import device_type_of, is_exposed, success


@prim_func_pass("tir.MakeUnpackedAPI")
def make_unpacked_api(func: PrimFunc) -> PrimFunc:
    """Make functions that have a global symbol callable from C."""
    if not is_exposed(func) or func.get_attr("tir.unpacked_api", False):
        return func
    target = func.get_attr("target")
    if target is None:
        raise LoweringError(
            "MakeUnpackedAPI requires functions with a target, got one without",
            hint="run BindTarget(target) first",
            classic="MakeUnpackedAPI required the function to be annotated with tvm::attr::kTarget",
        )
    params: list[Var] = []
    body: Stmt = seq([func.body, Evaluate(success())])
    for param in func.params:
        buffer = func.buffer_map.get(param)
        params.append(param if buffer is None else buffer.data)
    device_type = device_type_of(target)
    node = StringImm("default")
    if func.buffer_map and device_type is not None:
        body = AttrStmt(node, "device_type", const(device_type, INT32), body)
        body = AttrStmt(node, "device_id", const(0, INT32), body)
    unpacked = PrimFunc(params, body, PrimType(INT32), {}, func.attrs, func.span)
    return unpacked.with_attr("tir.unpacked_api", True)


MakeUnpackedAPI = make_unpacked_api.factory
