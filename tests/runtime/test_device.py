"""Devices: streams of work."""

from __future__ import annotations

import tvm
from tvm.runtime import Device


def test_the_cpu_has_no_streams() -> None:
    device = Device(Device.kDLCPU, 0)
    stream = device.create_raw_stream()
    assert stream is None
    device.set_raw_stream(stream)
    device.sync(stream)
    device.free_raw_stream(stream)
    assert tvm.cpu() == device
