"""Constructors of targets by family: ``tvm.target.arm_cpu("rasp4b")``."""

from __future__ import annotations

from typing import Any

from tvm.support.deprecation import warn_renamed

from .kind import TargetError
from .parse import read_config
from .target_node import Target


def _merge(kind: str, fixed: list[str], options: Any) -> Target:
    given = options.split() if isinstance(options, str) else list(options or ())
    return Target(" ".join([kind, *fixed, *given]))


def cuda(model: str = "unknown", arch: str | None = None, options: Any = None) -> Target:
    """An NVIDIA GPU; ``arch`` such as ``sm_80``."""
    return _merge("cuda", [f"-model={model}", *([f"-arch={arch}"] if arch else [])], options)


def rocm(model: str = "unknown", options: Any = None) -> Target:
    """An AMD GPU."""
    return _merge("rocm", [f"-model={model}"], options)


def mali(model: str = "unknown", options: Any = None) -> Target:
    """An ARM Mali GPU."""
    return _merge("opencl", ["-device=mali", f"-model={model}"], options)


def bifrost(model: str = "unknown", options: Any = None) -> Target:
    """An ARM Mali GPU of the Bifrost family."""
    return _merge("opencl", ["-device=bifrost", f"-model={model}"], options)


def adreno(model: str = "unknown", options: Any = None, backend: str = "opencl") -> Target:
    """A Qualcomm Adreno GPU."""
    return _merge(backend, ["-device=adreno", f"-model={model}"], options)


def intel_graphics(model: str = "unknown", options: Any = None) -> Target:
    """An Intel GPU."""
    fixed = ["-device=intel_graphics", f"-model={model}", "-thread_warp_size=16"]
    return _merge("opencl", fixed, options)


def micro(model: str = "unknown", options: Any = None) -> Target:
    """A microcontroller, through C."""
    return _merge("c", ["-keys=cpu", f"-model={model}"], options)


_ARM_BOARDS = {
    "pixel2": ["-model=snapdragon835"],
    "mate10": ["-model=kirin970"],
    "mate10pro": ["-model=kirin970"],
    "p20": ["-model=kirin970"],
    "p20pro": ["-model=kirin970"],
    "rasp3b": ["-model=bcm2837", "-mattr=+neon"],
    "rasp4b": ["-model=bcm2711", "-mattr=+neon"],
    "rasp4b64": ["-model=bcm2711", "-mcpu=cortex-a72", "-mattr=+neon"],
    "rk3399": ["-model=rk3399", "-mattr=+neon"],
    "pynq": ["-model=pynq", "-mattr=+neon"],
    "ultra96": ["-model=ultra96", "-mattr=+neon"],
    "beagleai": ["-model=beagleai", "-mattr=+neon,+vfp4,+thumb2", "-mcpu=cortex-a15"],
    "stm32mp1": ["-model=stm32mp1", "-mattr=+neon,+vfp4,+thumb2", "-mcpu=cortex-a7"],
    "thunderx": ["-model=thunderx", "-mcpu=thunderxt88"],
    "graviton2": ["-model=graviton2", "-mcpu=neoverse-n1", "-mattr=+neon,+dotprod"],
    "graviton3": ["-model=graviton3", "-mcpu=neoverse-v1", "-mattr=+neon,+dotprod,+i8mm"],
}
_ARM_32BIT = ("rasp3b", "rasp4b", "pynq", "beagleai", "stm32mp1")


def arm_cpu(model: str = "unknown", options: Any = None) -> Target:
    """An ARM processor, by the name of a board."""
    triple = "armv7l-linux-gnueabihf" if model in _ARM_32BIT else "aarch64-linux-gnu"
    fixed = _ARM_BOARDS.get(model, [f"-model={model}"])
    given = options.split() if isinstance(options, str) else list(options or ())
    chosen = [] if any(o.startswith("-mtriple") for o in given) else [f"-mtriple={triple}"]
    return _merge("llvm", ["-keys=arm_cpu,cpu", "-device=arm_cpu", *fixed, *chosen], given)


def rasp(options: Any = None) -> Target:
    """A Raspberry Pi 3b."""
    return arm_cpu("rasp3b", options)


def riscv_cpu(model: str = "sifive-u54", options: Any = None) -> Target:
    """A RISC-V processor."""
    fixed = [
        "-keys=arm_cpu,cpu", "-device=arm_cpu", f"-model={model}",
        "-mtriple=riscv64-unknown-linux-gnu", f"-mcpu={model}", "-mabi=lp64d",
    ]  # fmt: skip
    return _merge("llvm", fixed, options)


def vta(model: str = "unknown", options: Any = None) -> Target:
    """The VTA accelerator."""
    return _merge("ext_dev", ["-keys=vta,cpu", "-device=vta", f"-model={model}"], options)


def stm32(series: str = "unknown", options: Any = None) -> Target:
    """An STM32 microcontroller series such as ``stm32F7xx``."""
    cpus = {
        "stm32H7xx": "cortex-m7", "stm32F7xx": "cortex-m7", "stm32F4xx": "cortex-m4",
        "stm32L4xx": "cortex-m4", "stm32L5xx": "cortex-m33", "stm32F3xx": "cortex-m4",
    }  # fmt: skip
    if series not in cpus:
        raise TargetError(f"stm32 requires a series of {', '.join(cpus)}, got {series!r}")
    return _merge("c", ["-keys=arm_cpu,cpu", f"-mcpu={cpus[series]}", "-model=stm32"], options)


def hexagon(cpu_ver: str = "v68", **kwargs: Any) -> Target:
    """A Qualcomm Hexagon processor."""
    cores = int(kwargs.get("num_cores", 4))
    features = f"+hvx{cpu_ver},+hvx-length128b"
    return Target(
        f"hexagon -mtriple=hexagon -mcpu=hexagon{cpu_ver} -mattr={features} -num-cores={cores}"
    )


def create(target: Any) -> Target:
    """The spelling of ``Target(target)`` in older releases."""
    warn_renamed("tvm.target.create", "tvm.target.Target")
    if isinstance(target, str):
        read_config(target)
    return Target(target)


def current_target(allow_none: bool = True) -> Target | None:
    """The spelling of ``Target.current`` in older releases.

    Parameters
    ----------
    allow_none : bool
        Whether there may be no target.

    Returns
    -------
    Target or None
        The target of the innermost ``with`` block.
    """
    warn_renamed("tvm.target.current_target", "tvm.target.Target.current")
    return Target.current(allow_none)
