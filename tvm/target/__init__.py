"""Targets: for which machines to compile, and what they can do."""

from . import (
    _ffi_api,
    codegen,
    compilation_config,
    datatype,
    detect_target,
    tag,
    target,
    virtual_device,
    x86,
)
from .compilation_config import make_compilation_config
from .constructors import (
    adreno,
    arm_cpu,
    bifrost,
    create,
    cuda,
    current_target,
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
from .cpu import CpuInfo, cpu_info
from .features import TargetFeatures
from .generic_func import (
    GenericFunc,
    generic_func,
    get_native_generic_func,
    override_native_generic_func,
)
from .kind import TargetError, TargetKind, register_target_kind
from .tag import list_tags, register_tag
from .target_node import Target
from .virtual_device import VirtualDevice

__all__ = [
    "CpuInfo",
    "GenericFunc",
    "Target",
    "TargetError",
    "TargetFeatures",
    "TargetKind",
    "VirtualDevice",
    "adreno",
    "arm_cpu",
    "bifrost",
    "cpu_info",
    "create",
    "current_target",
    "cuda",
    "generic_func",
    "get_native_generic_func",
    "hexagon",
    "intel_graphics",
    "list_tags",
    "make_compilation_config",
    "mali",
    "micro",
    "override_native_generic_func",
    "rasp",
    "register_tag",
    "register_target_kind",
    "riscv_cpu",
    "rocm",
    "stm32",
    "vta",
]
