"""Processor features of a target: ``target.features.has_dotprod``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cpu_features import named_features, with_implied
from .triple import target_triple

if TYPE_CHECKING:
    from .target_node import Target

# features that LLVM names, by the classic name
_FROM_MATTR = {
    "has_dotprod": "dotprod",
    "has_matmul_i8": "i8mm",
    "has_fp16_simd": "fullfp16",
    "has_asimd": "neon",
    "has_sve": "sve",
    "has_sme": "sme",
    "has_mve": "mve",
    "has_dsp": "dsp",
}


class TargetFeatures:
    """Answers by attribute; None for a feature nobody has heard of."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        target = self._target
        given = target.attrs.get(f"feature.{name}")
        if given is not None:
            return given
        if name == "has_scalable_vectors":
            arch = str(target.attrs.get("mtriple", ""))
            return self.has_sve or arch.startswith("riscv")
        if name == "is_aarch64":
            return str(target.attrs.get("mtriple", "")).startswith(("aarch64", "arm64"))
        if (feature := _FROM_MATTR.get(name)) is None:
            return None
        given = [item[1:] for item in target.mattr if item.startswith("+")]
        named = named_features(target_triple(target.attrs), target.mcpu)
        if feature in with_implied([*given, *named]):
            return True
        return name == "has_asimd" and bool(self.is_aarch64)
