"""What a module says of devices, beside its functions."""

from __future__ import annotations

from typing import Any

from . import extension
from .node import Node, leaf


class GlobalInfo(Node, key="GlobalInfo"):
    """A fact that all functions of a module may refer to."""


class DummyGlobalInfo(GlobalInfo, key="DummyGlobalInfo"):
    """A fact without content."""


def _as_target(value: Any) -> Any:
    return None if value is None else extension.as_target.required(value)


class VDevice(GlobalInfo, key="VDevice"):
    """A device that tensors are assigned to.

    Parameters
    ----------
    target : Target, dict or str, optional
        The machine; a Target, or what one is made of.
    vdevice_id : int
        Tells devices of one target apart.
    memory_scope : str
        The memory of the device.
    """

    target: Any = leaf(default=None, convert=_as_target)
    vdevice_id: int = 0
    memory_scope: str = "global"
