"""Targets in tuning records, which may be of older releases."""

from __future__ import annotations

from typing import Any

from .target_node import Target

# what targets once said, and executors and runtimes say today
_PAST_OPTIONS = ("link-params", "runtime", "system-lib")


def recorded_target(text: Any) -> Target:
    """The target of a record, without the options that targets once had."""
    if not isinstance(text, str):
        return Target(text)  # which says what it takes
    words = [word for word in text.split() if word.lstrip("-").split("=")[0] not in _PAST_OPTIONS]
    return Target(" ".join(words))
