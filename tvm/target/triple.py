"""Triples: ``aarch64-linux-gnu`` is ``aarch64-unknown-linux-gnu`` for LLVM, which reads them by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .host import host_triple
from .kind import TargetError

_SYSTEMS = (
    "linux", "none", "windows", "darwin", "macosx", "ios", "freebsd", "netbsd", "openbsd", "wasi",
    "emscripten", "android", "cuda",
)  # fmt: skip
_HARD_SUFFIX = "hf"


def normalized(triple: str) -> str:
    """The triple with a vendor, so that the system and the ABI are where LLVM looks for them."""
    arch, *rest = triple.split("-")
    if rest and rest[0].startswith(_SYSTEMS):
        return "-".join([arch, "unknown", *rest])
    return triple


def target_triple(attrs: Mapping[str, Any]) -> str:
    """The triple that a target's options ask for; this process's without ``-mtriple``."""
    given = attrs.get("mtriple")
    triple = normalized(str(given)) if given else host_triple()
    wanted = attrs.get("mfloat-abi")
    return triple if wanted is None else _with_float_abi(triple, str(wanted))


def _with_float_abi(triple: str, wanted: str) -> str:
    """How floats are passed is a part of an Arm triple: ``gnueabihf`` or ``gnueabi``."""
    if wanted not in ("hard", "soft"):
        raise TargetError(f"-mfloat-abi requires hard or soft, got {wanted!r}")
    arch, *rest = triple.split("-")
    if not arch.startswith(("arm", "thumb")) or arch.startswith("arm64"):
        if wanted == "soft":
            raise TargetError(
                f"-mfloat-abi=soft requires a 32-bit Arm triple, got {triple!r}",
                hint="-mabi=lp64 for RISC-V",
            )
        return triple
    system = (rest or [""])[-1].removesuffix(_HARD_SUFFIX)
    if not system.endswith("eabi"):
        raise TargetError(
            f"-mfloat-abi requires a triple that ends in eabi or eabihf, got {triple!r}",
            hint="-mtriple=armv7a-linux-gnueabihf",
        )
    suffix = _HARD_SUFFIX if wanted == "hard" else ""
    return "-".join([arch, *rest[:-1], system + suffix])


def runs_here(triple: str) -> bool:
    """Whether this process can run code for a triple; the vendor does not matter."""
    ours, theirs = host_triple().split("-"), normalized(triple).split("-")
    return ours[0] == theirs[0] and ours[2:] == theirs[2:]
