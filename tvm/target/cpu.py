"""What schedules need to know about a processor: vector width, registers, caches, cores.

A ``llvm`` target without ``-mcpu`` and ``-mtriple``, or with ``-mcpu=native``, stands for the machine that
builds: code is generated for its processor. The target's text stays the classic one.
"""

from __future__ import annotations

from dataclasses import dataclass

from .host import host_caches, host_cores, host_features, host_name, host_triple
from .target import Target

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

    @property
    def has_avx2(self) -> bool:
        return "avx2" in self.features

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
        return "fma" in self.features or not self.arch.startswith(("x86", "i")) or self.has_avx512f

    @property
    def fp32_lanes(self) -> int:
        """float32 values in one vector register."""
        return self.vector_bits // 32


def is_native(target: Target) -> bool:
    """Whether the target stands for the processor of this process."""
    attrs = target.attrs
    return (
        attrs.get("mcpu", "native") == "native" and "mtriple" not in attrs and "mattr" not in attrs
    )


def cpu_info(target: Target | None = None) -> CpuInfo:
    """The processor of a target; of the current target, or this machine, without one."""
    target = target or Target.current() or Target("llvm")
    native = is_native(target)
    name = machine_cpu(target)
    triple = str(target.attrs.get("mtriple", host_triple()))
    arch = triple.split("-")[0]
    features = _host_feature_set() if native else _named_features(arch, name, target.mattr)
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
    name = target.mcpu
    if name and name != "native":
        return name
    # features given by hand count from the base of the architecture, as in classic TVM
    return host_name() if is_native(target) else ""


def named_processors() -> frozenset[str]:
    """Names whose features are written down here."""
    return frozenset(_X86_CPUS)


def machine_features(target: Target) -> str:
    """The feature text to give to LLVM."""
    return ",".join(host_features()) if is_native(target) else ",".join(target.mattr)


def _host_feature_set() -> frozenset[str]:
    return frozenset([f[1:] for f in host_features() if f.startswith("+")])


def _vectors(arch: str, features: frozenset[str]) -> tuple[int, int]:
    """Vector bits and registers."""
    if arch in ("x86_64", "i386", "i686"):
        if "avx512f" in features:
            return 512, 32
        return (256 if "avx" in features else 128), 16
    if "sve" in features or "neon" in features or arch.startswith(("aarch64", "arm64")):
        return 128, 32
    return 128, 16


# features by generation, each including the one before
_V3 = "sse4.1 sse4.2 avx avx2 fma f16c bmi bmi2 popcnt"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
_VNNI = f"{_V4} avx512vnni"
_BF16 = f"{_VNNI} avx512bf16"
_X86_CPUS = {
    **dict.fromkeys(("x86-64-v2", "nehalem", "westmere"), "sse4.1 sse4.2 popcnt"),
    **dict.fromkeys(("sandybridge", "ivybridge", "corei7-avx", "core-avx-i"), "sse4.1 sse4.2 avx"),
    **dict.fromkeys(
        ("x86-64-v3", "haswell", "broadwell", "core-avx2", "skylake", "znver1", "znver2", "znver3"),
        _V3,
    ),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx", "knl", "cannonlake"), _V4),
    **dict.fromkeys(
        ("cascadelake", "icelake-client", "icelake-server", "tigerlake", "rocketlake"), _VNNI
    ),
    **dict.fromkeys(
        ("cooperlake", "sapphirerapids", "emeraldrapids", "graniterapids", "znver4", "znver5"),
        _BF16,
    ),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake"), f"{_V3} avxvnni"),
}


def _named_features(arch: str, name: str, mattr: list[str]) -> frozenset[str]:
    """The features a processor's name implies, and those given by hand."""
    known = _host_feature_set() if name and name == host_name() else frozenset()
    features = set(
        known or _X86_CPUS.get(name, "neon" if arch.startswith("aarch64") else "").split()
    )
    for item in mattr:
        if item.startswith("-"):
            features.discard(item[1:])
        else:
            features.add(item.removeprefix("+"))
    return frozenset(features)
