"""Turn prefetches of regions into calls for each element that a cache line begins with.

prefetch(A[i : i + 1, 0 : 64])   ->    for k in range(4):
                                           call prefetch(&A[i, k * 16], 0, 3, 1)
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir.builtin import address_of
from tvm.tir.expr import BufferLoad, Call, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import Evaluate, For, ForKind, Prefetch, Stmt
from tvm.tir.transform.common import prim_func_pass

CACHE_LINE_BYTES = 64


class PrefetchInjector(Rewriter):
    """Writes the loops over a region."""

    def __init__(self, line_bytes: int = CACHE_LINE_BYTES) -> None:
        self.line_bytes = line_bytes

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        buffer = node.buffer
        per_line = max(1, self.line_bytes // buffer.dtype.itemsize)
        indices: list[PrimExpr] = []
        loops: list[tuple[Var, PrimExpr]] = []
        for axis, bound in enumerate(node.bounds):
            var = Var(f"prefetch_{axis}", bound.extent.dtype)
            last = axis == len(node.bounds) - 1
            step = per_line if last else 1
            loops.append((var, (bound.extent + (step - 1)) // step))
            indices.append(bound.min + var * step)
        address = address_of(BufferLoad(buffer, tuple(indices)))
        options = [const(value, "int32") for value in (0, 3, 1)]
        body: Stmt = Evaluate(Call("int32", INTRINSICS["prefetch"], [address, *options]))
        for var, extent in reversed(loops):
            body = For(var, const(0, var.dtype), extent, ForKind.SERIAL, body)
        return body


@prim_func_pass("tir.InjectPrefetch")
def inject_prefetch(func: PrimFunc) -> PrimFunc:
    """Lower prefetch statements."""
    return func.with_body(PrefetchInjector().visit(func.body))


InjectPrefetch = inject_prefetch.factory
