"""A loop becomes loops one after the other, each inside a block of its own.

for i in range(128): f(i)    loop_partition(i, [2, 64])    for i_0 in range(2): f(i_0)
                                                           for i_1 in range(2, 66): f(i_1)
                                                           for i_2 in range(66, 128): f(i_2)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.analysis import get_block_read_write_region
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, For, Stmt, seq
from tvm.tir.stmt_functor import renew_defs

from ..errors import PrimitiveError
from ..rewriting import Reuse, simplify_bindings, substitute_tracked
from ..state import ScheduleState
from ..tree import loops_of
from .loops import require_plain_loop, require_zero_start


def loop_partition(
    state: ScheduleState,
    loop_sref: StmtSRef,
    factors: Sequence[PrimExpr | None],
    preserve_unit_iters: bool,
) -> list[StmtSRef]:
    """Loops over parts of a loop's range."""
    loop = loop_sref.loop
    require_plain_loop(loop)
    require_zero_start(loop)
    ends = partition_ends(loop, factors)
    blocks = state.child_blocks(loop_sref)
    name = blocks[0].block.name_hint if blocks else "loop"
    buffers = {
        region.buffer.data: region.buffer
        for block in blocks
        for region in (*block.block.reads, *block.block.writes)
    }
    reuse: Reuse = {}
    parts: list[Stmt] = []
    loops: list[For] = []
    start: PrimExpr = const(0, loop.loop_var.dtype)
    for position, end in enumerate(ends):
        part = _part(loop, position, start, end, reuse)
        part = simplify_bindings(part, loops_of(loop_sref), reuse, preserve_unit_iters)
        assert isinstance(part, For)
        loops.append(part)
        prefix = f"{name}_{loop.loop_var.name}"
        parts.append(_opaque_block(f"{prefix}{position}_partition", part, buffers))
        start = end
    whole = _opaque_block(f"{name}_{loop.loop_var.name}_common", seq(parts), buffers)
    state.replace(loop_sref, whole, reuse)
    return [state.sref_of(part) for part in loops]


def partition_ends(loop: For, factors: Sequence[PrimExpr | None]) -> list[PrimExpr]:
    """Where the parts end; the last one ends with the loop."""
    dtype = loop.loop_var.dtype
    analyzer = Analyzer()
    if not factors:
        raise RuntimeValueError("loop_partition requires at least one factor, got none")
    if sum([factor is None for factor in factors]) > 1:
        raise RuntimeValueError("at most one factor is allowed to be None")
    total: PrimExpr = const(0, dtype)
    for factor in factors:
        if factor is None:
            continue
        if analyzer.can_prove(op.less_equal(factor, 0)):
            raise PrimitiveError(
                "ScheduleError: The params factors are not positive",
                f"All factors are required to be positive, the factor {factor} for {{0}} is not",
                loop,
            )
        total = op.add(total, op.cast(factor, dtype))
    if not analyzer.can_prove(op.less_equal(total, loop.extent)):
        raise PrimitiveError(
            "ScheduleError: The sum of factors is larger than or equal to the extent of loop",
            f"The sum of factors is required to be at most the extent {loop.extent} of {{0}}",
            loop,
        )
    ends: list[PrimExpr] = []
    start: PrimExpr = const(0, dtype)
    rest = op.subtract(loop.extent, total)
    for factor in factors:
        start = analyzer.simplify(op.add(start, rest if factor is None else op.cast(factor, dtype)))
        ends.append(start)
    if not analyzer.can_prove_equal(ends[-1], loop.extent):
        ends.append(loop.extent)
    return ends


def _part(loop: For, position: int, start: PrimExpr, end: PrimExpr, reuse: Reuse) -> Stmt:
    suffix = f"{loop.loop_var.name}{position}"
    var = loop.loop_var.replace(name=suffix)
    changed: Reuse = {}
    body = substitute_tracked(loop.body, {loop.loop_var: var}, changed)
    body = BlockRenamer(f"_{suffix}", changed).visit(body)
    if position == 0:
        reuse.update(changed)
    else:
        # the parts share no definitions
        body = renew_defs(PrimFunc([], body)).body
    return For(var, start, Analyzer().simplify(op.subtract(end, start)), loop.kind, body)


class BlockRenamer(Rewriter):
    """Appends to the names of the blocks that no other block is around."""

    def __init__(self, suffix: str, reuse: Reuse) -> None:
        self.suffix = suffix
        self.reuse = reuse

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        new = block.replace(name_hint=block.name_hint + self.suffix)
        before = [old for old, changed in self.reuse.items() if changed is block]
        self.reuse[before[0] if before else block] = new
        return realize.replace(block=new)


def _opaque_block(name: str, body: Stmt, buffers: dict[Var, Buffer]) -> BlockRealize:
    block = Block([], [], [], name, body)
    reads, writes = get_block_read_write_region(block, buffers)
    return BlockRealize((), const(True), block.replace(reads=_of(reads), writes=_of(writes)))


def _of(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    return tuple(regions)
