"""Devices: their names, attributes and streams of work."""

from __future__ import annotations

import pytest

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


ATTRIBUTES = [
    "max_threads_per_block", "warp_size", "max_shared_memory_per_block", "compute_version",
    "device_name", "max_clock_rate", "multi_processor_count", "max_thread_dimensions", "api_version",
    "driver_version", "l2_cache_size_bytes", "total_global_memory", "available_global_memory",
]  # fmt: skip


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_devices(name: str) -> None:
    assert getattr(tvm.cpu(), name) is None
    with pytest.raises(tvm.TVMError, match=r"no support for device vulkan\(0\)"):
        getattr(tvm.vulkan(), name)


def test_devices_that_this_runtime_has_not() -> None:
    assert tvm.device("gpu", 1) == tvm.cuda(1)
    device = tvm.rocm(1)
    assert not device.exist
    for use in (device.sync, device.create_raw_stream):
        with pytest.raises(tvm.TVMError, match=r"no support for device rocm\(1\)"):
            use()


def test_devices_by_number_and_what_is_none() -> None:
    assert tvm.device(8, 2) == tvm.device("mtl", 2) == tvm.metal(2)
    with pytest.raises(TypeError, match="name or number of a kind of device, got None"):
        tvm.device(None)  # type: ignore[arg-type]


def test_kinds_have_their_names_of_old_releases() -> None:
    assert Device.STR2MASK["cuda"] == Device.kDLCUDA and Device.MASK2STR[Device.kDLCPU] == "cpu"
