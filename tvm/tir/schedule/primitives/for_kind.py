"""How the iterations of a loop are executed: in parallel, as vectors, by threads, unrolled."""

from __future__ import annotations

from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import IterVar, Var
from tvm.tir.stmt import BlockRealize, ForKind

from ..analyses.bindings import bindings_of, uses_var
from ..analyses.block_kind import require_affine, require_compact_dataflow
from ..errors import PrimitiveError
from ..state import ScheduleState


def parallel(state: ScheduleState, loop: StmtSRef) -> None:
    """Execute the iterations on several cores."""
    _concurrent(state, loop, ForKind.PARALLEL, None)


def vectorize(state: ScheduleState, loop: StmtSRef) -> None:
    """Execute the iterations as lanes of vectors."""
    _concurrent(state, loop, ForKind.VECTORIZED, None)


def bind(state: ScheduleState, loop: StmtSRef, thread_axis: str) -> None:
    """Execute the iterations on the threads of an axis."""
    _concurrent(state, loop, ForKind.THREAD_BINDING, thread_axis)


def unroll(state: ScheduleState, loop: StmtSRef) -> None:
    """Write the iterations out one after the other."""
    new = loop.loop.replace(kind=ForKind.UNROLLED, thread_binding=None)
    state.replace(loop, new)


def _concurrent(
    state: ScheduleState, loop_sref: StmtSRef, kind: ForKind, thread_axis: str | None
) -> None:
    loop = loop_sref.loop
    require_compact_dataflow(state, loop_sref)
    reduces = thread_axis is not None and thread_axis.startswith("threadIdx")
    for block in state.child_blocks(loop_sref):
        _require_concurrent(state, loop_sref, loop.loop_var, block, reduces)
    binding = None
    if thread_axis is not None:
        axis = Var(thread_axis, loop.loop_var.dtype)
        binding = IterVar(None, axis, IterVar.ThreadIndex, thread_axis)
    state.replace(loop_sref, loop.replace(kind=kind, thread_binding=binding))


def _require_concurrent(
    state: ScheduleState, loop: StmtSRef, var: Var, block: StmtSRef, reduces: bool
) -> None:
    """Reject a block that needs the loop's iterations in order; threads may share a reduction."""
    if not state.enable_check:
        return
    require_affine(state, block)
    realize: BlockRealize = state.realize_of(block)
    values = bindings_of(realize)
    for axis in realize.block.iter_vars:
        if not uses_var(values[axis.var], {var: None}) or axis.iter_type == IterVar.DataPar:
            continue
        if axis.iter_type == IterVar.CommReduce and reduces:
            continue
        raise PrimitiveError(
            "ScheduleError: The loop's iterations are not independent",
            "The loop {0} can't be executed concurrently because the block {1} has the variable "
            f"{axis.var.name}, which is not data parallel, bound to it",
            loop.loop, block.block,
        )  # fmt: skip
