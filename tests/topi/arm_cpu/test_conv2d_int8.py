"""Which Arm processors multiply int8 in their vectors."""

import pytest

from tvm.target import Target
from tvm.topi.arm_cpu.conv2d_int8 import is_int8_hw_support


@pytest.mark.parametrize(
    ("target", "dtypes", "is_supported"),
    [
        ("llvm -mtriple=aarch64-linux-gnu", ("int8", "int8"), True),
        ("llvm -mtriple=aarch64-linux-gnu", ("int8", "int16"), False),
        ("llvm -mtriple=aarch64-linux-gnu", ("float32", "float32"), False),
        ("llvm -mtriple=arm-linux-gnueabi -mattr=+neon", ("uint8", "uint8"), True),
        ("llvm -mtriple=arm-linux-gnueabi", ("int8", "int8"), False),
        ("c -mcpu=cortex-m7", ("int8", "int8"), False),
    ],
)
def test_int8_needs_vectors(target: str, dtypes: tuple[str, str], is_supported: bool) -> None:
    with Target(target):
        assert is_int8_hw_support(*dtypes) is is_supported
