"""Unroll loops of constant extent.

    for i in unrolled(2):        ->    B[0] = A[0]
        B[i] = A[i]                    B[1] = A[1]

A loop is unrolled if it is marked, or if it is serial, encloses no other loop that stays, and is small
enough by the options below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import BufferLoad, IntImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, SeqStmt, Stmt, seq
from tvm.tir.stmt_functor import post_order_visit, substitute
from tvm.tir.transform.common import (
    constant_extent,
    prim_func_pass,
    schedule_error,
    variables_of,
)
from tvm.tir.transform.convert_ssa import separate_definitions


@dataclass(frozen=True)
class UnrollLoopConfig:
    """When a loop that is not marked is unrolled as well."""

    auto_max_step: int = 0  # at most this many statements after unrolling; 0: only marked loops
    auto_max_depth: int = 8  # at most this many unrolled loops inside one another
    auto_max_extent: int = 0  # loops of at most this many iterations, whatever their body
    explicit_unroll: bool = True  # rewrite the loop, rather than mark it for the code generator
    unroll_local_access: bool = False  # loops that index local memory, so that it becomes registers


class LoopUnroller(Rewriter):
    """Unrolls on the way up, so that a loop's body is counted with its inner loops already unrolled."""

    def __init__(self, config: UnrollLoopConfig) -> None:
        self.config = config
        self.steps = 0  # statements that the part visited so far will execute
        self.depth = 0  # unrolled loops around one of them
        self.loops = 0  # loops that stay, around one of them
        self.local_indices: dict[Var, None] = {}  # variables in indices of local memory

    def visit_for(self, loop: For) -> Stmt:
        body = self.visit(loop.body)
        if not self._wanted(loop):
            self.loops += 1
            if self.config.auto_max_extent == 1 and simple_count(loop) in (0, 1):
                # a loop in name only, whatever is in it
                return (
                    substitute(body, {loop.loop_var: loop.min}) if simple_count(loop) else seq([])
                )
            return loop if body is loop.body else loop.replace(body=body)
        count = trip_count(loop)
        self.steps *= count
        self.depth += 1
        if self.config.explicit_unroll or count == 1:
            return seq([substitute(body, {loop.loop_var: loop.min + i}) for i in range(count)])
        if body is loop.body and loop.kind is ForKind.UNROLLED:
            return loop
        return loop.replace(kind=ForKind.UNROLLED, body=body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        option = PRAGMAS.get(attr.attr_key)
        if option is None or not isinstance(attr.value, IntImm):
            return self.rewrite_children(attr)
        outer = self.config
        changed: dict[str, Any] = {option: attr.value.value}
        self.config = replace(outer, **changed)
        body: Stmt = self.visit(attr.body)
        self.config = outer
        return body

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        """Count each statement by itself: siblings neither nest in one another nor unroll together."""
        steps = depth = loops = 0
        rewritten: list[Stmt] = []
        for stmt in block.seq:
            self.steps = self.depth = self.loops = 0
            rewritten.append(self.visit(stmt))
            steps += self.steps
            depth = max(depth, self.depth)
            loops = max(loops, self.loops)
        self.steps, self.depth, self.loops = steps, depth, loops
        if all([new is old for new, old in zip(rewritten, block.seq, strict=True)]):
            return block
        return seq(rewritten)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        self.steps += 1
        if self.config.unroll_local_access:
            self._note_local_accesses(store)
        return store

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        self.steps += 1
        if self.config.unroll_local_access:
            self._note_local_accesses(stmt)
        return stmt

    def _note_local_accesses(self, stmt: Stmt) -> None:
        def note(node: Any) -> None:
            if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.scope() == "local":
                for index in node.indices:
                    self.local_indices.update(variables_of(index))

        post_order_visit(stmt, note)

    def _wanted(self, loop: For) -> bool:
        if loop.kind is ForKind.UNROLLED:
            return True
        config = self.config
        if loop.kind is ForKind.SERIAL and loop.loop_var in self.local_indices:
            return simple_count(loop) is not None
        if loop.kind is not ForKind.SERIAL or self.loops > 0 or self.depth >= config.auto_max_depth:
            return False
        if not config.auto_max_step and not config.auto_max_extent:
            return False
        count = simple_count(loop)
        if count is None:
            return False
        return count * self.steps <= config.auto_max_step or count <= config.auto_max_extent


# the classic pragmas that set an option for the loops inside them
PRAGMAS = {
    "pragma_auto_unroll_max_step": "auto_max_step",
    "pragma_unroll_explicit": "explicit_unroll",
}


def simple_count(loop: For) -> int | None:
    """The trip count, if the extent is a constant after it is simplified."""
    if (count := constant_extent(loop)) is not None:
        return count
    extent = Analyzer().simplify(loop.extent)
    return extent.value if isinstance(extent, IntImm) else None


def trip_count(loop: For) -> int:
    """The constant extent of a loop that is to be unrolled."""
    count = simple_count(loop)
    if count is None:
        raise schedule_error(
            f"unroll needs a constant extent, got {loop.extent}",
            at=loop,
            hint="split the loop by a constant factor and unroll the inner part",
        )
    return count


@prim_func_pass("tir.UnrollLoop", UnrollLoopConfig)
def unroll_loop(func: PrimFunc, config: UnrollLoopConfig) -> PrimFunc:
    """Unroll marked loops, and others as the options say."""
    body = LoopUnroller(config).visit(func.body)
    if body is func.body:
        return func
    # the copies of a body define what is inside it once more
    return func.with_body(separate_definitions(body, func))


UnrollLoop = unroll_loop.factory
