"""The statements of a software pipeline during a range of times, asynchronous ones among them.

At time t the step of stage s runs for iteration t - s, if there is such a one. An asynchronous step becomes

    attr "async_commit_queue_scope" s:  attr "async_scope": step

and a step that reads what stage s has issued waits until no more than so many commits are under way:

    attr "async_wait_queue_scope" s:  attr "async_wait_inflight_count" n: step
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.analysis.block_access_region import get_block_read_write_region
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, Range, Var, const
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import BufferRewriter, substitute
from tvm.tir.transform.common import TRUE, fresh, is_const

ACCESS_PTR = INTRINSICS["tvm_access_ptr"]
STAGE, ORDER, ASYNC = [f"software_pipeline_{key}" for key in ("stage", "order", "async_stages")]


@dataclass(frozen=True)
class Step:
    """A statement of the loop: in which stage it runs, at which place, and whether it is waited for."""

    block: Block
    stage: int
    place: int
    is_async: bool = False


@dataclass(frozen=True)
class Placed:
    """A step at a time: for which iteration, under which condition."""

    step: Step
    block: Block
    iteration: PrimExpr
    exists: PrimExpr


@dataclass
class Issued:
    """What one asynchronous stage has issued within a range of times."""

    head: PrimExpr | None = None  # the last iteration that was issued
    exists: PrimExpr = TRUE  # under which condition
    commits: list[list[int]] = field(default_factory=list)  # steps that share a commit, by position
    is_consumed: bool = False  # a step has waited since the last commit
    commit_of: dict[Buffer, int] = field(default_factory=dict)
    written: dict[Buffer, None] = field(default_factory=dict)  # by the steps looked at so far
    # at which steps, with how many commits under way
    waits: list[tuple[int, PrimExpr]] = field(default_factory=list)


class Emission:
    """Emits consecutive ranges of times of one pipeline."""

    def __init__(
        self,
        loop: For,
        steps: Sequence[Step],
        versions: Mapping[Buffer, Buffer],
        buffers: Mapping[Var, Buffer],
    ) -> None:
        self.loop, self.buffers = loop, buffers
        self.analyzer = Analyzer()
        self.steps = sorted(steps, key=lambda step: step.place)
        depth = max([step.stage for step in steps])
        selector = VersionSelector(versions, loop.loop_var - loop.min, depth != 1)
        self.steps = [replace(step, block=selector.visit(step.block)) for step in self.steps]
        self.destinations: dict[int, dict[Buffer, None]] = {}
        for step in self.steps:
            if step.is_async:
                found = self.destinations.setdefault(step.stage, {})
                found |= {region.buffer: None for region in step.block.writes}
        # the last iteration that was issued before a range, where it is known
        self.heads: dict[int, PrimExpr | None] = dict.fromkeys(self.destinations, const(-1))

    def between(self, start: PrimExpr, end: PrimExpr, is_unrolled: bool = False) -> Stmt:
        """What happens from one time to another."""
        extent = self.analyzer.simplify(end - start)
        if self.analyzer.can_prove(extent <= 0):
            return _nothing()
        var = None if is_const(extent, 1) else fresh(self.loop.loop_var)
        inner = Analyzer()  # where the loop runs from the loop's first iteration
        if var is not None:
            self.analyzer.bind(var, Range.from_min_extent(start, extent))
            inner.bind(var, Range.from_min_extent(self.loop.min, extent))
        placed = [self._placed(step, start, var) for step in self.steps]
        there = [each for each in placed if each is not None]
        issued = self._issued(there, inner)
        self._plan_waits(there, issued, inner)
        stmts = self._committed(self._waiting(there, issued, inner), issued)
        self._advance(issued, extent, inner)
        if not stmts:
            return _nothing()
        body = seq(stmts)
        if var is not None:
            kind = ForKind.UNROLLED if is_unrolled else self.loop.kind
            body = For(var, self.loop.min, extent, kind, body, None, _other_marks(self.loop))
        return BlockRealize((), TRUE, as_block(body, self.buffers))

    def _placed(self, step: Step, start: PrimExpr, var: Var | None) -> Placed | None:
        """The step at one time, or at those of a loop; None if it has never an iteration then."""
        loop = self.loop
        iteration = (start if var is None else var) - step.stage
        exists = op.all(
            self.analyzer.simplify(loop.min <= iteration), iteration < loop.min + loop.extent
        )
        if self.analyzer.can_prove(op.logical_not(exists)):
            return None
        if var is not None:
            # the loop runs from the first iteration, whenever it starts
            delta = start - loop.min
            exists = substitute(exists, {var: var + delta})
            iteration = iteration + delta
        block = substitute(step.block, {loop.loop_var: iteration})
        return Placed(step, block, iteration, exists)

    def _issued(self, placed: Sequence[Placed], inner: Analyzer) -> dict[int, Issued]:
        """What the asynchronous stages issue; steps share a commit until one is waited for."""
        issued: dict[int, Issued] = {}
        for position, each in enumerate(placed):
            stage = each.step.stage
            producers = self._producers(each)
            if each.step.is_async:
                state = issued.setdefault(stage, Issued())
                # what a step itself waits for is committed before
                state.is_consumed |= stage in producers
                if not state.commits or state.is_consumed:
                    state.commits.append([])
                    state.is_consumed = False
                state.commits[-1].append(position)
                for region in each.block.writes:
                    state.commit_of[region.buffer] = len(state.commits) - 1
                state.head = each.iteration
                known = inner.can_prove(state.exists)
                state.exists = (
                    each.exists if known else inner.simplify(op.all(state.exists, each.exists))
                )
            for producer in producers:
                issued.setdefault(producer, Issued()).is_consumed = True
        return issued

    def _producers(self, placed: Placed) -> list[int]:
        """The asynchronous stages whose results a step reads."""
        return [
            stage
            for stage, buffers in self.destinations.items()
            if stage <= placed.step.stage
            and any([region.buffer in buffers for region in placed.block.reads])
        ]

    def _plan_waits(
        self, placed: Sequence[Placed], issued: dict[int, Issued], inner: Analyzer
    ) -> None:
        """Where each stage is waited for, and how many commits may still be under way then."""
        for position, each in enumerate(placed):
            if each.step.is_async:
                state = issued[each.step.stage]
                state.written |= {region.buffer: None for region in each.block.writes}
            producers = self._producers(each)
            if not producers:
                continue
            if len(producers) > 1:
                raise LoweringError(
                    "InjectSoftwarePipeline needs steps that read the results of one asynchronous "
                    f"stage, got a step that reads those of stages {producers}",
                    at=each.block,
                )
            state = issued[producers[0]]
            needed = _needed(each, state)
            heads = list(needed.values()) if state.commits else [self.heads[producers[0]]]
            count = self._under_way(each, heads, inner)
            issued_last = max([state.commits[commit][0] for commit in needed], default=-1)
            if not state.waits or state.waits[-1][0] <= issued_last < position:
                state.waits.append((position, count))
            elif self.analyzer.can_prove(count < state.waits[-1][1]):
                state.waits[-1] = state.waits[-1][0], count

    def _under_way(
        self, placed: Placed, heads: Sequence[PrimExpr | None], inner: Analyzer
    ) -> PrimExpr:
        """How many commits follow those that a step needs."""
        count: PrimExpr = const(0)
        for head in heads:
            if head is None or not inner.can_prove(head >= 0):
                return const(0)  # not known: none may be
            count = count + self.analyzer.rewrite_simplify(head - placed.iteration)
        return count

    def _waiting(
        self, placed: Sequence[Placed], issued: Mapping[int, Issued], inner: Analyzer
    ) -> list[Placed]:
        """The steps with the marks of asynchronous ones, and of waiting around them."""
        result = [
            _wrapped(each, "async_scope", const(1)) if each.step.is_async else each
            for each in placed
        ]
        for stage, state in sorted(issued.items()):
            for position, count in state.waits:
                if state.head is not None and not inner.can_prove(state.exists):
                    # only where something was issued does the head tell what is under way
                    count = Call("int32", "tir.if_then_else", [state.exists, count, const(0)])
                waiting = _wrapped(result[position], "async_wait_inflight_count", count)
                result[position] = _wrapped(waiting, "async_wait_queue_scope", const(stage))
        return result

    def _committed(self, placed: Sequence[Placed], issued: Mapping[int, Issued]) -> list[Stmt]:
        """The statements, those that share a commit together."""
        commits = {group[0]: group for state in issued.values() for group in state.commits}
        stmts: list[Stmt] = []
        position = 0
        while position < len(placed):
            first = placed[position]
            group = commits.get(position, [])
            if not group:
                stmts.append(BlockRealize((), first.exists, first.block))
                position += 1
                continue
            together = list(placed[position : group[-1] + 1])
            body = seq([each.block.body for each in together])
            queue = AttrStmt(const(0), "async_commit_queue_scope", const(first.step.stage), body)
            stmts.append(BlockRealize((), first.exists, as_block(queue, self.buffers)))
            position = group[-1] + 1
        return stmts

    def _advance(self, issued: Mapping[int, Issued], extent: PrimExpr, inner: Analyzer) -> None:
        """Note the last iterations that are issued when the range is over."""
        for stage, state in issued.items():
            head = self.heads[stage]
            known = head is not None and inner.can_prove(state.exists)
            self.heads[stage] = head + extent if known else None


def _needed(placed: Placed, state: Issued) -> dict[int, PrimExpr]:
    """The last iterations of the commits that a step needs, by their number."""
    needed: dict[int, PrimExpr] = {}
    for region in placed.block.reads:
        commit = state.commit_of.get(region.buffer)
        if commit is not None and commit not in needed:
            assert state.head is not None
            # what is issued below the step was last issued an iteration before
            is_written = region.buffer in state.written
            needed[commit] = state.head if is_written else state.head - 1
    return needed


def _wrapped(placed: Placed, key: str, value: PrimExpr) -> Placed:
    block = placed.block
    return replace(placed, block=block.replace(body=AttrStmt(const(0), key, value, block.body)))


def _nothing() -> Stmt:
    return BlockRealize((), TRUE, Block([], [], [], "", Evaluate(const(0))))


def _other_marks(loop: For) -> dict[str, object]:
    return {k: v for k, v in loop.annotations.items() if k not in (STAGE, ORDER, ASYNC)}


def as_block(stmt: Stmt, buffers: Mapping[Var, Buffer]) -> Block:
    """The statement as a block that says what it reads and writes."""
    if isinstance(stmt, BlockRealize) and is_const(stmt.predicate, 1) and not stmt.iter_values:
        return stmt.block
    block = Block([], [], [], "", stmt)
    reads, writes = get_block_read_write_region(block, buffers)
    return block.replace(reads=tuple(reads), writes=tuple(writes))


def with_versions(buffer: Buffer, count: int) -> Buffer:
    """The buffer with a first dimension over the iterations under way."""
    if buffer.axis_separators:
        raise LoweringError(f"InjectSoftwarePipeline needs flat buffers, got {buffer.name}")
    strides = buffer.strides
    if strides:
        strides = (buffer.shape[0] * strides[0], *strides)
    return buffer.replace(shape=(const(count, "int32"), *buffer.shape), strides=strides)


class VersionSelector(BufferRewriter):
    """Turns accesses of buffers with versions to that of one iteration."""

    def __init__(self, versions: Mapping[Buffer, Buffer], number: PrimExpr, has_many: bool) -> None:
        super().__init__()
        self.versions, self.number = versions, number
        self.has_many = has_many  # iterations of more than two stages: regions have all versions
        self.pointers = {buffer.data: new for buffer, new in versions.items()}

    def map_buffer(self, buffer: Buffer) -> Buffer:
        return self.versions.get(buffer, buffer)

    def _version(self, buffer: Buffer) -> PrimExpr | None:
        known = self.versions.get(buffer)
        return None if known is None else op.floormod(self.number, known.shape[0])

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
        first = Range.from_min_extent(version, 1)
        if self.has_many:
            first = Range(const(0, "int32"), new.buffer.shape[0])
        return new.replace(region=(first, *new.region))

    def visit_call(self, call: Call) -> PrimExpr:
        pointer = call.args[1] if call.op is ACCESS_PTR else None
        if not isinstance(pointer, Var) or pointer not in self.pointers:
            return self.rewrite_children(call)
        kind, data, offset, extent, mask = call.args
        buffer = self.pointers[pointer]
        stride = buffer.strides[0] if buffer.strides else _product(buffer.shape[1:])
        offset = self.visit(offset) + op.floormod(self.number, buffer.shape[0]) * stride
        return call.replace(args=(kind, data, offset, self.visit(extent), mask))

    def visit_var(self, var: Var) -> PrimExpr:
        if var in self.pointers:
            raise LoweringError(
                "InjectSoftwarePipeline needs accesses by indices, got the pointer of "
                f"{self.pointers[var].name}"
            )
        return var


def _product(shape: Sequence[PrimExpr]) -> PrimExpr:
    result: PrimExpr = const(1, "int32")
    for extent in shape:
        result = result * extent
    return result
