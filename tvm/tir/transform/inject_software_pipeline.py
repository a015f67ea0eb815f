"""Let the stages of consecutive iterations of a loop overlap.

for i in range(8):  # stages [0, 1]          T = alloc(2, ...)
    with block():                            T[0] = A[0]
        T = alloc(...)                 ->    for i in range(7):
        T[...] = A[i]                            T[(i + 1) % 2] = A[i + 1]
        B[i] = T[...]                            B[i] = T[i % 2]
                                             B[7] = T[7 % 2]

``software_pipeline_stage`` has the stage of each statement and ``software_pipeline_order`` its place among the
others. What one stage leaves for a later one is kept once for each iteration that is under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tvm.arith import Analyzer
from tvm.error import IllFormedError, LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    IfThenElse,
    MatchBufferRegion,
    Stmt,
    seq,
    stmt_list,
)
from tvm.tir.stmt_functor import BufferRewriter, post_order_visit, substitute
from tvm.tir.transform.common import TRUE, comes_from_te, fresh, is_const, prim_func_pass

STAGE, ORDER, ASYNC = [f"software_pipeline_{key}" for key in ("stage", "order", "async_stages")]


@dataclass(frozen=True)
class Step:
    """A statement of the loop: in which stage it runs, and at which place."""

    stmt: Stmt
    stage: int
    place: int


@dataclass(frozen=True)
class Version:
    """A buffer with a first dimension, over the iterations under way."""

    buffer: Buffer
    count: int


class PipelineInjector(Rewriter):
    """Rewrites the loops that are annotated, inner ones first."""

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        return Pipeline(loop).build() if STAGE in loop.annotations else loop


class Pipeline:
    """One loop: its steps, and the memory they share."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.analyzer = Analyzer()
        self.allocated, body = _opened(loop)
        self.steps = _steps(loop, stmt_list(body))
        self._check_order()
        self.depth = max([step.stage for step in self.steps])
        self.versions: dict[Buffer, Version] = {}
        for buffer in self.allocated:
            if (count := self._versions_of(buffer)) > 1:
                self.versions[buffer] = Version(_with_versions(buffer, count), count)

    def build(self) -> Stmt:
        """Filling, the steady state, and emptying."""
        loop, extent = self.loop, self.loop.extent
        first: list[Stmt] = []
        last: list[Stmt] = []
        emptying = self._simple(op.maximum(extent, self.depth))
        for time in range(self.depth):
            first += self._at(const(time, extent.dtype), started=time)
            last += self._at(emptying + time, ended=time)
        var = fresh(loop.loop_var)
        steady = For(
            var, const(0, var.dtype), self._simple(emptying - self.depth), loop.kind,
            seq(self._at(var + self.depth)), None, _without_marks(loop),
        )  # fmt: skip
        known = self.versions
        buffers = [known[b].buffer if b in known else b for b in self.allocated]
        block = Block([], [], [], "pipeline", seq([*first, steady, *last]), None, buffers)
        return BlockRealize((), TRUE, block)

    def _at(
        self, time: PrimExpr, started: int | None = None, ended: int | None = None
    ) -> list[Stmt]:
        """What happens at a time: each step for the iteration that has come to its stage."""
        done: list[Stmt] = []
        for step in sorted(self.steps, key=lambda step: step.place):
            too_early = started is not None and step.stage > started
            if too_early or (ended is not None and step.stage <= ended):
                continue
            number = self._simple(time - step.stage)
            done.append(
                self._iteration(step.stmt, number, started is not None or ended is not None)
            )
        return done

    def _iteration(self, stmt: Stmt, number: PrimExpr, may_be_missing: bool) -> Stmt:
        """The statement for one iteration, if there is such a one."""
        moved = VersionSelector(self.versions, number).visit(stmt)
        value = self._simple(self.loop.min + number)
        body: Stmt = substitute(moved, {self.loop.loop_var: value})
        if not may_be_missing:
            return body
        exists = self._simple(op.all(number >= 0, number < self.loop.extent))
        return body if is_const(exists, 1) else IfThenElse(exists, body, None)

    def _simple(self, expr: PrimExpr) -> PrimExpr:
        return self.analyzer.simplify(expr)

    def _check_order(self) -> None:
        """Reject stages and places that would change what a statement reads or leaves in memory."""
        for buffer in _accessed(self.loop):
            for first, second in self._conflicts(buffer):
                if (second.stage, second.place) < (first.stage, first.place):
                    raise IllFormedError(
                        f"InjectSoftwarePipeline needs accesses of {buffer.name} in the order of the "
                        f"loop, got stages {first.stage} and {second.stage}, places {first.place} "
                        f"and {second.place}",
                        at=self.loop,
                    )

    def _conflicts(self, buffer: Buffer) -> list[tuple[Step, Step]]:
        """Pairs of steps that access a buffer, one of them to write it; in the order of the loop."""
        uses = [(step, *_uses(step.stmt, buffer)) for step in self.steps]
        users = [use for use in uses if use[1] or use[2]]
        return [(a[0], b[0]) for a, b in combinations(users, 2) if a[2] or b[2]]

    def _versions_of(self, buffer: Buffer) -> int:
        """How many iterations' values of a buffer are needed at a time."""
        count = 1
        for first, second in self._conflicts(buffer):
            is_freed = second.stage > first.stage and second.place < first.place
            count = max(count, second.stage - first.stage + (not is_freed))
        return count


def _opened(loop: For) -> tuple[tuple[Buffer, ...], Stmt]:
    """The memory and the statements of a loop's body."""
    if ASYNC in loop.annotations:
        raise LoweringError(
            "InjectSoftwarePipeline needs the CUDA back end for asynchronous copies, which is not "
            "built in"
        )
    body = loop.body
    if not isinstance(body, BlockRealize):
        return (), body
    block = body.block
    if block.iter_vars or block.match_buffers or not is_const(body.predicate, 1):
        raise LoweringError(
            f"InjectSoftwarePipeline needs an opaque block in the loop, got {block.name_hint}",
            hint="run ConvertBlocksToOpaque and LowerMatchBuffer before",
        )
    return block.alloc_buffers, block.body


def _steps(loop: For, stmts: Sequence[Stmt]) -> list[Step]:
    stages, places = [
        [int(value) for value in loop.annotations.get(key, ())] for key in (STAGE, ORDER)
    ]
    if not len(stages) == len(places) == len(stmts):
        raise IllFormedError(
            f"InjectSoftwarePipeline needs a stage and a place for each of {len(stmts)} statements, "
            f"got {len(stages)} stages and {len(places)} places",
            at=loop,
        )
    if sorted(places) != list(range(len(places))) or min(stages) < 0:
        raise IllFormedError(
            f"InjectSoftwarePipeline needs stages from 0 and each place once, got {stages} and "
            f"{places}"
        )
    return [Step(*each) for each in zip(stmts, stages, places, strict=True)]


def _without_marks(loop: For) -> dict[str, Any]:
    return {key: value for key, value in loop.annotations.items() if key not in (STAGE, ORDER)}


class _UseFinder(Visitor):
    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.reads = self.writes = False

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.reads |= load.buffer is self.buffer
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.writes |= store.buffer is self.buffer
        self.visit_children(store)

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> None:
        if node.source.buffer is self.buffer:
            self.reads = self.writes = True
        self.visit_children(node)

    def visit_var(self, var: Var) -> None:
        if var is self.buffer.data:
            self.reads = self.writes = True


def _uses(stmt: Stmt, buffer: Buffer) -> tuple[bool, bool]:
    """Whether a statement reads and writes a buffer; by its pointer, it may do both."""
    finder = _UseFinder(buffer)
    finder.visit(stmt)
    return finder.reads, finder.writes


def _accessed(loop: For) -> list[Buffer]:
    """The buffers that a loop loads from, stores to or matches, in order of appearance."""
    found: dict[Buffer, None] = {}

    def note(node: Any) -> None:
        if isinstance(node, (BufferLoad, BufferStore)):
            found[node.buffer] = None
        elif isinstance(node, MatchBufferRegion):
            found[node.source.buffer] = None

    post_order_visit(loop.body, note)
    return list(found)


def _with_versions(buffer: Buffer, count: int) -> Buffer:
    if buffer.strides or buffer.axis_separators:
        raise LoweringError(f"InjectSoftwarePipeline needs compact buffers, got {buffer.name}")
    return buffer.replace(shape=(const(count, "int32"), *buffer.shape))


class VersionSelector(BufferRewriter):
    """Turns accesses of buffers with versions to that of one iteration."""

    def __init__(self, versions: dict[Buffer, Version], number: PrimExpr) -> None:
        super().__init__()
        self.versions, self.number = versions, number

    def map_buffer(self, buffer: Buffer) -> Buffer:
        known = self.versions.get(buffer)
        return buffer if known is None else known.buffer

    def _version(self, buffer: Buffer) -> PrimExpr | None:
        known = self.versions.get(buffer)
        return None if known is None else op.floormod(self.number, known.count)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        version = self._version(load.buffer)
        new = super().visit_buffer_load(load)
        if version is None or not isinstance(new, BufferLoad):
            return new
        return new.replace(indices=(version, *new.indices))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        version = self._version(node.buffer)
        new = super().visit_buffer_store(node)
        if version is None or not isinstance(new, BufferStore):
            return new
        return new.replace(indices=(version, *new.indices))

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        version = self._version(node.buffer)
        new = super().visit_buffer_region(node)
        if version is None:
            return new
        return new.replace(region=(Range.from_min_extent(version, 1), *new.region))

    def visit_var(self, var: Var) -> PrimExpr:
        for buffer in self.versions:
            if var is buffer.data:
                raise LoweringError(
                    f"InjectSoftwarePipeline needs accesses by indices, got the pointer of {buffer.name}"
                )
        return var


@prim_func_pass("tir.InjectSoftwarePipeline")
def inject_software_pipeline(func: PrimFunc) -> PrimFunc:
    """Pipeline the annotated loops."""
    if comes_from_te(func):
        return func
    return func.with_body(PipelineInjector().visit(func.body))


InjectSoftwarePipeline = inject_software_pipeline.factory
