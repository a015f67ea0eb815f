"""Files of tuning records: of which tuner they are, and how a build uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tvm import auto_scheduler, autotvm
from tvm.driver.tvmc.errors import TVMCException
from tvm.support.files import open_lines

USE_AUTO_SCHEDULER = "relay.backend.use_auto_scheduler"


def has_searched_states(path: str) -> bool | None:
    """Whether a file's records are of the auto-scheduler; None if it has no records."""
    with open_lines(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                try:
                    row = json.loads(line)
                except ValueError:  # torn, or of AutoTVM's oldest format
                    continue
                return isinstance(row, dict) and "i" in row
    return None


def check_records(path: str) -> None:
    """Reject what is no file of records."""
    if not Path(path).is_file():
        raise TVMCException(f"there is no file of records {path}")
    try:
        load: Any = autotvm.record.load_from_file
        if has_searched_states(path):
            load = auto_scheduler.load_records
        for _ in load(path):
            pass
    except ValueError as error:
        raise TVMCException(
            f"{path} is no file of records, which `tvmc tune` writes: {error}"
        ) from None


def check_kind(path: str, is_auto_scheduler: bool) -> None:
    """Reject records of the other tuner."""
    if not Path(path).is_file():
        return
    check_records(path)
    found = has_searched_states(path)
    if found is not None and found != is_auto_scheduler:
        names = ("AutoTVM", "the auto-scheduler")
        raise TVMCException(
            f"{path} has records of {names[found]}, not of {names[is_auto_scheduler]}: "
            f"{'leave out' if is_auto_scheduler else 'add'} --enable-autoscheduler, or name another file"
        )


def context_of(path: str, config: dict[str, Any]) -> Any:
    """The context in which a build takes the records of a file; options of passes that it needs are added."""
    if has_searched_states(path):
        config.setdefault(USE_AUTO_SCHEDULER, True)
        return auto_scheduler.ApplyHistoryBest(path)
    return autotvm.apply_history_best(path)
