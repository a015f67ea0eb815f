"""The parts of caching: the copy of a buffer in another scope, the block that copies, the place for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, IterVar, Range, Var, const
from tvm.tir.stmt import (
    Allocate,
    AllocateConst,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    SeqStmt,
    Stmt,
    point_region,
    seq,
)

from ..analyses.regions import accessed, box_ranges, within
from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import nodes_below, proper_ancestor, statements_inside, surroundings

KNOWN_SCOPES = (
    "global", "shared", "warp", "local", "wmma", "m16n8k8", "texture", "vtcm", "ddr", "m", "tagged",
    "metal", "dyn", "workspace", "mma", "nvptx", "cube", "acc", "wgt", "inp", "uop", "ascend",
)  # fmt: skip


# around all of a body; what is inserted into it comes inside
WRAPPERS = (Allocate, AllocateConst, DeclBuffer)


@dataclass(frozen=True, slots=True)
class Place:
    """Before which statement of the body of a loop or block something is to be inserted."""

    parent: StmtSRef
    position: int


def nth_buffer(block: Block, index: int, kind: str) -> Buffer:
    """The buffer of a block's region of that kind and number; rejected if there is none."""
    regions = block.reads if kind == "read" else block.writes
    if not 0 <= index < len(regions):
        raise PrimitiveError(
            f"ScheduleError: The buffer index is out of range for {kind} buffers",
            f"The {kind} buffer index {index} is out of range: {{0}} has {len(regions)} {kind} "
            "regions",
            block,
        )
    return regions[index].buffer


def region_of(regions: Sequence[BufferRegion], buffer: Buffer) -> BufferRegion | None:
    """The region of a buffer; None if there is none."""
    for region in regions:
        if region.buffer is buffer:
            return region
    return None


def only_writer(state: ScheduleState, scope: StmtSRef, buffer: Buffer) -> StmtSRef | None:
    """The block that writes a buffer; rejected if there are several, None if there is none."""
    writers = state.get_block_scope(scope).buffer_writers.get(buffer, [])
    if len(writers) > 1:
        raise PrimitiveError(
            "ScheduleError: The buffer is allowed to be written by single block.",
            f"The buffer {buffer.name} is expected to be written by single block, but got "
            f"{len(writers)} blocks who write it.",
            *[writer.block for writer in writers],
        )
    return writers[0] if writers else None


def in_scope(buffer: Buffer, scope: str) -> Buffer:
    """A buffer like another one, in another storage scope."""
    annotation = buffer.data.type_annotation
    assert isinstance(annotation, PointerType)
    data = Var(f"{buffer.name}_{scope}", PointerType(annotation.element_type, scope))
    return buffer.replace(data=data, name=f"{buffer.name}_{scope}")


def sized(buffer: Buffer, shape: Sequence[PrimExpr], scope: str) -> Buffer:
    """A compact buffer of another shape, named after the scope that it is in."""
    return decl_buffer(shape, buffer.dtype, f"{buffer.name}_{scope}", scope=scope)


def relaxed_region(
    state: ScheduleState, region: BufferRegion, block: StmtSRef, place: StmtSRef
) -> BufferRegion:
    """What a block accesses while all loops inside a place run."""
    analyzer = Analyzer()
    for var, domain in surroundings(place).items():
        analyzer.bind(var, domain)
    box = accessed(region, state.realize_of(block), block.parent, place)
    # what a block does outside of its variables' domains is left out by its predicate
    box = within(box, region.buffer.shape, analyzer)
    sides = box_ranges(box, region.buffer, analyzer)
    return BufferRegion(region.buffer, tuple(sides))


def place_after(block: StmtSRef, others: Sequence[StmtSRef], scope: StmtSRef) -> Place:
    """Right after a block, where the nearest of others is too; at the end of the scope if there are none."""
    if not others:
        return Place(scope, len(_statements(scope)))
    parent = _nearest(block, others)
    return Place(parent, position_in(parent, block) + 1)


def place_before(blocks: Sequence[StmtSRef], block: StmtSRef, scope: StmtSRef) -> Place:
    """Right before the first of some blocks, where another one is too; at the end if there are none."""
    if not blocks:
        return Place(scope, len(_statements(scope)))
    parent = _nearest(block, blocks)
    inside = [other for other in blocks if other.is_inside(parent)]
    return Place(parent, min([position_in(parent, other) for other in inside]))


def _nearest(block: StmtSRef, others: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block that a block and one of the others are in."""
    parents = [proper_ancestor([block, other]) for other in others]
    return max(parents, key=lambda parent: len([*parent.ancestors()]))


def _statements(parent: StmtSRef) -> tuple[Stmt, ...]:
    assert parent.stmt is not None
    body = parent.stmt.body
    while isinstance(body, WRAPPERS):
        body = body.body
    return statements_inside(body)


def position_in(parent: StmtSRef, inner: StmtSRef) -> int:
    """The position among a parent's statements of the one that something is in."""
    while inner.parent is not parent:
        assert inner.parent is not None
        inner = inner.parent
    assert inner.stmt is not None
    for position, stmt in enumerate(_statements(parent)):
        if stmt is inner.stmt or (isinstance(stmt, BlockRealize) and stmt.block is inner.stmt):
            return position
        if not isinstance(stmt, For) and any([n is inner.stmt for n, _ in nodes_below(stmt)]):
            return position
    raise AssertionError("the statement is inside its parent")


def inserted(body: Stmt, position: int, new: Stmt) -> Stmt:
    """A body with a statement before the one at a position, inside of allocations around all of it."""
    if isinstance(body, WRAPPERS):
        return body.replace(body=inserted(body.body, position, new))
    stmts = list(body.seq) if isinstance(body, SeqStmt) else [body]
    stmts.insert(position, new)
    return seq(stmts)


def is_full(region: BufferRegion) -> bool:
    """Whether a region is all of its buffer."""
    analyzer = Analyzer()
    return all(
        [
            analyzer.can_prove_equal(side.min, 0) and analyzer.can_prove_equal(side.extent, extent)
            for side, extent in zip(region.region, region.buffer.shape, strict=True)
        ]
    )


def copy_block(
    source: Buffer, target: Buffer, region: BufferRegion, is_cache_read: bool, full: bool
) -> tuple[Stmt, Block]:
    """Loops that copy a region, and the block inside; a cache that is not full starts at 0."""
    variables: list[Var] = []
    axes: list[IterVar] = []
    values: list[PrimExpr] = []
    reads: list[PrimExpr] = []
    writes: list[PrimExpr] = []
    original = source if is_cache_read else target
    for number, side in enumerate(region.region):
        loop_var = Var(f"ax{number}", side.extent.dtype)
        variables.append(loop_var)
        var = Var(f"v{number}", side.extent.dtype)
        zero = const(0, side.extent.dtype)
        if full:
            axes.append(IterVar(Range.from_min_extent(zero, original.shape[number]), var, 0))
            values.append(op.add(side.min, loop_var))
            outside: PrimExpr = var
        else:
            axes.append(IterVar(Range.from_min_extent(zero, side.extent), var, 0))
            values.append(loop_var)
            outside = op.add(side.min, var)
        reads.append(outside if is_cache_read else var)
        writes.append(var if is_cache_read else outside)
    body = BufferStore(target, BufferLoad(source, tuple(reads)), tuple(writes))
    block = Block(
        axes, [point_region(source, reads)], [point_region(target, writes)],
        (target if is_cache_read else source).name, body,
    )  # fmt: skip
    result: Stmt = BlockRealize(tuple(values), const(True), block)
    for loop_var, side in reversed(list(zip(variables, region.region, strict=True))):
        result = For(loop_var, 0, side.extent, ForKind.SERIAL, result)
    return result, block


def require_storage_scope(scope: str) -> None:
    """Reject a storage scope that there is none of."""
    base = scope.split(".")[0]
    if not base or (base not in ("", *KNOWN_SCOPES) and not base.startswith(KNOWN_SCOPES)):
        raise PrimitiveError(
            "ScheduleError: The input storage scope is invalid",
            f"The input storage scope {scope!r} is invalid",
        )
