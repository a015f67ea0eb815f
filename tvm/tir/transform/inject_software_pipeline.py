"""Let the stages of consecutive iterations of a loop overlap.

for i in range(8):  # stages [0, 1]          T = alloc(2, ...)
    with block():                            T[0] = A[0]
        T = alloc(...)                 ->    for i in range(7):
        T[...] = A[i]                            T[(i + 1) % 2] = A[i + 1]
        B[i] = T[...]                            B[i] = T[i % 2]
                                             B[7] = T[7 % 2]

``software_pipeline_stage`` has the stage of each statement and ``software_pipeline_order`` its place among the
others. What one stage leaves for a later one is kept once for each iteration that is under way. Stages in
``software_pipeline_async_stages`` are issued, committed to a queue, and waited for where their results are read.
The statements of a pipeline within a pipeline are statements of the outer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tvm.arith import Analyzer
from tvm.error import IllFormedError, LoweringError
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Range, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, For, SeqStmt, Stmt, seq, stmt_list
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import TRUE, comes_from_te, fresh, is_const, prim_func_pass
from tvm.tir.transform.pipeline_emission import (
    ASYNC,
    ORDER,
    STAGE,
    Emission,
    Step,
    as_block,
    with_versions,
)


class PipelineInjector(Rewriter):
    """Rewrites the loops that are annotated, inner ones first."""

    def __init__(self, buffers: dict[Var, Buffer]) -> None:
        self.buffers = buffers  # by their pointers
        self.doubled: dict[Buffer, None] = {}  # written while they are read

    def visit_block(self, block: Block) -> Stmt:
        self.buffers |= {buffer.data: buffer for buffer in block.alloc_buffers}
        index = block.annotations.get("double_buffer_scope")
        if index is not None:
            self.doubled[block.writes[int(index)].buffer] = None
        return self.rewrite_children(block)

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        if STAGE not in loop.annotations:
            return loop
        return Pipeline(loop, self.buffers, self.doubled).build()


class Pipeline:
    """One loop: its steps, and the memory they share."""

    def __init__(self, loop: For, buffers: dict[Var, Buffer], doubled: dict[Buffer, None]) -> None:
        self.loop, self.buffers = loop, buffers
        self.analyzer = Analyzer()
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        self.allocated, stmts = _opened(loop)
        self.steps = _steps(loop, [as_block(stmt, buffers) for stmt in stmts])
        self._check_order()
        self.versions: dict[Buffer, Buffer] = {}
        for buffer in self.allocated:
            if (count := max(self._versions_of(buffer), 1 + (buffer in doubled))) > 1:
                new = with_versions(buffer, count)
                self.versions[buffer] = buffers[buffer.data] = new

    def build(self) -> Stmt:
        """Filling, the steady state, and emptying."""
        loop = self.loop
        depth = max([step.stage for step in self.steps])
        emission = Emission(loop, self.steps, self.versions, self.buffers)
        start, end = loop.min + depth, loop.min + loop.extent
        if depth > 1 and not self.analyzer.can_prove(loop.extent >= depth):
            # a loop that may be shorter than the pipeline is emptied after it was filled
            end = op.maximum(start, end)
        phases = [
            emission.between(loop.min, start, is_unrolled=True),
            emission.between(start, end),
            emission.between(end, end + depth, is_unrolled=True),
        ]
        buffers = [self.versions.get(buffer, buffer) for buffer in self.allocated]
        others = {k: buffer for k, buffer in self.buffers.items() if buffer not in buffers}
        block = as_block(seq(phases), others)
        return BlockRealize((), TRUE, block.replace(alloc_buffers=tuple(buffers)))

    def _check_order(self) -> None:
        """Refuse stages and places that would change what a statement reads or leaves in memory."""
        for first, second in combinations(self.steps, 2):
            if (first.stage, first.place) < (second.stage, second.place):
                continue
            for buffer in _conflicts(first, second):
                raise IllFormedError(
                    f"InjectSoftwarePipeline needs accesses of {buffer.name} in the order of the "
                    f"loop, got stages {first.stage} and {second.stage}, places {first.place} "
                    f"and {second.place}",
                    at=self.loop,
                )

    def _versions_of(self, buffer: Buffer) -> int:
        """How many iterations' values of a buffer are needed at a time."""
        written = [s.stage for s in self.steps if _regions(s.block.writes, buffer)]
        read = [s.stage for s in self.steps if _regions(s.block.reads, buffer)]
        if not written or not read:
            return 1
        count = max(read) - min(written) + 1
        return 1 if count == 2 and not self._is_overwritten_early(buffer) else count

    def _is_overwritten_early(self, buffer: Buffer) -> bool:
        """Whether a step writes for the next iteration before another has read what was there."""
        for writer in self.steps:
            for reader in self.steps:
                if writer.stage < reader.stage and writer.place < reader.place:
                    before = _regions(writer.block.writes, buffer)
                    after = _regions(reader.block.reads, buffer)
                    if any([not self._are_apart(a, b) for a in before for b in after]):
                        return True
        return False

    def _are_apart(self, written: BufferRegion, read: BufferRegion) -> bool:
        """Whether two regions share no element, whichever iterations they belong to."""
        other = fresh(self.loop.loop_var)
        self.analyzer.bind(other, Range.from_min_extent(self.loop.min, self.loop.extent))
        for a, b in zip(written.region, read.region, strict=True):
            b = substitute(b, {self.loop.loop_var: other})
            if self.analyzer.can_prove(a.min + a.extent <= b.min):
                return True
            if self.analyzer.can_prove(b.min + b.extent <= a.min):
                return True
        return False


def _regions(regions: Sequence[BufferRegion], buffer: Buffer) -> list[BufferRegion]:
    return [region for region in regions if region.buffer is buffer]


def _conflicts(first: Step, second: Step) -> list[Buffer]:
    """The buffers that both steps access, one of them to write."""
    writes = [{r.buffer: None for r in step.block.writes} for step in (first, second)]
    reads = [{r.buffer: None for r in step.block.reads} for step in (first, second)]
    return [
        buffer
        for buffer in {**writes[0], **reads[0]}
        if buffer in writes[1] or (buffer in writes[0] and buffer in reads[1])
    ]


def _opened(loop: For) -> tuple[list[Buffer], list[Stmt]]:
    """The memory and the statements of a loop's body, those of nested pipelines among them."""
    body = loop.body
    allocated: list[Buffer] = []
    if isinstance(body, BlockRealize):
        block = body.block
        if block.iter_vars or block.match_buffers or not is_const(body.predicate, 1):
            raise LoweringError(
                f"InjectSoftwarePipeline needs an opaque block in the loop, got {block.name_hint}",
                hint="run ConvertBlocksToOpaque and LowerMatchBuffer before",
            )
        allocated += block.alloc_buffers
        body = block.body
    stmts: list[Stmt] = []
    for stmt in stmt_list(body):
        part = _sequence(stmt)
        if part is None:
            stmts.append(stmt)
        else:
            allocated += part.alloc_buffers
            stmts += stmt_list(part.body)
    return allocated, stmts


def _sequence(stmt: Stmt) -> Block | None:
    """The block, if the statement is one that does several things one after the other."""
    if not isinstance(stmt, BlockRealize) or not is_const(stmt.predicate, 1):
        return None
    block = stmt.block
    is_plain = not block.iter_vars and not block.match_buffers
    return block if is_plain and isinstance(block.body, SeqStmt) else None


def _steps(loop: For, blocks: Sequence[Block]) -> list[Step]:
    stages, places, issued = [
        [int(value) for value in loop.annotations.get(key, ())] for key in (STAGE, ORDER, ASYNC)
    ]
    if not len(stages) == len(places) == len(blocks):
        raise IllFormedError(
            f"InjectSoftwarePipeline needs a stage and a place for each of {len(blocks)} statements, "
            f"got {len(stages)} stages and {len(places)} places",
            at=loop,
        )
    if sorted(places) != list(range(len(places))) or min(stages) < 0:
        raise IllFormedError(
            f"InjectSoftwarePipeline needs stages from 0 and each place once, got {stages} and "
            f"{places}"
        )
    return [
        Step(block, stage, place, stage in issued)
        for block, stage, place in zip(blocks, stages, places, strict=True)
    ]


@prim_func_pass("tir.InjectSoftwarePipeline")
def inject_software_pipeline(func: PrimFunc) -> PrimFunc:
    """Pipeline the annotated loops."""
    if comes_from_te(func):
        return func
    buffers = {buffer.data: buffer for buffer in func.buffer_map.values()}
    return func.with_body(PipelineInjector(buffers).visit(func.body))


InjectSoftwarePipeline = inject_software_pipeline.factory
