"""Copy to shared memory without waiting, by an instruction of PTX.

attr "async_scope":                 ->    ptx_cp_async(S, tx*4, A, i*128 + tx*4, 16)
    S[ramp(tx*4, 1, 4)] =
        A[ramp(i*128 + tx*4, 1, 4)]

The instruction copies 4, 8 or 16 bytes; other stores stay. A copy under a condition is zero where it does not hold.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.builtin import intrinsic_call
from tvm.tir.expr import Add, Broadcast, BufferLoad, Call, IntImm, Ramp, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate, Stmt
from tvm.tir.transform.common import IF_THEN_ELSE, is_constant, prim_func_pass

SIZES = (4, 8, 16)


class AsyncCopyInjector(Rewriter):
    """Rewrites copies inside of asynchronous scopes."""

    def __init__(self) -> None:
        self.is_async = False

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "async_scope":
            return self.rewrite_children(attr)
        if self.is_async:
            raise LoweringError("an async_scope cannot be inside of another", at=attr)
        self.is_async = True
        body: Stmt = self.visit(attr.body)
        self.is_async = False
        return body

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        if not self.is_async or store.buffer.scope() not in ("shared", "shared.dyn"):
            return store
        value, condition = store.value, None
        if isinstance(value, Call) and value.op is IF_THEN_ELSE and _is_zero(value.args[2]):
            condition, value = value.args[0], value.args[1]
        if not isinstance(value, BufferLoad) or value.buffer.scope() != "global":
            return store
        return _copy(store, value, condition) or store


def _copy(store: BufferStore, load: BufferLoad, condition: PrimExpr | None) -> Stmt | None:
    if len(store.indices) != 1 or len(load.indices) != 1 or store.predicate or load.predicate:
        return None
    lanes, size = load.indices[0].dtype.lanes, load.buffer.dtype.itemsize
    target, source = _first(store.indices[0]), _first(load.indices[0])
    if lanes * size not in SIZES or target is None or source is None:
        return None
    if condition is not None and condition.dtype.lanes > 1:
        if not isinstance(condition, Broadcast):
            return None
        condition = condition.value
    if store.buffer.dtype != load.buffer.dtype:
        return None
    args = [store.buffer.data, target, load.buffer.data, source, const(lanes * size, "int32")]
    if condition is not None:
        args.append(condition)
    return Evaluate(intrinsic_call(store.buffer.dtype, "ptx_cp_async", args))


def _first(index: PrimExpr) -> PrimExpr | None:
    """The first of neighbouring elements."""
    if index.dtype.lanes == 1:
        return index
    if isinstance(index, Add) and isinstance(index.b, Broadcast):
        first = _first(index.a)
        return None if first is None else op.add(first, index.b.value)
    is_dense = isinstance(index, Ramp) and isinstance(index.stride, IntImm)
    return index.base if is_dense and index.stride.value == 1 else None  # type: ignore[attr-defined]


def _is_zero(value: PrimExpr) -> bool:
    if isinstance(value, Broadcast):
        return _is_zero(value.value)
    return is_constant(value) and not value.value  # type: ignore[attr-defined]


@prim_func_pass("tir.InjectPTXAsyncCopy")
def inject_ptx_async_copy(func: PrimFunc) -> PrimFunc:
    """Use asynchronous copies where ``async_scope`` says so."""
    return func.with_body(AsyncCopyInjector().visit(func.body))


InjectPTXAsyncCopy = inject_ptx_async_copy.factory
