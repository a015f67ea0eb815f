"""Address the memory of special units in their own words.

A = allocate([64], "int8", "local.inp_buffer")     ->    call_extern("load", 2)
call_extern("load", tvm_access_ptr(A, 32))               where an address counts 16 elements

The memory is the unit's: its allocation goes, or becomes the address at which it begins.
"""

from __future__ import annotations

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import decl_buffer
from tvm.tir.builtin import call_intrin
from tvm.tir.expr import BufferLoad, Call, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.memory_info import MemoryInfo, memory_info
from tvm.tir.stmt import Allocate, LetStmt, Stmt
from tvm.tir.transform.common import prim_func_pass

ACCESS_PTR = INTRINSICS["tvm_access_ptr"]


class AccessLowerer(Rewriter):
    """Removes allocations of described memory, and lowers the pointers into it."""

    def __init__(self) -> None:
        self.infos: dict[Var, MemoryInfo] = {}
        self.scopes: dict[str, None] = {}
        self.analyzer = Analyzer()

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        scope = str(getattr(alloc.buffer_var.type_annotation, "storage_scope", ""))
        info = memory_info(scope)
        if info is None:
            return self.rewrite_children(alloc)
        if scope in self.scopes:
            raise LoweringError(f"memory of scope {scope} can be allocated once only", at=alloc)
        size = alloc.constant_size()
        bits = alloc.dtype.bits * alloc.dtype.lanes
        if size is None or size * bits > info.max_num_bits:
            raise LoweringError(
                f"memory of scope {scope} has {info.max_num_bits} bits, got an allocation of "
                f"{alloc.extents} times {bits}",
                at=alloc,
            )
        self.scopes[scope] = None
        self.infos[alloc.buffer_var] = info
        body: Stmt = self.visit(alloc.body)
        if info.head_address is None:
            return body
        return LetStmt(alloc.buffer_var, info.head_address, body)

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        if call.op is not ACCESS_PTR:
            return call
        kind, data, offset = call.args[:3]
        if not isinstance(data, Var) or (info := self.infos.get(data)) is None:
            return call
        if call.dtype.is_handle:
            if info.head_address is None:
                raise LoweringError("a pointer into memory without an address", at=call)
            view = decl_buffer((offset + 1,), kind.dtype, data.name, data=data)
            return call_intrin("handle", "tir.address_of", BufferLoad(view, (offset,)))
        bits = kind.dtype.bits * kind.dtype.lanes
        if info.unit_bits % bits:
            raise LoweringError(
                f"an address counts {info.unit_bits} bits, which is no number of {kind.dtype}",
                at=call,
            )
        unit = self.analyzer.simplify(op.floordiv(offset, info.unit_bits // bits))
        return op.cast(unit, call.dtype)


@prim_func_pass("tir.LowerDeviceStorageAccessInfo")
def lower_device_storage_access_info(func: PrimFunc) -> PrimFunc:
    """Lower what is allocated in scopes that ``tvm.info.mem`` describes."""
    return func.with_body(AccessLowerer().visit(func.body))


LowerDeviceStorageAccessInfo = lower_device_storage_access_info.factory
