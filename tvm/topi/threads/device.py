"""What schedules ask of a device."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.target import Target

USUAL_SHARED_BYTES = 48 << 10
USUAL_PROCESSORS = 40


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """Limits of a block, and how wide the device is."""

    max_threads: int
    shared_bytes: int
    warp: int
    processors: int = USUAL_PROCESSORS

    @staticmethod
    def of(target: Target | None) -> GpuInfo:
        """The device of a target, by default of the current one."""
        attrs = {} if target is None else target.attrs
        threads = int(attrs.get("max_num_threads", 256))
        threads = min(threads, int(attrs.get("max_threads_per_block", threads)))
        shared = int(attrs.get("max_shared_memory_per_block", USUAL_SHARED_BYTES))
        return GpuInfo(threads, shared, max(int(attrs.get("thread_warp_size", 32)), 1))


def current_device() -> GpuInfo:
    """The device of the current target."""
    return GpuInfo.of(Target.current())
