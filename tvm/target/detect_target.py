"""The target of a device."""

from __future__ import annotations

from typing import Any

from .target_node import Target


def detect_target_from_device(dev: Any) -> Target:
    """The target of the machine that ``dev`` stands for."""
    return Target.from_device(dev)
