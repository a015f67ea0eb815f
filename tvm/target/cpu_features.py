"""Features of processors that compiled code may rely on: what implies what, what a machine lacks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .host import host_features, host_name
from .llvm_tables import known_processors, processor_features

# Features of common processors, so that LLVM need not be asked; by generation, each including the one
# before.
_V3 = "sse4.1 sse4.2 avx avx2 fma f16c bmi bmi2 popcnt"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
_VNNI = f"{_V4} avx512vnni"
_BF16 = f"{_VNNI} avx512bf16"
X86_CPUS = {
    **dict.fromkeys(("x86-64-v2", "nehalem", "westmere"), "sse4.1 sse4.2 popcnt"),
    **dict.fromkeys(("sandybridge", "corei7-avx"), "sse4.1 sse4.2 avx"),
    **dict.fromkeys(("ivybridge", "core-avx-i"), "sse4.1 sse4.2 avx f16c"),
    **dict.fromkeys(
        ("x86-64-v3", "haswell", "broadwell", "core-avx2", "skylake", "znver1", "znver2", "znver3"),
        _V3,
    ),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "skx", "cannonlake"), _V4),
    "knl": f"{_V3} avx512f avx512cd",
    **dict.fromkeys(
        ("cascadelake", "icelake-client", "icelake-server", "tigerlake", "rocketlake"), _VNNI
    ),
    **dict.fromkeys(("cooperlake", "znver4"), _BF16),
    "znver5": f"{_BF16} avxvnni",
    **dict.fromkeys(
        ("sapphirerapids", "emeraldrapids", "graniterapids"),
        f"{_BF16} avxvnni avx512fp16 amx-tile amx-int8 amx-bf16",
    ),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "arrowlake"), f"{_V3} avxvnni"),
}
_V8_2 = "neon fullfp16 dotprod"
ARM_CPUS = {
    **dict.fromkeys(("cortex-a55", "cortex-a75", "cortex-a76", "cortex-a77", "cortex-a78"), _V8_2),
    **dict.fromkeys(("cortex-x1", "neoverse-n1", "neoverse-e1"), _V8_2),
    **dict.fromkeys(("neoverse-v1", "neoverse-512tvb"), f"{_V8_2} sve i8mm bf16"),
    **dict.fromkeys(("neoverse-n2", "neoverse-v2"), f"{_V8_2} sve sve2 i8mm bf16"),
}
# a feature and those it needs, as LLVM takes them
_IMPLIED = {
    "sse3": "sse2",
    "ssse3": "sse3",
    "sse4.1": "ssse3",
    "sse4.2": "sse4.1",
    "avx": "sse4.2 popcnt",
    "avx2": "avx",
    "fma": "avx",
    "f16c": "avx",
    "avxvnni": "avx2",
    "avx512f": "avx2 fma f16c",
    "avx512bw": "avx512f",
    "avx512cd": "avx512f",
    "avx512dq": "avx512f",
    "avx512vl": "avx512f",
    "avx512vnni": "avx512f",
    "avx512bf16": "avx512bw",
    "avx512fp16": "avx512bw avx512dq avx512vl",
    "amx-int8": "amx-tile",
    "amx-bf16": "amx-tile",
    "dotprod": "neon",
    "i8mm": "neon",
    "fullfp16": "neon",
    "sve": "neon fullfp16",
    "sve2": "sve",
    "vfp4": "vfp3 fp16",
    "zfh": "zfhmin",
}
# What instructions are chosen by and a program can ask its processor about; native/src/processor.cc
# knows the same names.
CHECKED = {
    "x86_64": (
        "sse4.1", "sse4.2", "popcnt", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "avx512f",
        "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16", "avx512fp16",
        "avxvnni", "amx-tile", "amx-int8", "amx-bf16",
    ),
    "aarch64": ("dotprod", "fullfp16", "i8mm", "bf16", "sve", "sve2"),
}  # fmt: skip

# names that need not be looked up in LLVM's tables
KNOWN_FEATURES = frozenset(
    [
        *_IMPLIED,
        *[name for value in _IMPLIED.values() for name in value.split()],
        *[name for value in X86_CPUS.values() for name in value.split()],
        *[name for names in CHECKED.values() for name in names],
        *[
            "v7",
            "vfp2",
            "vfp3",
            "vfp4",
            "thumb2",
            "thumb-mode",
            "soft-float",
            "m",
            "a",
            "f",
            "d",
            "c",
            "v",
            "zfh",
            "simd128",
        ],
    ]
)


def with_implied(features: Iterable[str]) -> set[str]:
    """The features and all that they need."""
    found: set[str] = set()
    pending = list(features)
    while pending:
        feature = pending.pop()
        if feature not in found:
            found.add(feature)
            pending.extend(_IMPLIED.get(feature, "").split())
    return found


def without(features: set[str], removed: str) -> set[str]:
    """The features but one, and but those that need it."""
    return {f for f in features if removed not in with_implied([f])}


def named_features(triple: str, name: str) -> frozenset[str]:
    """The features that a processor's name implies: written down here, this machine's, or LLVM's."""
    arch = triple.split("-")[0]
    is_arm64 = arch.startswith(("aarch64", "arm64"))
    known = {**X86_CPUS, **ARM_CPUS}.get(name)
    if known is None and name and name == host_name():
        return host_feature_set()
    if known is None and name in known_processors(triple):
        return processor_features(triple, name)
    features = ("neon" if is_arm64 else "") if known is None else known
    if name in ARM_CPUS and arch.startswith(("arm", "thumb")) and not is_arm64:
        features += " dsp"  # of which 64-bit code has no use
    return frozenset(features.split())


@cache
def host_feature_set() -> frozenset[str]:
    """The features of this machine's processor."""
    return frozenset([f[1:] for f in host_features() if f.startswith("+")])


def required_features(arch: str, features: frozenset[str]) -> tuple[str, ...]:
    """The features that code for the processor may use and a loader must ask for."""
    return tuple([name for name in CHECKED.get(arch, ()) if name in features])


def missing_here(required: Iterable[str]) -> list[str]:
    """Those of the features that this processor lacks."""
    ours = with_implied(host_feature_set())
    return [name for name in required if name not in ours]
