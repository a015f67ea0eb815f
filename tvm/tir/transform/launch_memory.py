"""Memory that the threads of a launch point fill together is allocated once, in front of it.

    attr parallel_launch_point:          ->    B = allocate([128])
        B = allocate([128])                    attr parallel_launch_point:
        for i in parallel(128):                    for i in parallel(128):
            B[i] = A[i] + 1                            B[i] = A[i] + 1
        for i in parallel(128):                    for i in parallel(128):
            C[i] = B[127 - i]                          C[i] = B[127 - i]

What no parallel loop fills, each thread fills for itself.
"""

from __future__ import annotations

from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.expr import Var
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, For, ForKind, Stmt

LAUNCH_POINT = "pragma_parallel_launch_point"


class SharedMemoryHoister(Rewriter):
    """Moves allocations right inside a launch point in front of it if its threads share them."""

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        if attr.attr_key != LAUNCH_POINT:
            return attr
        shared: list[Allocate] = []
        own: list[Allocate] = []
        body = attr.body
        filled = _FilledTogether()
        filled.visit(body)
        while isinstance(body, Allocate):
            (shared if body.buffer_var in filled.found else own).append(body)
            body = body.body
        if not shared:
            return attr
        for alloc in reversed(own):
            body = alloc.replace(body=body)
        stmt: Stmt = attr.replace(body=body)
        for alloc in reversed(shared):
            stmt = alloc.replace(body=stmt)
        return stmt


class _FilledTogether(Visitor):
    """Finds the memory that is written in parallel loops."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}
        self.in_parallel = False

    def visit_for(self, loop: For) -> None:
        outside = self.in_parallel
        self.in_parallel = outside or loop.kind is ForKind.PARALLEL
        self.visit_children(loop)
        self.in_parallel = outside

    def visit_buffer_store(self, store: BufferStore) -> None:
        if self.in_parallel:
            self.found[store.buffer.data] = None
