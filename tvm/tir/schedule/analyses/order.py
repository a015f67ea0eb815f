"""Whether blocks that were moved still run after what they need and before what needs them."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.tir.block_scope import DepKind, StmtSRef
from tvm.tir.stmt import Block, For

from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import common_ancestor, scope_of


def require_order(state: ScheduleState, moved: Sequence[StmtSRef], shown: For | Block) -> None:
    """Reject a move after which a block reads what is written later, or what others write over.

    The blocks have to be where they were moved to already.
    """
    require_sequence(state, moved, shown)
    inside = dict.fromkeys(moved)
    scope = state.get_block_scope(scope_of(moved[0]))
    for block in scope.children:
        for dependency in scope.get_deps_by_dst(block):
            concerned = block in inside or dependency.src in inside
            if dependency.kind == DepKind.WAR and block in inside and dependency.src in inside:
                _reject(shown)
            if dependency.kind == DepKind.RAW and concerned:
                if not state.is_covered(block) or _is_overtaken(state, dependency.src, block):
                    _reject(shown)


def _is_overtaken(state: ScheduleState, writer: StmtSRef, reader: StmtSRef) -> bool:
    """Whether a block may read what another one in the same loop changes in a later iteration.

    Something else may have written it before, so that it is covered.
    """
    if writer is reader or common_ancestor([writer, reader]).is_block:
        return False
    scope = state.get_block_scope(scope_of(reader))
    read = dict.fromkeys([region.buffer for region in reader.block.reads])
    for region in writer.block.writes:
        if region.buffer in read and len(scope.buffer_writers.get(region.buffer, ())) > 1:
            if not state.is_written_before(reader, region.buffer, writer):
                return True
    return False


def require_sequence(state: ScheduleState, moved: Sequence[StmtSRef], shown: For | Block) -> None:
    """Reject a move after which a block that reads comes before one that writes the same buffer."""
    scope = state.get_block_scope(scope_of(moved[0]))
    inside = dict.fromkeys(moved)
    position = {block: i for i, block in enumerate(scope.children)}
    for block in scope.children:
        for region in scope.reads_of(block):
            for writer in scope.buffer_writers.get(region.buffer, ()):
                concerned = writer in inside or block in inside
                if concerned and position[writer] > position[block]:
                    _reject(shown)


def _reject(shown: For | Block) -> None:
    raise PrimitiveError(
        "ScheduleError: A block would read what has not been written completely",
        "{0} can't be moved there: a block would read what has not been written completely before",
        shown,
    )
