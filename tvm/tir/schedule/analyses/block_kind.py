"""Kinds of blocks: complete, reduction, output; what primitives require of them.

A complete block computes each element of its result once, from other buffers; all its iteration variables
are spatial. A reduction block has an initialisation and updates its result over reduction variables.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.arith import Analyzer
from tvm.tir.analysis.undefined_vars import undefined_vars
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar
from tvm.tir.stmt import Block

from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import domain_of, loops_of, root_of, scope_of
from .bindings import has_only, is_affine_map, uses_var
from .regions import without_domain_checks

COMPLETE = """the block {0} is not a complete block: {reason}. A complete block requires that
1. it is the only writer of what it writes in its scope,
2. all its iteration variables are data parallel,
3. it reads no buffer that it writes"""
REDUCTION = """the block {0} is not a reduction block: {reason}. A reduction block requires that
1. it has an init statement,
2. the values of its iteration variables are affine in the loops,
3. its iteration variables are data parallel or reductions,
4. it is the only writer of what it writes in its scope,
5. its reduction variables index none of what it writes"""


def why_not_complete(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> str:
    """Why a block is not complete; an empty text if it is."""
    stmt = block.block
    if not is_dominant(state, block, scope):
        return "another block writes the same buffer"
    if not has_only(stmt.iter_vars, IterVar.DataPar):
        return "some iteration variable is not data parallel"
    written = dict.fromkeys([region.buffer for region in stmt.writes])
    if any([region.buffer in written for region in stmt.reads]):
        return "it reads a buffer that it writes"
    return ""


def why_no_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> str:
    """Why a block is no reduction; an empty text if it is one."""
    stmt = block.block
    if stmt.init is None:
        return "it has no init"
    if not state.is_affine(block):
        return "some value of its iteration variables is not affine"
    if not has_only(stmt.iter_vars, IterVar.DataPar, IterVar.CommReduce):
        return "some iteration variable is neither data parallel nor a reduction"
    if not is_dominant(state, block, scope):
        return "another block writes the same buffer"
    if reduction_indexes_output(stmt):
        return "a reduction variable indexes what it writes"
    return ""


def is_complete(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> bool:
    """Whether a block is complete among those inside a loop or block."""
    return not why_not_complete(state, block, scope)


def is_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> bool:
    """Whether a block is a reduction among those inside a loop or block."""
    return not why_no_reduction(state, block, scope)


def reduction_indexes_output(block: Block) -> bool:
    """Whether a reduction variable is in the index of a buffer that is written."""
    reduced = {axis.var: None for axis in block.iter_vars if axis.iter_type == IterVar.CommReduce}
    return any([uses_var(item.min, reduced) for region in block.writes for item in region.region])


def is_dominant(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> bool:
    """Whether no other block directly inside a loop or block writes what this one writes."""
    written = dict.fromkeys([region.buffer for region in block.block.writes])
    others = state.get_block_scope(scope).children if scope.is_block else state.child_blocks(scope)
    for other in others:
        if other is not block and any([w.buffer in written for w in other.block.writes]):
            return False
    return True


def require_complete(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    """Reject a block that is not complete."""
    if state.enable_check and (reason := why_not_complete(state, block, scope)):
        raise PrimitiveError(
            "ScheduleError: Incomplete block", COMPLETE.replace("{reason}", reason), block.block
        )
    _require_bound(state, block)


def require_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    """Reject a block that is no reduction."""
    if state.enable_check and (reason := why_no_reduction(state, block, scope)):
        raise PrimitiveError(
            "ScheduleError: Not a reduction block",
            REDUCTION.replace("{reason}", reason),
            block.block,
        )
    _require_bound(state, block)


def require_complete_or_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    """Reject a block that is neither complete nor a reduction."""
    _require_complete_or_reduction(state, block, scope)
    _require_bound(state, block)


def _require_bound(state: ScheduleState, block: StmtSRef) -> None:
    """Reject a block that uses loops itself, not through the values of its variables.

    Such a block means nothing in other loops.
    """
    if not state.enable_check:
        return
    loops = domain_of(loops_of(block))
    used = [var.name for var in undefined_vars(block.block) if var in loops]
    if used:
        raise PrimitiveError(
            "ScheduleError: The block uses loops around it directly",
            f"the block {{0}} is required to depend on the loops around it only through the values "
            f"of its iteration variables, but it uses {', '.join(used)}",
            block.block,
        )


def _require_complete_or_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    if not state.enable_check:
        return
    incomplete = why_not_complete(state, block, scope)
    if incomplete and (no_reduction := why_no_reduction(state, block, scope)):
        text = COMPLETE.replace("{reason}", incomplete)
        raise PrimitiveError(
            "ScheduleError: Not a complete or reduction block",
            f"{text}\n{REDUCTION.replace('{reason}', no_reduction)}",
            block.block,
        )


def require_compact_dataflow(state: ScheduleState, subtree: StmtSRef) -> None:
    """Reject a loop or block some inner block of which is neither complete nor a reduction in it."""
    for child in state.child_blocks(subtree):
        _require_complete_or_reduction(state, child, subtree)


def require_affine(state: ScheduleState, block: StmtSRef) -> None:
    """Reject a block whose iteration variables are not affine in the loops around it."""
    if state.enable_check and not state.is_affine(block):
        _reject_binding(block, "the loops around it")


def require_affine_inside(state: ScheduleState, block: StmtSRef, place: StmtSRef | None) -> None:
    """Reject a block whose iteration variables are not affine in the loops inside a place."""
    if not state.enable_check or state.is_affine(block):
        return
    realize = state.realize_of(block)
    inside: list[StmtSRef] = []
    for above in block.ancestors():
        if above is place or above.is_block:
            break
        inside.append(above)
    if not is_affine_map(realize.iter_values, domain_of(inside), realize.predicate):
        _reject_binding(block, "the loops in question")


def _reject_binding(block: StmtSRef, loops: str) -> None:
    raise PrimitiveError(
        "ScheduleError: The block is required to have an affine binding",
        "the block {0} is required to have values of its iteration variables that are affine in "
        + loops,
        block.block,
    )


def require_stage_pipeline(state: ScheduleState, block: StmtSRef) -> StmtSRef:
    """The scope of a block; rejected if its blocks depend on more than each other's results."""
    if block.parent is None:
        raise PrimitiveError(
            "ScheduleError: The primitive does not operate on the root block",
            "the primitive does not operate on the root block {0}",
            block.block,
        )
    scope = scope_of(block)
    if state.enable_check and not state.is_stage_pipeline(scope):
        raise PrimitiveError(
            "ScheduleError: The scope is required to be a stage pipeline",
            "the scope {0} is required to be a stage pipeline: each block in it reads what others "
            "wrote completely before, and none writes over what another one reads",
            scope.block,
        )
    return scope


def require_domain_predicate(state: ScheduleState, block: StmtSRef) -> None:
    """Reject a block whose predicate leaves out points of its variables' domains."""
    realize = state.realize_of(block)
    rest = without_domain_checks(realize)
    if state.enable_check and not Analyzer().can_prove(rest):
        raise PrimitiveError(
            "ScheduleError: The block has a non-trivial predicate",
            f"The block {{0}} has the predicate {realize.predicate}, which leaves out points of the "
            "domains of its variables",
            block.block,
        )


def output_buffers(state: ScheduleState, scope: StmtSRef) -> Callable[[Buffer], bool]:
    """Whether a buffer is used outside of a scope: it is not allocated in it."""
    allocated = dict.fromkeys(scope.block.alloc_buffers)
    return lambda buffer: buffer not in allocated


def is_output_block(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> bool:
    """Whether a block writes a buffer that outlives its scope."""
    is_output = output_buffers(state, scope)
    return any([is_output(region.buffer) for region in block.block.writes])


def is_root(block: StmtSRef) -> bool:
    """Whether it is the root block of its function."""
    return root_of(block) is block
