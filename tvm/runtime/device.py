"""Names of devices."""

from __future__ import annotations

import operator

from tvm._ffi.runtime_ctypes import Device
from tvm.error import suggest


def device(dev_type: int | str, dev_id: int = 0) -> Device:
    """A device by the name or number of its kind: ``device("llvm")``, ``device("cuda", 1)``.

    The text may be a whole target, ``"llvm -mcpu=skylake"``.
    """
    if isinstance(dev_type, str):
        name = dev_type.split(maxsplit=1)[0] if dev_type.split() else dev_type
        if name not in Device.DEVICE_NAME_TO_TYPE:
            hint = suggest(name, Device.DEVICE_NAME_TO_TYPE)
            raise ValueError(f"unknown device type {name!r}" + (f"; {hint}" if hint else ""))
        dev_type = Device.DEVICE_NAME_TO_TYPE[name]
    try:
        kind = operator.index(dev_type)
    except TypeError:
        raise TypeError(
            f"device needs the name or number of a kind of device, got {dev_type!r}"
        ) from None
    return Device(kind, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The processor."""
    return Device(Device.kDLCPU, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """An NVIDIA GPU."""
    return Device(Device.kDLCUDA, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """An AMD GPU."""
    return Device(Device.kDLROCM, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """An OpenCL device."""
    return Device(Device.kDLOpenCL, dev_id)


def metal(dev_id: int = 0) -> Device:
    """An Apple GPU."""
    return Device(Device.kDLMetal, dev_id)


def vpi(dev_id: int = 0) -> Device:
    """A simulated device."""
    return Device(Device.kDLVPI, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A Vulkan device."""
    return Device(Device.kDLVulkan, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """An extension device."""
    return Device(Device.kDLExtDev, dev_id)


def hexagon(dev_id: int = 0) -> Device:
    """A Hexagon processor."""
    return Device(Device.kDLHexagon, dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """A WebGPU device."""
    return Device(Device.kDLWebGPU, dev_id)


gpu = cuda
cl = opencl
mtl = metal
