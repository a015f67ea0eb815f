"""Passes that need meta_schedule, which this package does not have: they say so when they are made."""

from __future__ import annotations

from typing import Any, NoReturn

from tvm.error import TVMError


def _refuse(name: str) -> NoReturn:
    raise TVMError(
        f"{name} requires meta_schedule, which this package does not have",
        hint="kernels are scheduled by a cost model without tuning; relay's tune by autotvm",
    )


def MetaScheduleApplyDatabase(work_dir: str | None = None, enable_warning: bool = False) -> Any:
    """Apply the best schedules of a database: not supported.

    Raises
    ------
    TVMError
        Always: there is no meta_schedule.
    """
    _refuse("MetaScheduleApplyDatabase")


def MetaScheduleTuneTIR(work_dir: str, max_trials_global: int) -> Any:
    """Tune loop programs: not supported.

    Raises
    ------
    TVMError
        Always: there is no meta_schedule.
    """
    _refuse("MetaScheduleTuneTIR")


def MetaScheduleTuneIRMod(
    params: Any,
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: list[str] | None = None,
) -> Any:
    """Tune a module: not supported.

    Raises
    ------
    TVMError
        Always: there is no meta_schedule.
    """
    _refuse("MetaScheduleTuneIRMod")


def FewShotTuning(valid_count: int = 1, benchmark: bool = False) -> Any:
    """Tune by a few trials: not supported.

    Raises
    ------
    TVMError
        Always: there is no meta_schedule.
    """
    _refuse("FewShotTuning")
