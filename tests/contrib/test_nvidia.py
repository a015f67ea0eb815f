"""What is known of NVIDIA's devices and libraries on a machine without them."""

from __future__ import annotations

import pytest

import tvm
from tvm.contrib import cudnn, nvcc


def test_compute_capabilities_say_what_devices_can_do() -> None:
    versions = ["5.2", "5.3", "6.0", "6.1", "7.0", "8.0", "10.0"]
    can = [
        [test(version) for version in versions]
        for test in (nvcc.have_fp16, nvcc.have_int8, nvcc.have_tensorcore, nvcc.have_bf16)
    ]
    assert [sum(row) for row in can] == [6, 4, 3, 2]


def test_compute_capability_of_a_target() -> None:
    target = tvm.target.Target("cuda -arch=sm_86")
    assert nvcc.get_target_compute_version(target) == "8.6"
    assert nvcc.have_tensorcore(target=target)
    with target:
        assert nvcc.have_tensorcore()
    with pytest.raises(ValueError, match="names its compute capability"):
        nvcc.get_target_compute_version(tvm.target.Target("llvm"))


def test_malformed_compute_capability_is_refused() -> None:
    with pytest.raises(RuntimeError, match="two numbers with a point, got '7'"):
        nvcc.have_fp16("7")


def test_cudnn_is_not_there() -> None:
    assert not cudnn.exists()
