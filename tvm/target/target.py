"""The classic module of targets: the class, its parts, and a constructor for each family."""

from .constructors import (
    adreno,
    arm_cpu,
    bifrost,
    create,
    cuda,
    hexagon,
    intel_graphics,
    mali,
    micro,
    rasp,
    riscv_cpu,
    rocm,
    stm32,
    vta,
)
from .features import TargetFeatures
from .kind import TargetError, TargetKind
from .target_node import Target, host_target

__all__ = [
    "Target",
    "TargetError",
    "TargetFeatures",
    "TargetKind",
    "adreno",
    "arm_cpu",
    "bifrost",
    "create",
    "cuda",
    "hexagon",
    "host_target",
    "intel_graphics",
    "mali",
    "micro",
    "rasp",
    "riscv_cpu",
    "rocm",
    "stm32",
    "vta",
]
