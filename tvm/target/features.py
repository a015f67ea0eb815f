"""Processor features of a target: ``target.features.has_dotprod``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cpu_features import host_feature_set, named_features, with_implied
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

# vectors of a length that the processor decides, on AArch64 and RISC-V
SCALABLE = frozenset(["sve", "v"])


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
            return any(map(self._has, SCALABLE)) or self._runs_on_scalable_vectors()
        if name == "is_aarch64":
            return str(target.attrs.get("mtriple", "")).startswith(("aarch64", "arm64"))
        if (feature := _FROM_MATTR.get(name)) is None:
            return None
        return self._has(feature) or (name == "has_asimd" and bool(self.is_aarch64))

    def _has(self, feature: str) -> bool:
        """Whether the target names a feature, or a processor with it."""
        target = self._target
        given = [item[1:] for item in target.mattr if item.startswith("+")]
        named = named_features(target_triple(target.attrs), target.mcpu)
        return feature in with_implied([*given, *named])

    def _runs_on_scalable_vectors(self) -> bool:
        """Whether the target is this machine, and this machine has such vectors."""
        attrs = self._target.attrs
        is_native = "mtriple" not in attrs and attrs.get("mcpu", "native") == "native"
        return is_native and not SCALABLE.isdisjoint(host_feature_set())
