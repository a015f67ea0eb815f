"""What the search is told of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.support.cores import usable_cores
from tvm.target import Target

_NAMES = (
    "num_cores", "vector_unit_bytes", "cache_line_bytes", "max_shared_memory_per_block",
    "max_local_memory_per_block", "max_threads_per_block", "max_vthread_extent", "warp_size",
)  # fmt: skip
_UNLIMITED = (1 << 31) - 1
_MOBILE = ("mali", "adreno")
_PROCESSORS = ("llvm", "c", "hexagon")


class HardwareParams(Object):
    """Numbers of a machine; those that are not given are usual ones of the target.

    Parameters
    ----------
    num_cores : int, optional
        Cores of a processor.
    vector_unit_bytes : int, optional
        The width of vectors.
    cache_line_bytes : int, optional
        The size of cache lines.
    max_shared_memory_per_block, max_local_memory_per_block : int, optional
        Bytes, of GPUs.
    max_threads_per_block, max_vthread_extent, warp_size : int, optional
        Of GPUs.
    target : str or Target, optional
        Whose usual numbers are taken, if any is missing.
    target_host : str or Target, optional
        Its host.
    """

    num_cores: int
    vector_unit_bytes: int
    cache_line_bytes: int
    max_shared_memory_per_block: int
    max_local_memory_per_block: int
    max_threads_per_block: int
    max_vthread_extent: int
    warp_size: int

    def __init__(
        self,
        num_cores: int | None = None,
        vector_unit_bytes: int | None = None,
        cache_line_bytes: int | None = None,
        max_shared_memory_per_block: int | None = None,
        max_local_memory_per_block: int | None = None,
        max_threads_per_block: int | None = None,
        max_vthread_extent: int | None = None,
        warp_size: int | None = None,
        target: Any = None,
        target_host: Any = None,
    ) -> None:
        given = (
            num_cores, vector_unit_bytes, cache_line_bytes, max_shared_memory_per_block,
            max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size,
        )  # fmt: skip
        usual: Sequence[int] = ()
        if None in given:
            if target is None and target_host is None:
                target = "llvm"
            usual = _usual(Target(target if target is not None else target_host))
        for place, (name, value) in enumerate(zip(_NAMES, given, strict=True)):
            setattr(self, name, int(usual[place] if value is None else value))

    def row(self) -> list[int]:
        """The numbers in the order of records."""
        return [getattr(self, name) for name in _NAMES]

    def __str__(self) -> str:
        names = [f"  {name}: {value}" for name, value in zip(_NAMES, self.row(), strict=True)]
        return "\n".join(["HardwareParams:", *names])

    __repr__ = __str__


def _usual(target: Target) -> tuple[int, ...]:
    kind = target.kind.name
    if kind in _PROCESSORS:
        cores = int(target.attrs.get("num-cores", 0) or usable_cores())
        return cores, 64, 64, 0, 0, 0, 0, 0
    if "gpu" not in target.keys:
        raise TVMError(
            f"HardwareParams requires all numbers for target {kind}, of which none are known",
            hint="pass HardwareParams(num_cores=..., ...) with all of them",
        )
    attrs = target.attrs
    if attrs.get("device") in _MOBILE:
        local = 32768 if attrs["device"] == "adreno" else _UNLIMITED
        return -1, 16, 64, 32768, local, 256, 1, 1
    warp = int(attrs.get("thread_warp_size", 0) or 32)
    threads = int(attrs.get("max_num_threads", 0) or 1024)
    shared = int(attrs.get("max_shared_memory_per_block", 0) or 49152)
    return -1, 16, 64, shared, _UNLIMITED, threads, max(warp // 4, 1), warp
