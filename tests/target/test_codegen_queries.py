"""What LLVM tells about itself, by the names of ``tvm.target.codegen`` and of the registry."""

import pytest

import tvm
from tvm.target import TargetError, codegen
from tvm.target.cpu_features import CHECKED, named_features, with_implied
from tvm.target.llvm_tables import processor_features


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


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        ("x86_64-linux-gnu -mcpu=btver2", ["sse4a", "avx"], "avx2"),
        ("x86_64-linux-gnu -mcpu=haswell", ["lzcnt", "movbe", "ssse3"], "slow-lea"),
        ("x86_64-linux-gnu -mcpu=ivybridge -mattr=-ssse3", ["sse3", "popcnt"], "sse4.1"),
        ("aarch64-linux-gnu -mattr=+v8.4a", ["dotprod", "rcpc"], "sve"),
        ("arm-linux-gnueabi -mcpu=cortex-m4", ["dsp", "thumb2"], "neon"),
        ("riscv64-linux-gnu -mcpu=sifive-x280", ["v", "zfh", "zvl512b"], "zfinx"),
    ],
)
def test_features_are_those_of_llvm(target: str, has: list[str], lacks: str) -> None:
    assert codegen.target_has_features(has, f"llvm -mtriple={target}")
    assert not codegen.target_has_features(lacks, f"llvm -mtriple={target}")


@pytest.mark.parametrize("name", ["ivybridge", "skylake-avx512", "sapphirerapids", "znver5"])
def test_features_written_down_are_those_of_llvm(name: str) -> None:
    triple, checked = "x86_64-unknown-linux-gnu", CHECKED["x86_64"]
    written = with_implied(named_features(triple, name))
    assert set(checked) & written == set(checked) & processor_features(triple, name)


def test_features_require_a_target() -> None:
    with pytest.raises(tvm.error.InternalError, match="Target context required"):
        codegen.target_has_features("avx2")


def test_unknown_processor_counts_as_generic(capfd: pytest.CaptureFixture[str]) -> None:
    features = codegen.llvm_get_cpu_features("llvm -mtriple=x86_64-linux-gnu -mcpu=nothing")
    assert "sse2" in features and "avx" not in features
    assert "-mcpu=nothing" in capfd.readouterr().err


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
