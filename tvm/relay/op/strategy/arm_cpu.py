"""Strategies and shared schedules for Arm processors, under their classic names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.error import TVMError
from tvm.target import Target

from . import generic, x86

if TYPE_CHECKING:
    from tvm.tir.schedule import Schedule

# one schedule for all processors, which asks the target for its vectors
schedule_injective_arm_cpu = x86.schedule_injective_cpu
schedule_concatenate_arm_cpu = x86.schedule_concatenate_cpu
schedule_reduce_arm_cpu = x86.schedule_reduce_cpu
schedule_pool_arm_cpu = x86.schedule_pool_cpu


def arm_cpu_tir_strategy(sch: Schedule) -> bool:
    """Schedule blocks as the target's matrix units want them, where it has any.

    Parameters
    ----------
    sch : tir.Schedule
        The program; it is left as it is for processors without matrix units.

    Returns
    -------
    bool
        Whether it was scheduled, which it never is.

    Raises
    ------
    TVMError
        If the target has Arm's Scalable Matrix Extension, for which there is no schedule.
    """
    target = Target.current()
    if target is not None and target.features.has_sme:
        raise TVMError(
            f"arm_cpu_tir_strategy has no schedule for the matrix units of {target}",
            hint="leave out +sme: vectors of scalable length are used with +sve",
        )
    return False


def __getattr__(name: str) -> Any:
    """Operators choose their own way to run on a processor: their strategies are for all targets."""
    if not name.endswith("_strategy_arm_cpu"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(generic, name.removesuffix("_arm_cpu"))
