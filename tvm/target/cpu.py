"""What schedules need to know about a processor: vector width, registers, caches, cores.

A ``llvm`` target without ``-mcpu`` and ``-mtriple``, or with ``-mcpu=native``, stands for the machine that
builds: code is generated for its processor. The target's text stays the classic one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from .cpu_features import X86_CPUS, host_feature_set, named_features, with_implied, without
from .cpu_timing import CpuTiming
from .host import host_caches, host_cores, host_features, host_name
from .kind import TargetError
from .llvm_tables import processor_features
from .target_node import Target
from .triple import runs_here, target_triple

KB = 1024


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """A processor, seen by one thread of a kernel."""

    arch: str  # x86_64, aarch64, riscv64, ...
    name: str  # LLVM's name of the processor
    triple: str
    features: frozenset[str]  # LLVM's names of the features it has
    vector_bits: int  # width of the vectors to use
    vector_registers: int
    l1d: int  # bytes
    l2: int
    l3: int
    cores: int
    timing: CpuTiming = field(default_factory=CpuTiming)

    @property
    def has_avx512f(self) -> bool:
        return "avx512f" in self.features

    @property
    def has_vnni(self) -> bool:
        return "avx512vnni" in self.features or "avxvnni" in self.features

    @property
    def has_bf16(self) -> bool:
        return "avx512bf16" in self.features

    @property
    def has_fma(self) -> bool:
        arch, features = self.arch, self.features
        if arch.startswith(("x86", "i")):
            return "fma" in features
        if arch.startswith(("arm", "thumb")) and not arch.startswith("arm64"):
            return "vfp4" in features
        if arch.startswith("riscv"):
            return "f" in features
        return arch.startswith(("aarch64", "arm64", "ppc", "powerpc", "nvptx"))

    @property
    def fp32_lanes(self) -> int:
        """float32 values in one vector register."""
        return self.vector_bits // 32


def is_native(target: Target) -> bool:
    """Whether the target stands for the processor of this process."""
    attrs = target.attrs
    if not runs_here(target_triple(attrs)):
        return False
    if "mcpu" in attrs:
        return bool(attrs["mcpu"] == "native")
    return "mtriple" not in attrs and "mattr" not in attrs


def cpu_info(target: Target | None = None) -> CpuInfo:
    """The processor of a target; of the current target, or this machine, without one."""
    target = target or Target.current() or Target("llvm")
    native = is_native(target)
    name = machine_cpu(target)
    triple = target_triple(target.attrs)
    arch = triple.split("-")[0]
    base = host_feature_set() if native else named_features(triple, name)
    features = _adjusted(base, tuple(target.mattr))
    caches = host_caches() if native or name == host_name() else {}
    bits, registers = _vectors(arch, features)
    return CpuInfo(
        arch=arch,
        name=name,
        triple=triple,
        features=features,
        vector_bits=int(target.attrs.get("vector-width", 0)) or bits,
        vector_registers=registers,
        l1d=caches.get("l1", 32 * KB),
        l2=caches.get("l2", 512 * KB),
        l3=caches.get("l3", 8192 * KB),
        cores=int(target.attrs.get("num-cores", 0)) or host_cores(),
    )


def machine_cpu(target: Target) -> str:
    """The processor name to give to LLVM."""
    if is_native(target):
        return host_name()
    if target.mcpu == "native":
        raise TargetError(
            f"-mcpu=native requires the triple of this machine, got {target_triple(target.attrs)}"
        )
    # without a name, features count from the base of the architecture, as in classic TVM
    return target.mcpu


def named_processors() -> frozenset[str]:
    """Names whose features are written down here."""
    return frozenset(X86_CPUS)


def machine_features(target: Target) -> str:
    """The feature text to give to LLVM."""
    return ",".join([*(host_features() if is_native(target) else ()), *target.mattr])


def _vectors(arch: str, features: frozenset[str]) -> tuple[int, int]:
    """Vector bits and registers."""
    if arch in ("x86_64", "i386", "i686"):
        if "avx512f" in features:
            return 512, 32
        return (256 if "avx" in features else 128), 16
    if "sve" in features or "neon" in features or arch.startswith(("aarch64", "arm64")):
        return 128, 32
    return 128, 16


def llvm_features(target: Target) -> frozenset[str]:
    """All features that LLVM gives the target's processor; :func:`cpu_info` has those for schedules."""
    if is_native(target):
        return _adjusted(host_feature_set(), tuple(target.mattr))
    name, triple = machine_cpu(target), target_triple(target.attrs)
    return processor_features(triple, name, ",".join(target.mattr))


@cache
@cache
def _adjusted(base: frozenset[str], mattr: tuple[str, ...]) -> frozenset[str]:
    """The features with those that are given by hand, and all that they imply."""
    features = with_implied(base)
    for item in mattr:
        if item.startswith("-"):
            features = without(features, item[1:])
        else:
            features |= with_implied([item.removeprefix("+")])
    return frozenset(features)
