"""What a program may leave out: the root block, and the regions that blocks read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.visitor import Rewriter
from tvm.support import deep
from tvm.tir.analysis.block_access_region import get_block_access_region
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, DeclBuffer, Stmt

# the annotation of a block whose regions are to be found: 1 for what it reads, 2 for writes
DETECT = "tir.script_parsing_detect_access"
READS, WRITES = 1, 2


@deep
def complete(func: PrimFunc, root_buffers: Sequence[Buffer]) -> PrimFunc:
    """The function with a root block, if it needs one, and with all regions.

    Raises
    ------
    ValueError
        If a block without regions uses the pointer of a buffer: what it accesses cannot be known.
    """
    body = func.body
    if root_buffers or _needs_root(body):
        root = Block([], [], [], "root", body, None, root_buffers, [], {})
        body = BlockRealize((), const(True), root)
    elif isinstance(body, BlockRealize):
        # the block around everything is the root, of which nobody asks what it accesses
        body = body.replace(block=_without_request(body.block))
    buffers = {buffer.data: buffer for buffer in (*func.buffer_map.values(), *root_buffers)}
    return func.with_body(_RegionFinder(buffers).visit(body))


def _needs_root(body: Stmt) -> bool:
    if isinstance(body, BlockRealize):
        return bool(body.block.iter_vars)
    return contains_block(body)


def contains_block(stmt: Any) -> bool:
    """Whether a statement has a block realisation in it."""
    pending = [stmt]
    while pending:
        node = pending.pop()
        if isinstance(node, BlockRealize):
            return True
        pending += [part for part in node.children() if isinstance(part, Stmt)]
    return False


def _without_request(block: Block) -> Block:
    annotations = {k: v for k, v in block.annotations.items() if k != DETECT}
    return block.replace(annotations=annotations)


class _RegionFinder(Rewriter):
    """Finds the regions of blocks, the innermost first."""

    def __init__(self, buffers: dict[Var, Buffer]) -> None:
        self.buffers = buffers  # those that are visible, by their pointers

    def visit_block(self, block: Block) -> Block:
        inner = [*block.alloc_buffers, *[match.buffer for match in block.match_buffers]]
        outer = self.buffers
        self.buffers = {**outer, **{buffer.data: buffer for buffer in inner}}
        block = self.rewrite_children(block)
        self.buffers = outer
        wanted = block.annotations.get(DETECT)
        if wanted is None:
            return block
        return self._with_regions(_without_request(block), int(wanted.value))

    def visit_decl_buffer(self, decl: DeclBuffer) -> DeclBuffer:
        outer = self.buffers
        self.buffers = {**outer, decl.buffer.data: decl.buffer}
        decl = self.rewrite_children(decl)
        self.buffers = outer
        return decl

    def _with_regions(self, block: Block, wanted: int) -> Block:
        reads, writes, opaque = get_block_access_region(block, self.buffers)
        if opaque:
            raise ValueError(
                f"block {block.name_hint} uses the pointer of {opaque[0].buffer.name}, so that its "
                "regions cannot be found; hint: state them by T.reads and T.writes"
            )
        if block.init is not None:
            # what the initialisation writes is not read from outside
            written = {region.buffer: None for region in writes}
            reads = [region for region in reads if region.buffer not in written]
        return block.replace(
            reads=tuple(reads) if wanted & READS else block.reads,
            writes=tuple(writes) if wanted & WRITES else block.writes,
        )
