"""VirtualDevice: a device, its target and a memory scope, as device planning assigns them."""

from __future__ import annotations

from typing import Any

from tvm.ir.node import Node, leaf

from .target_node import Target


class VirtualDevice(Node, key="VirtualDevice"):
    """Where a value lives: any part may be left open."""

    device_type_int: int = leaf()
    virtual_device_id: int = leaf()
    target: Target | None
    memory_scope: str = leaf()

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = "") -> None:
        target = Target.canon_target(target)
        number = -1 if device is None else int(device.device_type)
        if device is None and target is not None:
            number = target.get_target_device_type()
        index = -1 if device is None else int(device.device_id)
        self._init(number, index, target, memory_scope)

    @property
    def device_type(self) -> int:
        return self.device_type_int
