"""`tvm.tir.Schedule`: loops and blocks of a program transformed step by step, each step checked and recorded."""

from __future__ import annotations

from tvm.error import ScheduleError
from tvm.ir.module import IRModule
from tvm.tir.function import PrimFunc

from .block_methods import BlockMethods
from .buffer_methods import BufferMethods
from .layout_methods import LayoutMethods
from .loop_methods import LoopMethods
from .random_variables import BlockRV, ExprRV, LoopRV
from .reindex_methods import ReindexMethods
from .sampling_methods import SamplingMethods
from .trace import Trace


class Schedule(
    LoopMethods, BlockMethods, BufferMethods, LayoutMethods, ReindexMethods, SamplingMethods
):
    """A program that is scheduled.

    A primitive is rejected with :class:`ScheduleError` where it would change what the program computes.

    Parameters
    ----------
    mod : PrimFunc or IRModule
        The program.
    seed : int, optional
        The seed of the numbers that the ``sample_*`` methods draw; drawn itself if None or -1.
    debug_mask : str or int
        Whether to verify the state after each step: ``"all"``, ``"none"`` or flags.
    error_render_level : str
        How errors read: ``"detail"``, ``"fast"`` (the reason alone) or ``"none"``.
    enable_check : bool
        Whether primitives check what they require.
    """

    def copy(self) -> Schedule:
        """A schedule of its own in the same state, whose random variables are the same."""
        other = Schedule.__new__(Schedule)
        other._state, mapping = self._state.copy()
        other._srefs = {variable: mapping.get(sref, sref) for variable, sref in self._srefs.items()}
        other._numbers = dict(self._numbers)
        other._working_on = self._working_on
        other._error_render_level = self._error_render_level
        other._trace = (
            None if self._trace is None else Trace(self._trace.insts, self._trace.decisions)
        )
        other._random_state = 1
        other._seed(self.fork_seed())
        return other

    @staticmethod
    def _create_non_traced(
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> Schedule:
        """A schedule that records no steps."""
        sch = Schedule(
            mod,
            seed=seed,
            debug_mask=debug_mask,
            error_render_level=error_render_level,
            enable_check=enable_check,
        )
        sch._trace = None
        return sch

    def enter_postproc(self) -> None:
        """Mark that what follows is post-processing, which a replay may leave out."""
        self._record("EnterPostproc", [])


__all__ = ["BlockRV", "ExprRV", "LoopRV", "Schedule", "ScheduleError"]
