"""Processor features of a target: ``target.features.has_dotprod``."""

from __future__ import annotations

from collections.abc import Mapping
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

# what the processors of Arm's M profile have, by the beginning of what -mcpu says
_M_PROFILE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("cortex-m0", "cortex-m3"), ()),
    **dict.fromkeys(("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p"), ("dsp",)),
    "cortex-m55": ("dsp", "mve"),
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
        if name == "is_test":
            return target.kind.name == "test"
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
        if (of_m_profile := m_profile(target.attrs)) is not None:
            return feature in of_m_profile
        given = [item[1:] for item in target.mattr if item.startswith("+")]
        named = named_features(target_triple(target.attrs), target.mcpu)
        return feature in with_implied([*given, *named])

    def _runs_on_scalable_vectors(self) -> bool:
        """Whether the target is this machine, and this machine has such vectors."""
        attrs = self._target.attrs
        is_native = "mtriple" not in attrs and attrs.get("mcpu", "native") == "native"
        return is_native and not SCALABLE.isdisjoint(host_feature_set())


def is_arm(attrs: Mapping[str, Any]) -> bool:
    """Whether a target's options name an Arm processor."""
    triple = str(attrs.get("mtriple", ""))
    return m_profile(attrs) is not None or triple.startswith(("aarch64", "arm"))


def m_profile(attrs: Mapping[str, Any]) -> frozenset[str] | None:
    """The extensions of a Cortex-M processor that a target's options name, None for others.

    ``+nodsp`` and ``+nomve``, in ``-mcpu`` or ``-mattr``, take them away; vectors need the DSP
    extension.
    """
    cpu = str(attrs.get("mcpu", ""))
    found = [name for name in _M_PROFILE if cpu.startswith(name)]
    if not found:
        return None
    flags = ",".join([cpu, *attrs.get("mattr", ())])
    without = {"dsp", "mve"} if "+nodsp" in flags else {"mve"} if "+nomve" in flags else set()
    return frozenset(_M_PROFILE[max(found, key=len)]) - without
