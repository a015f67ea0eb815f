"""What a program may contain at each stage of lowering.

STAGES  after a te schedule or a block program: multi-dimensional buffers, regions, blocks
FLAT    after flattening: one-dimensional buffers, allocations
READY   for the code generator: no vectorized loops, no rounding divisions, no calls by name
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from tvm import knobs
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.instrument import PassInstrument
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.verify_well_formed import scope_problems
from tvm.tir.expr import BufferLoad, Call, FloorDiv, FloorMod, ProducerLoad, Reduce
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    For,
    ForKind,
    Prefetch,
    ProducerRealize,
    ProducerStore,
)


class Stage(IntEnum):
    """How far a program has been lowered."""

    STAGES = 0
    FLAT = 1
    READY = 2


# calls that no code generator knows
UNLOWERED_CALLS = tuple(
    INTRINSICS[name]
    for name in (
        "tvm_call_packed", "tvm_call_cpacked", "tvm_call_trace_packed", "tvm_stack_make_shape",
        "tvm_stack_make_array", "tvm_thread_context", "anylist_getitem", "anylist_resetitem",
        "anylist_setitem_call_packed", "anylist_setitem_call_cpacked",
    )
)  # fmt: skip


def problems(func: PrimFunc, stage: Stage) -> list[str]:
    """What is not legal in a function at a stage, a line each."""
    checker = StageChecker(stage)
    checker.visit(func.body)
    return [*scope_problems(func), *checker.problems]


def verify(func: PrimFunc, stage: Stage) -> None:
    """Raise an error if a function is not legal at a stage."""
    if found := problems(func, stage):
        name = func.get_attr("global_symbol", "a function")
        raise LoweringError(f"{name} is not legal at stage {stage.name}: " + "; ".join(found[:5]))


class StageChecker(Visitor):
    """Looks for what should be gone."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.problems: list[str] = []

    def _gone_after(self, stage: Stage, node: Any) -> None:
        if self.stage > stage:
            self.problems.append(f"a {type(node).__name__} is left")
        self.visit_children(node)

    def visit_producer_load(self, node: ProducerLoad) -> None:
        self.problems.append("a ProducerLoad is left")

    def visit_producer_store(self, node: ProducerStore) -> None:
        self.problems.append("a ProducerStore is left")

    def visit_producer_realize(self, node: ProducerRealize) -> None:
        self.problems.append("a ProducerRealize is left")

    def visit_reduce(self, node: Reduce) -> None:
        self.problems.append("a Reduce is left")

    def visit_buffer_realize(self, node: BufferRealize) -> None:
        self._gone_after(Stage.STAGES, node)

    def visit_prefetch(self, node: Prefetch) -> None:
        self._gone_after(Stage.STAGES, node)

    def visit_block(self, node: Block) -> None:
        self._gone_after(Stage.STAGES, node)

    def visit_block_realize(self, node: BlockRealize) -> None:
        self._gone_after(Stage.STAGES, node)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load, load.indices)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store, store.indices)

    def _access(self, node: BufferLoad | BufferStore, indices: tuple[PrimExpr, ...]) -> None:
        buffer = node.buffer
        if len(indices) != len(buffer.shape):
            self.problems.append(
                f"{buffer.name} has {len(buffer.shape)} dimensions and {len(indices)} indices"
            )
        elif self.stage >= Stage.FLAT and len(indices) != 1 + len(buffer.axis_separators):
            self.problems.append(f"{buffer.name} has {len(indices)} dimensions")
        self.visit_children(node)

    def visit_allocate(self, alloc: Allocate) -> None:
        if self.stage is Stage.READY and alloc.constant_size() is None:
            self.problems.append(f"{alloc.buffer_var.name} has no constant size")
        self.visit_children(alloc)

    def visit_for(self, loop: For) -> None:
        if self.stage is Stage.READY and loop.kind is ForKind.VECTORIZED:
            self.problems.append(f"loop {loop.loop_var.name} is vectorized")
        self.visit_children(loop)

    def visit_floor_div(self, e: FloorDiv) -> None:
        self._gone_after(Stage.FLAT, e)

    def visit_floor_mod(self, e: FloorMod) -> None:
        self._gone_after(Stage.FLAT, e)

    def visit_call(self, call: Call) -> None:
        if self.stage is Stage.READY and any([call.op is op for op in UNLOWERED_CALLS]):
            self.problems.append(f"a call of {call.op} is left")
        self.visit_children(call)


# the last pass of each stage: behind it the next one begins
LAST_PASSES = {"tir.FlattenBuffer": Stage.FLAT, "tir.CombineContextCall": Stage.READY}


class VerifyStages(PassInstrument):
    """Checks every function after each pass: ``PassContext(instruments=[VerifyStages()])``.

    Parameters
    ----------
    stage : Stage
        How far the program has been lowered before the first pass.
    """

    def __init__(self, stage: Stage = Stage.STAGES) -> None:
        super().__init__()
        self.stage = stage

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check what a pass has left."""
        if not info.name.startswith("tir."):
            return
        self.stage = LAST_PASSES.get(info.name, self.stage)
        for func in mod.functions.values():
            if isinstance(func, PrimFunc) and (found := problems(func, self.stage)):
                name = func.get_attr("global_symbol", "a function")
                raise LoweringError(f"{info.name} leaves {name} illegal: " + "; ".join(found[:5]))


def verified(passes: Sequence[Pass], stage: Stage) -> list[Pass]:
    """Passes with a check behind each, if the knob TVM_VERIFY_STAGES is on."""
    if not knobs.VERIFY_STAGES.value:
        return list(passes)
    checks = VerifyStages(stage)

    def check_of(item: Pass) -> Pass:
        def check(mod: IRModule, _: PassContext) -> IRModule:
            checks.run_after_pass(mod, item.info)
            return mod

        return ModulePass(check, PassInfo(0, f"verify_{item.info.name}"))

    return [part for item in passes for part in (item, check_of(item))]
