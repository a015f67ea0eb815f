"""Target tags: short names of machines, such as ``raspberry-pi/4b-aarch64``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kind import TargetError


def list_tags() -> dict[str, Any]:
    """All tags and their targets' configurations."""
    return dict(_TAGS)


def register_tag(name: str, config: Mapping[str, Any], override: bool = False) -> None:
    """Name a target configuration.

    Parameters
    ----------
    name : str
        The tag.
    config : dict
        The configuration, as :class:`tvm.target.Target` takes it.
    override : bool
        Replace a tag of that name, rather than raise.
    """
    if name in _TAGS and not override:
        raise TargetError(f"register_tag requires a new name, got {name!r}", hint="override=True")
    _TAGS[name] = dict(config)


def find_tag(name: str) -> dict[str, Any] | None:
    """The configuration of a tag, or None."""
    return _TAGS.get(name)


def _gpu(arch: str, registers: int = 65536, shared: int = 49152, l2: int = 0) -> dict[str, Any]:
    config: dict[str, Any] = {
        "kind": "cuda",
        "keys": ["cuda", "gpu"],
        "arch": arch,
        "max_shared_memory_per_block": shared,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
        "registers_per_block": registers,
    }
    return {**config, "l2_cache_size_bytes": l2} if l2 else config


def _metal(threads: int) -> dict[str, Any]:
    return {
        "kind": "metal",
        "keys": ["metal", "gpu"],
        "max_threads_per_block": threads,
        "max_shared_memory_per_block": 32768,
        "thread_warp_size": 32,
    }


def _arm(mcpu: str, cores: int, model: str, mattr: tuple[str, ...] = ("+neon",)) -> dict[str, Any]:
    return {
        "kind": "llvm",
        "keys": ["arm_cpu", "cpu"],
        "device": "arm_cpu",
        "model": model,
        "mtriple": "aarch64-linux-gnu",
        "mcpu": mcpu,
        "mattr": list(mattr),
        "num-cores": cores,
    }


def _x86(mcpu: str, cores: int) -> dict[str, Any]:
    return {"kind": "llvm", "keys": ["x86", "cpu"], "mcpu": mcpu, "num-cores": cores}


_CUDA_TAGS = {
    **{f"nvidia/tesla-{n}": _gpu("sm_70") for n in ("v100",)},
    **{f"nvidia/tesla-{n}": _gpu("sm_60") for n in ("p100",)},
    **{f"nvidia/tesla-{n}": _gpu("sm_61") for n in ("p4", "p40")},
    **{f"nvidia/{n}": _gpu("sm_75") for n in ("nvidia-t4", "geforce-rtx-2060", "geforce-rtx-2070")},
    **{f"nvidia/geforce-rtx-{n}": _gpu("sm_75") for n in ("2080", "2080-ti", "titan-rtx")},
    **{f"nvidia/geforce-rtx-{n}": _gpu("sm_86") for n in ("3060", "3070", "3080", "3090")},
    **{f"nvidia/geforce-rtx-{n}": _gpu("sm_89") for n in ("4060", "4070", "4080")},
    **{f"nvidia/geforce-gtx-{n}": _gpu("sm_61") for n in ("1060", "1070", "1080", "1080-ti")},
    "nvidia/geforce-rtx-4090": _gpu("sm_89", l2=75497472),
    "nvidia/geforce-rtx-3090-ti": _gpu("sm_86", l2=6291456),
    "nvidia/nvidia-a10": _gpu("sm_86"),
    "nvidia/nvidia-a40": _gpu("sm_86"),
    "nvidia/nvidia-a100": _gpu("sm_80", l2=41943040),
    "nvidia/nvidia-h100": _gpu("sm_90a", l2=52428800),
    "nvidia/jetson-agx-xavier": _gpu("sm_72"),
    "nvidia/jetson-agx-orin-32gb": _gpu("sm_87"),
    "nvidia/jetson-orin-nano": _gpu("sm_87"),
    "nvidia/jetson-nano": _gpu("sm_53", registers=32768),
    "nvidia/jetson-tx2": _gpu("sm_62", registers=32768),
}
_METAL_TAGS = {
    "apple/m1-gpu": _metal(1024),
    "apple/m1-gpu-restricted": _metal(256),
    "apple/m2-gpu": _metal(1024),
    "apple/m2-gpu-restricted": _metal(256),
}
_CPU_TAGS = {
    "raspberry-pi/4b-aarch64": _arm("cortex-a72", 4, "rasp4b"),
    "raspberry-pi/5-aarch64": _arm("cortex-a76", 4, "rasp5", ("+neon", "+dotprod")),
    "aws/cpu/c5.large": _x86("skylake-avx512", 1),
    "aws/cpu/c5.xlarge": _x86("skylake-avx512", 2),
    "aws/cpu/c5.2xlarge": _x86("skylake-avx512", 4),
    "aws/cpu/c5.4xlarge": _x86("skylake-avx512", 8),
    "aws/cpu/c5.9xlarge": _x86("skylake-avx512", 18),
    "aws/cpu/c5.12xlarge": _x86("cascadelake", 24),
    "aws/cpu/c5.18xlarge": _x86("skylake-avx512", 36),
    "aws/cpu/c5.24xlarge": _x86("cascadelake", 48),
}
_TAGS: dict[str, dict[str, Any]] = {**_CUDA_TAGS, **_METAL_TAGS, **_CPU_TAGS}
