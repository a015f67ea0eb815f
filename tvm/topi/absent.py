"""Operator libraries of devices that have no schedules here.

Programs that run on several devices name all their schedules beforehand, in tables by target; the
names exist, and calling one tells what is missing.

from tvm.topi.cuda.softmax import schedule_softmax

_SOFTMAX = {"generic": topi.generic.schedule_softmax, "gpu": schedule_softmax}
s = topi.testing.dispatch("llvm", _SOFTMAX)([B])
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from tvm.error import OpNotImplemented


class AbsentLibrary(ModuleType):
    """The computes and schedules of one kind of device, none of which can be called."""

    def __init__(self, name: str, devices: str) -> None:
        super().__init__(f"tvm.topi.{name}", f"Operators on {devices}: no schedules here.")
        self._devices = devices

    def part(self, name: str) -> AbsentLibrary:
        """The module of that name in the library."""
        return AbsentLibrary(f"{self.__name__.removeprefix('tvm.topi.')}.{name}", self._devices)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        function = self.part(name).__call__

        def reject(*args: Any, **kwargs: Any) -> NoReturn:
            function(*args, **kwargs)

        reject.__name__ = reject.__qualname__ = name
        return reject

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Modules have the names of functions in them, and take their place once imported."""
        path = self.__name__.removeprefix("tvm.")
        raise OpNotImplemented(
            f"{path} requires schedules for {self._devices}, which this package does not have",
            hint="build for a processor: topi.x86 and topi.generic have its schedules",
        )


cuda = AbsentLibrary("cuda", "CUDA devices")
gpu = AbsentLibrary("gpu", "GPUs")
rocm = AbsentLibrary("rocm", "ROCm devices")
mali = AbsentLibrary("mali", "Mali GPUs")
bifrost = AbsentLibrary("bifrost", "Bifrost GPUs")
adreno = AbsentLibrary("adreno", "Adreno GPUs")
intel_graphics = AbsentLibrary("intel_graphics", "Intel GPUs")
hls = AbsentLibrary("hls", "high-level synthesis")
hexagon = AbsentLibrary("hexagon", "Hexagon DSPs")

__all__ = [
    "adreno", "bifrost", "cuda", "gpu", "hexagon", "hls", "intel_graphics", "mali", "rocm",
]  # fmt: skip
