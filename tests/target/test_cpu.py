"""What a target says about its processor."""

import pytest

from tvm.target import Target, cpu_info
from tvm.target.host import host_features, host_name


def test_plain_llvm_is_this_machine() -> None:
    assert cpu_info(Target("llvm")).name == host_name()
    native = cpu_info(Target("llvm -mcpu=native"))
    assert {f"+{feature}" for feature in native.features} <= set(host_features())
    assert native.l1d > 0 and native.l2 > 0 and native.cores > 0


@pytest.mark.parametrize(
    ("mcpu", "bits", "registers"),
    [("skylake-avx512", 512, 32), ("haswell", 256, 16), ("x86-64", 128, 16), ("znver4", 512, 32)],
)
def test_vectors_of_named_processors(mcpu: str, bits: int, registers: int) -> None:
    info = cpu_info(Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={mcpu}"))
    assert (info.vector_bits, info.vector_registers) == (bits, registers)


def test_extensions_of_named_processors() -> None:
    assert cpu_info(Target("llvm -mcpu=cascadelake")).has_vnni
    assert not cpu_info(Target("llvm -mcpu=haswell")).has_vnni
    assert cpu_info(Target("llvm -mcpu=haswell -mattr=+avxvnni")).has_vnni
    assert not cpu_info(Target("llvm -mcpu=skylake-avx512 -mattr=-avx512f")).has_avx512f


def test_options_set_width_and_cores() -> None:
    info = cpu_info(Target("llvm -num-cores=3 -vector-width=256"))
    assert (info.cores, info.fp32_lanes) == (3, 8)


@pytest.mark.parametrize(
    ("target", "has_fma"),
    [
        ("-mtriple=x86_64-linux-gnu -mcpu=haswell", True),
        ("-mtriple=x86_64-linux-gnu -mcpu=x86-64", False),
        ("-mtriple=aarch64-linux-gnu", True),
        ("-mtriple=armv7l-linux-gnueabihf -mattr=+neon", False),
        ("-mtriple=armv7l-linux-gnueabihf -mattr=+neon,+vfp4", True),
        ("-mtriple=riscv64-linux-gnu -mattr=+f,+d", True),
        ("-mtriple=wasm32-unknown-unknown", False),
    ],
)
def test_fused_multiply_add_of_processors(target: str, has_fma: bool) -> None:
    assert cpu_info(Target(f"llvm {target}")).has_fma is has_fma
