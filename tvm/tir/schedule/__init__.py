"""Schedules of loop-level programs: primitives that transform blocks and loops, with a trace of what was done."""

from tvm.error import ScheduleError
from tvm.tir.block_scope import BlockScope, Dependency, DepKind, StmtSRef

from . import normal_form  # a global function
from .instruction import Instruction, InstructionKind
from .random_variables import BlockRV, ExprRV, LoopRV
from .schedule import Schedule
from .state import ScheduleDebugMask, ScheduleState
from .trace import Trace

__all__ = [
    "BlockRV", "BlockScope", "DepKind", "Dependency", "ExprRV", "Instruction", "InstructionKind",
    "LoopRV", "Schedule", "ScheduleDebugMask", "ScheduleError", "ScheduleState", "StmtSRef", "Trace",
]  # fmt: skip
