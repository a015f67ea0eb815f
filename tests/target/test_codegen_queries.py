"""What LLVM tells about itself, by the names of ``tvm.target.codegen`` and of the registry."""

import pytest

import tvm
from tvm.target import TargetError, codegen


def test_system_is_described() -> None:
    assert codegen.llvm_get_system_cpu() in codegen.llvm_get_cpu_archlist()
    assert codegen.llvm_get_system_triple().count("-") >= 2
    assert codegen.llvm_version_major() >= 15
    assert isinstance(codegen.llvm_get_system_x86_vendor(), str)


def test_back_ends_and_their_processors() -> None:
    assert {"x86_64", "aarch64", "arm", "riscv64", "wasm32"} <= set(codegen.llvm_get_targets())
    assert "cortex-a72" in codegen.llvm_get_cpu_archlist("llvm -mtriple=aarch64-linux-gnu")


def test_features_of_a_target() -> None:
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"
    assert "avx2" in codegen.llvm_get_cpu_features(target)
    assert codegen.llvm_cpu_has_features(["avx2", "fma"], target)
    assert not codegen.llvm_cpu_has_features("avx512f", target)
    with tvm.target.Target("llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake"):
        assert codegen.target_has_features("avx512vnni")


def test_intrinsics_have_numbers() -> None:
    number = codegen.llvm_lookup_intrinsic_id("llvm.fma")
    assert number > 0 and codegen.llvm_get_intrinsic_name(number) == "llvm.fma"
    assert codegen.llvm_lookup_intrinsic_id("fma") == 0
    with pytest.raises(TargetError):
        codegen.llvm_get_intrinsic_name(123456)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("tvm.codegen.llvm.GetDefaultTargetTriple", ()),
        ("tvm.codegen.llvm.GetProcessTriple", ()),
        ("tvm.codegen.llvm.GetHostCPUName", ()),
        ("tvm.codegen.llvm.GetHostCPUFeatures", ()),
        ("target.llvm_get_targets", ()),
        ("target.llvm_get_vector_width", ()),
        ("target.llvm_version_major", ()),
        ("codegen.llvm_target_enabled", ("llvm -mtriple=aarch64-linux-gnu",)),
    ],
)
def test_queries_are_registered(name: str, args: tuple[str, ...]) -> None:
    assert tvm.get_global_func(name)(*args)
