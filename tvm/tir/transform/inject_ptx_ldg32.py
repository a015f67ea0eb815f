"""Load where a condition holds by an instruction of PTX that goes past the first cache.

L[tx] = if_then_else(c, A[tx // 2], 0)    ->    L[tx] = 0
                                                ptx_ldg32(L, c, A[tx // 2], tx)

The instruction leaves the register as it is where the condition does not hold.
"""

from __future__ import annotations

from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter
from tvm.tir.builtin import intrinsic_call
from tvm.tir.expr import BufferLoad, Call
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferStore, Evaluate, Stmt, seq
from tvm.tir.transform.common import IF_THEN_ELSE, is_constant, prim_func_pass


class LoadInjector(Rewriter):
    """Rewrites guarded loads of 32 bits from global memory to registers."""

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        value = store.value
        if store.buffer.scope() != "local" or store.predicate is not None:
            return store
        if not isinstance(value, Call) or value.op is not IF_THEN_ELSE:
            return store
        condition, load, otherwise = value.args
        is_load = isinstance(load, BufferLoad) and load.buffer.scope() == "global"
        is_flat = len(store.indices) == 1 and store.value.dtype == "float32"
        if not is_load or not is_flat or not is_constant(otherwise):
            return store
        args = [store.buffer.data, condition, load, store.indices[0]]
        loaded = Evaluate(intrinsic_call(store.buffer.dtype, "ptx_ldg32", args))
        return seq([store.replace(value=otherwise), loaded])


def InjectPTXLDG32(enable_inject_ptx_intrin: bool = True) -> Pass:
    """Use predicated loads for guarded ones, if it is enabled."""

    @prim_func_pass("tir.InjectPTXLDG32")
    def inject_ptx_ldg32(func: PrimFunc) -> PrimFunc:
        return func.with_body(LoadInjector().visit(func.body)) if enable_inject_ptx_intrin else func

    return inject_ptx_ldg32.factory()
