"""TopHub, where classic releases download tuned records from: here there is nothing to download.

The schedules choose by themselves; records come from your own tuning.
"""

from __future__ import annotations

import logging
from typing import Any

from tvm.autotvm.measure.interface import MeasureInput, MeasureResult
from tvm.autotvm.task.dispatcher import ApplyHistoryBest
from tvm.error import TVMError

logger = logging.getLogger("autotvm")


def context(target: Any, extra_files: Any = None) -> ApplyHistoryBest:
    """The context of downloaded records, of which there are none, and of given ones.

    Parameters
    ----------
    target : Target or list of Target
        The targets.
    extra_files : list of str, optional
        More logs.
    """
    logger.debug("No records are downloaded for %s: the schedules choose by themselves", target)
    best = ApplyHistoryBest([])
    for file in extra_files or ():
        best.load(file)
    return best


def check_backend(tophub_location: str, backend: str) -> bool:
    """Whether records of a backend can be had: no.

    Parameters
    ----------
    tophub_location : str
        Where the records would be.
    backend : str
        Which ones.
    """
    logger.debug("No records of %s are downloaded from %s", backend, tophub_location)
    return False


def download_package(tophub_location: str, package_name: str) -> None:
    """Would download records.

    Parameters
    ----------
    tophub_location : str
        Where the records would be.
    package_name : str
        Which ones.
    """
    raise TVMError(
        f"no records are downloaded, neither {package_name}",
        hint="tune, and use the log: autotvm.apply_history_best(file)",
    )


def load_reference_log(
    backend: str, model: str, workload_name: str
) -> list[tuple[MeasureInput, MeasureResult]]:
    """The records that unknown shapes may be likened to: none.

    Parameters
    ----------
    backend : str
        The key of the target.
    model : str
        The device's model.
    workload_name : str
        The task.
    """
    return []
