"""The devices of virtual machines, and who hands out their memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.remote import own_device_type

# how a device's memory is handed out, by name
ALLOCATORS = {"naive": 1, "pooled": 2}


def as_devices(device: Device | Iterable[Device]) -> list[Device]:
    """The devices that a machine was given."""
    devices = list(device) if isinstance(device, Iterable) else [device]
    for item in devices:
        if not isinstance(item, Device):
            raise TypeError(f"VirtualMachine needs a Device, got {type(item).__name__}")
    return devices


def with_allocators(
    devices: Iterable[Device], memory_cfg: str | Mapping[Device, str] | None
) -> list[int]:
    """Kind, number and allocator of each device in turn, as native machines take them."""
    numbers: list[int] = []
    for item in devices:
        kind = memory_cfg.get(item) if isinstance(memory_cfg, Mapping) else memory_cfg
        if kind is not None and kind not in ALLOCATORS:
            raise ValueError(f'memory_cfg must be "naive" or "pooled", got {kind!r}')
        numbers += [own_device_type(item), item.device_id, ALLOCATORS[kind or "pooled"]]
    return numbers
