"""Bind the loops of blocks that no schedule was written for to the threads of a GPU.

for i, j in T.grid(32, 8):                         for i_j_fused_0 in T.thread_binding(1, "blockIdx.x"):
    with T.block("B"):                        ->       for i_j_fused_1 in T.thread_binding(256, "threadIdx.x"):
        vi, vj = T.axis.remap("SS", [i, j])                with T.block("B"):
        B[vi, vj] = A[vi, vj]                                  vi = T.axis.spatial(32, (i_j_fused_0 * 256 + i_j_fused_1) // 8)
                                                               ...

The data-parallel loops become one, split into blocks of as many threads as the target allows; where that gives
more than 256 blocks or an unknown number, each thread loops over several elements. Reductions stay in the thread.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.module import IRModule
from tvm.target import Target
from tvm.tir.expr import IntImm, IterVar
from tvm.tir.function import PrimFunc
from tvm.tir.schedule import BlockRV, LoopRV, Schedule
from tvm.tir.stmt import BlockRealize, ForKind
from tvm.tir.transform.common import prim_func_pass, variables_of

MAX_BLOCKS = 256
SCHEDULED = "tir.is_scheduled"


@prim_func_pass("tir.DefaultGPUSchedule")
def default_gpu_schedule(func: PrimFunc) -> PrimFunc:
    """Bind loops to threads in functions for a GPU, and mark all functions as scheduled."""
    if func.get_attr(SCHEDULED, False):
        return func
    target = func.get_attr("target") or Target.current()
    if target is not None and "gpu" not in target.keys:
        return func.with_attr(SCHEDULED, True)
    return _bound(func, _max_threads(target)).with_attr(SCHEDULED, True)


DefaultGPUSchedule = default_gpu_schedule.factory


def _max_threads(target: Target | None) -> int:
    """The threads of a block that the target allows."""
    limit = None if target is None else target.attrs.get("max_num_threads")
    if limit is None:
        raise LoweringError(
            f"DefaultGPUSchedule requires a target with max_num_threads, got {target}",
            hint='run it under a target: with tvm.target.Target("cuda"): ...',
        )
    return int(limit)


def _bound(func: PrimFunc, max_threads: int) -> PrimFunc:
    if not isinstance(func.body, BlockRealize):
        raise LoweringError(
            "DefaultGPUSchedule requires a function of blocks, got one of loops alone",
            hint="bind the loops of a te schedule: s[op].bind(axis, te.thread_axis('threadIdx.x'))",
        )
    sch = Schedule._create_non_traced(IRModule({"main": func}))
    for block in _innermost_blocks(sch):
        _bind_block(sch, block, max_threads)
    scheduled = sch.mod["main"]
    assert isinstance(scheduled, PrimFunc)
    return scheduled


def _innermost_blocks(sch: Schedule) -> list[BlockRV]:
    """The blocks that have no blocks inside them, in order."""
    found: list[BlockRV] = []
    pending = sch.get_child_blocks(sch.get_block("root"))
    while pending:
        block = pending.pop(0)
        inside = sch.get_child_blocks(block)
        pending = [*inside, *pending]
        if not inside:
            found.append(block)
    return found


def _bind_block(sch: Schedule, block: BlockRV, max_threads: int) -> None:
    loops = sch.get_loops(block)
    if any([sch.get(loop).kind is ForKind.THREAD_BINDING for loop in loops]):
        return
    fused = sch.fuse(*_parallel_loops(sch, block, loops), preserve_unit_iters=False)
    extent = sch.get(fused).extent
    count = extent.value if isinstance(extent, IntImm) else None
    if count is not None and count <= max_threads * MAX_BLOCKS:
        outer, inner = sch.split(fused, [None, min(count, max_threads)])
    else:
        rest, outer, inner = sch.split(fused, [None, MAX_BLOCKS, max_threads])
        sch.reorder(outer, inner, rest)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")


def _parallel_loops(sch: Schedule, block: BlockRV, loops: list[LoopRV]) -> list[LoopRV]:
    """The loops that no reduction is over, outermost; a loop of one iteration where there are none."""
    sref = sch.get_sref(block)
    assert sref is not None
    realize = sch.state.realize_of(sref)
    ordered = [
        variable
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.iter_type != IterVar.DataPar
        for variable in variables_of(value)
    ]
    parallel = [loop for loop in loops if sch.get(loop).loop_var not in ordered]
    if not parallel:
        return [sch.add_unit_loop(loops[0] if loops else block)]
    if parallel != loops[: len(parallel)]:
        sch.reorder(*parallel, *[loop for loop in loops if loop not in parallel])
    return parallel
