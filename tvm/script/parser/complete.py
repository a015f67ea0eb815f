"""What a script may leave out: the root block, and the regions that blocks read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.tir.buffer import Buffer
from tvm.tir.expr import const
from tvm.tir.stmt import Block, BlockRealize, Stmt

from .access import access_regions

if TYPE_CHECKING:
    from .builder import BlockFrame, FunctionState


def finish_block(frame: BlockFrame, body: Stmt) -> Stmt:
    """The block of a frame; regions that were not given are those its statements touch."""
    block = Block(
        frame.iter_vars, frame.reads or (), frame.writes or (), frame.name, body, frame.init,
        frame.alloc_buffers, frame.match_buffers, frame.annotations,
    )  # fmt: skip
    if frame.reads is None or frame.writes is None:
        reads, writes = access_regions(block)
        block = block.replace(
            reads=tuple(reads) if frame.reads is None else block.reads,
            writes=tuple(writes) if frame.writes is None else block.writes,
        )
    if frame.no_realize:
        return block
    predicate = const(True) if frame.predicate is None else frame.predicate
    return BlockRealize(tuple(frame.iter_values), predicate, block)


def with_root_block(state: FunctionState, body: Stmt) -> Stmt:
    """The body inside a block of its own, if it has blocks and none is around all of it."""
    buffers: list[Buffer] = state.alloc_buffers
    if not buffers and not state.block_annotations and not _needs_root(body):
        return body
    root = Block([], [], [], "root", body, None, buffers, [], state.block_annotations)
    return BlockRealize((), const(True), root)


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
