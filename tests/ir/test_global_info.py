"""What a module says of devices."""

from __future__ import annotations

from tvm.ir import DummyGlobalInfo, GlobalInfo, VDevice, structural_equal
from tvm.target import Target


def test_devices_of_one_target_are_distinguished() -> None:
    first, second = VDevice(Target("llvm"), 0), VDevice(Target("llvm"), 1)
    assert structural_equal(first, VDevice(Target("llvm"), 0))
    assert not structural_equal(first, second)
    assert (second.vdevice_id, second.memory_scope) == (1, "global")
    assert isinstance(first, GlobalInfo) and isinstance(DummyGlobalInfo(), GlobalInfo)
