"""Finding blocks: by name, inside of others, before and after others."""

from __future__ import annotations

from tvm.error import suggest
from tvm.ir.expr import GlobalVar
from tvm.tir.block_scope import StmtSRef

from ..analyses.block_kind import output_buffers
from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import scope_of


def get_block(state: ScheduleState, name: str, gvar: GlobalVar) -> StmtSRef:
    """The block of that name in a function."""
    root = state.root_of_function(gvar)
    blocks = [] if root is None else [root, *blocks_inside(state, root)]
    found = [sref for sref in blocks if sref.block.name_hint == name]
    if not found:
        names = dict.fromkeys([sref.block.name_hint for sref in blocks])
        raise PrimitiveError(
            "ScheduleError: Cannot find a block with the specified name",
            f"Cannot find a block with the name: {name}. {suggest(name, names)}".rstrip()
            .replace("{", "{{").replace("}", "}}"),
        )  # fmt: skip
    if len(found) > 1:
        raise PrimitiveError(
            "ScheduleError: Found multiple blocks with the specified name",
            f"Found  {len(found)} blocks with the name: {name}".replace("{", "{{").replace(
                "}", "}}"
            ),
            *[sref.block for sref in found],
        )
    return found[0]


def blocks_inside(state: ScheduleState, sref: StmtSRef) -> list[StmtSRef]:
    """All blocks inside a loop or block, those inside of others too, in the order of execution."""
    found: list[StmtSRef] = []
    for child in state.child_blocks(sref):
        found += [child, *blocks_inside(state, child)]
    return found


def get_child_blocks(state: ScheduleState, sref: StmtSRef) -> list[StmtSRef]:
    """The blocks inside a loop or block, those inside of others left out."""
    return state.child_blocks(sref)


def get_producers(state: ScheduleState, block: StmtSRef) -> list[StmtSRef]:
    """The blocks of the scope whose results a block reads."""
    return state.get_block_scope(enclosing_scope(block)).producers(block)


def get_consumers(state: ScheduleState, block: StmtSRef) -> list[StmtSRef]:
    """The blocks of the scope that read a block's results."""
    return state.get_block_scope(enclosing_scope(block)).consumers(block)


def get_output_blocks(state: ScheduleState, scope: StmtSRef) -> list[StmtSRef]:
    """The blocks inside a scope that write what outlives it."""
    is_output = output_buffers(state, scope)
    return [
        block
        for block in blocks_inside(state, scope)
        if any([is_output(region.buffer) for region in block.block.writes])
    ]


def enclosing_scope(block: StmtSRef) -> StmtSRef:
    """The block around a block; the root block, which has none, is rejected."""
    if block.parent is None:
        raise PrimitiveError(
            "ScheduleError: The primitive does not operate on the root block",
            "the primitive does not operate on the root block {0}",
            block.block,
        )
    return scope_of(block)
