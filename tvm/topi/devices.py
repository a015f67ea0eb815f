"""Operator libraries of devices: those of GPUs, which have one schedule for all, and those that have none.

Programs that run on several devices name all their schedules beforehand, in tables by target; the
names exist, and calling one that is not there tells what is missing.

from tvm.topi.cuda.softmax import schedule_softmax

_SOFTMAX = {"generic": topi.generic.schedule_softmax, "gpu": schedule_softmax}
s = topi.testing.dispatch("cuda", _SOFTMAX)([B])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from tvm import te
from tvm.error import OpNotImplemented

from . import nn, scan, sort, unique
from .threads import elements
from .threads.schedule import schedule as gpu_schedule


class AbsentLibrary(ModuleType):
    """The computes and schedules of one kind of device, none of which can be called."""

    def __init__(self, name: str, devices: str) -> None:
        super().__init__(f"tvm.topi.{name}", f"Operators on {devices}: no schedules here.")
        self._devices = devices

    def part(self, name: str) -> AbsentLibrary:
        """The module of that name in the library."""
        return type(self)(f"{self.__name__.removeprefix('tvm.topi.')}.{name}", self._devices)

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
            hint="topi.cuda has those of GPUs, topi.x86 and topi.generic those of processors",
        )


class DeviceLibrary(AbsentLibrary):
    """The computes and schedules of one kind of GPU: the computes of `topi.nn`, and one schedule."""

    def __getattr__(self, name: str) -> Any:
        if name in ("schedule_injective", "schedule_injective_from_existing"):
            return getattr(elements, name)
        if name.startswith("schedule_"):
            return _schedule(name)
        for library in (nn, sort, scan, unique):
            if not name.startswith("_") and callable(found := getattr(library, name, None)):
                return found
        return super().__getattr__(name)


def _schedule(name: str) -> Callable[..., te.Schedule]:
    """The schedule under the name of one operator's."""

    def schedule(outs: te.Tensor | Sequence[te.Tensor], *_: Any, **__: Any) -> te.Schedule:
        return gpu_schedule(outs)

    schedule.__name__ = schedule.__qualname__ = name
    schedule.__doc__ = gpu_schedule.__doc__
    return schedule


cuda = DeviceLibrary("cuda", "CUDA devices")
gpu = DeviceLibrary("gpu", "GPUs")
rocm = DeviceLibrary("rocm", "ROCm devices")
mali = DeviceLibrary("mali", "Mali GPUs")
bifrost = DeviceLibrary("bifrost", "Bifrost GPUs")
adreno = DeviceLibrary("adreno", "Adreno GPUs")
intel_graphics = DeviceLibrary("intel_graphics", "Intel GPUs")
hls = AbsentLibrary("hls", "high-level synthesis")
hexagon = AbsentLibrary("hexagon", "Hexagon DSPs")

__all__ = [
    "adreno", "bifrost", "cuda", "gpu", "hexagon", "hls", "intel_graphics", "mali", "rocm",
]  # fmt: skip
